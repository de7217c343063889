"""Scaffold identity: any conversation is the same to both providers once the envelope is off, and nothing else is."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.models import anthropic, openai
from flows.models.envelope import normal_form, normal_hash, normalise
from flows.models.messages import (
    Answer,
    AssistantMessage,
    Call,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tasks_env.canonical import canonical_json
from tasks_env.errors import UnknownName
from tasks_env.types import ToolSpec
from tests.flows.models.support import TOOLS, call, conversation, entry

TEXT = st.text(st.characters(categories=None), max_size=12)
"""Any code points, control characters and lone surrogates included."""
SAID = TEXT.filter(str.strip)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
ARGUMENTS = st.dictionaries(TEXT, SCALARS | st.lists(SCALARS, max_size=3), max_size=3)


@st.composite
def tools(draw: st.DrawFn) -> tuple[ToolSpec, ...]:
    names = draw(st.lists(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), max_size=3, unique=True))
    return tuple(
        ToolSpec(
            name=name,
            description=draw(TEXT),
            parameters={"type": "object", "properties": draw(ARGUMENTS), "additionalProperties": False},
        )
        for name in names
    )


@st.composite
def call_with(draw: st.DrawFn, call_id: str) -> Call:
    name = draw(TEXT)
    if draw(st.booleans()):
        return Call(id=call_id, name=name, arguments=None, raw_arguments=draw(TEXT), problem="unreadable")
    arguments: Any = draw(ARGUMENTS)
    raw = draw(st.sampled_from([json.dumps(arguments), json.dumps(arguments, indent=2), "", "{", '{"other": 1}']))
    return Call(id=call_id, name=name, arguments=arguments, raw_arguments=raw)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = [SystemMessage(text=draw(SAID))] if draw(st.booleans()) else []
    messages.append(UserMessage(text=draw(SAID)))
    ids = iter(draw(st.lists(SAID, min_size=12, max_size=12, unique=True)))
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["user", "text", "calls"]))
        if kind == "user":
            messages.append(UserMessage(text=draw(SAID)))
        elif kind == "text":
            messages.append(AssistantMessage(text=draw(TEXT)))
        else:
            calls = tuple(draw(call_with(next(ids))) for _ in range(draw(st.integers(1, 3))))
            messages.append(AssistantMessage(text=draw(TEXT), calls=calls))
            answers = (Answer(call_id=one.id, content=draw(TEXT), is_error=draw(st.booleans())) for one in calls)
            messages.append(ToolMessage(answers=tuple(answers)))
    return messages


LIMIT = 512


def bodies(messages: list[Message], offered: tuple[ToolSpec, ...], temperature: float | None) -> tuple[Any, Any]:
    return (
        openai.request_body(entry("openai", model="one"), LIMIT, messages, offered, temperature),
        anthropic.request_body(entry("anthropic", model="other"), LIMIT, messages, offered, temperature),
    )


@given(conversations(), tools(), st.none() | st.sampled_from([0.0, 0.7, 1.0]))
def test_any_conversation_is_the_same_to_both_providers(
    messages: list[Message], offered: tuple[ToolSpec, ...], temperature: float | None
) -> None:
    sent = bodies(messages, offered, temperature)
    over_the_wire = [json.loads(json.dumps(body)) for body in sent]
    direct = canonical_json(normal_form(messages, offered, temperature, LIMIT))
    assert canonical_json(normalise(over_the_wire[0], "openai")) == direct
    assert canonical_json(normalise(over_the_wire[1], "anthropic")) == direct
    assert normal_hash(sent[0], "openai") == normal_hash(sent[1], "anthropic")


@given(conversations())
def test_ids_leave_no_trace_beyond_their_order(messages: list[Message]) -> None:
    def renamed(message: Message) -> Message:
        if isinstance(message, AssistantMessage):
            calls = tuple(one.model_copy(update={"id": f"renamed {one.id}"}) for one in message.calls)
            return message.model_copy(update={"calls": calls})
        if isinstance(message, ToolMessage):
            answers = tuple(one.model_copy(update={"call_id": f"renamed {one.call_id}"}) for one in message.answers)
            return message.model_copy(update={"answers": answers})
        return message

    again = [renamed(message) for message in messages]
    for before, after, name in zip(
        bodies(messages, (), None), bodies(again, (), None), ("openai", "anthropic"), strict=True
    ):
        assert normal_hash(before, name) == normal_hash(after, name)


def long_conversation() -> list[Message]:
    return [
        *conversation(),
        AssistantMessage(
            text="Two at once.",
            calls=(call("x", "read_note", {"title": "wall"}), call("y", "hand_in", {"result": "ochre"})),
        ),
        ToolMessage(
            answers=(
                Answer(call_id="x", content="error: no such note", is_error=True),
                Answer(call_id="y", content="ok"),
            )
        ),
        UserMessage(text="And the next task."),
    ]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every scalar and of every list item or field in a body."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from leaves(inner, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def mutations(body: Any, path: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """Bodies that differ from `body` at `path` alone."""
    for label in ("removed", "changed", "added"):
        other = copy.deepcopy(body)
        holder, key = at(other, path[:-1]), path[-1]
        value = holder[key]
        if label == "removed":
            del holder[key]
        elif label == "changed" and isinstance(value, str):
            holder[key] = f"{value} changed"
        elif label == "changed" and isinstance(value, int | float):
            holder[key] = not value if isinstance(value, bool) else value + 1
        elif label == "added" and isinstance(value, dict):
            value["new_field"] = 1
        else:
            continue
        yield label, other


def outcome(body: Any, adapter: str) -> str:
    """The normal form, or the refusal to make one: either tells two bodies apart."""
    try:
        return canonical_json(normalise(body, adapter))
    except ValueError as error:
        return f"refused: {error}"


ENVELOPE: dict[str, dict[tuple[Any, ...], set[str]]] = {
    "openai": {
        ("model",): {"removed", "changed"},
        **{("messages", m, "tool_calls", n, "type"): {"removed"} for m in range(9) for n in range(2)},
        **{("tools", n, "type"): {"removed"} for n in range(2)},
        # Null content is no content.
        ("messages", 2, "content"): {"removed"},
    },
    "anthropic": {
        ("model",): {"removed", "changed"},
        # What the flag says, the answer's own text says too.
        ("messages", 4, "content", 0, "is_error"): {"removed"},
    },
}
"""All changes that vanish with the envelope: place in the body → what may be done to it."""


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_every_change_outside_the_envelope_shows(adapter: str) -> None:
    sent = bodies(long_conversation(), TOOLS, 0.0)[("openai", "anthropic").index(adapter)]
    plain = outcome(sent, adapter)
    tried = 0
    vanished: dict[tuple[Any, ...], set[str]] = {}
    for path in leaves(sent):
        for label, other in mutations(sent, path):
            tried += 1
            if outcome(other, adapter) == plain:
                vanished.setdefault(path, set()).add(label)
    assert tried > 150
    allowed = ENVELOPE[adapter]
    ids = {path for path in vanished if path[-1] in ("id", "tool_call_id", "tool_use_id")}
    assert not ids, "an id that no longer fits its answer shows"
    unexpected = {path: labels - allowed.get(path, set()) for path, labels in vanished.items()}
    assert {path: labels for path, labels in unexpected.items() if labels} == {}


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
@pytest.mark.parametrize("place", ["messages", "tools"])
def test_order_and_number_of_messages_and_tools_show(adapter: str, place: str) -> None:
    sent = bodies(long_conversation(), TOOLS, 0.0)[("openai", "anthropic").index(adapter)]
    plain = outcome(sent, adapter)
    for start in range(len(sent[place]) - 1):
        swapped, doubled = copy.deepcopy(sent), copy.deepcopy(sent)
        swapped[place][start : start + 2] = reversed(swapped[place][start : start + 2])
        doubled[place].insert(start, doubled[place][start])
        assert outcome(swapped, adapter) != plain
        assert outcome(doubled, adapter) != plain


@pytest.mark.parametrize(
    "field", ["top_p", "seed", "parallel_tool_calls", "tool_choice", "stop", "thinking", "metadata"]
)
@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_a_setting_that_is_not_known_here_shows(adapter: str, field: str) -> None:
    sent = bodies(conversation(), TOOLS, 0.0)[("openai", "anthropic").index(adapter)]
    assert normal_hash({**sent, field: 1}, adapter) != normal_hash(sent, adapter)


def test_an_error_flag_that_the_text_does_not_repeat_shows() -> None:
    sent = bodies(conversation(), (), None)[1]
    flagged = copy.deepcopy(sent)
    flagged["messages"][-1]["content"][0]["is_error"] = True
    assert normal_hash(flagged, "anthropic") != normal_hash(sent, "anthropic")


def test_results_and_text_are_the_same_in_one_user_message_or_in_two() -> None:
    sent = bodies(long_conversation(), TOOLS, 0.0)[1]
    joined = copy.deepcopy(sent)
    last = joined["messages"].pop()
    joined["messages"][-1]["content"] += last["content"]
    assert normal_hash(joined, "anthropic") == normal_hash(sent, "anthropic")
    moved = copy.deepcopy(joined)
    moved["messages"][-1]["content"].insert(0, moved["messages"][-1]["content"].pop())
    assert normal_hash(moved, "anthropic") != normal_hash(sent, "anthropic")


def test_text_after_a_call_shows() -> None:
    sent = bodies(long_conversation(), TOOLS, 0.0)[1]
    turned = copy.deepcopy(sent)
    turned["messages"][3]["content"].reverse()
    assert turned["messages"][3]["content"][-1]["type"] == "text"
    moved = copy.deepcopy(sent)
    blocks = moved["messages"][3]["content"]
    blocks.append(blocks.pop(0))
    assert len({normal_hash(body, "anthropic") for body in (sent, turned, moved)}) == 3


def test_replayed_reasoning_shows() -> None:
    thinking: Any = {"type": "thinking", "thinking": "hm", "signature": "s"}
    told = AssistantMessage(text="x", replay={"anthropic": [thinking, {"type": "text", "text": "x"}]})
    silent = AssistantMessage(text="x")
    hashes = {
        normal_hash(bodies([*conversation(), turn, UserMessage(text="y")], (), None)[1], "anthropic")
        for turn in (told, silent)
    }
    assert len(hashes) == 2


def test_both_names_of_the_output_limit_and_of_the_system_role_are_envelope() -> None:
    usual = entry("openai")
    renamed = entry("openai", capabilities={"token_limit_field": "max_completion_tokens", "system_role": "developer"})
    hashes = {
        normal_hash(openai.request_body(model, LIMIT, conversation(), TOOLS, 0.0), "openai")
        for model in (usual, renamed)
    }
    assert len(hashes) == 1


def test_an_unknown_adapter_is_named_with_its_neighbours() -> None:
    with pytest.raises(UnknownName, match=r"'opnai'.*did you mean 'openai'"):
        normalise({}, "opnai")


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
@pytest.mark.parametrize("body", [None, [], "x", {}, {"messages": 3}, {"messages": [3]}])
def test_what_is_no_request_is_refused(adapter: str, body: Any) -> None:
    with pytest.raises(ValueError, match=r"expected|is an object"):
        normalise(body, adapter)
