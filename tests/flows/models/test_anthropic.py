"""Messages: constructed answers in the shapes that the provider and local servers send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flows.models.adapter import TransientError
from flows.models.anthropic import read_completion, read_usage, request_body
from flows.models.messages import Answer, AssistantMessage, Call, Stop, ToolMessage, Usage, UserMessage
from flows.models.openai import read_usage as read_openai_usage
from tests.flows.models.fault_server import FaultServer, Reply
from tests.flows.models.support import KEY, TOOLS, anthropic_answer, complete, conversation, entry

THINKING = {"type": "thinking", "thinking": "Let me read.", "signature": "c2lnbmVk"}
REDACTED = {"type": "redacted_thinking", "data": "b3BhcXVl"}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def use(call_id: Any = "toolu_1", name: Any = "read_note", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, **(fields or {"input": {"title": "x"}})}


def test_the_request_is_a_message(server: FaultServer) -> None:
    server.script(Reply(200, anthropic_answer([text("Ochre.")])))
    messages = [*conversation(), UserMessage(text="And in 'wall'?")]
    complete(entry("anthropic", server.url), messages, temperature=0.7)
    sent = server.requests[0]
    assert (sent.method, sent.path) == ("POST", "/v1/messages")
    assert (sent.headers["x-api-key"], sent.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in sent.headers
    assert sent.body == {
        "model": "some-model",
        "max_tokens": 256,
        "system": "Work with notes.",
        "messages": [
            {"role": "user", "content": [text("What colour is in the note 'paint'?")]},
            {"role": "assistant", "content": [use("a1", input={"title": "paint"})]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a1", "content": "ochre"}]},
            {"role": "user", "content": [text("And in 'wall'?")]},
        ],
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in TOOLS
        ],
        "temperature": 0.7,
    }


def body(messages: Any, sent_temperature: float | None = None, **capabilities: Any) -> Any:
    return request_body(entry("anthropic", capabilities=capabilities), 64, messages, (), sent_temperature)


def test_what_is_not_set_is_not_sent() -> None:
    assert body(conversation()[1:]).keys() == {"model", "max_tokens", "messages"}


def test_a_temperature_is_never_silently_dropped() -> None:
    with pytest.raises(ValueError, match="accepts no temperature"):
        body(conversation(), 0.0, temperature=False)


@pytest.mark.parametrize(
    ("reason", "content", "stop"),
    [
        ("end_turn", [text("x")], Stop.END),
        ("stop_sequence", [text("x")], Stop.END),
        ("max_tokens", [text("x")], Stop.LENGTH),
        ("max_tokens", [use(input={})], Stop.LENGTH),
        ("tool_use", [use()], Stop.CALLS),
        ("end_turn", [use()], Stop.CALLS),
        ("tool_use", [text("none came")], Stop.END),
        ("refusal", [], Stop.REFUSAL),
        ("model_context_window_exceeded", [text("x")], Stop.CONTEXT),
        ("pause_turn", [text("x")], Stop.UNKNOWN),
        ("weather", [text("x")], Stop.UNKNOWN),
        (None, [], Stop.UNKNOWN),
        ("end_turn", [{"type": "hologram"}], Stop.UNKNOWN),
        ("tool_use", [{"type": "hologram"}, use()], Stop.CALLS),
        ("end_turn", [], Stop.END),
    ],
)
def test_stop_reasons_in_normal_form(reason: Any, content: Any, stop: Stop) -> None:
    answer = anthropic_answer(content, reason)
    completion = read_completion(answer, set())
    assert completion.stop is stop
    assert completion.raw == answer


def test_text_and_calls_are_read() -> None:
    message = read_completion(anthropic_answer([text("One. "), text("Two."), use()], "tool_use"), set()).message
    assert message.text == "One. Two."
    assert message.calls == (
        Call(id="toolu_1", name="read_note", arguments={"title": "x"}, raw_arguments='{"title": "x"}'),
    )
    assert message.replay is None


def test_a_call_that_was_cut_off_at_the_limit_is_not_one_without_arguments() -> None:
    """What arrives of a broken input is an empty object: carried out, it would be the model's empty call."""
    cut = [use("t1"), use("t2", input={})]
    first, last = read_completion(anthropic_answer(cut, "max_tokens"), set()).tool_calls
    assert first.arguments == {"title": "x"}
    assert last.arguments is None
    assert last.problem == "the arguments are not a valid JSON object: the answer was cut off at the output limit"
    before_text = read_completion(anthropic_answer([use("t1"), text("And no")], "max_tokens"), set())
    assert before_text.tool_calls[0].arguments == {"title": "x"}
    whole = read_completion(anthropic_answer(cut, "tool_use"), set())
    assert whole.tool_calls[1].arguments == {}


@pytest.mark.parametrize("content", [None, "text", {}])
def test_an_answer_without_content_is_asked_again(content: Any) -> None:
    with pytest.raises(TransientError, match="bad_answer"):
        read_completion(anthropic_answer(content), set())


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ('["paint"]', "not list"),
        ('"paint"', "not str"),
        ("null", "not NoneType"),
        ('{"title": NaN}', "NaN is not JSON"),
        ('{"title": 1e999}', "1e999 is not JSON"),
        ('{"title": "a", "title": "b"}', "stands twice"),
        ('{"title": [{"a": 1, "a": 2}]}', "stands twice"),
    ],
)
def test_unreadable_input_is_the_models_problem(server: FaultServer, given: str, problem: str) -> None:
    raw = json.dumps(anthropic_answer([use(input="HERE")], "tool_use")).replace('"HERE"', given)
    server.script(Reply(200, raw))
    made = complete(entry("anthropic", server.url)).message.calls[0]
    assert made.arguments is None
    assert made.problem is not None
    assert problem in made.problem


def test_a_call_without_input_has_no_arguments() -> None:
    block = {"type": "tool_use", "id": "t", "name": "hand_in"}
    assert read_completion(anthropic_answer([block], "tool_use"), set()).message.calls[0].arguments == {}


def test_ids_are_unique_within_the_conversation() -> None:
    content = [use(given) for given in ("a1", "", None, "b", "b")]
    made = read_completion(anthropic_answer(content, "tool_use"), {"a1"}).message.calls
    assert [one.id for one in made] == ["call_2", "call_3", "call_4", "b", "call_6"]


def answered(*ids: str) -> ToolMessage:
    return ToolMessage(answers=tuple(Answer(call_id=one, content="y") for one in ids))


def test_thinking_is_replayed_verbatim_and_in_its_place() -> None:
    content = [THINKING, text(""), text("Now."), use("t1"), REDACTED, use("", input=["bad"])]
    message = read_completion(anthropic_answer(content, "tool_use"), {"a1"}).message
    sent = body([*conversation(), message, answered("t1", "call_3")])["messages"][-2]
    assert sent == {
        "role": "assistant",
        "content": [THINKING, text("Now."), use("t1"), REDACTED, use("call_3", input={})],
    }
    assert message.text == "Now."


def test_a_turn_of_thinking_alone_is_not_replayed() -> None:
    message = read_completion(anthropic_answer([THINKING]), set()).message
    assert message.replay is not None
    sent = body([*conversation(), message, UserMessage(text="Go on.")])["messages"]
    assert [one["role"] for one in sent] == ["user", "assistant", "user", "user"]


@pytest.mark.parametrize("blank", ["", " \n"])
def test_blank_text_is_never_replayed(blank: str) -> None:
    message = read_completion(anthropic_answer([text(blank), use("t1")], "tool_use"), set()).message
    sent = body([*conversation(), message, answered("t1"), AssistantMessage(text=blank), UserMessage(text="Go on.")])
    blocks = [block for one in sent["messages"] for block in one["content"]]
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    assert sent["messages"][-3]["content"] == [use("t1")]


def test_a_broken_turn_is_repaired_before_it_is_replayed() -> None:
    broken = Call(id="b1", name="look up!", arguments=None, raw_arguments='{"title": "pa', problem="cut off")
    failed = ToolMessage(answers=(Answer(call_id="b1", content="broken", is_error=True),))
    sent = body([*conversation(), AssistantMessage(calls=(broken,)), failed])["messages"][-2:]
    assert sent[0]["content"] == [use("b1", "look_up_", input={})]
    assert sent[1]["content"] == [
        {"type": "tool_result", "tool_use_id": "b1", "content": "error: broken", "is_error": True}
    ]


def test_another_providers_replay_is_left_alone() -> None:
    message = AssistantMessage(text="x", replay={"openai": {"reasoning_content": "hm"}})
    sent = body([*conversation(), message, UserMessage(text="y")])["messages"]
    assert sent[-2] == {"role": "assistant", "content": [text("x")]}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 10, "output_tokens": 3}, Usage(input_total=10, output_total=3)),
        (
            {
                "input_tokens": 200,
                "cache_read_input_tokens": 800,
                "cache_creation_input_tokens": 50,
                "output_tokens": 9,
            },
            Usage(input_total=1050, input_cached=800, input_cache_write=50, output_total=9),
        ),
        (
            {
                "input_tokens": 5,
                "cache_read_input_tokens": None,
                "cache_creation_input_tokens": None,
                "output_tokens": 1,
            },
            Usage(input_total=5, output_total=1),
        ),
        (None, None),
        ({"input_tokens": 5}, None),
        ({"input_tokens": 5.5, "output_tokens": 1}, None),
        ({"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": "800"}, None),
        ({"input_tokens": 5, "output_tokens": 1, "cache_creation_input_tokens": -1}, None),
        ({"input_tokens": 5, "output_tokens": 1, "service_tier": "standard"}, Usage(input_total=5, output_total=1)),
    ],
)
def test_usage_in_normal_form_and_unknown_is_not_zero(usage: Any, expected: Usage | None) -> None:
    assert read_usage({"usage": usage}) == expected


def test_the_same_tokens_have_the_same_normal_form_from_both_providers() -> None:
    from_openai = read_openai_usage(
        {
            "usage": {
                "prompt_tokens": 1000,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 800},
            }
        }
    )
    from_anthropic = read_usage({"usage": {"input_tokens": 200, "cache_read_input_tokens": 800, "output_tokens": 7}})
    assert from_openai == from_anthropic == Usage(input_total=1000, input_cached=800, output_total=7)


@pytest.mark.parametrize("value", ["\ud800 half", "nul \x00 bell \x07", "😀"])
def test_any_text_survives_both_ways(server: FaultServer, value: str) -> None:
    server.script(Reply(200, anthropic_answer([text(value)])))
    completion = complete(entry("anthropic", server.url), [UserMessage(text=value)])
    assert server.requests[0].content.isascii()
    assert server.requests[0].body["messages"][0]["content"] == [text(value)]
    assert completion.message.text == value
