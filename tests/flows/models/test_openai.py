"""Chat completions: constructed answers in the shapes that providers and local servers send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flows.models.adapter import TransientError
from flows.models.messages import Answer, AssistantMessage, Call, Message, Stop, ToolMessage, Usage, UserMessage
from flows.models.openai import read_completion, read_usage, request_body
from tests.flows.models.fault_server import FaultServer, Reply
from tests.flows.models.support import (
    KEY,
    TOOLS,
    call,
    complete,
    conversation,
    entry,
    openai_answer,
    openai_call,
)


def test_the_request_is_a_chat_completion(server: FaultServer) -> None:
    server.script(Reply(200, openai_answer({"content": "Ochre."})))
    complete(entry("openai", f"{server.url}/v1/"), temperature=0.7)
    sent = server.requests[0]
    assert (sent.method, sent.path) == ("POST", "/v1/chat/completions")
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["content-type"] == "application/json"
    assert sent.body == {
        "model": "some-model",
        "messages": [
            {"role": "system", "content": "Work with notes."},
            {"role": "user", "content": "What colour is in the note 'paint'?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "a1",
                        "type": "function",
                        "function": {"name": "read_note", "arguments": '{"title": "paint"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "a1", "content": "ochre"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in TOOLS
        ],
        "temperature": 0.7,
        "max_tokens": 256,
    }


def body(messages: Any = None, tools: Any = (), temperature: float | None = None, **capabilities: Any) -> Any:
    model = entry("openai", capabilities=capabilities)
    return request_body(model, 64, messages or conversation(), tools, temperature)


def test_capabilities_shape_the_request() -> None:
    sent = body(token_limit_field="max_completion_tokens", system_role="developer")
    assert sent["max_completion_tokens"] == 64
    assert "max_tokens" not in sent
    assert sent["messages"][0]["role"] == "developer"
    assert "temperature" not in sent
    assert "tools" not in sent


def test_a_temperature_is_never_silently_dropped() -> None:
    with pytest.raises(ValueError, match="accepts no temperature"):
        request_body(entry("openai", capabilities={"temperature": False}), 64, conversation(), (), 0.0)


def test_temperature_zero_is_sent() -> None:
    assert body(temperature=0.0)["temperature"] == 0.0


@pytest.mark.parametrize(
    ("finish", "message", "stop"),
    [
        ("stop", {"content": "x"}, Stop.END),
        ("length", {"content": "x"}, Stop.LENGTH),
        ("content_filter", {"content": None}, Stop.REFUSAL),
        ("stop", {"content": None, "refusal": "I will not."}, Stop.REFUSAL),
        ("tool_calls", {"content": None, "tool_calls": [openai_call("{}")]}, Stop.CALLS),
        ("stop", {"content": "", "tool_calls": [openai_call("{}")]}, Stop.CALLS),
        ("function_call", {"content": None, "function_call": {"name": "f", "arguments": "{}"}}, Stop.CALLS),
        ("tool_calls", {"content": "none came"}, Stop.END),
        ("length", {"content": "", "tool_calls": [openai_call("{")]}, Stop.LENGTH),
        ("weather", {"content": "x"}, Stop.UNKNOWN),
        (None, {"content": "x"}, Stop.UNKNOWN),
        (7, {"content": "x"}, Stop.UNKNOWN),
        ("stop", {"content": [{"type": "text", "text": "x"}]}, Stop.END),
        ("stop", {"content": [{"type": "image", "url": "…"}]}, Stop.UNKNOWN),
    ],
)
def test_finish_reasons_in_normal_form(finish: Any, message: Any, stop: Stop) -> None:
    answer = openai_answer(message, finish)
    completion = read_completion(answer, set())
    assert completion.stop is stop
    assert completion.raw == answer


@pytest.mark.parametrize("finish", ["error", "insufficient_system_resource"])
def test_a_server_that_broke_off_is_asked_again(finish: str) -> None:
    with pytest.raises(TransientError, match="broke off"):
        read_completion(openai_answer({"content": "half an ans"}, finish), set())


def test_an_error_within_the_choice_is_one() -> None:
    answer: Any = {"choices": [{"error": {"code": 502, "message": "upstream"}, "message": {"content": ""}}]}
    with pytest.raises(TransientError, match="upstream"):
        read_completion(answer, set())


def test_content_null_with_calls_is_empty_text() -> None:
    message = read_completion(
        openai_answer({"content": None, "tool_calls": [openai_call('{"title": "x"}')]}, "tool_calls"), set()
    ).message
    assert message.text == ""
    assert message.calls == (Call(id="c7", name="read_note", arguments={"title": "x"}, raw_arguments='{"title": "x"}'),)


def test_text_that_looks_like_a_call_stays_text() -> None:
    text = '{"name": "read_note", "arguments": {"title": "x"}}'
    completion = read_completion(openai_answer({"content": text}), set())
    assert completion.message.text == text
    assert completion.message.calls == ()


def read_call(arguments: Any) -> Call:
    answer = openai_answer({"content": None, "tool_calls": [openai_call(arguments)]}, "tool_calls")
    return read_completion(answer, set()).message.calls[0]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"title": "pa', "not a valid JSON object"),
        ('["paint"]', "must be a JSON object, not list"),
        ('"paint"', "must be a JSON object, not str"),
        ("null", "must be a JSON object, not NoneType"),
        ("NaN", "NaN is not JSON"),
        ('{"title": NaN}', "NaN is not JSON"),
        ('{"title": -Infinity}', "-Infinity is not JSON"),
        ('{"title": 1e999}', "too large"),
        ('{"title": "a", "title": "b"}', "'title' stands twice"),
        ('{"title": {"a": 1, "a": 2}}', "'a' stands twice"),
        ('{"title": ' + "[" * 100 + "]" * 100 + "}", "nested too deeply"),
        ("[" * 5000, "nested too deeply"),
        (["paint"], "must be a JSON object, not list"),
        (7, "must be a JSON object, not int"),
    ],
)
def test_unreadable_arguments_are_the_models_problem(arguments: Any, problem: str) -> None:
    made = read_call(arguments)
    assert made.arguments is None
    assert made.problem is not None
    assert problem in made.problem


def test_a_call_that_ends_an_answer_at_the_limit_is_cut_off_however_whole_it_looks() -> None:
    calls: Any = [openai_call("{}", call_id="a"), openai_call('{"title": "x"}', call_id="b")]
    first, last = read_completion(openai_answer({"content": None, "tool_calls": calls}, "length"), set()).tool_calls
    assert (first.arguments, last.arguments) == ({}, None)
    assert last.problem == "the arguments are not a valid JSON object: the answer was cut off at the output limit"


@pytest.mark.parametrize("arguments", ["", "  ", None, "{}", {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    assert read_call(arguments).arguments == {}


def test_arguments_that_come_as_an_object_are_read() -> None:
    made = read_call({"title": "x"})
    assert (made.arguments, made.raw_arguments) == ({"title": "x"}, '{"title": "x"}')


def test_ids_are_unique_within_the_conversation() -> None:
    calls = [openai_call("{}", call_id=given) for given in ("a1", "", None, "b", "b", "call_3", 5)]
    answer = openai_answer({"content": None, "tool_calls": [*calls]}, "tool_calls")
    made = read_completion(answer, {"a1"}).message.calls
    assert [one.id for one in made] == ["call_2", "call_3", "call_4", "b", "call_6", "call_7", "call_8"]
    again = read_completion(answer, {"a1"}).message.calls
    assert made == again


def test_calls_without_a_shape_are_still_calls() -> None:
    answer = openai_answer({"content": None, "tool_calls": [None, {"id": "x"}, {"function": {"name": 3}}]})
    made = read_completion(answer, set()).message.calls
    assert [(one.name, one.arguments) for one in made] == [("", {}), ("", {}), ("", {})]


BROKEN = AssistantMessage(
    calls=(
        Call(id="b1", name="look up!", arguments=None, raw_arguments='{"title": "pa', problem="cut off"),
        Call(id="b2", name="", arguments={"b": 1, "a": 2}, raw_arguments=""),
        Call(id="b3", name="read_note", arguments={"a": 1}, raw_arguments='{"a":1}'),
    )
)
ANSWERED = ToolMessage(
    answers=(
        Answer(call_id="b1", content="broken", is_error=True),
        Answer(call_id="b2", content="error: no tool ''", is_error=True),
        Answer(call_id="b3", content=""),
    )
)


def test_a_broken_turn_is_repaired_before_it_is_replayed() -> None:
    sent = body([*conversation(), BROKEN, ANSWERED])["messages"][-4:]
    functions = [made["function"] for made in sent[0]["tool_calls"]]
    assert functions == [
        {"name": "look_up_", "arguments": "{}"},
        {"name": "unnamed", "arguments": '{"b": 1, "a": 2}'},
        {"name": "read_note", "arguments": '{"a":1}'},
    ]
    assert [answer["content"] for answer in sent[1:]] == ["error: broken", "error: no tool ''", ""]


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_turn_is_not_replayed(text: str) -> None:
    nudge = UserMessage(text="Go on.")
    sent = body([*conversation(), AssistantMessage(text=text), nudge])["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "user"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_only_where_the_model_wants_it(field: str) -> None:
    message: Any = {"content": None, field: "I should read.", "tool_calls": [openai_call("{}", call_id="r1")]}
    answer = openai_answer(message, "tool_calls")
    kept = read_completion(answer, set(), replay_reasoning=True).message
    dropped = read_completion(answer, set()).message
    answered = ToolMessage(answers=(Answer(call_id="r1", content="x"),))
    start = conversation()
    assert dropped.replay is None
    assert body([*start, kept, answered], replay_reasoning=True)["messages"][-2][field] == "I should read."
    assert field not in body([*start, kept, answered])["messages"][-2]
    assert field not in body([*start, dropped, answered], replay_reasoning=True)["messages"][-2]


def test_reasoning_without_calls_is_not_kept() -> None:
    answer = openai_answer({"content": "x", "reasoning_content": "hm"})
    assert read_completion(answer, set(), replay_reasoning=True).message.replay is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 3}, Usage(input_total=10, output_total=3)),
        (
            {
                "prompt_tokens": 1000,
                "completion_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 800},
                "completion_tokens_details": {"reasoning_tokens": 30},
                "total_tokens": 1050,
            },
            Usage(input_total=1000, input_cached=800, output_total=50, output_reasoning=30),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "prompt_tokens_details": None,
                "completion_tokens_details": None,
            },
            Usage(input_total=9, output_total=3),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 5},
            Usage(input_total=9, input_cached=4, output_total=3),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "completion_tokens_details": {"reasoning_tokens": 20},
                "total_tokens": 32,
            },
            Usage(input_total=9, output_total=23, output_reasoning=20),
        ),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(input_total=0, output_total=0)),
        (None, None),
        ({}, None),
        ({"prompt_tokens": 10}, None),
        ({"prompt_tokens": "10", "completion_tokens": 3}, None),
        ({"prompt_tokens": 10, "completion_tokens": -1}, None),
        ({"prompt_tokens": True, "completion_tokens": 3}, None),
        ({"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 11}}, None),
        ({"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": "4"}}, None),
        ({"prompt_tokens": 10, "completion_tokens": 3, "prompt_cache_hit_tokens": 1.5}, None),
        ({"prompt_tokens": 10, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": "2"}}, None),
        ({"prompt_tokens": 10, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 4}}, None),
        ({"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 40}, None),
        ({"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 0}, Usage(input_total=10, output_total=3)),
    ],
)
def test_usage_in_normal_form_and_unknown_is_not_zero(usage: Any, expected: Usage | None) -> None:
    assert read_usage({"usage": usage}) == expected


def test_missing_usage_does_not_spoil_the_answer() -> None:
    answer = openai_answer({"content": "x"})
    del answer["usage"]
    completion = read_completion(answer, set())
    assert (completion.usage, completion.message.text) == (None, "x")


@pytest.mark.parametrize("text", ["\ud800 half", "nul \x00 bell \x07 esc \x1b", "line\u2028sep", "😀", "é"])
def test_any_text_survives_both_ways(server: FaultServer, text: str) -> None:
    server.script(Reply(200, openai_answer({"content": text})))
    messages: list[Message] = [UserMessage(text="hi"), AssistantMessage(text=text), UserMessage(text=text)]
    completion = complete(entry("openai", server.url), messages)
    sent = server.requests[0]
    assert sent.content.isascii()
    assert [message["content"] for message in sent.body["messages"]] == ["hi", text, text]
    assert completion.message.text == text
    assert json.loads(json.dumps(completion.raw)) == completion.raw


def test_a_body_with_numbers_that_are_none_is_read_and_stays_loggable(server: FaultServer) -> None:
    answer = json.dumps(openai_answer({"content": "x"})).replace('"index": 0', '"logprob": -Infinity')
    server.script(Reply(200, answer))
    completion = complete(entry("openai", server.url))
    assert completion.message.text == "x"
    assert '"-Infinity"' in json.dumps(completion.raw, allow_nan=False)


def test_a_conversation_goes_on_with_what_came_back(server: FaultServer) -> None:
    turn = openai_answer(
        {"content": "Reading.", "tool_calls": [openai_call('{"title":"x"}', call_id="")]}, "tool_calls"
    )
    server.script(Reply(200, turn), Reply(200, openai_answer({"content": "Done."})))
    model = entry("openai", server.url)
    first = complete(model)
    answers = ToolMessage(answers=tuple(Answer(call_id=one.id, content="y") for one in first.tool_calls))
    complete(model, [*conversation(), first.message, answers])
    assert server.requests[1].body["messages"][-2:] == [
        {
            "role": "assistant",
            "content": "Reading.",
            "tool_calls": [
                {"id": "call_2", "type": "function", "function": {"name": "read_note", "arguments": '{"title":"x"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_2", "content": "y"},
    ]


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "opens with a user message"),
        ([AssistantMessage(text="x")], "opens with a user message"),
        ([UserMessage(text=" ")], "without text"),
        ([*conversation()[:2], conversation()[0]], "only the first message"),
        ([*conversation()[:3], UserMessage(text="x")], "are not answered: a1"),
        ([*conversation(), conversation()[3]], "answers to"),
        ([*conversation(), AssistantMessage(calls=(call("a1", "f", {}),))], "stands twice"),
        ([*conversation()[:3], ToolMessage(answers=())], "answers to"),
    ],
)
def test_an_invalid_conversation_is_refused_before_it_is_sent(messages: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        request_body(entry("openai"), 64, messages, (), None)
