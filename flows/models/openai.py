"""OpenAI-compatible chat completions: bodies out, answers in.

Nothing is sent about the choice of a tool, nor about parallel calls unless they are switched off: both providers
allow parallel calls and leave the choice to the model unless told otherwise, so saying nothing is the one request
that means the same to both.
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
    shown_tool,
    split_system,
    taken_ids,
)
from flows.models.failures import bad_answer
from flows.models.http import Client, post_json
from flows.models.keys import ApiKey
from flows.models.messages import (
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

ADAPTER = "openai"

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
"""Where servers put reasoning, replayed under the name it came with."""

STOPS = {
    "stop": Stop.END,
    "length": Stop.LENGTH,
    "tool_calls": Stop.CALLS,
    "function_call": Stop.CALLS,
    "content_filter": Stop.REFUSAL,
}
INTERRUPTED = frozenset({"error", "insufficient_system_resource"})
"""Finish reasons that say the server broke off: OpenRouter, DeepSeek."""


class OpenAIAdapter:
    """Access to one model behind `POST {base_url}/chat/completions`.

    Args:
        entry: The manifest's entry; its `model` is set.
        base_url: The endpoint's root, version prefix included where there is one.
        api_key: Sent as a bearer token if given.
        max_output_tokens: Ceiling of each answer.
        client: Where the connections live; the caller closes it.
        parallel_calls: False asks for one tool call per turn.
    """

    version = "openai/2"

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
        self._url = f"{base_url.rstrip('/')}/chat/completions"
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
            headers={},
            key=self._key,
            key_header=("authorization", "Bearer "),
            timeout_s=self._entry.limits.timeout_s,
            patterns=self._entry.malformed_patterns,
        )
        completion = read_completion(answer, taken_ids(request.messages), self._entry.capabilities.replay_reasoning)
        return completion.model_copy(update={"status": status})


def request_body(
    entry: HttpModel,
    max_output_tokens: int,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    temperature: float | None,
    parallel_calls: bool = True,
) -> JsonObject:
    """The conversation as a chat completions request.

    Raises:
        ValueError: an invalid conversation, or a setting that the model does not accept.
    """
    system, turns = split_system(messages)
    sent: list[JsonValue] = []
    if system is not None:
        sent.append({"role": entry.capabilities.system_role, "content": system})
    for turn in turns:
        sent += _sent_turn(turn, entry.capabilities.replay_reasoning)
    body: JsonObject = {"model": entry.model, "messages": sent}
    if tools:
        body["tools"] = [{"type": "function", "function": shown_tool(tool)} for tool in tools]
    if asks_for_single_calls(entry, tools, parallel_calls):
        body["parallel_tool_calls"] = False
    body |= sent_temperature(entry, temperature)
    body[entry.capabilities.token_limit_field] = max_output_tokens
    return body


def _sent_turn(turn: Message, replay_reasoning: bool) -> list[JsonValue]:
    match turn:
        case UserMessage():
            return [{"role": "user", "content": turn.text}]
        case ToolMessage():
            return [
                {"role": "tool", "tool_call_id": answer.call_id, "content": answer_text(answer)}
                for answer in turn.answers
            ]
        case AssistantMessage() if not is_empty_turn(turn):
            sent: JsonObject = {"role": "assistant", "content": replayed_text(turn)}
            if turn.calls:
                sent["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": replayed_name(call), "arguments": replayed_arguments(call)},
                    }
                    for call in turn.calls
                ]
            reasoning = own_replay(turn, ADAPTER)
            if replay_reasoning and isinstance(reasoning, dict):
                sent |= reasoning
            return [sent]
        case _:
            return []


def read_completion(answer: JsonObject, taken: set[str], replay_reasoning: bool = False) -> Completion:
    """A chat completions answer in the scaffold's form.

    Args:
        answer: The body of a 200.
        taken: The ids of all calls before this answer; those of its own calls are added.
        replay_reasoning: Keep the reasoning that came with calls, to be sent back.

    Raises:
        TransientError: no choices, a choice without a message or with an error, text that is not text.
    """
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise bad_answer("the answer holds no choices", answer)
    message = choice.get("message")
    finish = choice.get("finish_reason")
    if choice.get("error") or finish in INTERRUPTED:
        raise bad_answer(f"the server broke off: {choice.get('error') or finish}", answer)
    if not isinstance(message, dict):
        raise bad_answer("the choice holds no message", answer)
    text, strange = _text(message.get("content"), answer)
    calls = _calls(message, taken, cut_off=finish == "length")
    replay: JsonValue = None
    if replay_reasoning and calls:
        reasoning = {name: message[name] for name in REASONING_FIELDS if message.get(name)}
        replay = {ADAPTER: reasoning} if reasoning else None
    return Completion(
        message=AssistantMessage(text=text, calls=calls, replay=replay),
        usage=read_usage(answer),
        stop=_stop(finish, message, bool(calls), strange),
        raw=answer,
    )


def _text(content: JsonValue, answer: JsonObject) -> tuple[str, bool]:
    """The answer's text, and whether it held parts of an unknown kind."""
    if content is None:
        return "", False
    if isinstance(content, str):
        return content, False
    if not isinstance(content, list):
        raise bad_answer(f"the message's content is {type(content).__name__}, not text", answer)
    texts: list[str] = []
    strange = False
    for part in content:
        kind, text = (part.get("type"), part.get("text")) if isinstance(part, dict) else (None, None)
        if kind == "text" and isinstance(text, str):
            texts.append(text)
        elif kind not in ("thinking", "reasoning"):
            strange = True
    return "".join(texts), strange


def _calls(message: JsonObject, taken: set[str], cut_off: bool) -> tuple[Call, ...]:
    listed = message.get("tool_calls")
    entries = list(listed) if isinstance(listed, list) else []
    if not entries and isinstance(message.get("function_call"), dict):
        entries = [{"function": message["function_call"]}]
    calls = []
    for number, entry in enumerate(entries, start=1):
        made = entry if isinstance(entry, dict) else {}
        function = section(made, "function")
        arguments = function.get("arguments")
        if isinstance(arguments, str) or arguments is None:
            text, problem = arguments or "", None
        else:  # some servers send the object itself
            text, problem = json.dumps(arguments), flaw(arguments)
        if cut_off and number == len(entries):
            problem = CUT_OFF
        calls.append(read_call(made.get("id"), function.get("name"), text, taken, problem))
    return tuple(calls)


def _stop(finish: JsonValue, message: JsonObject, has_calls: bool, strange: bool) -> Stop:
    stop = STOPS.get(finish, Stop.UNKNOWN) if isinstance(finish, str) else Stop.UNKNOWN
    if message.get("refusal") and not has_calls:
        return Stop.REFUSAL
    if stop in (Stop.END, Stop.CALLS):
        stop = Stop.CALLS if has_calls else Stop.END
    return Stop.UNKNOWN if strange and stop is Stop.END else stop


def read_usage(answer: JsonObject) -> Usage | None:
    """The answer's usage in normal form; null where it is missing or does not add up.

    A total that is larger than its parts holds tokens that nobody named: where they are the reasoning they are
    output, otherwise the usage is not known.
    """
    usage = section(answer, "usage")
    read, written = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    hit = section(usage, "prompt_tokens_details").get("cached_tokens")
    cached = count(usage.get("prompt_cache_hit_tokens") if hit is None else hit, absent=0)
    reasoning = count(section(usage, "completion_tokens_details").get("reasoning_tokens"), absent=0)
    if read is None or written is None or cached is None or reasoning is None:
        return None
    unnamed = (count(usage.get("total_tokens"), absent=0) or 0) - read - written
    if unnamed > 0 and unnamed == reasoning:
        written += reasoning
    elif unnamed > 0:
        return None
    if cached > read or reasoning > written:
        return None
    return Usage(input_total=read, input_cached=cached, output_total=written, output_reasoning=reasoning)
