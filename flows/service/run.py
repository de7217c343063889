"""`agent-bench service run`: a model of the manifest does a task, several times, and each result is judged."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

from flows.campaign import Campaign
from flows.campaign_summary import halt_error, summary_lines
from flows.console import Console
from flows.context import Options
from flows.episodes.job import Job
from flows.readiness import check_models
from flows.service.band import band_lines
from flows.service.scoring import KeptJudge, score_finished
from flows.service.study import ServiceStudy, chosen_axes, model_entry
from tasks_env import registered
from tasks_env.service.benchmark import Benchmark
from tasks_env.service.family import Judge, ServiceChange, judged_here


def run_benchmark(
    options: Options,
    benchmark: Benchmark,
    model: str,
    console: Console,
    *,
    runs: int,
    axis: str | None = None,
    level: str | None = None,
    environ: Mapping[str, str] = os.environ,
    judge: Judge = judged_here,
) -> int:
    """Run what is unfinished, judge it, report. Returns 0, or 1 if an episode ended in an infra_error.

    Args:
        judge: Gives the verdicts.

    Raises:
        ConfigurationError: model, axis or manifest do not fit; a key is missing.
        RunHalted: the provider refuses every further call.
        StoreError, CellLocked: as for a study.
    """
    axes = chosen_axes(axis, level)
    benchmark.check_evidence()
    kept = KeptJudge(judge)
    with registered(ServiceChange(kept)):
        study = ServiceStudy(options, benchmark, {model: model_entry(options, model)}, runs=runs, axes=axes)
        check_models(study, environ)
        study.prepare()
        campaign = Campaign(study, console, environ)
        carry_out(campaign)
        rows = score_finished(study, kept)
        for line in [*summary_lines(campaign), *row_lines(rows), *band_lines(study, rows)]:
            console.line(line)
        error = halt_error(campaign)
        if error is not None:
            raise error
    return 1 if any(row["infra_error"] for row in rows) else 0


def carry_out(campaign: Campaign) -> None:
    """Run a campaign's unfinished episodes, cell by cell, side by side within each."""

    async def cells() -> None:
        work = [(model, cell, campaign.jobs(model, cell)) for model, cell in campaign.study.work]
        left = dict.fromkeys(campaign.study.models, 0)
        for model, _, jobs in work:
            left[model] += len(jobs)
        campaign.check_disk(left)
        try:
            with campaign.console.progress("run", sum(left.values()), "episodes") as progress:
                campaign.show_on(progress)
                for model, cell, jobs in work:
                    if jobs and not campaign.stopped:
                        await campaign.run_cell(model, cell, jobs, _attempt)
        finally:
            await campaign.close()

    async def _attempt(job: Job) -> None:
        await campaign.attempt_repeatedly(job)

    asyncio.run(cells())


def row_lines(rows: list[dict[str, Any]]) -> list[str]:
    """How the runs came out, a line a cell."""
    cells: dict[str, Counter[str]] = {}
    for row in rows:
        came_out = "passed" if row["passed"] else str(row["failure_class"])
        cells.setdefault(row["cell_id"], Counter())[came_out] += 1
    return [
        f"{cell}: {', '.join(f'{count} {name}' for name, count in sorted(seen.items()))}"
        for cell, seen in cells.items()
    ]
