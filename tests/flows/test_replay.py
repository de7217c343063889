"""`agent-bench replay` and `score --strict`: nothing is believed that does not come out again."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from flows.console import Console
from flows.context import Study
from flows.grid import Episode
from flows.replay import replay
from flows.results import COLUMNS, results_frame
from flows.scoring import grid_episodes, latest_rows, news, pending_episodes, row_for
from tests.flows.small_study import open_study, prepare, reopened, run_episodes, score, tree_bytes

ROOT = Path(__file__).parents[2]
Events = list[dict[str, Any]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The small study under renamed tools too, run and scored; not to be changed."""
    study = open_study(
        tmp_path_factory.mktemp("study"), {"grid/axes": {"tool_names": ["opaque"], "distractors": ["2"]}}
    )
    prepare(study)
    run_episodes(study)
    study.store.append_rows([])
    score(study)
    return study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """One cell of the small study, run, to be tampered with."""
    opened = open_study(tmp_path, {"models/steady/pass_rate": {"easy": 1.0}}, cell="query-easy-none-baseline")
    prepare(opened)
    run_episodes(opened)
    return opened


def replayed(study: Study, *wanted: str) -> tuple[bool, list[str]]:
    """Whether all came out again, and the lines that were printed."""
    out = io.StringIO()
    same = replay(reopened(study), wanted, Console(out))
    return same, out.getvalue().splitlines()


def episodes(study: Study) -> list[Episode]:
    return [episode for model, cell in study.work for episode in study.episodes(model, cell)]


def tamper(study: Study, change: Callable[[Events], None], vouched: bool = True) -> Episode:
    """Change the first episode's transcript; its marker then vouches for the new bytes, unless told otherwise."""
    episode = episodes(study)[0]
    path = study.transcript(episode)
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(events)
    data = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    path.write_bytes(data)
    marker = path.with_suffix("._COMPLETE")
    if vouched:
        marker.write_text(json.dumps({**json.loads(marker.read_text()), "sha256": hashlib.sha256(data).hexdigest()}))
    return episode


def results(events: Events) -> Events:
    return [event for event in events if event["event"] == "result"]


def changed_result(events: Events) -> None:
    results(events)[0]["content"] += " tampered"


def changed_state(events: Events) -> None:
    events[-1]["final_state"]["data"]["answer"] = "tampered"


def added_call(events: Events) -> None:
    events.insert(-1, results(events)[0])


def removed_call(events: Events) -> None:
    events.remove(results(events)[0])


def changed_order(events: Events) -> None:
    first, second = (events.index(result) for result in results(events)[:2])
    events[first], events[second] = events[second], events[first]


TAMPERINGS = {
    changed_result: "call 1, ",
    changed_state: "final state: recorded ",
    added_call: "that no call asked for",
    removed_call: "step 1: 1 calls, but 0 results",
    changed_order: "stands where",
}


class TestReplay:
    def test_every_finished_episode_of_every_presentation_comes_out_again(self, finished: Study) -> None:
        before = tree_bytes(finished.store.root)
        same, [line] = replayed(finished)
        assert same
        count = len(episodes(finished))
        calls = sum(
            len(
                results([json.loads(row) for row in finished.store.transcript(e.model, e.cell.id, e.episode_id).open()])
            )
            for e in episodes(finished)
        )
        assert line.startswith(f"REPLAY OK: {count} episodes, ")
        told = int(line.split(", ")[1].split()[0])
        assert count < told <= calls
        assert tree_bytes(finished.store.root) == before

    def test_chosen_episodes_are_told_one_by_one(self, finished: Study) -> None:
        first, second, *_ = episodes(finished)
        same, lines = replayed(finished, first.episode_id, second.episode_id[:12], first.episode_id[:8])
        assert same
        assert [line.split(":")[0] for line in lines] == [
            f"{first.episode_id} steady {first.cell.id}",
            f"{second.episode_id} steady {second.cell.id}",
            "REPLAY OK",
        ]
        assert lines[0].endswith("tool calls, all as recorded")

    @pytest.mark.parametrize(("change", "said"), TAMPERINGS.items(), ids=lambda each: getattr(each, "__name__", ""))
    def test_difference_is_named_and_the_others_are_replayed(
        self, study: Study, change: Callable[[Events], None], said: str
    ) -> None:
        episode = tamper(study, change)
        same, lines = replayed(study)
        assert not same
        assert len(lines) == 2
        assert lines[0].startswith(f"{episode.episode_id} steady {episode.cell.id}: DIFFERS: ")
        assert said in lines[0]
        assert lines[1] == f"REPLAY FAILED: 1 of {len(episodes(study))} episodes did not come out as recorded"

    def test_edit_that_changes_no_call_is_told_by_the_marker(self, study: Study) -> None:
        def usage(events: Events) -> None:
            events[-1]["cost_usd"] = 0.0

        tamper(study, usage, vouched=False)
        same, lines = replayed(study)
        assert not same
        assert "was edited after it was finished (its hash does not match its marker), though its calls" in lines[0]

    def test_edited_call_is_named_whether_or_not_the_marker_vouches(self, study: Study) -> None:
        tamper(study, changed_result, vouched=False)
        assert "DIFFERS: call 1, " in replayed(study)[1][0]

    def test_row_that_says_something_else_differs(self, study: Study) -> None:
        rows = score(study)
        assert replayed(study)[0]
        study.store.append_rows([{**rows[0], "passed": not rows[0]["passed"]}])
        same, lines = replayed(study)
        assert not same
        assert "verdict: results/scores.jsonl has passed False, partial score 1.0; replayed True, 1.0" in lines[0]

    def test_verifier_that_breaks_now_takes_back_a_row(self, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_arguments: object) -> None:
            raise ZeroDivisionError("a defect")

        score(study)
        monkeypatch.setattr("tasks_env.families.query.family.Query.verify", broken)
        same, lines = replayed(study)
        assert not same
        assert (
            "verdict: results/scores.jsonl has passed True; replayed, the verifier raised ZeroDivisionError" in lines[0]
        )

    def test_transcript_without_its_end_differs(self, study: Study) -> None:
        tamper(study, lambda events: events.__delitem__(-1))
        same, lines = replayed(study)
        assert not same
        assert "has no beginning or no end" in lines[0]

    def test_infra_errors_are_passed_over_and_counted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SMALL_STUDY_KEY", "sk-0123456789")
        opened = open_study(
            tmp_path, {"grid/models": ["served", "steady"], "grid/instances": 1}, cell="query-easy-none-baseline"
        )
        prepare(opened)
        run_episodes(opened)
        same, [line] = replayed(opened)
        assert same
        assert line.startswith("REPLAY OK: 2 episodes, ")
        assert line.endswith("; 2 infra_error passed over, no verdict rests on them")
        chosen = episodes(reopened(opened, model="served"))[0].episode_id
        lines = replayed(opened, chosen)[1]
        assert "infra_error (" in lines[0]
        assert lines[1].startswith("REPLAY OK: 0 episodes")

    def test_tool_that_broke_is_an_infra_error_and_its_calls_prove_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_arguments: object) -> None:
            raise ZeroDivisionError("a defect")

        opened = open_study(tmp_path, {"models/steady/pass_rate": {"easy": 1.0}}, cell="query-easy-none-baseline")
        prepare(opened)
        with monkeypatch.context() as patch:
            patch.setattr("tasks_env.families.query.tools.QueryWorld.call", broken)
            run_episodes(opened)
        same, lines = replayed(opened, episodes(opened)[0].episode_id)
        assert same
        assert "infra_error (tool_exception), passed over" in lines[0]


class TestStrictScoring:
    def strict(self, study: Study) -> list[dict[str, Any]]:
        """What a strict scoring adds to the journal."""
        study = reopened(study)
        rows = []
        for cell, found in pending_episodes(study, study.store.journal_rows(), again=True):
            variants = {variant.variant_id: variant for variant in study.variants(cell)}
            instances = study.instances(cell)
            rows += [
                row_for(instances[each.instance_id], study.transcript(each), variants[each.variant_id])
                for each in found
            ]
        added = news(rows, study.store.journal_rows())
        study.store.append_rows(added)
        return added

    def test_whole_transcripts_give_the_rows_of_plain_scoring(self, study: Study) -> None:
        rows = self.strict(study)
        assert len(rows) == len(episodes(study))
        assert all(row["passed"] for row in rows)
        plain = [row_for(study.instances(e.cell)[e.instance_id], study.transcript(e)) for e in episodes(study)]
        assert rows == plain
        assert self.strict(study) == []
        assert score(reopened(study)) == []

    @pytest.mark.parametrize("change", TAMPERINGS, ids=lambda each: each.__name__)
    def test_transcript_that_does_not_replay_is_an_infra_error(
        self, study: Study, change: Callable[[Events], None]
    ) -> None:
        episode = tamper(study, change)
        rows = {row["episode_id"]: row for row in self.strict(study)}
        row = rows.pop(episode.episode_id)
        assert (row["passed"], row["partial_score"], row["outcome"], row["failure_class"], row["infra_error"]) == (
            None,
            None,
            "infra_error",
            "replay_mismatch",
            True,
        )
        assert all(other["passed"] for other in rows.values())
        assert set(row) == {*COLUMNS, "transcript"}
        assert len(results_frame(latest_rows(study.store.journal_rows(), grid_episodes(study)))) == 1 + len(rows)

    def test_it_takes_back_what_plain_scoring_believed(self, study: Study) -> None:
        def claimed(events: Events) -> None:
            events[-1]["final_state"]["data"]["answer"] = "tampered"

        episode = tamper(study, claimed)
        [believed] = [row for row in score(reopened(study)) if row["episode_id"] == episode.episode_id]
        assert (believed["passed"], believed["infra_error"]) == (False, False)
        [row] = self.strict(study)
        assert (row["episode_id"], row["failure_class"]) == (episode.episode_id, "replay_mismatch")
        assert self.strict(study) == []
        assert score(reopened(study)) == [], "and plain scoring leaves it so"
        latest = latest_rows(study.store.journal_rows(), grid_episodes(study))
        assert sum(each["infra_error"] for each in latest) == 1
        assert replayed(study)[1][0].startswith(f"{episode.episode_id} steady")

    def test_infra_errors_stay_what_they_were(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SMALL_STUDY_KEY", "sk-0123456789")
        opened = open_study(tmp_path, {"grid/models": ["served"], "grid/instances": 1}, cell="query-easy-none-baseline")
        prepare(opened)
        run_episodes(opened)
        kinds = {row["failure_class"] for row in self.strict(opened)}
        assert "replay_mismatch" not in kinds
        assert all(kinds)


class TestCommand:
    def command(self, study: Study, *words: str) -> int:
        return main([words[0], *words[1:], "--manifest", str(study.manifest_path)])

    def test_exit_code_says_whether_all_came_out_again(self, study: Study, capsys: pytest.CaptureFixture[str]) -> None:
        before = tree_bytes(study.store.root)
        assert self.command(study, "replay") == 0
        assert capsys.readouterr().out.splitlines()[-1].startswith("REPLAY OK: ")
        assert tree_bytes(study.store.root) == before
        episode = tamper(study, changed_result)
        assert self.command(study, "replay", episode.episode_id) == 1
        assert "DIFFERS: call 1" in capsys.readouterr().out
        assert self.command(study, "replay", "--model", "steady", "--cell", "query-easy-order-shuffled") == 1
        assert "no finished episode of this selection" in capsys.readouterr().err

    def test_unknown_id_is_refused(self, study: Study, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.command(study, "replay", "nothing") == 2
        assert "whose id begins with 'nothing'" in capsys.readouterr().err

    def test_it_imports_no_prefect_and_opens_no_connection(self, study: Study) -> None:
        program = (
            "import socket, sys\n"
            "def refuse(*a, **k): raise SystemExit('a connection')\n"
            "socket.socket.connect = refuse\n"
            "from flows.cli import main\n"
            "print('code', main(['replay', '--manifest', sys.argv[1]]), 'prefect' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(study.manifest_path)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "code 0 False"


@pytest.mark.xdist_group("prefect")
@pytest.mark.usefixtures("prefect_api_url")
def test_strict_stage_writes_the_mismatch_to_the_results(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    from flows.results_file import read_results

    whole = str(study.manifest_path)
    options = ["--manifest", whole, "--cell", "query-easy-none-baseline"]
    assert main(["score", *options]) == 0
    frame, _ = read_results(study.store.table)
    assert not frame["infra_error"].any()
    episode = tamper(study, changed_state)
    assert main(["score", "--strict", *options]) == 0
    frame, _ = read_results(study.store.table)
    row = frame.set_index("episode_id").loc[episode.episode_id]
    assert (row["failure_class"], bool(row["infra_error"])) == ("replay_mismatch", True)
    assert frame["infra_error"].sum() == 1
    assert "score: WARNING: 1 episodes do not replay" in capsys.readouterr().out
    rows = len(study.store.journal_rows())
    assert main(["score", "--strict", *options]) == 0
    assert len(study.store.journal_rows()) == rows
