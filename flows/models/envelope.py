"""The envelope and what is in it: two providers' bodies for one conversation as one canonical form.

The *envelope* is what each provider's format adds or arranges in its own way, and nothing else:

- the model's id;
- where the system text stands, and the name of its role;
- the wrapping of tools (`function`, `input_schema`) and of text in blocks;
- call ids, replaced by the ordinal of the call in the conversation;
- arguments as JSON text or as an object;
- one message per tool answer, or all of them in one user message, with or without the text after them;
- the name of the output limit;
- how parallel calls are switched off, where they are (and then the choice of a tool that must be spelt out with it);
- the flag of a failed tool's answer, if the answer's text begins with `error` and so says the same.

Everything else stays, and fields that are not known here stay too, under `other`, so that a difference in
anything that is sent is a difference in the normal form. Equal normal forms are the proof that two models are
shown the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby

from pydantic import JsonValue

from flows.models.conversation import (
    ERROR_MARK,
    answer_text,
    is_empty_turn,
    replayed_name,
    replayed_text,
    shown_tool,
    split_system,
)
from flows.models.messages import AssistantMessage, Message, ToolMessage, UserMessage
from tasks_env.canonical import content_hash
from tasks_env.errors import UnknownName
from tasks_env.types import JsonObject, ToolSpec

Ordinals = dict[JsonValue, int]

SINGLE_CALLS: JsonObject = {"parallel_calls": False}
"""In the normal form of a request that asks for one call per turn; nothing is said otherwise."""


def normalise(body: JsonValue, adapter_name: str) -> JsonValue:
    """The body of a request by `adapter_name` without its provider's envelope.

    Raises:
        UnknownName: no such adapter.
        ValueError: a body that is not one of that adapter's.
    """
    if adapter_name not in NORMALISERS:
        raise UnknownName("adapter", adapter_name, NORMALISERS)
    if not isinstance(body, dict):
        raise ValueError(f"a request body is an object, not {type(body).__name__}")
    return NORMALISERS[adapter_name](body)


def normal_hash(body: JsonValue, adapter_name: str) -> str:
    """SHA-256 of the canonical JSON of `normalise`."""
    return content_hash(normalise(body, adapter_name))


SETTINGS_APART = frozenset({"messages", "system", "tools"})


def sent_settings(body: JsonValue) -> JsonObject:
    """The settings of a request as it is sent: every field of its body but the conversation and the tools."""
    return {name: value for name, value in body.items() if name not in SETTINGS_APART} if isinstance(body, dict) else {}


def normal_form(
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    temperature: float | None,
    max_output_tokens: int,
    parallel_calls: bool = True,
) -> JsonObject:
    """The normal form straight from a conversation: what an adapter without a provider sends."""
    system, turns = split_system(messages)
    ordinals: Ordinals = {}
    shown: list[JsonValue] = []
    for turn in turns:
        match turn:
            case UserMessage():
                shown.append({"role": "user", "text": turn.text})
            case AssistantMessage() if not is_empty_turn(turn):
                calls: list[JsonValue] = [
                    {
                        "call": _ordinal(ordinals, call.id),
                        "name": replayed_name(call),
                        "arguments": call.arguments or {},
                    }
                    for call in turn.calls
                ]
                shown.append({"role": "assistant", "text": replayed_text(turn) or "", "calls": calls})
            case ToolMessage():
                shown.append(
                    {
                        "role": "tool",
                        "answers": [
                            {"call": ordinals[answer.call_id], "text": answer_text(answer)} for answer in turn.answers
                        ],
                    }
                )
            case _:
                continue
    return {
        "system": system,
        "messages": shown,
        "tools": [shown_tool(tool) for tool in tools],
        "temperature": temperature,
        "max_output_tokens": max_output_tokens,
        **({} if parallel_calls or not tools else SINGLE_CALLS),
    }


def _ordinal(ordinals: Ordinals, call_id: JsonValue) -> int:
    return ordinals.setdefault(call_id, len(ordinals) + 1)


def _with_other(normal: JsonObject, source: JsonObject, known: set[str]) -> JsonObject:
    """`normal` and, under `other`, the fields of `source` that are not among the `known` ones."""
    other = {key: value for key, value in source.items() if key not in known}
    return {**normal, "other": other} if other else normal


def _objects(value: JsonValue, where: str) -> list[JsonObject]:
    if not isinstance(value, list):
        raise ValueError(f"{where}: expected a list, got {type(value).__name__}")
    objects = [item for item in value if isinstance(item, dict)]
    if len(objects) < len(value):
        raise ValueError(f"{where}: expected a list of objects")
    return objects


def _from_openai(body: JsonObject) -> JsonObject:
    messages = _objects(body.get("messages"), "messages")
    system: JsonValue = None
    if messages and messages[0].get("role") in ("system", "developer") and set(messages[0]) == {"role", "content"}:
        system = messages[0]["content"]
        messages = messages[1:]
    limit_field = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    normal: JsonObject = {
        "system": system,
        "messages": _openai_messages(messages),
        "tools": [_openai_tool(tool) for tool in _objects(body.get("tools", []), "tools")],
        "temperature": body.get("temperature"),
        "max_output_tokens": body.get(limit_field),
    }
    known = {"model", "messages", "tools", "temperature", limit_field}
    if body.get("parallel_tool_calls") is False:
        normal |= SINGLE_CALLS
        known.add("parallel_tool_calls")
    return _with_other(normal, body, known)


def _openai_messages(messages: list[JsonObject]) -> list[JsonValue]:
    ordinals: Ordinals = {}
    shown: list[JsonValue] = []
    for is_tool, group in groupby(messages, lambda message: message.get("role") == "tool"):
        if is_tool:
            shown.append({"role": "tool", "answers": [_openai_answer(message, ordinals) for message in group]})
        else:
            shown += [_openai_message(message, ordinals) for message in group]
    return shown


def _openai_message(message: JsonObject, ordinals: Ordinals) -> JsonValue:
    content = message.get("content")
    normal: JsonObject = {"role": message.get("role"), "text": "" if content is None else content}
    if normal["role"] == "assistant":
        calls = _objects(message.get("tool_calls", []), "tool_calls")
        normal["calls"] = [_openai_call(call, ordinals) for call in calls]
        return _with_other(normal, message, {"role", "content", "tool_calls"})
    return _with_other(normal, message, {"role", "content"})


def _openai_call(call: JsonObject, ordinals: Ordinals) -> JsonValue:
    function = call.get("function")
    if not isinstance(function, dict):
        raise ValueError("tool_calls: a call without its function")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {"unreadable": arguments}
    normal: JsonObject = {"call": _ordinal(ordinals, call.get("id")), "name": function.get("name")}
    normal = _with_other({**normal, "arguments": arguments}, function, {"name", "arguments"})
    known = {"id", "function"} | ({"type"} if call.get("type") == "function" else set())
    return _with_other(normal, call, known)


def _openai_answer(message: JsonObject, ordinals: Ordinals) -> JsonValue:
    call_id = message.get("tool_call_id")
    normal: JsonObject = {"call": ordinals.get(call_id, call_id), "text": message.get("content")}
    return _with_other(normal, message, {"role", "tool_call_id", "content"})


def _openai_tool(tool: JsonObject) -> JsonValue:
    function = tool.get("function")
    if not isinstance(function, dict):
        raise ValueError("tools: a tool without its function")
    known = {"function"} | ({"type"} if tool.get("type") == "function" else set())
    return _with_other(dict(function), tool, known)


def _from_anthropic(body: JsonObject) -> JsonObject:
    ordinals: Ordinals = {}
    shown: list[JsonValue] = []
    for message in _objects(body.get("messages"), "messages"):
        shown += _anthropic_message(message, ordinals)
    tools: list[JsonValue] = []
    for tool in _objects(body.get("tools", []), "tools"):
        renamed = {"parameters" if key == "input_schema" else key: value for key, value in tool.items()}
        tools.append(renamed)
    normal: JsonObject = {
        "system": body.get("system"),
        "messages": shown,
        "tools": tools,
        "temperature": body.get("temperature"),
        "max_output_tokens": body.get("max_tokens"),
    }
    known = {"model", "system", "messages", "tools", "temperature", "max_tokens"}
    if body.get("tool_choice") == {"type": "auto", "disable_parallel_tool_use": True}:
        normal |= SINGLE_CALLS
        known.add("tool_choice")
    return _with_other(normal, body, known)


def _anthropic_message(message: JsonObject, ordinals: Ordinals) -> list[JsonValue]:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = _objects(content, "content")
    role = message.get("role")
    shown = [_assistant(blocks, ordinals)] if role == "assistant" else _user(blocks, role, ordinals)
    other = {key: value for key, value in message.items() if key not in ("role", "content")}
    return [*shown, {"role": role, "other": other}] if other else shown


def _assistant(blocks: list[JsonObject], ordinals: Ordinals) -> JsonValue:
    """Text, then calls; any other arrangement (reasoning among them) is kept block by block as well."""
    calls: list[JsonValue] = []
    texts: list[str] = []
    layout: list[JsonValue] = []
    plain = True
    for block in blocks:
        if set(block) == {"type", "text"} and block["type"] == "text" and isinstance(block["text"], str):
            texts.append(block["text"])
            layout.append("text")
            plain = plain and not calls
        elif set(block) == {"type", "id", "name", "input"} and block["type"] == "tool_use":
            ordinal = _ordinal(ordinals, block["id"])
            calls.append({"call": ordinal, "name": block["name"], "arguments": block["input"]})
            layout.append("call")
        else:
            layout.append(block)
            plain = False
    normal: JsonObject = {"role": "assistant", "text": "".join(texts), "calls": calls}
    return normal if plain else {**normal, "other": {"blocks": layout}}


def _user(blocks: list[JsonObject], role: JsonValue, ordinals: Ordinals) -> list[JsonValue]:
    shown: list[JsonValue] = []
    for is_result, group in groupby(blocks, lambda block: block.get("type") == "tool_result"):
        if is_result:
            answers: list[JsonValue] = [_anthropic_answer(block, ordinals) for block in group]
            shown.append({"role": "tool" if role == "user" else role, "answers": answers})
            continue
        for block in group:
            known = {"type", "text"} if block.get("type") == "text" else set()
            shown.append(_with_other({"role": role, "text": block.get("text")}, block, known))
    return shown


def _anthropic_answer(block: JsonObject, ordinals: Ordinals) -> JsonValue:
    call_id, text = block.get("tool_use_id"), block.get("content", "")
    known = {"type", "tool_use_id", "content"}
    if block.get("is_error") is True and isinstance(text, str) and text.startswith(ERROR_MARK):
        known.add("is_error")
    return _with_other({"call": ordinals.get(call_id, call_id), "text": text}, block, known)


NORMALISERS: dict[str, Callable[[JsonObject], JsonObject]] = {
    "anthropic": _from_anthropic,
    "openai": _from_openai,
    "scripted": dict,
}
"""Adapter → its normaliser; a scripted agent's body has no envelope."""
