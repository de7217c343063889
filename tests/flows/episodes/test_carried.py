"""Several tasks in one conversation: what is sent, how each task ends and is judged, what a break does to the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from flows.context import Study
from flows.episodes.opening import REMINDER, SYSTEM_PROMPT_OF_SEVERAL, opening_messages
from flows.episodes.scaffold import NO_ANSWER
from flows.grid import Cell, Episode, conversations_of
from flows.local_study import compare_requests
from flows.models.envelope import normalise
from flows.models.messages import AssistantMessage, Message, UserMessage
from flows.scoring import row_for
from tasks_env.canonical import canonical_json, content_hash
from tests.flows.episodes.answering import AnsweringServer, Turn, play_turns
from tests.flows.episodes.support import (
    FAMILIES,
    conversation_of,
    http_entry,
    of_kind,
    open_study,
    run_study,
    scripted_entry,
)

PROVIDERS = ("openai", "anthropic")
LOOK = Turn(calls=(("list_tables", {}),))
SUBMIT = Turn(calls=(("submit", {"answer": "4"}),))


def carried(folder: Path, models: dict[str, Any], tasks: int = 3, **fields: Any) -> Study:
    """A study whose conversations hold `tasks` tasks; as many instances unless told otherwise."""
    scaffold = {"tasks_per_conversation": tasks, **fields.pop("scaffold", {})}
    return open_study(folder, models, instances=fields.pop("instances", tasks), scaffold=scaffold, **fields)


def over_http(folder: Path, server: AnsweringServer, adapter: str = "openai", tasks: int = 3, **fields: Any) -> Study:
    entry = http_entry(adapter, server.url, limits={"concurrent_episodes": 1})
    return carried(folder, {"model": entry}, tasks, **fields)


def first_conversation(study: Study, model: str = "model", cell: Cell | None = None) -> tuple[Episode, ...]:
    return conversations_of(study.episodes(model, cell or study.cells[0]))[0]


def events_of(study: Study, episodes: Sequence[Episode]) -> list[list[dict[str, Any]]]:
    """The transcripts of a conversation, in its order."""
    return [
        [json.loads(line) for line in study.transcript(episode).read_text(encoding="ascii").splitlines()]
        for episode in episodes
    ]


def ends(study: Study, episodes: Sequence[Episode]) -> list[tuple[str, str | None, int]]:
    """Outcome, kind and steps of every task."""
    return [(events[-1]["outcome"], events[-1]["kind"], events[-1]["steps"]) for events in events_of(study, episodes)]


def told(study: Study, episodes: Sequence[Episode]) -> list[Message]:
    """The conversation as its transcripts tell it, one after the other."""
    return [message for events in events_of(study, episodes) for message in conversation_of(events)]


def prompts(study: Study, episodes: Sequence[Episode]) -> list[str]:
    shown = {variant.variant_id: variant.prompt for variant in study.variants(episodes[0].cell)}
    return [shown[episode.variant_id] for episode in episodes]


def normal(server: AnsweringServer, adapter: str) -> list[Any]:
    """Every request so far without its envelope."""
    return [normalise(request.body, adapter) for request in server.requests]


def user_texts(body: Any) -> list[str]:
    return [message["text"] for message in body["messages"] if message["role"] == "user"]


# --- what is sent -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", PROVIDERS)
def test_the_next_task_is_stated_in_the_same_conversation_once_the_one_before_has_ended(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    study = over_http(tmp_path, server, adapter)
    play_turns(server, adapter, [LOOK, SUBMIT, SUBMIT, LOOK, SUBMIT])
    run_study(study, first=1)
    together = first_conversation(study)
    stated = prompts(study, together)
    bodies = normal(server, adapter)
    assert len(set(stated)) == 3
    assert [user_texts(body) for body in bodies] == [stated[:1], stated[:1], stated[:2], stated, stated]
    for before, after in pairwise(bodies):
        assert after["messages"][: len(before["messages"])] == before["messages"], "all context is carried"
    assert {body["system"] for body in bodies} == {SYSTEM_PROMPT_OF_SEVERAL.format(step_cap=4)}
    assert ends(study, together) == [("completed", None, 2), ("completed", None, 1), ("completed", None, 2)]


def test_each_task_comes_with_its_own_tools(server: AnsweringServer, tmp_path: Path) -> None:
    study = over_http(tmp_path, server, axes={"distractors": ["2"]})
    (cell,) = [cell for cell in study.cells if cell.axis == "distractors"]
    play_turns(server, "openai", [SUBMIT] * 3)
    run_study(study, cell=cell, first=1)
    shown = {variant.variant_id: [tool.name for tool in variant.tools] for variant in study.variants(cell)}
    sent = [[tool["name"] for tool in body["tools"]] for body in normal(server, "openai")]
    assert sent == [shown[episode.variant_id] for episode in first_conversation(study, cell=cell)]
    assert len(set(map(tuple, sent))) > 1, "the draws differ"


def test_the_worked_example_is_shown_once(server: AnsweringServer, tmp_path: Path) -> None:
    study = over_http(tmp_path, server, scaffold={"worked_example": True})
    play_turns(server, "openai", [SUBMIT] * 3)
    run_study(study, first=1)
    (cell,) = study.cells
    variant = study.variants(cell)[0]
    opening = opening_messages(study.instances(cell)[variant.instance_id], variant, study.manifest.scaffold)
    assert isinstance(opening[1], UserMessage)
    last = server.requests[-1].body["messages"]
    assert [message["content"] for message in last].count(opening[1].text) == 1
    assert len(last) == len(opening) + 2 * 3, "a call, its answer and the next task, twice"


def test_the_transcripts_of_a_conversation_in_a_row_tell_what_was_sent(server: AnsweringServer, tmp_path: Path) -> None:
    study = over_http(tmp_path, server)
    play_turns(server, "openai", [Turn("hm"), SUBMIT, LOOK, SUBMIT, SUBMIT])
    run_study(study, first=1)
    together = first_conversation(study)
    transcripts = events_of(study, together)
    messages = told(study, together)
    first, second, third = prompts(study, together)
    stated = [message.text for message in messages if isinstance(message, UserMessage)]
    assert stated == [first, REMINDER, second, third]
    assert len(messages) == len(server.requests[-1].body["messages"])
    requests = [event for events in transcripts for event in of_kind(events, "request")]
    assert [event["step"] for event in requests] == [1, 2, 1, 2, 1]
    assert [event["normal_sha256"] for event in requests] == [content_hash(body) for body in normal(server, "openai")]
    assert [event["bytes"] for event in requests] == [len(request.content) for request in server.requests]
    for position, (episode, events) in enumerate(zip(together, transcripts, strict=True), start=1):
        assert events[0]["episode_id"] == episode.episode_id
        assert events[1] == {
            "event": "conversation",
            "conversation_id": episode.conversation_id,
            "conversation_position": position,
            "tasks": [{"instance_id": one.instance_id, "episode_id": one.episode_id} for one in together],
        }


def test_every_adapter_is_sent_the_same_carried_conversation(server: AnsweringServer, tmp_path: Path) -> None:
    models = {"scripted": scripted_entry(1.0), **{name: http_entry(name, server.url) for name in PROVIDERS}}
    axes = {"order": ["shuffled"], "distractors": ["2"]}
    scaffold = {"step_cap": 12, "worked_example": True}
    study = carried(tmp_path, models, 2, families=["query", "filesys"], axes=axes, scaffold=scaffold)
    for cell in study.cells:
        run_study(study, model="scripted", cell=cell, first=1)
        transcripts = events_of(study, first_conversation(study, "scripted", cell))
        answers = [event for events in transcripts for event in of_kind(events, "answer")]
        turns = [
            Turn(event["text"], tuple((call["name"], call["arguments"]) for call in event["calls"]), number=number)
            for number, event in enumerate(answers)
        ]
        bodies = []
        for adapter in PROVIDERS:
            play_turns(server, adapter, turns)
            run_study(study, model=adapter, cell=cell, first=1)
            bodies.append([canonical_json(body) for body in normal(server, adapter)])
        assert bodies[0] == bodies[1]
        logged = [event["normal_sha256"] for events in transcripts for event in of_kind(events, "request")]
        assert logged == [content_hash(json.loads(body)) for body in bodies[0]]
        assert len(logged) > 3
    comparison = compare_requests(study, *PROVIDERS)
    assert comparison.pairs == comparison.same_to_the_end == len(study.cells) == 6
    assert comparison.equal == comparison.compared > 3 * len(study.cells)


# --- how a task ends, and what comes after ------------------------------------------------------------------------

CUT_OFF: dict[str, Any] = {"openai": '["4"]', "anthropic": ["4"]}
"""Arguments that are no object, as either provider sends them."""


@pytest.mark.parametrize(
    ("turns", "outcome", "carried_on"),
    [
        ([LOOK] * 4, "step_cap", "tool"),
        ([LOOK] * 3 + [Turn("hm")], "step_cap", AssistantMessage(text="hm")),
        ([Turn("hm"), Turn("hm")], "no_submission", "assistant"),
        ([LOOK, Turn("half a sen", stop="length")], "truncated", "tool"),
        ([Turn("half a sen", stop="length")], "truncated", NO_ANSWER),
        ([Turn("I will not.", stop="refusal")], "refused", NO_ANSWER),
        ([Turn(calls=(("submit", None),))] * 4, "malformed", "tool"),
    ],
)
def test_a_task_that_ends_without_a_result_is_followed_by_the_next_one(
    server: AnsweringServer, tmp_path: Path, turns: list[Turn], outcome: str, carried_on: Any
) -> None:
    bodies = []
    for adapter in PROVIDERS:
        study = over_http(tmp_path / adapter, server, adapter, 2)
        given = [
            replace(turn, calls=tuple((n, CUT_OFF[adapter] if a is None else a) for n, a in turn.calls), number=number)
            for number, turn in enumerate([*turns, LOOK, SUBMIT])
        ]
        play_turns(server, adapter, given)
        run_study(study, first=1)
        together = first_conversation(study)
        assert ends(study, together) == [(outcome, None, len(turns)), ("completed", None, 2)]
        messages = told(study, together)
        place = messages.index(UserMessage(text=prompts(study, together)[1]))
        if isinstance(carried_on, str):
            assert messages[place - 1].role == carried_on
        else:
            assert messages[place - 1] == carried_on
        assert len(server.requests) == len(turns) + 2
        bodies.append(normal(server, adapter))
    assert bodies[0] == bodies[1], "both providers, whatever the task before ended with"


def test_every_task_has_the_whole_step_cap_and_a_reminder_of_its_own(server: AnsweringServer, tmp_path: Path) -> None:
    study = over_http(tmp_path, server, tasks=3)
    play_turns(server, "openai", [LOOK] * 4 + [Turn("hm"), SUBMIT] + [Turn("hm"), LOOK, LOOK, SUBMIT])
    run_study(study, first=1)
    together = first_conversation(study)
    assert ends(study, together) == [("step_cap", None, 4), ("completed", None, 2), ("completed", None, 4)]
    assert user_texts(normal(server, "openai")[-1]).count(REMINDER) == 2


def test_each_task_is_judged_on_its_own_world(tmp_path: Path) -> None:
    study = carried(
        tmp_path, {"agent": scripted_entry(0.5)}, 4, families=FAMILIES, instances=8, scaffold={"step_cap": 12}
    )
    run_study(study)
    seen = set()
    for cell in study.cells:
        for episode in study.episodes("agent", cell):
            row = row_for(study.instances(cell)[episode.instance_id], study.transcript(episode))
            assert (row["conversation_id"], row["conversation_position"]) == (
                episode.conversation_id,
                episode.conversation_position,
            )
            seen.add((cell.family, row["passed"]))
            (events,) = events_of(study, [episode])
            carried_out = [event["call"] for event in of_kind(events, "result") if not event["is_error"]]
            assert events[-1]["calls"] == carried_out, "no call of another task"
    assert seen == {(name, passed) for name in FAMILIES for passed in (True, False)}


# --- context that overflows ---------------------------------------------------------------------------------------


def test_a_context_that_overflows_ends_the_conversation_and_the_tasks_not_met_with_it(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = over_http(tmp_path, server, "anthropic", tasks=4)
    play_turns(server, "anthropic", [SUBMIT, LOOK, Turn("", stop="context")])
    run_study(study, first=1)
    together = first_conversation(study)
    overflow = "context_overflow"
    assert ends(study, together) == [
        ("completed", None, 1),
        (overflow, None, 2),
        (overflow, None, 0),
        (overflow, None, 0),
    ]
    assert len(server.requests) == 3
    rows = [row_for(study.instances(e.cell)[e.instance_id], study.transcript(e)) for e in together]
    assert [row["failure_class"] for row in rows[1:]] == [overflow] * 3, "scored as they are"
    assert [row["passed"] for row in rows[1:]] == [False] * 3
    assert [(row["tokens_in"], row["cost_usd"], row["usage_known"]) for row in rows[2:]] == [(0, 0.0, True)] * 2
    detail = events_of(study, together)[3][-1]["detail"]
    assert detail == "not met: the context overflowed in task 2 of 4"


def test_conversation_bytes_bound_what_is_carried(server: AnsweringServer, tmp_path: Path) -> None:
    play_turns(server, "openai", [SUBMIT] * 6)
    run_study(over_http(tmp_path / "free", server, tasks=6), first=1)
    sizes = [len(request.content) for request in server.requests]
    assert sizes == sorted(set(sizes)), "each request is longer than the one before"

    study = over_http(tmp_path / "bounded", server, tasks=6, scaffold={"conversation_bytes": max(sizes[3], 4096)})
    play_turns(server, "openai", [SUBMIT] * 6)
    run_study(study, first=1)
    met = sum(size <= max(sizes[3], 4096) for size in sizes)
    assert met < 6
    assert [len(request.content) for request in server.requests] == sizes[:met]
    outcomes = [outcome for outcome, _, _ in ends(study, first_conversation(study))]
    assert outcomes == ["completed"] * met + ["context_overflow"] * (6 - met)
