"""Finished episodes carried out again: every tool result, final state and verdict must come out as recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flows.console import Console
from flows.context import Study
from flows.episodes.recording import recording_of, replay_problem
from flows.errors import StoreError, StudyError
from flows.files import storage
from flows.grid import Episode
from flows.results import INFRA_ERROR
from flows.scoring import TRANSCRIPT, judge, whole_transcript
from flows.view import finished_episodes, one_of


@dataclass
class Tally:
    """What a replay has seen."""

    episodes: int = 0
    """Carried out again."""
    calls: int = 0
    passed_over: int = 0
    """infra_errors: no verdict rests on them."""
    differing: list[str] = field(default_factory=list)
    """A line per episode that did not come out again."""


def replay(study: Study, wanted: Sequence[str], console: Console) -> bool:
    """Replay the episodes whose ids begin with `wanted`, or all that are finished; print what differs.

    An infra_error is passed over and counted: it has no verdict that a replay could support. Nothing is written.

    Returns:
        Whether everything came out as recorded.

    Raises:
        ConfigurationError: an id that no finished episode of the selection has, or several have.
        StudyError: nothing has been run yet.
    """
    finished = list(finished_episodes(study))
    if not finished:
        raise StudyError(f"{study.store.runs}: no finished episode of this selection; run `agent-bench run` first")
    chosen = list(dict.fromkeys(one_of(finished, each) for each in wanted)) if wanted else finished
    rows = {row.get(TRANSCRIPT): row for row in study.store.journal_rows()}
    tally = Tally()
    with console.progress("replay", len(chosen), "episodes") as progress:
        for episode in chosen:
            line = _replayed(study, episode, rows, tally)
            if wanted or line.startswith("DIFFERS"):
                console.line(f"{episode.episode_id} {episode.model} {episode.cell.id}: {line}")
            progress.advance()
    console.line(summary(tally))
    return not tally.differing


def summary(tally: Tally) -> str:
    """One line: what was replayed, what differed, what was passed over."""
    over = f"; {tally.passed_over} infra_error passed over, no verdict rests on them" if tally.passed_over else ""
    if tally.differing:
        return f"REPLAY FAILED: {len(tally.differing)} of {tally.episodes} episodes did not come out as recorded{over}"
    return f"REPLAY OK: {tally.episodes} episodes, {tally.calls} tool calls, all as recorded{over}"


def _replayed(study: Study, episode: Episode, rows: Mapping[Any, Mapping[str, Any]], tally: Tally) -> str:
    """Replay one episode, count it. Returns what became of it."""
    path = study.transcript(episode)
    try:
        events = whole_transcript(path)
        if events[-1].get("outcome") == INFRA_ERROR:
            tally.passed_over += 1
            return f"infra_error ({events[-1].get('kind')}), passed over"
        instance = study.instances(episode.cell)[episode.instance_id]
        [variant] = [each for each in study.variants(episode.cell) if each.variant_id == episode.variant_id]
        problem = replay_problem(instance, variant, events)
        with storage(path):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        problem = problem or _journal_problem(instance, events, rows.get(digest))
        marker = study.store.marker(path)
        if problem is None and (marker is None or marker["sha256"] != digest):
            problem = "was edited after it was finished (its hash does not match its marker), though its calls replay"
    except StoreError as error:
        problem = str(error)
    tally.episodes += 1
    if problem is not None:
        tally.differing.append(problem)
        return f"DIFFERS: {problem}"
    calls = len(recording_of(events).calls)
    tally.calls += calls
    return f"{calls} tool calls, all as recorded"


def _journal_problem(instance: Any, events: Sequence[dict[str, Any]], row: Mapping[str, Any] | None) -> str | None:
    """Whether the journal's row for this very transcript, if there is one, says what the replayed verdict says."""
    if row is None or row.get("infra_error"):
        return None
    try:
        verdict = judge(instance, events)
    except Exception as error:  # noqa: BLE001 - a verdict was recorded, and now there is none
        raised = f"{type(error).__name__}: {error}"[:200]
        return f"verdict: results/scores.jsonl has passed {row.get('passed')}; replayed, the verifier raised {raised}"
    scored = (row.get("passed"), row.get("partial_score"))
    if scored == (verdict.passed, verdict.partial_score):
        return None
    return (
        f"verdict: results/scores.jsonl has passed {scored[0]}, partial score {scored[1]}; replayed "
        f"{verdict.passed}, {verdict.partial_score}"
    )
