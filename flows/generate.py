"""Stage 1: the instance sets that the grid needs, a task per set that is not there yet."""

from collections.abc import Coroutine
from typing import Any

from prefect import Task, flow, task

from flows.console import Console
from flows.context import Options, Study, open_study
from flows.grid import InstanceSetKey, instance_set_keys
from flows.orchestration import artifact_key, claim, labels, publish
from flows.sets import materialize_instances
from flows.watching import sets_text


@flow(name="generate", flow_run_name="generate")
async def generate(options: Options) -> int:
    """Write every missing instance set under data/instances/. Returns how many were written."""
    study, console = open_study(options), Console()
    await claim(study.store.root, console)
    keys = instance_set_keys(study.manifest, study.cells)
    written = 0
    with console.progress("generate", len(keys), "sets") as progress:
        for key in keys:
            new = not study.store.has_set(study.store.instance_set(key.name)) and await _set_task(study, key)()
            written += new
            progress.advance()
            console.line(
                f"generate: family {key.family}, difficulty {key.difficulty}, sample {key.sample}, "
                f"count {key.count}, seed {study.manifest.seed}: {'written' if new else 'already there'}"
            )
    text = sets_text("generate", study, (key.name for key in keys), written)
    await publish(artifact_key(options.profile, "generate"), text, "What the stage generate did")
    return written


def _set_task(study: Study, key: InstanceSetKey) -> Task[[], Coroutine[Any, Any, bool]]:
    async def instance_set() -> bool:
        return materialize_instances(study.store, study.manifest, key)

    return task(name="instance-set", task_run_name=key.name, tags=labels(key.family))(instance_set)
