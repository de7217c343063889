"""From transcripts to rows: every verdict once, none from what names the model, none lost to a broken verifier."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows import scoring
from flows.analysis.coverage import coverage
from flows.analysis.inputs import Inputs
from flows.cli import main
from flows.context import Study
from flows.errors import StoreError, StudyError
from flows.grid import Episode
from flows.results import COLUMNS, results_frame
from flows.scoring import (
    grid_episodes,
    judge,
    latest_rows,
    pending_episodes,
    results_metadata,
    row_for,
    row_unless_set_aside,
    whole_transcript,
)
from tasks_env import Session, family, play
from tests.flows.episodes.answering import AnsweringServer, Turn, play_turns
from tests.flows.episodes.support import http_entry, run_study
from tests.flows.episodes.support import open_study as open_tiny
from tests.flows.small_study import open_study, prepare, reopened, run_episodes, score, tree_bytes

BASELINE = "query-easy-none-baseline"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """The small study, run but not scored."""
    opened = open_study(tmp_path)
    prepare(opened)
    run_episodes(opened)
    return opened


def some_episode(study: Study) -> Episode:
    return study.episodes("steady", study.cells[0])[0]


def some_episode_of(study: Study) -> Episode:
    """One of the only model's."""
    return study.episodes(study.models[0], study.cells[0])[0]


def rewrite(path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Change a transcript's events as if they had been recorded so: the marker vouches for the new bytes."""
    events = change([json.loads(line) for line in path.read_bytes().splitlines()])
    data = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    path.write_bytes(data)
    marker = path.with_name(f"{path.stem}._COMPLETE")
    content = json.loads(marker.read_bytes())
    marker.write_text(json.dumps({**content, "sha256": hashlib.sha256(data).hexdigest()}))


def verdict_columns(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("passed", "partial_score", "outcome", "failure_class", "infra_error"))


def test_every_finished_episode_gets_one_whole_row(study: Study) -> None:
    rows = score(study)
    assert sorted(row["episode_id"] for row in rows) == sorted(grid_episodes(study))
    for row in rows:
        assert set(row) == {*COLUMNS, "transcript"}
    assert {row["passed"] for row in rows} == {True, False}, "the small study holds both"
    assert len(results_frame(latest_rows(rows, grid_episodes(study)))) == len(rows)


def test_row_says_what_the_transcript_says(study: Study) -> None:
    episode = some_episode(study)
    path = study.transcript(episode)
    row = row_for(study.instances(episode.cell)[episode.instance_id], path)
    head, *_, end = (json.loads(line) for line in path.read_bytes().splitlines())
    assert (row["episode_id"], row["model"], row["cell_id"]) == (episode.episode_id, "steady", BASELINE)
    assert (row["run_seed"], row["attempts"], row["variant_id"]) == (episode.run_seed, 1, episode.variant_id)
    assert (row["started_at"], row["git_sha"]) == (head["started_at"], head["git_sha"])
    assert (row["steps_used"], row["tokens_in"], row["cost_usd"]) == (end["steps"], end["tokens_in"], end["cost_usd"])
    assert row["manifest_hash"] == study.provenance.manifest_hash
    assert row["transcript"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_verdict_is_the_verifiers_on_the_replayed_calls(study: Study) -> None:
    """An independent route: the calls of the transcript played on a fresh world."""
    for model, cell in study.work:
        variants = {variant.variant_id: variant for variant in study.variants(cell)}
        for episode in study.episodes(model, cell):
            instance = study.instances(cell)[episode.instance_id]
            events = whole_transcript(study.transcript(episode))
            session = Session(instance, variants[episode.variant_id])
            verdict = judge(instance, events)
            play(session, tuple(scoring.ToolCall.model_validate(call) for call in events[-1]["calls"]))
            assert session.verdict() == verdict


def test_what_is_scored_is_not_pending(study: Study) -> None:
    pending = pending_episodes(study, study.store.journal_rows())
    assert sum(len(episodes) for _, episodes in pending) == len(grid_episodes(study))
    score(study)
    assert pending_episodes(reopened(study), study.store.journal_rows()) == []
    assert score(reopened(study)) == []


def test_interrupted_scoring_goes_on_from_the_journal(study: Study) -> None:
    score(study)
    lines = study.store.journal.read_bytes().splitlines(keepends=True)
    study.store.journal.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    again = score(reopened(study))
    assert len(again) == len(lines) - 3
    rows = study.store.journal_rows()
    assert sorted(row["episode_id"] for row in rows) == sorted(grid_episodes(study))
    assert sorted(map(json.dumps, rows)) == sorted(json.dumps(json.loads(line)) for line in lines)


def test_chosen_cell_alone_is_scored(study: Study) -> None:
    rows = score(reopened(study, cell="query-easy-order-shuffled"))
    assert {row["cell_id"] for row in rows} == {"query-easy-order-shuffled"}


def test_unfinished_and_unperturbed_cells_are_passed_over(tmp_path: Path) -> None:
    opened = open_study(tmp_path)
    assert pending_episodes(opened, []) == []
    assert grid_episodes(opened) == []
    prepare(opened)
    assert pending_episodes(opened, []) == []
    path = opened.transcript(some_episode(opened))
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    assert pending_episodes(opened, []) == [], "a transcript without its marker"


class TestVerifierException:
    @pytest.fixture
    def broken(self, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
        def verify(*_arguments: object) -> None:
            raise ZeroDivisionError("a defect")

        monkeypatch.setattr(type(family("query")), "verify", verify)
        return monkeypatch

    def test_is_one_infra_error_row(self, study: Study, broken: pytest.MonkeyPatch) -> None:  # noqa: ARG002
        rows = score(study)
        assert len(rows) == len(grid_episodes(study))
        assert {verdict_columns(row) for row in rows} == {
            (None, None, "infra_error", "verifier_error:ZeroDivisionError", True)
        }
        assert len(results_frame(latest_rows(rows, grid_episodes(study)))) == len(rows)

    def test_is_scored_again_and_never_run_again(self, study: Study, broken: pytest.MonkeyPatch) -> None:
        score(study)
        transcripts = tree_bytes(study.store.runs)
        broken.undo()
        run_episodes(reopened(study))
        assert tree_bytes(study.store.runs) == transcripts
        rows = score(reopened(study))
        assert len(rows) == len(grid_episodes(study))
        assert not any(row["infra_error"] for row in rows)
        latest = latest_rows(study.store.journal_rows(), grid_episodes(study))
        assert len(latest) == len(rows)
        assert not any(row["infra_error"] for row in latest)
        assert score(reopened(study)) == []


def test_nothing_that_names_the_model_reaches_a_verdict(study: Study) -> None:
    """I-003: every model string of every transcript replaced, every verdict the same."""
    before = {row["episode_id"]: verdict_columns(row) for row in score(study)}

    def renamed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for event in events:
            event.update({name: "another-model" for name in ("model", "model_id", "adapter_version") if name in event})
            if "raw" in event:
                event["raw"] = {"model": "another-model", "id": "x"}
        return events

    changed = 0
    for model, cell in study.work:
        for episode in study.episodes(model, cell):
            path = study.transcript(episode)
            old = path.read_bytes()
            rewrite(path, renamed)
            assert b"steady" not in path.read_bytes()
            assert b"scripted/" not in path.read_bytes()
            changed += old != path.read_bytes()
    assert changed == len(before)
    after = {row["episode_id"]: verdict_columns(row) for row in score(reopened(study))}
    assert after == before
    assert {passed for passed, *_ in after.values()} == {True, False}


class TestAttempts:
    @pytest.fixture
    def failed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
        """One cell of a model whose endpoint refuses connections, run and scored."""
        monkeypatch.setenv("SMALL_STUDY_KEY", "sk-0123456789")
        opened = open_study(tmp_path, {"grid/models": ["served"], "grid/instances": 1}, cell=BASELINE)
        prepare(opened)
        run_episodes(opened)
        score(opened)
        return opened

    def test_infra_error_row_has_no_verdict_and_counts_attempts(self, failed: Study) -> None:
        rows = latest_rows(failed.store.journal_rows(), grid_episodes(failed))
        assert [row["attempts"] for row in rows] == [2, 2]
        assert {(row["passed"], row["outcome"], row["infra_error"]) for row in rows} == {(None, "infra_error", True)}
        assert all(row["failure_class"] for row in rows)

    def test_latest_attempt_wins(self, failed: Study) -> None:
        run_episodes(reopened(failed))
        assert len(score(reopened(failed))) == 2
        journal = failed.store.journal_rows()
        assert [row["attempts"] for row in journal] == [2, 2, 4, 4]
        rows = latest_rows(journal, grid_episodes(failed))
        assert [row["attempts"] for row in rows] == [4, 4]

    def test_transcript_that_was_deleted_and_run_again_is_scored_again(self, failed: Study) -> None:
        """It counts as the same attempt, but is another transcript; its row must not be the deleted one's."""
        for path in failed.store.episodes("served", BASELINE).iterdir():
            path.unlink()
        run_episodes(reopened(failed))
        rows = score(reopened(failed))
        assert [row["attempts"] for row in rows] == [2, 2]
        latest = latest_rows(failed.store.journal_rows(), grid_episodes(failed))
        assert sorted(row["started_at"].isoformat(timespec="microseconds") for row in latest) == sorted(
            row["started_at"] for row in rows
        )


def test_malformed_calls_are_counted_as_far_as_they_were_answered_and_summed_by_cell(tmp_path: Path) -> None:
    """Three of one episode: two broken ones, one that is no object; one that the length cut off is `truncated`."""
    server = AnsweringServer()
    broken, good = ("submit", '{"answer": '), ("submit", {"answer": "4"})
    with server.running():
        limits = {"concurrent_episodes": 1}
        study = open_tiny(tmp_path, {"model": http_entry("openai", server.url, limits=limits)}, instances=2)
        play_turns(
            server,
            "openai",
            [
                *[Turn(calls=(broken, broken)), Turn(calls=(("submit", "[4]"),)), Turn(calls=(good,))],
                Turn(calls=(broken,), stop="length"),
                *[Turn(calls=(good,)), Turn(calls=(good,))],
            ],
        )
        run_study(study)
    rows = score(study)
    assert [(row["outcome"], row["malformed_calls"]) for row in rows] == [
        ("completed", 3),
        ("truncated", 0),
        ("completed", 0),
        ("completed", 0),
    ]
    frame = results_frame(latest_rows(rows, grid_episodes(study)))
    inputs = Inputs.__new__(Inputs)
    object.__setattr__(inputs, "frame", frame)
    object.__setattr__(inputs, "metadata", results_metadata(study))
    assert coverage(inputs)["malformed_calls"].tolist() == [3]
    old = [{name: value for name, value in row.items() if name != "malformed_calls"} for row in rows]
    unknown = results_frame(latest_rows(old, grid_episodes(study)))
    assert unknown["malformed_calls"].isna().all()
    object.__setattr__(inputs, "frame", unknown)
    assert coverage(inputs)["malformed_calls"].isna().all()


class TestWhileARunIsUnderWay:
    """A run sets an infra_error aside for another attempt between two looks of the scoring."""

    @pytest.fixture
    def failed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
        monkeypatch.setenv("SMALL_STUDY_KEY", "sk-0123456789")
        opened = open_study(tmp_path, {"grid/models": ["served"], "grid/instances": 1}, cell=BASELINE)
        prepare(opened)
        run_episodes(opened)
        return opened

    @staticmethod
    def at_the(look: int, monkeypatch: pytest.MonkeyPatch, path: Path, act: Callable[[], None]) -> None:
        """Let the run act right before the n-th time that something of this transcript is read."""
        read, looks = Path.read_bytes, [0]

        def raced(self: Path) -> bytes:
            if self.parent == path.parent and self.name.startswith(path.stem):
                looks[0] += 1
                if looks[0] == look:
                    act()
            return read(self)

        monkeypatch.setattr(Path, "read_bytes", raced)

    @pytest.mark.parametrize("begun", [False, True])
    @pytest.mark.parametrize("look", [1, 2, 3])
    def test_what_is_set_aside_meanwhile_is_left_for_later(
        self, failed: Study, monkeypatch: pytest.MonkeyPatch, look: int, begun: bool
    ) -> None:
        episode = some_episode_of(failed)
        path, instance = failed.transcript(episode), failed.instances(episode.cell)[episode.instance_id]

        def set_aside() -> None:
            failed.store.set_aside(path)
            if begun:
                path.write_text('{"event":"episode"}\n')

        self.at_the(look, monkeypatch, path, set_aside)
        assert row_unless_set_aside(instance, path) is None
        assert path.with_suffix(".attempt-1.jsonl").exists()

    @pytest.mark.parametrize("look", [1, 2, 3])
    def test_an_attempt_that_was_finished_meanwhile_is_the_one_that_is_judged(
        self, failed: Study, monkeypatch: pytest.MonkeyPatch, look: int
    ) -> None:
        episode = some_episode_of(failed)
        path, instance = failed.transcript(episode), failed.instances(episode.cell)[episode.instance_id]

        def attempt_again() -> None:
            data = path.read_bytes()
            failed.store.set_aside(path)
            path.write_bytes(data.replace(b'"attempt":2', b'"attempt":3'))
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            failed.store.mark_complete(path, {"sha256": digest, "outcome": "infra_error", "attempt": 3})

        self.at_the(look, monkeypatch, path, attempt_again)
        row = row_unless_set_aside(instance, path)
        assert row is not None
        assert row["attempts"] == 3
        assert row["transcript"] == hashlib.sha256(path.read_bytes()).hexdigest()

    def test_what_stands_and_is_damaged_is_still_refused(self, failed: Study) -> None:
        episode = some_episode_of(failed)
        path = failed.transcript(episode)
        path.write_bytes(path.read_bytes() + b"\n")
        with pytest.raises(StoreError, match="was edited after it was finished"):
            row_unless_set_aside(failed.instances(episode.cell)[episode.instance_id], path)

    @pytest.mark.usefixtures("prefect_api_url")
    @pytest.mark.xdist_group("prefect")
    def test_the_stage_scores_the_others_and_says_so(
        self, failed: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = failed.transcript(some_episode_of(failed))
        self.at_the(3, monkeypatch, path, lambda: failed.store.set_aside(path))
        assert main(["score", "--manifest", str(failed.manifest_path)]) == 0
        told = capsys.readouterr().out
        assert "score: 1 scored, 1 rows in results.parquet, 1 infra_error" in told
        assert "score: 1 episodes were set aside by a run that attempts them again; score once more when it" in told
        run_episodes(reopened(failed))
        assert main(["score", "--manifest", str(failed.manifest_path)]) == 0
        told = capsys.readouterr().out
        assert "score: 2 scored, 2 rows" in told
        assert "set aside" not in told


class TestDamage:
    def refused(self, study: Study, match: str) -> None:
        episode = some_episode(study)
        path = study.transcript(episode)
        with pytest.raises(StoreError, match=match) as caught:
            row_for(study.instances(episode.cell)[episode.instance_id], path)
        assert caught.value.path == path
        with pytest.raises(StoreError, match=match):
            score(study)
        rows = study.store.journal_rows()
        assert episode.episode_id not in {row["episode_id"] for row in rows}

    def test_edited_transcript_is_refused(self, study: Study) -> None:
        path = study.transcript(some_episode(study))
        path.write_bytes(path.read_bytes().replace(b'"steps":', b'"steps": '))
        self.refused(study, "was edited after it was finished")

    def test_transcript_without_its_end_is_refused(self, study: Study) -> None:
        rewrite(study.transcript(some_episode(study)), lambda events: events[:-1])
        self.refused(study, "has no beginning or no end")

    def test_transcript_without_its_beginning_is_refused(self, study: Study) -> None:
        rewrite(study.transcript(some_episode(study)), lambda events: events[1:])
        self.refused(study, "has no beginning or no end")

    def test_transcript_of_another_version_gives_no_partial_row(self, study: Study) -> None:
        def without_usage(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [*events[:-1], {key: value for key, value in events[-1].items() if key != "tokens_in"}]

        rewrite(study.transcript(some_episode(study)), without_usage)
        self.refused(study, "lacks 'tokens_in': another version wrote it")

    def test_transcript_without_its_marker_is_refused(self, study: Study) -> None:
        episode = some_episode(study)
        path = study.transcript(episode)
        path.with_name(f"{path.stem}._COMPLETE").unlink()
        with pytest.raises(StoreError, match="is not finished"):
            row_for(study.instances(episode.cell)[episode.instance_id], path)

    def test_journal_of_another_version_is_refused(self, study: Study) -> None:
        rows = score(study)
        del rows[0]["usage_known"]
        with pytest.raises(StudyError, match=r"scores\.jsonl: a row lacks 'usage_known'.*delete the file and score"):
            latest_rows(rows, grid_episodes(study))


def test_outcomes_that_are_the_models_keep_their_label(study: Study) -> None:
    episode = some_episode(study)
    path, instance = study.transcript(episode), study.instances(episode.cell)[episode.instance_id]

    def ended(outcome: str, calls: list[Any]) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
        empty = Session(instance, study.variants(episode.cell)[0]).final_state().model_dump(mode="json")
        return lambda events: [*events[:-1], {**events[-1], "outcome": outcome, "calls": calls, "final_state": empty}]

    for outcome in ("step_cap", "truncated", "context_overflow", "refused", "malformed", "no_submission"):
        rewrite(path, ended(outcome, []))
        row = row_for(instance, path)
        assert (row["passed"], row["outcome"], row["failure_class"], row["infra_error"]) == (
            False,
            outcome,
            outcome,
            False,
        )
    rewrite(path, ended("completed", []))
    assert row_for(instance, path)["failure_class"] == "wrong_answer"


def test_metadata_names_what_was_planned_and_what_cannot_be(tmp_path: Path) -> None:
    opened = open_study(tmp_path, {"grid/models": ["steady", "cool"]})
    metadata = results_metadata(opened)
    assert metadata["grid"]["instances"] == 2
    assert metadata["scientific_hash"] == opened.provenance.scientific_hash
    assert metadata["models"]["cool"]["model"] == "other-model"
    assert set(metadata["models"]["cool"]) == {"adapter", "model", "pricing"}
    assert metadata["scaffold"]["tasks_per_conversation"] == 1
    assert metadata["decoding"] == {"baseline_temperature": 0.0}
    planned = {(entry["model"], entry["axis"]): entry["episodes"] for entry in metadata["planned"]}
    assert planned == {
        ("steady", "none"): 4,
        ("steady", "paraphrase"): 2,
        ("steady", "resample"): 2,
        ("steady", "temperature"): 2,
        ("steady", "order"): 4,
        ("cool", "none"): 4,
        ("cool", "paraphrase"): 2,
        ("cool", "resample"): 2,
        ("cool", "order"): 4,
    }
    assert metadata["unsupported"] == [
        {
            "model": "cool",
            "cell_id": "query-easy-temperature-0.7",
            "reason": "the model accepts no temperature (capabilities.temperature)",
        }
    ]
    json.dumps(metadata)


def test_rows_of_episodes_outside_the_grid_are_left_out(study: Study) -> None:
    rows = score(study)
    smaller = open_study(study.manifest_path.parent, {"grid/instances": 1})
    prepare(smaller)
    kept = latest_rows(rows, grid_episodes(smaller))
    assert {row["episode_id"] for row in kept} == set(grid_episodes(smaller)) & {row["episode_id"] for row in rows}
    assert 0 < len(kept) < len(rows)
