"""Stage 2: every cell's variants, a task per cell that lacks them; the instance sets are only read."""

from collections.abc import Coroutine
from typing import Any

from prefect import Task, flow, task

from flows.console import Console
from flows.context import Options, Study, open_study
from flows.grid import Cell
from flows.orchestration import artifact_key, claim, labels, publish
from flows.sets import materialize_variants
from flows.watching import sets_text


@flow(name="perturb", flow_run_name="perturb")
async def perturb(options: Options) -> int:
    """Write every missing variant set under data/variants/. Returns how many were written."""
    study, console = open_study(options), Console()
    await claim(study.store.root, console)
    written = 0
    with console.progress("perturb", len(study.cells), "cells") as progress:
        for cell in study.cells:
            written += not study.has_variants(cell) and await _cell_task(study, cell)()
            progress.advance()
    console.line(f"perturb: {len(study.cells)} cells, {written} written, {len(study.cells) - written} already there")
    text = sets_text("perturb", study, (cell.id for cell in study.cells), written)
    await publish(artifact_key(options.profile, "perturb"), text, "What the stage perturb did")
    return written


def _cell_task(study: Study, cell: Cell) -> Task[[], Coroutine[Any, Any, bool]]:
    async def variants() -> bool:
        return materialize_variants(study.store, study.manifest, cell)

    return task(name="variants", task_run_name=cell.id, tags=labels(cell.family, cell.axis))(variants)
