"""Scaffold identity: at every step of every episode, all models are sent the same, byte for byte, envelope apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.context import Study
from flows.episodes.opening import REMINDER
from flows.grid import Cell
from flows.models.envelope import normalise
from tasks_env.canonical import canonical_json, content_hash
from tests.flows.episodes.answering import AnsweringServer, Turn, play_turns, said
from tests.flows.episodes.support import FAMILIES, Ran, http_entry, of_kind, open_study, run_study, scripted_entry
from tests.flows.models.fault_server import Reply

PROVIDERS = ("openai", "anthropic")
AXES = {
    "paraphrase": ["p3"],
    "tool_names": ["opaque", "synonyms"],
    "distractors": ["2", "5"],
    "temperature": ["0.7"],
    "order": ["shuffled"],
}


def study_of_all(tmp_path: Path, server: AnsweringServer, **fields: Any) -> Study:
    """One scripted agent that always passes and one model per provider."""
    models = {"scripted": scripted_entry(1.0), **{name: http_entry(name, server.url) for name in PROVIDERS}}
    return open_study(tmp_path, models, **fields)


def turns_of(ran: Ran) -> list[Turn]:
    """What the agent said, to be said again by a provider."""
    return [
        Turn(event["text"], tuple((call["name"], call["arguments"]) for call in event["calls"]), number=number)
        for number, event in enumerate(of_kind(ran.events(), "answer"))
    ]


def sent(server: AnsweringServer, adapter: str) -> list[str]:
    """The bytes of every request so far without its envelope."""
    return [canonical_json(normalise(json.loads(request.content), adapter)) for request in server.requests]


def replayed(server: AnsweringServer, study: Study, cell: Cell, adapter: str, turns: Sequence[Turn]) -> list[str]:
    """What a provider's model is sent while it says `turns`; checks that its transcript tells the same."""
    play_turns(server, adapter, turns)
    ran = run_study(study, model=adapter, cell=cell, first=1)
    bodies = sent(server, adapter)
    assert ran.end["steps"] == len(bodies) == len(turns)
    logged = of_kind(ran.events(), "request")
    assert [event["normal_sha256"] for event in logged] == [content_hash(json.loads(body)) for body in bodies]
    assert [event["bytes"] for event in logged] == [len(request.content) for request in server.requests]
    return bodies


@pytest.mark.parametrize("worked_example", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_smoke_agents_episode_is_the_same_for_every_adapter_in_every_cell(
    server: AnsweringServer, tmp_path: Path, name: str, worked_example: bool
) -> None:
    study = study_of_all(
        tmp_path, server, families=[name], axes=AXES, scaffold={"step_cap": 12, "worked_example": worked_example}
    )
    assert len(study.cells) == 8
    for cell in study.cells:
        scripted = run_study(study, model="scripted", cell=cell, first=1)
        assert scripted.end["outcome"] == "completed"
        turns = turns_of(scripted)
        assert len(turns) > 2
        first, second = (replayed(server, study, cell, adapter, turns) for adapter in PROVIDERS)
        assert first == second
        hashes = [event["normal_sha256"] for event in of_kind(scripted.events(), "request")]
        assert hashes == [content_hash(json.loads(body)) for body in first]
        opening = json.loads(first[0])
        assert opening["temperature"] == (0.7 if cell.axis == "temperature" else 0.0)
        assert opening["max_output_tokens"] == study.manifest.scaffold.max_output_tokens
        assert (len(opening["messages"]) > 1) is worked_example


def test_mistakes_reminders_and_errors_are_the_same_for_both_providers(server: AnsweringServer, tmp_path: Path) -> None:
    study = study_of_all(tmp_path, server, scaffold={"step_cap": 6})
    bodies = []
    for adapter in PROVIDERS:
        broken: Any = '["4"]' if adapter == "openai" else ["4"]
        turns = [
            Turn(""),
            Turn("Let me see.", (("list_tables", {}), ("no such tool!", {"x": 1}), ("submit", {})), number=1),
            Turn("Broken.", (("submit", broken),), number=2),
            Turn(" ", (("list_tables", {}),) * 5, number=3),
            Turn("é\u202e\ud800 \x00", (("run_query", {"sql": "nonsense"}),), number=4),
            Turn("", (("submit", {"answer": "4"}), ("submit", {"answer": "5"})), number=5),
        ]
        bodies.append(replayed(server, study, study.cells[0], adapter, turns))
    assert bodies[0] == bodies[1]
    assert bodies[0][-1].count(REMINDER) == 1
    assert bodies[0][-1].count("more than 3 calls in one turn") == 2


@pytest.mark.parametrize("name", FAMILIES)
def test_an_episode_of_single_calls_is_the_same_for_every_adapter(
    server: AnsweringServer, tmp_path: Path, name: str
) -> None:
    models: dict[str, Any] = {"scripted": scripted_entry(1.0)}
    for adapter in PROVIDERS:
        models[adapter] = http_entry(adapter, server.url, capabilities={"parallel_tool_calls": True})
    study = open_study(tmp_path, models, families=[name], scaffold={"step_cap": 12, "parallel_calls": False})
    scripted = run_study(study, model="scripted", cell=study.cells[0], first=1)
    first, second = (replayed(server, study, study.cells[0], adapter, turns_of(scripted)) for adapter in PROVIDERS)
    assert first == second
    hashes = [event["normal_sha256"] for event in of_kind(scripted.events(), "request")]
    assert hashes == [content_hash(json.loads(body)) for body in first]
    assert all(json.loads(body)["parallel_calls"] is False for body in first)
    assert scripted.events()[0]["scaffold"]["parallel_calls"] is False, "the transcript says what was asked"


def test_only_the_perturbation_under_test_differs_between_cells(server: AnsweringServer, tmp_path: Path) -> None:
    study = study_of_all(tmp_path, server, axes=AXES)
    opening: dict[tuple[str, str], Any] = {}
    for cell in study.cells:
        server.answer_with(lambda _request: Reply(body=said("openai", Turn(calls=(("submit", {"answer": "4"}),)))))
        run_study(study, model="openai", cell=cell, first=1)
        opening[(cell.axis, cell.level)] = normalise(json.loads(server.requests[0].content), "openai")
    base = opening.pop(("none", "baseline"))
    changed = {key: {part for part in base if base[part] != body[part]} for key, body in opening.items()}
    assert changed == {
        ("paraphrase", "p3"): {"messages"},
        ("tool_names", "opaque"): {"messages", "tools"},
        ("tool_names", "synonyms"): {"messages", "tools"},
        ("distractors", "2"): {"tools"},
        ("distractors", "5"): {"tools"},
        ("temperature", "0.7"): {"temperature"},
        ("order", "shuffled"): set(),
    }
    assert opening[("distractors", "5")]["tools"][: len(base["tools"])] == base["tools"]
