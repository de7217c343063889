"""Stage 3: the episodes, a task per cell and per episode. Transcripts are the truth, Prefect's cache is a shortcut.

Cells are carried out in this process, or shipped to a cluster whose workers open the study for themselves.
"""

import asyncio
import io
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import Task, flow, task
from prefect.cache_policies import CacheKeyFnPolicy
from prefect.client.schemas.objects import State, TaskRun
from prefect.states import Completed

from flows.campaign import Campaign, CellReport, EpisodeFailed
from flows.campaign_summary import halt_error, summary_lines
from flows.console import Console
from flows.context import Options, open_study
from flows.continuity import change_lines, remember
from flows.episodes.job import Job
from flows.episodes.pacing import shared_limits
from flows.errors import StudyError
from flows.grid import Cell, find_cells
from flows.orchestration import (
    artifact_key,
    claim,
    cluster,
    is_shared,
    labels,
    publish,
    report_as,
    reported_to,
    set_limits,
    shown_progress,
    take_slots,
)
from flows.watching import cell_text, run_text
from tasks_env.canonical import content_hash

CACHE_VERSION = 1

CarryOut = Callable[[str, Cell, list[Job]], Awaitable[None]]
"""Carries out a cell's jobs for a model."""


@flow(name="run", flow_run_name="run")
async def run(options: Options) -> Any:
    """Run every unfinished episode. Returns counts of planned and finished episodes and of infra_errors.

    The flow run's state says what the summary says; at the cost cap it is called Partial.

    Raises:
        RunHalted: the provider refuses every further call; what is left is listed.
        CellLocked: another process works on a cell.
    """
    study, console = open_study(options), Console()
    await claim(study.store.root, console)
    for line in change_lines(study):
        console.line(f"run: {line}")
    acquire = take_slots if is_shared() or study.manifest.execution.cluster else None
    if acquire:
        limits = shared_limits(study.manifest, study.models)
        for change in await set_limits({limit.name: limit.per_minute * limit.grain for limit in limits}):
            console.line(f"run: Prefect's global concurrency limit {change}")
    campaign = Campaign(study, console, acquire=acquire)
    work = [(model, cell, campaign.jobs(model, cell)) for model, cell in study.work]
    places = asyncio.Semaphore(study.manifest.execution.concurrent_cells)

    async def in_turn(carry_out: CarryOut, model: str, cell: Cell, jobs: list[Job]) -> None:
        async with places:
            try:
                await carry_out(model, cell, jobs)
            except StudyError as error:  # the cell's task is red; what the other cells have in flight is finished
                campaign.halt(error)

    left = dict.fromkeys(study.models, 0)
    for model, _, jobs in work:
        left[model] += sum(len(job.conversation) for job in jobs)
    campaign.check_disk(left)
    remember(study)  # not before: a run that is refused leaves the change to be told by the next one
    try:
        with console.progress("run", sum(left.values()), "episodes") as progress:
            campaign.show_on(progress)
            for model in study.models:
                complete = [
                    cell for name, cell, jobs in work if name == model and not jobs and campaign.is_complete(name, cell)
                ]
                if complete:
                    await _complete_task(campaign, model, complete)()
            key = artifact_key(options.profile, "run", "progress")
            async with (
                shown_progress(key, "Episodes of this run", progress.percent),
                _hands(campaign) as carry_out,
                asyncio.TaskGroup() as group,
            ):
                for model, cell, jobs in work:
                    if jobs:
                        group.create_task(in_turn(carry_out, model, cell, jobs))
    except* Exception as errors:  # noqa: BLE001 - whatever stopped a cell, the first is the one to report
        raise errors.exceptions[0] from None
    finally:
        await campaign.close()
    summary = summary_lines(campaign)
    for line in summary:
        console.line(line)
    await publish(artifact_key(options.profile, "run"), run_text(campaign, summary), "What the stage run did")
    error = halt_error(campaign)
    if error is not None:
        raise error
    tally = campaign.tally
    return Completed(
        name="Partial" if campaign.capped else None,
        message="\n".join(summary),
        data={"planned": tally.planned, "finished": tally.finished, "infra_errors": tally.infra_errors},
    )


def _complete_task(
    campaign: Campaign, model: str, cells: list[Cell]
) -> Task[[], Coroutine[Any, Any, dict[str, dict[str, int]]]]:
    """All complete cells of a model as one task, cached under their episodes: what is done costs one look."""
    study = campaign.study

    async def complete_cells() -> dict[str, dict[str, int]]:
        return {cell.id: dict(campaign.tally.outcomes[(model, cell.id)]) for cell in cells}

    episodes = [episode.episode_id for cell in cells for episode in study.episodes(model, cell)]
    key = content_hash([CACHE_VERSION, study.store.identity(), model, episodes])
    return task(
        name="complete-cells",
        task_run_name=f"{model}: {len(cells)} complete cells",
        tags=labels(model),
        persist_result=True,
        result_serializer="json",
        cache_policy=CacheKeyFnPolicy(cache_key_fn=lambda _context, _parameters: key),
    )(complete_cells)


@asynccontextmanager
async def _hands(campaign: Campaign) -> AsyncIterator[CarryOut]:
    """What carries out a cell: this process, or a worker of the manifest's cluster."""
    wanted = campaign.study.manifest.execution.cluster
    if wanted is None:

        async def here(model: str, cell: Cell, jobs: list[Job]) -> None:
            async def episodes() -> dict[str, int]:
                return await _run_cell(campaign, model, cell, jobs)

            await _cell_task(model, cell)(episodes)()

        yield here
        return
    study = campaign.study
    options = study.options.model_copy(update={"manifest": str(study.manifest_path.resolve())})
    origin = asdict(study.provenance)
    async with cluster(wanted.workers, wanted.address) as ship:

        async def elsewhere(model: str, cell: Cell, jobs: list[Job]) -> None:
            if jobs and not campaign.stopped_for(model):
                parameters = {
                    "options": options,
                    "model": model,
                    "cell_id": cell.id,
                    "origin": origin,
                    "server": reported_to(),
                }
                campaign.absorb(model, cell, await ship(_cell_task(model, cell)(run_shipped_cell), parameters))

        yield elsewhere


def _cell_task(model: str, cell: Cell) -> Callable[[Callable[..., Any]], Task[..., Any]]:
    return task(
        name="cell",
        task_run_name=f"{model} {cell.id}",
        tags=labels(model, cell.family, cell.axis),
        persist_result=False,
    )


async def run_shipped_cell(
    options: Options, model: str, cell_id: str, origin: dict[str, str], server: dict[str, str]
) -> CellReport:
    """Carry out what is left of a cell, in the process of a worker: one ledger and one cap with all others.

    Args:
        options: Of the study, the manifest's path absolute.
        origin: The provenance that every row of this run records.
        server: The one that the study reports to.

    Raises:
        StudyError: this worker does not see the study that it is to work on.
    """
    report_as(server)
    if not Path(options.manifest).is_file():
        raise StudyError(
            f"the worker on {socket.gethostname()} does not see {options.manifest}; workers and study need one shared "
            "folder under the same path"
        )
    study = open_study(options)
    if asdict(study.provenance) != origin:
        differing = ", ".join(name for name, value in asdict(study.provenance).items() if value != origin[name])
        raise StudyError(
            f"the worker on {socket.gethostname()} works from other sources than the study ({differing}); bring its "
            "checkout to the same commit and start it again"
        )
    cell = find_cells(study.manifest, cell_id)[0]
    campaign = Campaign(study, Console(io.StringIO()), acquire=take_slots)
    try:
        await _run_cell(campaign, model, cell, campaign.jobs(model, cell))
    except StudyError as error:
        campaign.halt(error)
    finally:
        await campaign.close()
    return campaign.report(model, cell)


async def _run_cell(campaign: Campaign, model: str, cell: Cell, jobs: list[Job]) -> dict[str, int]:
    study = campaign.study
    per_episode = study.manifest.execution.tracking == "per_episode"
    retries = study.manifest.retry.episode_attempts - 1

    async def attempt(job: Job) -> None:
        if campaign.stopped_for(model):
            return
        if per_episode:
            with suppress(EpisodeFailed):  # recorded; a red episode under a green cell
                await _episode_task(campaign, job, retries)()
        else:
            await campaign.attempt_repeatedly(job)

    await campaign.run_cell(model, cell, jobs, attempt)
    key = artifact_key(study.options.profile, model, cell.id)
    await publish(key, cell_text(campaign, model, cell), f"Episodes of {model} in {cell.id}")
    return dict(campaign.tally.outcomes[(model, cell.id)])


def _episode_task(campaign: Campaign, job: Job, retries: int) -> Task[[], Coroutine[Any, Any, str]]:
    async def episode() -> str:
        summary = await campaign.attempt(job)
        return ", ".join(one.outcome for one in summary.conversation) if summary else "not started"

    def worth_another(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
        return isinstance(getattr(state.data, "result", state.data), EpisodeFailed)

    return task(
        name="episode",
        task_run_name=f"{job.episode.cell.id} {job.instance.instance_id} run {job.episode.run_seed}"
        + (f" and {len(job.followers)} more tasks" if job.followers else ""),
        tags=labels(job.episode.model, job.episode.cell.family, job.episode.cell.axis),
        retries=retries,
        retry_condition_fn=worth_another,
        persist_result=False,
    )(episode)
