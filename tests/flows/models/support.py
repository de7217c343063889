"""Entries, conversations and answers that the adapters' tests share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from flows.manifest.schema import HttpModel
from flows.models import ApiKey, Endpoint, open_adapter, open_client
from flows.models.adapter import request_of
from flows.models.messages import (
    Answer,
    AssistantMessage,
    Call,
    Completion,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tasks_env.tools import parameter, tool
from tasks_env.types import JsonObject, ToolSpec

KEY = "sk-very-secret-0123456789"
ADAPTERS = ("openai", "anthropic")

READ = tool("read_note", "Read a note.", {"title": parameter("string", "Its title.")})
CLOSE = tool(
    "hand_in",
    "Hand in the result.",
    {"result": parameter("string", "The result.")},
    {"confidence": parameter("number", "From 0 to 1.")},
)
TOOLS = (READ, CLOSE)


def entry(adapter: str, url: str | None = "http://127.0.0.1:9", **fields: Any) -> HttpModel:
    """A model entry; `fields` replace its defaults."""
    return HttpModel.model_validate(
        {
            "adapter": adapter,
            "model": "some-model",
            "base_url": url,
            "pricing": {"input": 1.0, "output": 2.0},
            "limits": {"timeout_s": 5.0},
            **fields,
        }
    )


def call(call_id: str, name: str, arguments: JsonObject) -> Call:
    """A sound call."""
    return Call(id=call_id, name=name, arguments=arguments, raw_arguments=json.dumps(arguments))


def conversation() -> list[Message]:
    """System, task, one call, its answer."""
    return [
        SystemMessage(text="Work with notes."),
        UserMessage(text="What colour is in the note 'paint'?"),
        AssistantMessage(calls=(call("a1", "read_note", {"title": "paint"}),)),
        ToolMessage(answers=(Answer(call_id="a1", content="ochre"),)),
    ]


def complete(
    model: HttpModel,
    messages: Sequence[Message] | None = None,
    tools: Sequence[ToolSpec] = TOOLS,
    key: str | None = KEY,
    temperature: float | None = 0.0,
    max_output_tokens: int = 256,
) -> Completion:
    """One call through the entry's adapter on a client of its own."""

    async def asked() -> Completion:
        async with open_client() as client:
            endpoint = Endpoint(model.base_url or "", ApiKey(key) if key is not None else None)
            adapter = open_adapter(model, endpoint, max_output_tokens, client)
            return await adapter.complete(request_of(adapter, messages or conversation(), tools, temperature))

    return asyncio.run(asked())


def openai_answer(message: JsonObject, finish: str | None = "stop", **fields: Any) -> JsonObject:
    """A chat completions body with one choice."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49},
        **fields,
    }


def openai_call(arguments: Any, name: str = "read_note", call_id: Any = "c7") -> JsonObject:
    """One entry of `tool_calls`."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def anthropic_answer(content: Any, stop: str | None = "end_turn", **fields: Any) -> JsonObject:
    """A messages body."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 40, "output_tokens": 9},
        **fields,
    }


def plain_answer(adapter: str, text: str = "Ochre.") -> JsonObject:
    """A sound answer without calls in the adapter's format."""
    if adapter == "openai":
        return openai_answer({"content": text})
    return anthropic_answer([{"type": "text", "text": text}])
