"""A real server's recorded answers (`wire/`, llama.cpp), replayed over HTTP through the adapters.

Facts covered: call ids of 32 characters without a prefix; content "" where others send null; prompt_tokens that
include cached ones and input_tokens that do not; fields that nobody asked for (timings); a length stop in text and in
the middle of a call; JSON-looking text that is no call; a server error that is the model's own doing; a full context
with its sizes; 400, 401 and 404; another model's name in the answer; OpenAI's error format from Anthropic's path; and
that an answer of another endpoint is not taken for one. The recorded requests, written by hand, are the same to the
normaliser as what the adapters send for the same conversation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flows.models import anthropic, openai
from flows.models.adapter import (
    AccessDenied,
    ContextOverflow,
    MalformedOutput,
    ModelCallError,
    RequestRejected,
    TransientError,
)
from flows.models.envelope import normalise
from flows.models.messages import (
    Answer,
    AssistantMessage,
    Message,
    Stop,
    SystemMessage,
    ToolMessage,
    Usage,
    UserMessage,
)
from tasks_env.canonical import canonical_json
from tasks_env.types import ToolSpec
from tests.flows.models.fault_server import FaultServer, Reply
from tests.flows.models.support import call, complete, entry

WIRE = Path(__file__).parent / "wire"
PATTERNS = [
    {"status": 500, "body": "does not match the expected"},
    {"status": 500, "body": "Failed to parse tool call arguments"},
]
"""As experiments.yaml has them for this server."""


def recorded(name: str) -> Any:
    return json.loads((WIRE / f"{name}.json").read_text(encoding="utf-8"))


def ask(server: FaultServer, name: str) -> Any:
    sample = recorded(name)
    headers = {key: value for key, value in sample["headers"].items() if key not in ("content-length", "keep-alive")}
    server.script(Reply(sample["status"], sample["response"], headers))
    adapter = "anthropic" if sample["request"]["path"].startswith("/v1/messages") else "openai"
    url = server.url if adapter == "anthropic" else f"{server.url}/v1"
    return complete(entry(adapter, url, malformed_patterns=PATTERNS))


ANSWERS: dict[str, tuple[Stop, str, list[tuple[str, Any]], Usage]] = {
    "01_plain_chat": (Stop.END, "Paris", [], Usage(input_total=28, input_cached=4, output_total=2)),
    "02_tool_call": (
        Stop.CALLS,
        "",
        [("read_file", {"path": "secret.txt"})],
        Usage(input_total=284, output_total=22),
    ),
    "03_tool_result_turn": (
        Stop.CALLS,
        "",
        [("submit", {"answer": "mango"})],
        Usage(input_total=323, input_cached=305, output_total=21),
    ),
    "04_length": (Stop.LENGTH, "To count from 1 to 5", [], Usage(input_total=28, input_cached=14, output_total=8)),
    "10_unknown_model_name": (
        Stop.LENGTH,
        "Hello! How can",
        [],
        Usage(input_total=20, input_cached=14, output_total=4),
    ),
    "12_tool_choice_named": (
        Stop.CALLS,
        "",
        [("read_file", {"path": "secret.txt"})],
        Usage(input_total=284, input_cached=283, output_total=22),
    ),
    "14_bare_200_wrong_answer": (
        Stop.CALLS,
        "",
        [("submit", {"answer": "2+3"})],
        Usage(input_total=298, output_total=19),
    ),
    "16_truncated_tool_call": (
        Stop.LENGTH,
        "",
        [("read_file", None)],
        Usage(input_total=284, input_cached=271, output_total=12),
    ),
    "17_tools_offered_text_reply": (
        Stop.END,
        '{"name": "read_file", "arguments": {"path": "data.txt"}}',
        [],
        Usage(input_total=184, input_cached=4, output_total=18),
    ),
    "20_anthropic_tool_use": (
        Stop.CALLS,
        "",
        [("submit", {"answer": "ok"})],
        Usage(input_total=284, input_cached=262, output_total=20),
    ),
    "21_anthropic_tool_result": (
        Stop.CALLS,
        "",
        [("submit", {"answer": "mango"})],
        Usage(input_total=321, input_cached=303, output_total=21),
    ),
    "22_anthropic_plain": (
        Stop.END,
        "Hello! How can I assist you today?",
        [],
        Usage(input_total=22, input_cached=14, output_total=10),
    ),
    "25_anthropic_truncated_tool_call": (
        Stop.LENGTH,
        "",
        [("read_file", None)],
        Usage(input_total=237, output_total=12),
    ),
}
"""Sample → stop, text, calls, usage."""

FAILURES: dict[str, tuple[type[ModelCallError], str]] = {
    "05_err_no_messages": (RequestRejected, "http_400: 'messages' is required"),
    "06_err_bad_json": (RequestRejected, "http_400: [json.exception.parse_error.101]"),
    "07_err_bad_tool_choice": (RequestRejected, "http_400: Invalid tool_choice: maybe"),
    "08_err_context_overflow": (ContextOverflow, "http_400: "),
    "09_err_404": (RequestRejected, "http_404: File Not Found"),
    "11_err_temperature_type": (RequestRejected, "http_400: Field 'temperature'"),
    "13_err_401": (AccessDenied, "http_401: Invalid API Key"),
    "14b_err_500_unparseable_tool_call_bare": (MalformedOutput, "http_500: The model produced output that does not"),
    "15_err_500_bad_args_echoed": (MalformedOutput, "http_500: Failed to parse tool call arguments as JSON"),
    "23_anthropic_err": (TransientError, "http_500: 'messages' is required"),
    "24_anthropic_count": (TransientError, "bad_answer: the answer holds no content"),
    "30_responses_plain": (TransientError, "bad_answer: the answer holds no choices"),
}
"""Sample → failure, and how it begins."""


@pytest.mark.parametrize("name", ANSWERS)
def test_what_the_server_answered_is_read_in_normal_form(server: FaultServer, name: str) -> None:
    completion = ask(server, name)
    calls = [(one.name, one.arguments) for one in completion.tool_calls]
    assert (completion.stop, completion.message.text, calls, completion.usage) == ANSWERS[name]
    assert completion.raw == recorded(name)["response"], "kept as it came, unasked fields included"
    assert completion.status == 200


@pytest.mark.parametrize("name", FAILURES)
def test_what_the_server_refused_is_classified(server: FaultServer, name: str) -> None:
    with pytest.raises(ModelCallError) as caught:
        ask(server, name)
    kind, beginning = FAILURES[name]
    assert type(caught.value) is kind
    assert str(caught.value).startswith(beginning)
    assert caught.value.raw == recorded(name)["response"]


def test_every_recorded_sample_is_replayed() -> None:
    assert {path.stem for path in WIRE.glob("*.json")} == ANSWERS.keys() | FAILURES.keys()


def test_a_full_context_says_its_sizes_in_the_raw_error(server: FaultServer) -> None:
    with pytest.raises(ContextOverflow) as caught:
        ask(server, "08_err_context_overflow")
    error: Any = caught.value.raw
    assert error["error"]["type"] == "exceed_context_size_error"
    assert error["error"]["n_prompt_tokens"] > error["error"]["n_ctx"]


def test_ids_without_a_prefix_are_kept_and_the_answers_own_model_is_told(server: FaultServer) -> None:
    [made] = ask(server, "02_tool_call").tool_calls
    assert made.id == "CMQCpObVaPxwKdPkrvS8HjIedluTTxSQ"
    assert ask(server, "10_unknown_model_name").raw["model"] == "qwen2.5-coder-0.5b"


TOOLS = tuple(
    ToolSpec(
        name=name,
        description=description,
        parameters={"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]},
    )
    for name, description, argument in (
        ("read_file", "Read one file.", "path"),
        ("submit", "Submit the final answer and finish.", "answer"),
    )
)


def turn(number: int, name: str, arguments: dict[str, Any], answer: str) -> list[Message]:
    identity = f"c{number}"
    return [
        AssistantMessage(calls=(call(identity, name, arguments),)),
        ToolMessage(answers=(Answer(call_id=identity, content=answer),)),
    ]


OPENING: list[Message] = [
    SystemMessage(text="You solve tasks about files. Call one tool per turn. When you know the answer, call submit."),
    UserMessage(text="Read color.txt and submit the color."),
    *turn(1, "read_file", {"path": "color.txt"}, "The color is red."),
    *turn(2, "submit", {"answer": "red"}, "ok"),
    UserMessage(text="Read secret.txt and submit the secret word."),
]
CONVERSATIONS: dict[str, list[Message]] = {
    "02_tool_call": OPENING,
    "03_tool_result_turn": [
        *OPENING,
        *turn(3, "read_file", {"path": "secret.txt"}, "The secret word is mango."),
    ],
    "20_anthropic_tool_use": OPENING,
    "21_anthropic_tool_result": [*OPENING, *turn(3, "submit", {"answer": "ok"}, "The secret word is mango.")],
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_recorded_requests_are_the_same_as_ours_without_the_envelope(name: str) -> None:
    """Written by hand in another arrangement: text as a string or in blocks, results and text in one message."""
    theirs = recorded(name)["request"]["body"]
    adapter = "anthropic" if "anthropic" in name else "openai"
    module: Any = anthropic if adapter == "anthropic" else openai
    ours = module.request_body(entry(adapter), 64, CONVERSATIONS[name], TOOLS, 0)
    assert canonical_json(normalise(theirs, adapter)) == canonical_json(normalise(ours, adapter))


def test_the_same_turn_recorded_through_both_formats_is_the_same_without_the_envelope() -> None:
    bodies = [(name, recorded(name)["request"]["body"]) for name in ("02_tool_call", "20_anthropic_tool_use")]
    first, second = (normalise(body, "anthropic" if "anthropic" in name else "openai") for name, body in bodies)
    assert canonical_json(first) == canonical_json(second)
