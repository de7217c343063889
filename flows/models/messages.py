"""The conversation in the scaffold's own form: what every adapter translates to its provider's and back."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

from tasks_env.types import Frozen, JsonObject

MAX_DEPTH = 64
"""Deepest nesting of arguments that is read: far above any tool's, far below where validation gives up."""


class Call(Frozen):
    """A tool call as the model made it, under the names that it was shown."""

    id: str
    """Unique within the conversation; synthesised where the provider sent none or a double."""
    name: str
    arguments: JsonObject | None
    """Null: the text could not be read as a JSON object; `problem` says why."""
    raw_arguments: str
    problem: str | None = None


class SystemMessage(Frozen):
    """The fixed instructions."""

    role: Literal["system"] = "system"
    text: str


class UserMessage(Frozen):
    """A task, or the scaffold's reminder."""

    role: Literal["user"] = "user"
    text: str


class AssistantMessage(Frozen):
    """One turn of the model."""

    role: Literal["assistant"] = "assistant"
    text: str = ""
    calls: tuple[Call, ...] = ()
    replay: JsonValue = None
    """What the provider wants back verbatim with this turn (reasoning), under the name of its adapter."""


class Answer(Frozen):
    """A tool's answer to one call."""

    call_id: str
    content: str
    is_error: bool = False


class ToolMessage(Frozen):
    """The answers to every call of the turn before, in its order."""

    role: Literal["tool"] = "tool"
    answers: tuple[Answer, ...]


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def as_json(message: Message) -> JsonObject:
    """The message's fields. Not by pydantic, whose JSON mode takes far longer and loses lone surrogates in keys."""
    match message:
        case AssistantMessage():
            return {**vars(message), "calls": [vars(call) for call in message.calls]}
        case ToolMessage():
            return {**vars(message), "answers": [vars(answer) for answer in message.answers]}
        case _:
            return {**vars(message)}


class Usage(Frozen):
    """Tokens of one answer in one normal form for all providers."""

    input_total: int
    """Everything read, cached tokens included."""
    input_cached: int = 0
    input_cache_write: int = 0
    output_total: int
    """Everything written, reasoning included."""
    output_reasoning: int = 0


class Stop(StrEnum):
    """Why the model stopped, in one normal form."""

    END = "end"
    CALLS = "calls"
    LENGTH = "length"
    REFUSAL = "refusal"
    CONTEXT = "context_overflow"
    UNKNOWN = "unknown"


class Completion(Frozen):
    """One answer of a model."""

    message: AssistantMessage
    usage: Usage | None
    """Null: the provider did not say; never taken as zero."""
    stop: Stop
    raw: JsonValue
    """The answer as it came."""
    status: int | None = None
    """The answer's HTTP status; null where nothing went over HTTP."""

    @property
    def tool_calls(self) -> tuple[Call, ...]:
        """The calls of `message`."""
        return self.message.calls


def read_arguments(text: str) -> tuple[JsonObject | None, str | None]:
    """A call's argument text as a JSON object, or null and what is wrong with it.

    Refused: text that is not JSON, NaN and infinities (numbers too large for a float among them), duplicate
    keys, nesting deeper than `MAX_DEPTH`, and anything but an object. Empty text is an empty object.
    """
    if not text.strip():
        return {}, None
    try:
        value = json.loads(
            text, object_pairs_hook=_distinct_keys, parse_constant=_refuse_constant, parse_float=_finite_float
        )
    except RecursionError:
        return None, "the arguments are not a valid JSON object: nested too deeply"
    except ValueError as error:
        return None, f"the arguments are not a valid JSON object: {error}"
    if not isinstance(value, dict):
        return None, f"the arguments must be a JSON object, not {type(value).__name__}"
    if depth(value) > MAX_DEPTH:
        return None, "the arguments are not a valid JSON object: nested too deeply"
    return value, None


def depth(value: JsonValue) -> int:
    """Levels of nesting: 0 for a scalar, 1 for a flat object or array."""
    levels = 0
    layer: list[JsonValue] = [value]
    while True:
        inner: list[JsonValue] = []
        nested = False
        for item in layer:
            if isinstance(item, dict):
                nested = True
                inner += item.values()
            elif isinstance(item, list):
                nested = True
                inner += item
        if not nested:
            return levels
        levels += 1
        layer = inner


def _distinct_keys(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key {key!r} stands twice")
    return dict(pairs)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large for a number")
    return value
