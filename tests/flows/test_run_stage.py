"""The stage `run` through its command line: two at once, what a cache may not hide, servers that are down or refuse."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from flows.campaign import Campaign
from flows.cli import main
from flows.console import Console
from flows.context import Study
from flows.episodes.pricing import episode_bound
from flows.results import WALL_CLOCK_COLUMNS
from flows.results_file import read_results
from tests.flows.chaos.model import BadDay, plans_of
from tests.flows.episodes.answering import AnsweringServer
from tests.flows.models.fault_server import Received, Reply
from tests.flows.small_study import REMOVED, open_study, prepare, run_episodes, tree_bytes

ROOT = Path(__file__).parents[2]
BASELINE, ORDER, PARAPHRASE = "query-easy-none-baseline", "query-easy-order-shuffled", "query-easy-paraphrase-p1"
CLOCK = {"started_at", "latency_s", "wall_clock_s"}

pytestmark = [pytest.mark.xdist_group("prefect"), pytest.mark.usefixtures("prefect_api_url")]


@pytest.fixture(scope="module")
def server() -> Iterator[AnsweringServer]:
    answering = AnsweringServer()
    with answering.running():
        yield answering


def served_study(folder: Path, url: str, **changes: Any) -> Study:
    """A study of one served model with its sets: two cells of four episodes."""
    changes = {
        "models/served/base_url": url,
        "models/served/api_key_env": REMOVED,
        "grid/models": ["served"],
        "grid/axes": {"order": ["shuffled"]},
        "retry/first_wait_s": 0.001,
        "retry/max_wait_s": 0.01,
        **changes,
    }
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "HYPOTHESES.md", folder)
    study = open_study(folder, changes)
    prepare(study)
    return study


def command(study: Study, *words: str) -> int:
    """One command of agent-bench in this process."""
    return main([*words, "--manifest", str(study.manifest_path)])


def started(study: Study, environment: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    """One command of agent-bench in a process of its own."""
    program = "import sys; from flows.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", program, *words, "--manifest", str(study.manifest_path)],
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def wait_until(reached: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)


def results(study: Study) -> pd.DataFrame:
    frame, _ = read_results(study.store.table)
    return frame


def comparable(study: Study) -> pd.DataFrame:
    """What two runs of one study have in common; the hash of the manifest covers how it is carried out."""
    return results(study).drop(columns=[*WALL_CLOCK_COLUMNS, "manifest_hash"])


def ledger(study: Study) -> list[dict[str, Any]]:
    return [json.loads(line) for line in study.store.ledger.read_text().splitlines()]


@pytest.mark.slow
def test_a_second_run_of_a_cell_is_refused_and_one_of_another_cell_proceeds(
    tmp_path: Path, server: AnsweringServer, study_environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {"grid/axes": {"paraphrase": ["p1"]}, "retry/http_attempts": 20, "retry/max_wait_s": 30.0}
    study = served_study(tmp_path, server.url, **changes)
    day = BadDay(plans_of(study), study.manifest.models["served"].pricing, 1, 0.0)
    baseline = next(cell for cell in study.cells if cell.id == BASELINE)
    of_baseline = {variant.prompt for variant in study.variants(baseline)}
    held, gate = [True], list[int]()

    def respond(request: Received) -> Reply:
        if held and any(message["content"] in of_baseline for message in request.body["messages"]):
            gate.append(1)
            return Reply(429, {"error": {"message": "not yet"}}, {"retry-after": "8"})
        return day(request)

    server.answer_with(respond)
    with started(study, study_environment, "run", "--cell", BASELINE) as first:
        wait_until(lambda: len(gate) >= 4, first)
        for words in (["run", "--cell", BASELINE], ["run"]):
            assert command(study, *words) == 1
            told = capsys.readouterr().err
            assert f"cell {BASELINE} of model served is being worked on by process {first.pid}" in told
            assert "Traceback" not in told
        assert command(study, "run", "--cell", PARAPHRASE) == 0
        assert first.poll() is None, "it is still at work"
        held.clear()
        assert first.wait(60) == 0
    asked = day.account.asked
    assert command(study, "run") == 0
    assert day.account.asked == asked, "both are complete"
    assert command(study, "score") == 0
    assert command(study, "analyze") == 0
    frame = results(study)
    assert len(frame) == frame["episode_id"].nunique() == 6
    assert not frame["infra_error"].any()
    assert (frame["attempts"] == 1).all()
    settled = [entry for entry in ledger(study) if entry["op"] == "settle"]
    assert len(settled) >= 6
    assert sum(entry["unknown_usd"] for entry in settled) == 0, "whoever was refused cancelled nothing in flight"
    assert sum(entry["spent_usd"] for entry in settled) == pytest.approx(day.account.served_usd)


def test_episodes_that_another_process_finished_while_this_one_waited_are_not_run_again(
    tmp_path: Path, server: AnsweringServer
) -> None:
    study = served_study(tmp_path, server.url)
    day = BadDay(plans_of(study), study.manifest.models["served"].pricing, 1, 0.0)
    server.answer_with(day)
    out = io.StringIO()
    waiting = Campaign(study, Console(out), {})
    work = [(model, cell, waiting.jobs(model, cell)) for model, cell in study.work]
    run_episodes(study)
    asked = day.account.asked

    async def go() -> None:
        async def attempt(job: Any) -> None:
            await waiting.attempt_repeatedly(job)

        for model, cell, jobs in work:
            assert len(jobs) == 4
            await waiting.run_cell(model, cell, jobs, attempt)
        await waiting.close()

    asyncio.run(go())
    assert day.account.asked == asked
    assert out.getvalue().count(": completed by another process\n") == 8
    assert (waiting.tally.completed, waiting.tally.planned) == (8, 8)


@pytest.mark.parametrize("stage", ["score", "analyze"])
def test_score_and_analyze_wait_for_whoever_works_on_the_same_results(
    stage: str, tmp_path: Path, server: AnsweringServer, capsys: pytest.CaptureFixture[str]
) -> None:
    study = served_study(tmp_path, server.url)
    server.answer_with(BadDay(plans_of(study), study.manifest.models["served"].pricing, 1, 0.0))
    run_episodes(study)
    if stage == "analyze":
        assert command(study, "score") == 0
    before, codes = tree_bytes(study.store.results), list[int]()
    other = threading.Thread(target=lambda: codes.append(command(study, stage)))
    capsys.readouterr()
    told, waiting = "", f"{stage}: waiting for process {os.getpid()}, which works on the same results\n"
    with study.store.results_lock():
        other.start()
        deadline = time.monotonic() + 120
        while waiting not in told and time.monotonic() < deadline:
            told += capsys.readouterr().out
            time.sleep(0.02)
        assert told == waiting
        assert codes == []
        assert {**tree_bytes(study.store.results), ".lock": b""} == {**before, ".lock": b""}, "it touched nothing"
    other.join(120)
    assert codes == [0]
    assert len(results(study)) == len(study.store.journal_rows()) == 8
    assert (study.store.analysis / "report.html").exists() == (stage == "analyze")


def test_how_a_run_is_tracked_changes_no_artefact(tmp_path: Path) -> None:
    studies = {}
    for tracking in ("per_episode", "per_cell"):
        (tmp_path / tracking).mkdir()
        study = open_study(tmp_path / tracking, {"execution/tracking": tracking})
        for stage in ("generate", "perturb", "run", "score"):
            assert command(study, stage) == 0
        studies[tracking] = study
    trees = {tracking: stories(study) for tracking, study in studies.items()}
    assert len(trees["per_cell"]) > 20
    assert trees["per_episode"] == trees["per_cell"]
    markers = {
        tracking: {
            path.name: {**json.loads(path.read_text()), "sha256": ""} for path in study.store.runs.rglob("*._COMPLETE")
        }
        for tracking, study in studies.items()
    }
    assert len(markers["per_cell"]) == len(results(studies["per_cell"]))
    assert markers["per_episode"] == markers["per_cell"]
    pd.testing.assert_frame_equal(comparable(studies["per_episode"]), comparable(studies["per_cell"]))


def stories(study: Study) -> dict[str, Any]:
    """Every set and transcript of a study by its path, without the clock."""
    return {
        name: _story(data) if name.endswith(".jsonl") and "/episodes/" in name else data
        for name, data in tree_bytes(study.store.root).items()
        if name.startswith("data/") or ("/episodes/" in name and not name.endswith("_COMPLETE"))
    }


def _story(data: bytes) -> list[dict[str, Any]]:
    """A transcript without what the clock says, and without the hash of how it is carried out."""
    events = [json.loads(line) for line in data.splitlines()]
    return [{name: value for name, value in event.items() if name not in CLOCK | {"manifest_hash"}} for event in events]


@pytest.mark.parametrize("tracking", ["per_episode", "per_cell"])
def test_a_complete_cell_whose_transcript_is_gone_is_not_done(
    tmp_path: Path, tracking: str, capsys: pytest.CaptureFixture[str]
) -> None:
    study = open_study(tmp_path, {"execution/tracking": tracking, "grid/axes": {"order": ["shuffled"]}})
    prepare(study)
    assert command(study, "run") == 0
    assert command(study, "run") == 0, "now Prefect holds the complete cells"
    before = {path: path.read_bytes() for path in study.store.runs.rglob("*.jsonl") if path != study.store.ledger}
    gone, unmarked, *kept = sorted(before)
    gone.unlink()
    unmarked.with_suffix("._COMPLETE").unlink()
    capsys.readouterr()
    assert command(study, "run") == 0
    assert capsys.readouterr().out.count(": complete\n") == len(kept) == 6
    for path in (gone, unmarked):
        assert study.store.marker(path) is not None
        assert _story(path.read_bytes()) == _story(before[path])
    assert all(path.read_bytes() == before[path] for path in kept)


def test_a_server_that_is_down_is_shouted_about_by_run_and_by_analyze(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = served_study(tmp_path, "http://127.0.0.1:9", **{"grid/models": ["served", "steady"]})
    assert command(study, "run") == 0
    told = capsys.readouterr().out
    assert "16 of 16 episodes finished (0 before this run), 8 infra_error" in told
    for cell in (BASELINE, ORDER):
        assert f"run: WARNING: every episode of cell {cell} of model served is an infra_error" in told
    assert told.count("WARNING") == 2
    assert command(study, "score") == 0
    assert command(study, "analyze") == 0
    told = capsys.readouterr().out
    assert "analyze: WARNING: 2 of 4 cells are not complete" in told
    assert "analyze: all infra_error: served: all 2 cells" in told


def flow_run_of(study: Study) -> Any:
    """The latest run of the stage's flow on this study, as Prefect's server has it."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    async def look() -> Any:
        async with get_client() as client:
            found = await client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=50)
        path = str(study.manifest_path)
        return next(each for each in found if each.parameters.get("options", {}).get("manifest") == path)

    return asyncio.run(look())


def test_reaching_the_cap_shows_in_the_command_line_the_ledger_prefect_and_the_analysis(
    tmp_path: Path, server: AnsweringServer, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = served_study(tmp_path / "probe", server.url)
    bound = episode_bound(probe.manifest.models["served"].pricing, probe.manifest.scaffold)
    limits = {"concurrent_episodes": 1}
    study = served_study(
        tmp_path / "capped", server.url, **{"budget/cap_usd": 1.05 * bound, "models/served/limits": limits}
    )
    # Every request is as long as it may be, so that a few episodes cost as much as one may.
    most = study.manifest.scaffold.conversation_bytes
    server.answer_with(BadDay(plans_of(study), study.manifest.models["served"].pricing, 1, 0.0, tokens_in=most))
    assert command(study, "run") == 0, "a partial run is no failure"
    told = capsys.readouterr().out
    partial = next(line for line in told.splitlines() if "PARTIAL: the cost cap is reached" in line)
    done = int(partial.split("; ")[1].split(" of 8 episodes completed")[0])
    assert 0 < done < 8
    assert f"against a cap of {1.05 * bound:.2f} USD" in partial
    assert "left to do (cell episodes left/planned):\n  served query-easy: " in told

    assert command(study, "ledger") == 0
    assert "CAP REACHED: at 2" in capsys.readouterr().out
    [noted] = [entry for entry in ledger(study) if entry["op"] == "cap"]
    assert (noted["model"], noted["needed_usd"], noted["cap_usd"]) == ("served", bound, 1.05 * bound)

    state = flow_run_of(study).state
    assert (state.type.value, state.name) == ("COMPLETED", "Partial")
    assert partial in state.message

    assert command(study, "score") == 0
    assert command(study, "analyze") == 0
    told = capsys.readouterr().out
    assert "cells are not complete (cell scored/planned)" in told
    assert "analyze: partial: served: " in told or "analyze: missing: served: " in told
    coverage = pd.read_csv(study.store.analysis / "tables" / "coverage.csv")
    assert set(coverage["state"]) & {"partial", "missing"}


def test_a_whole_run_is_called_completed_by_prefect(tmp_path: Path, server: AnsweringServer) -> None:
    study = served_study(tmp_path, server.url)
    server.answer_with(BadDay(plans_of(study), study.manifest.models["served"].pricing, 1, 0.0))
    assert command(study, "run") == 0
    state = flow_run_of(study).state
    assert state.name == "Completed"
    assert "8 of 8 episodes finished (0 before this run), 0 infra_error" in state.message


def test_a_model_that_cannot_be_asked_leaves_the_others_their_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = served_study(tmp_path, "http://[::1", **{"grid/models": ["served", "steady"]})
    assert command(study, "run") == 0
    told = capsys.readouterr().out
    assert "8 of 16 episodes finished (0 before this run), 0 infra_error" in told
    assert "run: WARNING: model 'served' cannot be asked: its adapter cannot be built (ValueError; look at" in told
    assert "; 8 of its episodes are left; mend it and run again" in told
    assert command(study, "score") == 0
    assert command(study, "analyze") == 0
    assert "analyze: missing: served: all 2 cells" in capsys.readouterr().out


def test_a_key_that_is_refused_in_the_middle_halts_with_what_is_left(
    tmp_path: Path, server: AnsweringServer, capsys: pytest.CaptureFixture[str]
) -> None:
    study = served_study(tmp_path, server.url, **{"models/served/limits": {"concurrent_episodes": 1}})
    day = BadDay(plans_of(study), study.manifest.models["served"].pricing, 1, 0.0)

    def respond(request: Received) -> Reply:
        done = len(list(study.store.runs.rglob("*._COMPLETE")))
        return day(request) if done < 3 else Reply(401, {"error": {"message": "this key was revoked"}})

    server.answer_with(respond)
    assert command(study, "run") == 3
    told = capsys.readouterr()
    assert "http_401: this key was revoked" in told.err
    assert "left to do (cell episodes left/planned):\n  served query-easy: " in told.err
    left = sum(int(part.split("/")[0].split()[-1]) for part in told.err.rpartition(": ")[2].split(","))
    assert left == 8 - len(list(study.store.runs.rglob("*._COMPLETE"))) == 5
    server.answer_with(day)
    assert command(study, "run") == 0
    assert "8 of 8 episodes finished (3 before this run), 0 infra_error" in capsys.readouterr().out


@pytest.mark.slow
def test_a_study_whose_command_was_killed_ends_as_if_nothing_had_happened(
    tmp_path: Path, server: AnsweringServer, study_environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The kill of `tests/flows/chaos`, once through the real command with Prefect around the engine."""
    tables = {}
    for name, share in (("undisturbed", 0.0), ("killed", 0.2)):
        study = served_study(tmp_path / name, server.url, **{"grid/instances": 4})
        day = BadDay(plans_of(study), study.manifest.models["served"].pricing, 3, share)
        server.answer_with(day)
        if share:
            with started(study, study_environment, "run") as process:
                wait_until(lambda: day.account.asked >= 20, process)  # noqa: B023 - within its own round
                process.send_signal(signal.SIGKILL)
            for _ in range(6):
                capsys.readouterr()
                assert command(study, "run") == 0
                told = capsys.readouterr().out
                if " 0 infra_error" in told:
                    break
            assert "episodes whose process died; they may have been spent" in told
        else:
            assert command(study, "run") == 0
        assert command(study, "score") == 0
        tables[name] = results(study)
    agreed = [name for name in tables["killed"].columns if name not in {*WALL_CLOCK_COLUMNS, "attempts", "usage_known"}]
    usage = ["tokens_in", "tokens_cached", "tokens_out", "tokens_reasoning", "cost_usd"]
    agreed = [name for name in agreed if name not in (*usage, "manifest_hash", "scientific_hash")]
    pd.testing.assert_frame_equal(tables["killed"][agreed], tables["undisturbed"][agreed])
    assert len(tables["killed"]) == 16
