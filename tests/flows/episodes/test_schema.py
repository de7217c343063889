"""Real transcripts of every kind, the types of their events and the page about them say the same."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from flows.context import Study
from flows.episodes.schema import EVENTS, check_transcript
from flows.episodes.transcript import TRANSCRIPT_VERSION, read_transcript
from flows.outcomes import OUTCOMES
from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import FAMILIES, http_entry, open_study, run_study, scripted_entry
from tests.flows.models.fault_server import Received, Reply

DOCUMENT = (Path(__file__).parents[3] / "docs" / "transcripts.md").read_text(encoding="utf-8")


def replies(adapter: str) -> Iterator[Reply]:
    """What a server may do, in turn: sound answers, broken ones, failures of every kind."""
    turns = [
        Turn("Let me see \ud800 \x00 \u202e", (("run_query", {"query": "SELECT 1"}), ("nope", {"a": 1}))),
        Turn("nothing"),
        Turn("", (("submit", {"answer": "4"}),)),
        Turn("", usage=False),
        Turn("no", stop="refusal"),
        Turn("cut", stop="length"),
    ]
    number = 0
    while True:
        for turn in turns:
            number += 1
            yield Reply(body=said(adapter, Turn(turn.text, turn.calls, turn.stop, turn.usage, number)))
            if number % 3 == 0:
                yield [Reply(503, {"error": {"message": "down"}}), Reply(404, {"error": {"message": "gone"}})][
                    number % 2
                ]
            if number % 4 == 0:
                yield [Reply(body="<html>"), Reply(close=True)][number % 8 // 4]


def transcripts(study: Study) -> list[list[dict[str, Any]]]:
    return [read_transcript(path) for path in sorted(study.store.runs.glob("*/*/episodes/*.jsonl"))]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """Transcripts of scripted and served models, alone and in conversations, with all that can go wrong."""
    folder = tmp_path_factory.mktemp("studies")
    server, found = AnsweringServer(), []
    sources = {adapter: replies(adapter) for adapter in ("openai", "anthropic")}

    def respond(request: Received) -> Reply:
        return next(sources["openai" if "chat" in request.path else "anthropic"])

    with server.running():
        served = {name: http_entry(name, server.url) for name in sources}
        entries = {**served, "agent": scripted_entry(0.5)}
        for tasks in (1, 3):
            server.answer_with(respond)
            scaffold = {"tasks_per_conversation": tasks, "worked_example": tasks > 1}
            study = open_study(
                folder / str(tasks),
                entries,
                families=FAMILIES if tasks == 1 else ("query",),
                instances=5,
                scaffold=scaffold,
                retry={"http_attempts": 2, "episode_attempts": 2},
            )
            run_study(study)
            found += transcripts(study)
    return found


def test_every_event_of_every_transcript_has_its_fields_and_no_other(told: list[list[dict[str, Any]]]) -> None:
    for events in told:
        check_transcript(events)
    kinds = Counter(event["event"] for events in told for event in events)
    assert set(kinds) == set(EVENTS), "the sample has events of every kind"
    outcomes = {events[-1]["outcome"] for events in told}
    assert outcomes >= {"completed", "refused", "truncated", "no_submission", "infra_error"}
    errors = {event["error"] for events in told for event in events if event["event"] == "attempt"}
    assert errors >= {None, "http_503", "http_404", "bad_answer", "connection_lost"}
    adapters = {events[0]["adapter_version"].split("/")[0] for events in told}
    assert adapters == {"openai", "anthropic", "scripted"}
    assert {events[-1]["kind"] for events in told} >= {None, "conversation_broken"}


def test_unknown_missing_and_mistyped_fields_are_refused(told: list[list[dict[str, Any]]]) -> None:
    samples: dict[str, tuple[list[dict[str, Any]], int]] = {}
    for events in told:
        for place, event in enumerate(events):
            samples.setdefault(event["event"], (events, place))
    for events, place in samples.values():
        for change in ("extra", *(name for name in events[place] if name != "event")):
            broken = copy.deepcopy(events)
            if change == "extra":
                broken[place]["extra"] = 1
            else:
                del broken[place][change]
            with pytest.raises(ValidationError):
                check_transcript(broken)
    events = copy.deepcopy(told[0])
    events[-1]["outcome"] = "won"
    with pytest.raises(ValidationError, match="one of completed"):
        check_transcript(events)
    for part in (told[0][1:], told[0][:-1], [], told[0] + told[0]):
        with pytest.raises(ValueError, match="begins with one event `episode`"):
            check_transcript(part)


def test_a_failed_attempt_says_how_and_an_answered_one_does_not(told: list[list[dict[str, Any]]]) -> None:
    place = next(n for n, event in enumerate(told[0]) if event["event"] == "attempt")
    events = copy.deepcopy(told[0])
    events[place] |= {"error": None, "detail": "all is well"}
    with pytest.raises(ValidationError, match="exactly where the attempt failed"):
        check_transcript(events)


def documented() -> dict[str, list[str]]:
    """Event → the fields that the page tells, in its order."""
    sections = re.split(r"^## (\w+)$", DOCUMENT, flags=re.MULTILINE)[1:]
    tables = dict(zip(sections[::2], sections[1::2], strict=True))
    return {
        event: [
            name
            for row in re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE)
            for name in re.findall(r"`(\w+)`", row)
        ]
        for event, text in tables.items()
    }


def test_the_page_tells_every_field_of_every_event_once() -> None:
    told = documented()
    assert list(told) == list(EVENTS)
    for event, model in EVENTS.items():
        assert sorted(told[event]) == sorted(set(model.model_fields) - {"event"}), event


def test_the_page_tells_version_and_outcomes() -> None:
    assert f"This is version {TRANSCRIPT_VERSION} " in DOCUMENT
    row = next(line for line in DOCUMENT.splitlines() if line.startswith("| `outcome`"))
    assert re.findall(r"`(\w+)`", row)[1:] == list(OUTCOMES)
