"""Cells on a real Dask cluster of two workers: the artefacts of a run at home, one ledger, and a worker that dies."""

from __future__ import annotations

import asyncio
import io
import os
import pickle
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from flows.campaign import Campaign
from flows.console import Console
from flows.context import Study
from flows.episodes.ledger import Ledger
from flows.errors import CellLocked, RunHalted, StoreError, StudyError
from flows.manifest import load_manifest
from flows.orchestration import reported_to
from flows.orchestration.cluster import WorkerLost
from flows.orchestration.settings import EMBEDDED, report_as
from flows.orchestration.sharing import LimitMissing
from tests.flows.chaos.model import BadDay, plans_of
from tests.flows.episodes.answering import AnsweringServer
from tests.flows.models.fault_server import Received, Reply
from tests.flows.small_study import write_manifest
from tests.flows.test_run_stage import command, comparable, results, served_study, server, started, stories, wait_until

__all__ = ["server"]
TWO = {"execution/cluster": {"workers": 2}}

pytestmark = [pytest.mark.xdist_group("prefect"), pytest.mark.usefixtures("prefect_api_url")]


def holders(study: Study) -> set[int]:
    """The processes that work on a cell."""
    locks = (study.store.runs / "served" / cell.id / ".lock" for cell in study.cells)
    return {int(path.read_text() or 0) for path in locks if path.exists()} - {0}


@pytest.mark.slow
def test_two_workers_leave_what_one_process_leaves(
    tmp_path: Path, server: AnsweringServer, study_environment: dict[str, str]
) -> None:
    steady = {"grid/models": ["steady"], "grid/instances": 4}
    home = served_study(tmp_path / "home", server.url, **steady)
    assert command(home, "run") == command(home, "score") == 0
    away = served_study(tmp_path / "away", server.url, **steady, **TWO)
    with started(away, study_environment, "run") as process:
        assert process.stderr is not None
        assert (process.wait(120), process.stderr.read()) == (0, b"")
    assert command(away, "score") == 0
    assert len(stories(home)) > 20
    assert stories(away) == stories(home)
    assert comparable(away).equals(comparable(home))
    totals = Ledger(away.store.ledger, 100.0).totals()
    assert (totals.spent, totals.reserved) == (pytest.approx(results(home)["cost_usd"].sum()), 0)


@pytest.mark.slow
def test_a_killed_worker_costs_nothing_but_what_it_had_reserved(
    tmp_path: Path, server: AnsweringServer, study_environment: dict[str, str]
) -> None:
    home = served_study(tmp_path / "home", server.url)
    server.answer_with(BadDay(plans_of(home), home.manifest.models["served"].pricing, 1, 0.0))
    assert command(home, "run") == command(home, "score") == 0
    killed = served_study(tmp_path / "killed", server.url, **TWO)
    day = BadDay(plans_of(killed), killed.manifest.models["served"].pricing, 1, 0.0)
    alive = [True]

    def slowly(request: Received) -> Reply:
        return replace(day(request), delay_s=0.5 if alive else 0.0)

    server.answer_with(slowly)
    with started(killed, study_environment, "run") as process:
        assert process.stderr is not None
        wait_until(lambda: len(holders(killed)) == 2 and server.delayed >= 6, process)
        [victim, _] = sorted(holders(killed))
        assert victim not in (process.pid, os.getpid()), "a cell is carried out by a worker"
        os.kill(victim, signal.SIGKILL)
        alive.clear()
        assert (process.wait(120), process.stderr.read()) == (0, b"")
    assert command(killed, "score") == 0
    assert comparable(killed).equals(comparable(home))
    totals = Ledger(killed.store.ledger, 100.0).totals()
    assert sum(totals.abandoned().values()) > 0, "what the dead worker may have spent stays booked"
    assert totals.spent <= day.account.served_usd <= totals.spent + sum(totals.abandoned().values())


def test_a_worker_on_other_sources_does_not_work_on_the_study(tmp_path: Path, server: AnsweringServer) -> None:
    from flows.run import run_shipped_cell

    study = served_study(tmp_path, server.url)
    cell = study.cells[0].id
    origin = {"git_sha": "f" * 40, "manifest_hash": "m", "scientific_hash": study.provenance.scientific_hash}
    with pytest.raises(Exception, match=r"works from other sources than the study \(git_sha, manifest_hash\)"):
        asyncio.run(run_shipped_cell(study.options, "served", cell, origin, reported_to()))
    elsewhere = study.options.model_copy(update={"manifest": str(tmp_path / "gone" / "experiments.yaml")})
    with pytest.raises(Exception, match=r"does not see .*gone/experiments\.yaml"):
        asyncio.run(run_shipped_cell(elsewhere, "served", cell, origin, reported_to()))


def test_a_scheduler_that_is_not_there_is_one_paragraph(
    tmp_path: Path, server: AnsweringServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    study = served_study(tmp_path, server.url, **{"execution/cluster": {"address": "tcp://127.0.0.1:9"}})
    assert command(study, "run") == 2
    told = capsys.readouterr().err
    assert "execution.cluster: nobody answers at tcp://127.0.0.1:9" in told
    assert "Traceback" not in told


def test_workers_elsewhere_need_a_server_that_they_can_reach(
    tmp_path: Path, server: AnsweringServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EMBEDDED, "1")
    study = served_study(tmp_path, server.url, **{"execution/cluster": {"address": "tcp://10.0.0.1:8786"}})
    assert command(study, "run") == 2
    assert "workers of tcp://10.0.0.1:8786 cannot reach the Prefect server" in capsys.readouterr().err


def test_without_the_extra_the_section_is_refused_with_what_to_install(
    tmp_path: Path, server: AnsweringServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prefect_dask", None)
    assert command(served_study(tmp_path, server.url, **TWO), "run") == 2
    assert "execution.cluster needs the extra `dask`" in capsys.readouterr().err


@pytest.mark.parametrize("section", [{}, {"workers": 2, "address": "tcp://a:1"}])
def test_a_cluster_is_either_started_or_asked(tmp_path: Path, section: dict[str, object]) -> None:
    with pytest.raises(Exception, match="name either `workers`"):
        load_manifest(write_manifest(tmp_path, {"execution/cluster": section}))


def test_what_a_worker_reports_is_what_its_leader_takes_over(tmp_path: Path, server: AnsweringServer) -> None:
    study = served_study(tmp_path, server.url)
    day = BadDay(plans_of(study), study.manifest.models["served"].pricing, 1, 0.0)
    refused = Reply(401, {"error": {"message": "who are you?"}})
    server.answer_with(lambda request: day(request) if len(server.requests) < 9 else refused)
    worker, leader = Campaign(study, Console(io.StringIO())), Campaign(study, Console(io.StringIO()))
    cell = study.cells[0]

    async def attempted() -> None:
        for job in worker.jobs("served", cell):
            await worker.attempt_repeatedly(job)
        await worker.close()

    asyncio.run(attempted())
    with leader.console.progress("run", 8, "episodes") as progress:
        leader.show_on(progress)
        for _ in range(2):  # the second time the same episodes are attempted again
            leader.absorb("served", cell, worker.report("served", cell))
    assert (progress.done, progress.spent_usd) == (2 * worker.attempted, 2 * worker.spent_usd)
    assert worker.attempted > 0
    assert leader.tally.outcomes == worker.tally.outcomes
    assert (type(leader.halted), str(leader.halted)) == (type(worker.halted), str(worker.halted))
    assert leader.stopped


@pytest.mark.parametrize(
    "error",
    [
        StoreError(Path("/x"), "is full"),
        CellLocked("cell c", "7"),
        RunHalted("no"),
        LimitMissing("requests", "is gone"),
        WorkerLost("cell c", "killed"),
    ],
)
def test_an_error_of_a_worker_comes_back_as_what_it_was(error: StudyError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back).keys()) == (type(error), str(error), vars(error).keys())
    assert back.exit_code == error.exit_code


def test_a_worker_reports_where_the_study_reports() -> None:
    environ = {"PREFECT_API_URL": "http://old/api", EMBEDDED: "1", "HOME": "/h"}
    assert reported_to(environ) == {"PREFECT_API_URL": "http://old/api", EMBEDDED: "1"}
    report_as({"PREFECT_API_URL": "http://new/api"}, environ)
    assert environ == {"PREFECT_API_URL": "http://new/api", "HOME": "/h"}
