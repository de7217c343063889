"""`python -m tests.flows.chaos.host`: a process that has imported the engine and forks a run for every line it reads.

A line is a JSON object: the manifest's path, perhaps the one cell to work on, and perhaps a `Disaster`. It answers
with the run's pid, at once, and with its exit code (negative: the signal) when it has ended. A run that has ended keeps
its pid until the next order, so that whoever sends it a signal late hits nobody else.
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import os
import sys
import traceback
from typing import Any

import aiohttp  # noqa: F401 - what every run would import again

from flows.campaign import Campaign
from flows.campaign_summary import halt_error, summary_lines
from flows.console import Console
from flows.context import Options, Study
from flows.episodes.job import Job
from flows.errors import StudyError
from flows.grid import Cell
from flows.provenance import Provenance
from tests.flows.chaos.disk import Disaster, install

NOWHERE = Provenance(git_sha="0" * 40, manifest_hash="m", scientific_hash="s")
HALTED = 9


def open_run(manifest: str, cell: str | None = None) -> Study:
    """The study as every run sees it."""
    study = Study(Options(manifest=manifest, cell=cell))
    study.__dict__["provenance"] = NOWHERE
    return study


async def run(study: Study) -> Campaign:
    """One invocation of the run stage, as `flows.run` does it: every cell under its lock, side by side."""
    campaign = Campaign(study, Console(io.StringIO()), {})
    work = [(model, cell, campaign.jobs(model, cell)) for model, cell in study.work]

    async def attempts(job: Job) -> None:
        await campaign.attempt_repeatedly(job)

    async def cells(model: str, cell: Cell, jobs: list[Job]) -> None:
        try:
            await campaign.run_cell(model, cell, jobs, attempts)
        except StudyError as error:
            campaign.halt(error)

    try:
        await asyncio.gather(*(cells(*each) for each in work if each[2]))
    finally:
        await campaign.close()
    return campaign


def carry_out(order: dict[str, Any]) -> int:
    """Exit code: 0 done or capped, `HALTED` if the run stopped in good order, 1 for a traceback."""
    if order.get("disaster"):
        install(Disaster(**order["disaster"]))
    campaign = asyncio.run(run(open_run(order["manifest"], order.get("cell"))))
    error = halt_error(campaign)
    for line in [*summary_lines(campaign), *([f"halted: {error}"] if error else [])]:
        print(line, file=sys.stderr)
    return HALTED if error else 0


def main() -> None:
    """Serve orders until the input ends."""
    gc.collect()
    gc.freeze()
    unreaped = 0
    for line in sys.stdin:
        order = json.loads(line)
        if unreaped:
            os.waitpid(unreaped, 0)
        pid = os.fork()
        if pid == 0:
            log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 2)
            code = 1
            try:
                code = carry_out(order)
            except BaseException:  # noqa: BLE001 - the child must never go on as another host
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        print(pid, flush=True)
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        print(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status, flush=True)
        unreaped = pid


if __name__ == "__main__":
    main()
