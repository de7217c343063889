"""Where a study stands, told from its files while others work on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.cli import main
from flows.context import Study
from flows.episodes.ledger import Ledger
from flows.status import Status, read_status, status_text
from flows.store import MARKER
from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import http_entry
from tests.flows.episodes.support import open_study as open_tiny
from tests.flows.models.fault_server import Reply
from tests.flows.small_study import open_study, prepare, reopened, run_episodes, tree_bytes, write_manifest

ROOT = Path(__file__).parents[2]
NOW = 1_800_000_000.0
DEAD_PID = 2**22 + 1
"""Beyond what Linux gives out."""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """The small study, prepared: 14 episodes in five cells."""
    opened = open_study(tmp_path)
    prepare(opened)
    return opened


def reserve(study: Study, episode: str = "e", usd: float = 2.0, cell: str = "query-easy-none-baseline") -> str:
    reservation = Ledger(study.store.ledger, 100.0).reserve(usd, model="steady", cell=cell, episode=episode, attempt=1)
    assert reservation is not None
    return reservation


def finish(study: Study, number: int, age_s: float, outcome: str = "completed") -> None:
    """Mark the first cell's n-th episode as finished so many seconds before `NOW`."""
    path = study.transcript(study.episodes("steady", study.cells[0])[number])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}\n")
    study.store.mark_complete(path, {"sha256": "0" * 64, "outcome": outcome, "attempt": 1})
    os.utime(path.with_suffix(f".{MARKER}"), (NOW - age_s, NOW - age_s))


def page(study: Study, status: Status) -> str:
    return " ".join(status_text(study, status).split())


def test_works_before_anything_exists_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_manifest(tmp_path)
    before = tree_bytes(tmp_path)
    assert main(["status", "--manifest", str(path), "--cells"]) == 0
    text = capsys.readouterr().out
    assert "0 of 14 done, 14 left, 0 infra_error among these, 0 running" in text
    assert "0.0000 USD of 100.00; reserved 0.0000, unknown 0.0000; free 100.0000" in text
    assert "steady query-easy-order-shuffled: 0/4" in text
    assert tree_bytes(tmp_path) == before


def test_never_imports_prefect(tmp_path: Path) -> None:
    program = "import sys\nfrom flows.cli import main\nprint(main(sys.argv[1:]), 'prefect' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, "status", "--manifest", str(write_manifest(tmp_path))],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("\n0 False\n")


def test_a_run_study_is_done_whole_and_looking_changes_nothing(study: Study) -> None:
    run_episodes(study)
    before = tree_bytes(study.store.root)
    status = read_status(reopened(study))
    assert (status.planned, status.done, status.infra_errors, status.running) == (14, 14, 0, 0)
    assert status.totals.spent > 0
    assert "time left none: every episode is done" in page(study, status)
    assert tree_bytes(study.store.root) == before


def test_a_selection_counts_its_own_episodes_and_its_own_running_ones(study: Study) -> None:
    run_episodes(study)
    reserve(study)
    reserve(study, cell="query-easy-order-shuffled")
    status = read_status(reopened(study, cell="query-easy-order-shuffled"))
    assert (status.planned, status.done, status.running) == (4, 4, 1)
    assert read_status(study).running == 2


def test_infra_errors_are_left_to_do_and_a_cell_of_nothing_else_is_shouted_about(study: Study) -> None:
    for number in range(3):
        finish(study, number, 1.0, "infra_error")
    status = read_status(study, NOW)
    assert (status.done, status.infra_errors) == (0, 3)
    assert "14 left, 3 infra_error among these" in page(study, status)
    assert "WARNING: every finished episode of cell query-easy-none-baseline of model steady" in page(study, status)
    finish(study, 3, 1.0)
    assert "WARNING" not in page(study, read_status(study, NOW))


def test_time_left_comes_from_the_pace_of_the_last_minutes(study: Study) -> None:
    reserve(study)
    finish(study, 0, 3600.0)
    finish(study, 1, 60.0)
    status = read_status(study, NOW)
    assert status.seconds_left is None, "one episode has no pace"
    assert "time left not known yet" in page(study, status)
    finish(study, 2, 120.0)
    status = read_status(study, NOW)
    assert (status.recent, status.recent_span_s) == (2, 120.0)
    assert status.seconds_left == pytest.approx((14 - 3) * 60.0)
    assert "time left about 0 h 11 min at 1.0 episodes a minute" in page(study, status)


def test_nothing_running_has_no_time_left(study: Study) -> None:
    finish(study, 0, 5.0)
    finish(study, 1, 10.0)
    status = read_status(study, NOW)
    assert status.seconds_left is None
    assert "time left nothing is running" in page(study, status)


def test_reservations_of_dead_processes_are_not_running_and_show(study: Study) -> None:
    reserve(study, usd=3.0)
    entry = json.loads(study.store.ledger.read_text())
    study.store.ledger.write_text(json.dumps({**entry, "pid": DEAD_PID}) + "\n")
    reserve(study, usd=4.0)
    status = read_status(study)
    assert status.running == 1
    assert "reserved 7.0000" in page(study, status)
    assert "3.0000 USD of the reserved are held for 1 episodes whose process died" in page(study, status)


def test_what_another_machine_holds_is_told_apart_from_what_runs_here(study: Study) -> None:
    reserve(study, usd=3.0)
    entry = json.loads(study.store.ledger.read_text())
    study.store.ledger.write_text(json.dumps({**entry, "host": "big-one"}) + "\n")
    status = read_status(study)
    assert (status.running, len(status.elsewhere)) == (0, 1)
    told = page(study, status)
    assert "0 running here, 1 held by other machines" in told
    assert f"held by another machine (big-one) for 1 episodes, the first since {entry['at']}" in told
    assert "time left not known: nothing is running here, perhaps elsewhere" in told
    assert "process died" not in told
    finish(study, 0, 60.0)
    finish(study, 1, 120.0)
    assert read_status(study, NOW).seconds_left == pytest.approx(12 * 60.0), "its pace is seen by its markers"


def test_what_another_process_tears_or_sets_aside_meanwhile_is_no_failure(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(study, 0, 1.0)
    reserve(study)
    with study.store.ledger.open("ab") as file:
        file.write(b'{"op":"settle","id"')
    read_bytes = Path.read_bytes

    def raced(self: Path) -> bytes:
        if self.name.endswith(MARKER) and self.parent.name == "episodes":
            self.unlink()  # between the look whether it exists and the reading
        return read_bytes(self)

    monkeypatch.setattr(Path, "read_bytes", raced)
    status = read_status(study)
    assert (status.done, status.running) == (0, 1)


def test_tasks_of_a_conversation_count_only_all_together(tmp_path: Path) -> None:
    study = open_study(tmp_path, {"scaffold/tasks_per_conversation": 2})
    prepare(study)
    finish(study, 0, 1.0)
    assert read_status(study, NOW).done == 0
    finish(study, 1, 1.0)
    assert read_status(study, NOW).done == 2
    run_episodes(study)
    assert read_status(reopened(study)).done == 14


RUN = """
import sys
from flows.context import Options, Study
from tests.flows.small_study import run_episodes
run_episodes(Study(Options(manifest=sys.argv[1], cell=sys.argv[2])))
"""


def test_another_process_is_seen_running_and_after_a_kill_what_it_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = AnsweringServer()
    with server.running():
        server.answer_with(
            lambda _request: Reply(body=said("openai", Turn(calls=(("submit", {"answer": "4"}),))), delay_s=30)
        )
        study = open_tiny(tmp_path, {"model": http_entry("openai", server.url)}, instances=2)
        manifest, cell = str(study.manifest_path), study.cells[0].id
        with subprocess.Popen(
            [sys.executable, "-c", RUN, manifest, cell], env={**os.environ, "PYTHONPATH": str(ROOT)}
        ) as run:
            deadline = time.monotonic() + 60
            while len(server.requests) < 4 and run.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            assert main(["status", "--manifest", manifest, "--cell", cell]) == 0
            while_running = capsys.readouterr().out
            run.send_signal(signal.SIGKILL)
        assert main(["status", "--manifest", manifest, "--cell", cell]) == 0
        after = capsys.readouterr().out
    assert "0 of 4 done, 4 left, 0 infra_error among these, 4 running" in while_running
    assert "process died" not in while_running
    assert "0 of 4 done, 4 left, 0 infra_error among these, 0 running" in after
    assert "are held for 4 episodes whose process died" in after
    assert "time left nothing is running" in after


def test_a_damaged_marker_is_named(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    finish(study, 0, 1.0)
    marker = study.transcript(study.episodes("steady", study.cells[0])[0]).with_suffix(f".{MARKER}")
    marker.write_bytes(b"no json")
    assert main(["status", "--manifest", str(study.manifest_path)]) == 1
    assert capsys.readouterr().err.startswith(f"agent-bench: {marker}: this marker is not a JSON object")


def test_free_models_are_seen_running_too(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    prepare(study)
    reserve(study, usd=0.0)
    assert read_status(study).running == 1
