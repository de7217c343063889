"""From finished transcripts to rows: verdicts by the family's verifier, a journal, and its compaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from flows.context import Study
from flows.episodes.recording import replay_problem
from flows.episodes.transcript import events_of, read_transcript
from flows.errors import StoreError, StudyError
from flows.files import storage
from flows.grid import Cell, Episode, runs_of, unsupported
from flows.results import COLUMNS, INFRA_ERROR, LATER_COLUMNS
from flows.store import REBUILD_JOURNAL, Store
from tasks_env import FinalState, Instance, ToolCall, Variant, Verdict, verify

BENCHMARK = "stability"
VERIFIER_ERROR = "verifier_error"
ALONE = dict.fromkeys(LATER_COLUMNS)
"""Of an episode that is a conversation of its own: its transcript says nothing of one."""
TRANSCRIPT = "transcript"
"""Key of a journal row beside the columns: SHA-256 of the transcript that was judged."""
REPLAY_MISMATCH = "replay_mismatch"
"""Failure class of an episode whose recorded calls do not come out again."""


def whole_transcript(path: Path) -> list[dict[str, Any]]:
    """The events of a finished transcript, from its beginning to its end.

    Raises:
        StoreError: it cannot be read or is not whole.
    """
    return _whole(path, read_transcript(path))


def _whole(path: Path, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not events or events[0].get("event") != "episode" or events[-1].get("event") != "end":
        raise StoreError(path, "is marked complete but has no beginning or no end; delete it and its marker, run again")
    return events


def judge(instance: Instance, events: Sequence[dict[str, Any]]) -> Verdict:
    """The verifier's word on a whole transcript: from its carried-out calls and final state, nothing else.

    Raises:
        Exception: whatever breaks in the verifier.
    """
    end = events[-1]
    calls = tuple(ToolCall.model_validate(call) for call in end["calls"])
    return verify(instance, calls, FinalState.model_validate(end["final_state"]))


def row_for(instance: Instance, path: Path, variant: Variant | None = None) -> dict[str, Any]:
    """The journal's row for a finished transcript: every column, and the transcript's own hash under `TRANSCRIPT`.

    A verifier that breaks gives an infra_error row with the failure class `verifier_error:<exception>`.

    Args:
        variant: What the episode was shown; given, its recorded calls are first carried out again, and a transcript
            that does not replay gives an infra_error row with the failure class `replay_mismatch`.

    Raises:
        StoreError: the transcript cannot be read, is not whole, was edited, or lacks what a column needs.
    """
    data, digest = _unedited(path)
    events = _whole(path, events_of(path, data))
    head, end = events[0], events[-1]
    try:
        outcome, failure, passed, partial = end["outcome"], end["kind"], None, None
        if outcome != INFRA_ERROR and variant is not None and replay_problem(instance, variant, events):
            outcome, failure = INFRA_ERROR, REPLAY_MISMATCH
        if outcome != INFRA_ERROR:
            try:
                verdict = judge(instance, events)
            except Exception as error:  # noqa: BLE001 - one broken verdict is one row, whatever broke
                outcome, failure = INFRA_ERROR, f"{VERIFIER_ERROR}:{type(error).__name__}"
            else:
                passed, partial = verdict.passed, verdict.partial_score
                failure = None if passed else ("wrong_answer" if outcome == "completed" else outcome)
        decided = {
            "benchmark": BENCHMARK,
            "passed": passed,
            "partial_score": partial,
            "steps_used": end["steps"],
            "outcome": outcome,
            "failure_class": failure,
            "infra_error": outcome == INFRA_ERROR,
            "attempts": head["attempt"],
            "malformed_calls": malformed_calls(events),
        }
        shared = next((event for event in events[1:2] if event["event"] == "conversation"), ALONE)
        recorded = {**shared, **head, **end, **decided}
        row = {name: recorded[name] for name in COLUMNS}
    except KeyError as error:
        raise StoreError(
            path, f"lacks {error}: another version wrote it; move it and its marker away, run again"
        ) from None
    return {**row, TRANSCRIPT: digest}


def malformed_calls(events: Sequence[dict[str, Any]]) -> int:
    """How many tool calls were answered with an error because their arguments were no JSON object."""
    broken = {
        (event["step"], call["id"])
        for event in events
        if event["event"] == "answer"
        for call in event["calls"]
        if call["arguments"] is None
    }
    return sum(event["event"] == "result" and (event["step"], event["call_id"]) in broken for event in events)


def row_unless_set_aside(instance: Instance, path: Path, variant: Variant | None = None) -> dict[str, Any] | None:
    """The row of a transcript that was finished a moment ago; null if a run has set it aside for another attempt.

    Args: as of `row_for`.

    Raises:
        StoreError: as `row_for`, of a transcript that stands.
    """
    while True:
        marker = Store.marker(path)
        if marker is None:
            return None
        try:
            return row_for(instance, path, variant)
        except StoreError:
            if Store.marker(path) == marker:
                raise


def _unedited(path: Path) -> tuple[bytes, str]:
    """The transcript and its SHA-256, which its marker vouches for."""
    marker = Store.marker(path)
    if marker is None:
        raise StoreError(path, "is not finished; run the stage `run` again")
    with storage(path):
        data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != marker["sha256"]:
        raise StoreError(
            path,
            "was edited after it was finished (its hash does not match its marker); restore it, or delete both and "
            "run again",
        )
    return data, digest


def pending_episodes(
    study: Study, rows: Iterable[dict[str, Any]], again: bool = False
) -> list[tuple[Cell, list[Episode]]]:
    """Finished episodes of the chosen cells whose transcript has no final row, by (model, cell).

    A row that says verifier_error is not final: such an episode is scored again, never run again. A transcript is
    known by its hash: one that was deleted and run again is another one, also where it counts as the same attempt.

    Args:
        again: Take every finished episode, whatever its rows.
    """
    scored = {row.get(TRANSCRIPT) for row in rows if not (row.get("failure_class") or "").startswith(VERIFIER_ERROR)}
    if again:
        scored = set()
    pending = []
    for model, cell in study.work:
        if not study.has_variants(cell):
            continue
        finished = study.finished(model, cell)
        episodes = [
            episode
            for episode in study.episodes(model, cell)
            if episode.episode_id in finished and finished[episode.episode_id]["sha256"] not in scored
        ]
        if episodes:
            pending.append((cell, episodes))
    return pending


def news(rows: Iterable[dict[str, Any]], journal: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that say something else than the journal's latest row for the same transcript."""
    known = {row.get(TRANSCRIPT): row for row in journal}
    return [row for row in rows if known.get(row[TRANSCRIPT]) != row]


def grid_episodes(study: Study) -> list[str]:
    """The ids of every episode of the chosen cells that have been perturbed."""
    return [
        episode.episode_id
        for model, cell in study.work
        if study.has_variants(cell)
        for episode in study.episodes(model, cell)
    ]


def results_metadata(study: Study) -> dict[str, Any]:
    """What analyze must know beside the rows: models, grid, scaffold, both hashes, what was planned and what cannot be.

    Of a model's entry, what a reader of results needs: no address and no name of a key.
    """
    manifest = study.manifest
    return {
        "study": manifest.study,
        "profile": manifest.profile,
        "seed": manifest.seed,
        "models": {
            name: manifest.models[name].model_dump(mode="json", include={"adapter", "model", "pricing"})
            for name in manifest.grid.models
        },
        "grid": manifest.grid.model_dump(mode="json"),
        "scaffold": manifest.scaffold.model_dump(mode="json"),
        "decoding": manifest.decoding.model_dump(mode="json"),
        "analysis": manifest.analysis.model_dump(mode="json"),
        "manifest_hash": study.provenance.manifest_hash,
        "scientific_hash": study.provenance.scientific_hash,
        "planned": [
            {
                "model": model,
                "cell_id": cell.id,
                "family": cell.family,
                "difficulty": cell.difficulty,
                "axis": cell.axis,
                "level": cell.level,
                "episodes": manifest.grid.instances * runs_of(manifest, cell),
            }
            for model, cell in study.work
        ],
        "unsupported": [
            {"model": model, "cell_id": cell.id, "reason": reason}
            for model in study.models
            for cell in study.cells
            if (reason := unsupported(manifest, model, cell)) is not None
        ],
    }


def latest_rows(rows: Iterable[dict[str, Any]], episode_ids: Iterable[str]) -> list[dict[str, Any]]:
    """The newest row of each of the given episodes, columns in order, times as times.

    Args:
        rows: Of the journal, in the order of writing.

    Raises:
        StudyError: a row lacks a column.
    """
    wanted = set(episode_ids)
    newest: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.get("episode_id") in wanted:
            newest[row["episode_id"]] = {**ALONE, **row}
    try:
        return [
            {**{name: row[name] for name in COLUMNS}, "started_at": datetime.fromisoformat(row["started_at"])}
            for row in newest.values()
        ]
    except KeyError as error:
        raise StudyError(
            f"results/scores.jsonl: a row lacks {error}: another version wrote it; {REBUILD_JOURNAL}"
        ) from None
