"""Anthropic messages: bodies out, answers in.

Nothing is sent about prompt caching or the choice of a tool, nor about parallel calls unless they are switched off,
as in the OpenAI-compatible adapter: what is not sent cannot differ between models.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

from flows.manifest.schema import HttpModel
from flows.models.adapter import Request
from flows.models.conversation import (
    CUT_OFF,
    answer_text,
    asks_for_single_calls,
    is_empty_turn,
    own_replay,
    read_call,
    replayed_arguments,
    replayed_name,
    replayed_text,
    sent_temperature,
    split_system,
    taken_ids,
)
from flows.models.failures import bad_answer
from flows.models.http import Client, post_json
from flows.models.keys import ApiKey
from flows.models.messages import (
    Answer,
    AssistantMessage,
    Call,
    Completion,
    Message,
    Stop,
    ToolMessage,
    Usage,
    UserMessage,
)
from flows.models.reading import count, flaw, section
from tasks_env.types import JsonObject, ToolSpec

ADAPTER = "anthropic"
API_VERSION = "2023-06-01"

SINGLE_CALLS: JsonObject = {"type": "auto", "disable_parallel_tool_use": True}
"""The choice of tools that is the model's as ever, but of one at a time."""
STOPS = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "max_tokens": Stop.LENGTH,
    "tool_use": Stop.CALLS,
    "refusal": Stop.REFUSAL,
    "model_context_window_exceeded": Stop.CONTEXT,
}
THINKING = frozenset({"thinking", "redacted_thinking"})


class AnthropicAdapter:
    """Access to one model behind `POST {base_url}/v1/messages`.

    Args:
        entry: The manifest's entry; its `model` is set.
        base_url: The endpoint's root, without `/v1`.
        api_key: Sent as `x-api-key` if given.
        max_output_tokens: Ceiling of each answer.
        client: Where the connections live; the caller closes it.
        parallel_calls: False asks for one tool call per turn.
    """

    version = "anthropic/2"

    def __init__(
        self,
        entry: HttpModel,
        base_url: str,
        api_key: ApiKey | None,
        max_output_tokens: int,
        client: Client,
        parallel_calls: bool = True,
    ) -> None:
        self._entry = entry
        self._url = f"{base_url.rstrip('/')}/v1/messages"
        self._key = api_key
        self._max_output_tokens = max_output_tokens
        self._client = client
        self._parallel_calls = parallel_calls

    def request_body(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], temperature: float | None
    ) -> JsonObject:
        """What is sent for this conversation; null `temperature` sends none."""
        return request_body(self._entry, self._max_output_tokens, messages, tools, temperature, self._parallel_calls)

    async def complete(self, request: Request) -> Completion:
        """One attempt at one answer. Raises `ModelCallError`."""
        answer, status = await post_json(
            self._client,
            self._url,
            request.body,
            headers={"anthropic-version": API_VERSION},
            key=self._key,
            key_header=("x-api-key", ""),
            timeout_s=self._entry.limits.timeout_s,
            patterns=self._entry.malformed_patterns,
        )
        return read_completion(answer, taken_ids(request.messages)).model_copy(update={"status": status})


def request_body(
    entry: HttpModel,
    max_output_tokens: int,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    temperature: float | None,
    parallel_calls: bool = True,
) -> JsonObject:
    """The conversation as a messages request.

    Raises:
        ValueError: an invalid conversation, or a setting that the model does not accept.
    """
    system, turns = split_system(messages)
    body: JsonObject = {"model": entry.model, "max_tokens": max_output_tokens}
    if system is not None:
        body["system"] = system
    body["messages"] = _sent_turns(turns)
    if tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
        ]
    if asks_for_single_calls(entry, tools, parallel_calls):
        body["tool_choice"] = dict(SINGLE_CALLS)
    body |= sent_temperature(entry, temperature)
    return body


def _sent_turns(turns: Sequence[Message]) -> list[JsonValue]:
    """One message per turn.

    Text after tool results stays a user message of its own. The provider joins consecutive user messages itself,
    while llama.cpp would move text that shares a message with results to the front of them.
    """
    sent = [(role, blocks) for role, blocks in map(_sent_blocks, turns) if blocks]
    return [{"role": role, "content": blocks} for role, blocks in sent]


def _sent_blocks(turn: Message) -> tuple[str, list[JsonValue]]:
    match turn:
        case UserMessage():
            return "user", [{"type": "text", "text": turn.text}]
        case ToolMessage():
            return "user", [_tool_result(answer) for answer in turn.answers]
        case AssistantMessage() if not is_empty_turn(turn):
            replayed = own_replay(turn, ADAPTER)
            return "assistant", list(replayed) if isinstance(replayed, list) else _assistant_blocks(turn)
        case _:
            return "assistant", []


def _tool_result(answer: Answer) -> JsonValue:
    block: JsonObject = {"type": "tool_result", "tool_use_id": answer.call_id}
    if text := answer_text(answer):
        block["content"] = text
    if answer.is_error:
        block["is_error"] = True
    return block


def _assistant_blocks(turn: AssistantMessage) -> list[JsonValue]:
    text = replayed_text(turn)
    blocks: list[JsonValue] = [] if text is None else [{"type": "text", "text": text}]
    blocks += [_tool_use(call) for call in turn.calls]
    return blocks


def _tool_use(call: Call) -> JsonValue:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": replayed_name(call),
        "input": json.loads(replayed_arguments(call)),
    }


def read_completion(answer: JsonObject, taken: set[str]) -> Completion:
    """A messages answer in the scaffold's form.

    An answer with thinking keeps its blocks in `replay`, in their order and the thinking verbatim, signatures
    included; only blank text is left out and calls are repaired as everywhere.

    A call that ends an answer which reached the output limit counts as cut off, however whole it looks: what arrives
    of a broken input is an empty or incomplete object. The other adapter reads its own in the same way.

    Args:
        answer: The body of a 200.
        taken: The ids of all calls before this answer; those of its own calls are added.

    Raises:
        TransientError: no content, or a block that is not an object.
    """
    content = answer.get("content")
    if not isinstance(content, list):
        raise bad_answer("the answer holds no content", answer)
    texts: list[str] = []
    calls: list[Call] = []
    replay: list[JsonValue] = []
    strange = thinks = False
    reason = answer.get("stop_reason")
    for number, block in enumerate(content, start=1):
        if not isinstance(block, dict):
            raise bad_answer("the answer's content holds something that is not a block", answer)
        kind, text = block.get("type"), block.get("text")
        if kind == "text" and isinstance(text, str):
            texts.append(text)
            if text.strip():
                replay.append(block)
        elif kind == "tool_use":
            given = block.get("input", {})
            problem = CUT_OFF if reason == "max_tokens" and number == len(content) else flaw(given)
            call = read_call(block.get("id"), block.get("name"), json.dumps(given), taken, problem)
            calls.append(call)
            replay.append(_tool_use(call))
        elif kind in THINKING:
            thinks = True
            replay.append(block)
        else:
            strange = True
    return Completion(
        message=AssistantMessage(text="".join(texts), calls=tuple(calls), replay={ADAPTER: replay} if thinks else None),
        usage=read_usage(answer),
        stop=_stop(reason, bool(calls), strange),
        raw=answer,
    )


def _stop(reason: JsonValue, has_calls: bool, strange: bool) -> Stop:
    stop = STOPS.get(reason, Stop.UNKNOWN) if isinstance(reason, str) else Stop.UNKNOWN
    if stop in (Stop.END, Stop.CALLS):
        stop = Stop.CALLS if has_calls else Stop.END
    return Stop.UNKNOWN if strange and stop is Stop.END else stop


def read_usage(answer: JsonObject) -> Usage | None:
    """The answer's usage in normal form; null where it is missing or a part of it is no number."""
    usage = section(answer, "usage")
    fresh, written = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    cached = count(usage.get("cache_read_input_tokens"), absent=0)
    stored = count(usage.get("cache_creation_input_tokens"), absent=0)
    if fresh is None or written is None or cached is None or stored is None:
        return None
    return Usage(
        input_total=fresh + cached + stored,
        input_cached=cached,
        input_cache_write=stored,
        output_total=written,
    )
