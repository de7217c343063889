"""What both adapters do alike: checking a conversation, repairing what is replayed, giving calls their ids.

Every rule here is part of scaffold identity: two models see the same conversation because both adapters take
these decisions from one place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pydantic import JsonValue

from flows.manifest.schema import HttpModel
from flows.models.messages import (
    Answer,
    AssistantMessage,
    Call,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
    read_arguments,
)
from tasks_env.canonical import canonical_json
from tasks_env.identity import Same
from tasks_env.types import JsonObject, ToolSpec

ERROR_MARK = "error"
"""A failed tool's answer says so in its text: one provider has no other place for it."""

CUT_OFF = "the answer was cut off at the output limit"
"""The flaw of a call that ends an answer which reached the limit. One format shows the broken text, the other an
object made of what there was of it, so for both the call is not carried out, however whole it looks."""

MAX_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def check_conversation(messages: Sequence[Message]) -> None:
    """Refuse a conversation that a provider would refuse or that two providers would read differently.

    Raises:
        ValueError: a system message that is not the first one, a conversation that does not open with a user
            message, one without text, a call id that stands twice, or tool answers that are not those to the
            calls of the turn before, in their order.
    """
    seen: set[str] = set()
    open_calls: tuple[str, ...] = ()
    for index, message in enumerate(messages):
        if open_calls and not isinstance(message, ToolMessage):
            raise ValueError(f"message {index}: the calls before it are not answered: {', '.join(open_calls)}")
        match message:
            case SystemMessage() if index > 0:
                raise ValueError(f"message {index}: only the first message may be the system message")
            case SystemMessage() | UserMessage() if not message.text.strip():
                raise ValueError(f"message {index}: a {message.role} message without text")
            case AssistantMessage():
                open_calls = tuple(call.id for call in message.calls)
                for call_id in open_calls:
                    if not call_id or call_id in seen:
                        raise ValueError(f"message {index}: call id {call_id!r} is empty or stands twice")
                    seen.add(call_id)
            case ToolMessage():
                answered = tuple(answer.call_id for answer in message.answers)
                if answered != open_calls or not answered:
                    raise ValueError(f"message {index}: answers to {answered}, but the calls are {open_calls}")
                open_calls = ()
            case _:
                continue


def split_system(messages: Sequence[Message]) -> tuple[str | None, Sequence[Message]]:
    """The system text, if there is one, and the messages after it, checked."""
    check_conversation(messages)
    system = messages[0].text if messages and isinstance(messages[0], SystemMessage) else None
    turns = messages if system is None else messages[1:]
    if not turns or not isinstance(turns[0], UserMessage):
        raise ValueError("a conversation opens with a user message")
    return system, turns


def is_empty_turn(message: AssistantMessage) -> bool:
    """Whether a turn has nothing to replay.

    Such a turn (blank text, no calls, whatever reasoning) is left out of every request: Anthropic refuses
    empty text and turns that end in reasoning, and what one model is spared the other is not shown either.
    """
    return not message.calls and not message.text.strip()


def replayed_text(message: AssistantMessage) -> str | None:
    """The turn's text as it is replayed; null where it is blank."""
    return message.text if message.text.strip() else None


def replayed_arguments(call: Call) -> str:
    """The call's arguments as JSON text: the model's own bytes where they say what `arguments` says.

    Arguments that could not be read are replayed as `{}`: servers parse them again and fail on broken text.
    """
    return "{}" if call.arguments is None else _replayed(Same(call))


@lru_cache(maxsize=1024)
def _replayed(same: Same[Call]) -> str:
    """Every later request of the conversation replays the call; to read its text again each time adds up."""
    call = same.value
    canonical = canonical_json(call.arguments)
    if call.raw_arguments == canonical:
        return canonical
    read, _ = read_arguments(call.raw_arguments)
    if call.raw_arguments.strip() and read is not None and canonical_json(read) == canonical:
        return call.raw_arguments
    return json.dumps(call.arguments, allow_nan=False)


def replayed_name(call: Call) -> str:
    """The call's tool name, made legal: providers refuse a request that replays an invented `my tool!`."""
    return _NOT_IN_NAMES.sub("_", call.name)[:MAX_NAME] or "unnamed"


def answer_text(answer: Answer) -> str:
    """The tool's answer; a failure always says so itself."""
    if answer.is_error and not answer.content.startswith(ERROR_MARK):
        return f"{ERROR_MARK}: {answer.content}"
    return answer.content


def sent_temperature(entry: HttpModel, temperature: float | None) -> JsonObject:
    """The request's temperature field; empty for the provider's default.

    Raises:
        ValueError: a temperature that the model does not accept: it is never silently dropped.
    """
    reason = entry.refusal_of(temperature)
    if reason is not None:
        raise ValueError(f"model {entry.model!r}: temperature {temperature}: {reason}")
    return {} if temperature is None else {"temperature": temperature}


def asks_for_single_calls(entry: HttpModel, tools: Sequence[ToolSpec], parallel_calls: bool) -> bool:
    """Whether the request has to say that at most one tool may be called per turn.

    Raises:
        ValueError: it should, but the model is not known to understand it.
    """
    if parallel_calls or not tools:
        return False
    if not entry.capabilities.parallel_tool_calls:
        raise ValueError(f"model {entry.model!r}: parallel calls cannot be switched off (capabilities)")
    return True


def shown_tool(tool: ToolSpec) -> JsonObject:
    """The tool as JSON. Not by pydantic, whose JSON mode fails on lone surrogates in keys."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def taken_ids(messages: Iterable[Message]) -> set[str]:
    """The ids of every call of the conversation."""
    return {call.id for message in messages if isinstance(message, AssistantMessage) for call in message.calls}


def read_call(
    provider_id: JsonValue, name: JsonValue, arguments: str, taken: set[str], flaw: str | None = None
) -> Call:
    """A call with an id that is not in `taken`, which it joins.

    The provider's id is kept where it can be; an empty, missing or doubled one becomes the first free
    `call_<n>`, counting from the number of calls before it. A `flaw`, found where the arguments came as JSON
    rather than as text, makes them unreadable.
    """
    call_id = provider_id if isinstance(provider_id, str) else ""
    if not call_id or call_id in taken:
        number = len(taken) + 1
        while (call_id := f"call_{number}") in taken:
            number += 1
    taken.add(call_id)
    read, problem = read_arguments(arguments)
    if flaw is not None:
        read, problem = None, f"the arguments are not a valid JSON object: {flaw}"
    return Call(
        id=call_id,
        name=name if isinstance(name, str) else "",
        arguments=read,
        raw_arguments=arguments,
        problem=problem,
    )


def own_replay(message: AssistantMessage, adapter: str) -> JsonValue:
    """What `adapter` itself put into the turn's `replay`, or null."""
    return message.replay.get(adapter) if isinstance(message.replay, dict) else None
