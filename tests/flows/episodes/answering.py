"""A server on loopback that plays a model in either provider's format."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

from tests.flows.models.fault_server import FaultServer, Received, Reply
from tests.flows.models.support import anthropic_answer, openai_answer

Respond = Callable[[Received], Reply]


class AnsweringServer(FaultServer):
    """A `FaultServer` that can also work out each reply from the request it answers."""

    def answer_with(self, respond: Respond) -> None:
        """Forget everything and answer by `respond` from now on."""
        self.script()
        self._replies = _Computed(self.requests, respond)  # type: ignore[assignment]


class _Computed(Sequence[Reply]):
    def __init__(self, requests: Sequence[Received], respond: Respond) -> None:
        self._requests = requests
        self._respond = respond

    def __len__(self) -> int:
        return len(self._requests)

    @overload
    def __getitem__(self, index: int) -> Reply: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Reply]: ...

    def __getitem__(self, index: int | slice) -> Reply | Sequence[Reply]:
        if isinstance(index, slice):
            return [self._respond(request) for request in self._requests[index]]
        return self._respond(self._requests[index])


@dataclass(frozen=True)
class Turn:
    """One answer of a model, whoever serves it.

    Attributes:
        calls: Tool and arguments; arguments that are no object are broken ones.
        stop: `end`, `length`, `refusal` or `context`; calls make `end` the provider's word for calls.
        usage: False: the answer says nothing of tokens.
    """

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    stop: str = "end"
    usage: bool = True
    number: int = 0


OPENAI_STOPS = {"end": "stop", "length": "length", "refusal": "content_filter"}
ANTHROPIC_STOPS = {
    "end": "end_turn",
    "length": "max_tokens",
    "refusal": "refusal",
    "context": "model_context_window_exceeded",
}
USAGE = {
    "openai": {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 800},
    },
    "anthropic": {"input_tokens": 200, "cache_read_input_tokens": 800, "output_tokens": 100},
}
"""The same tokens in either provider's words."""


def said(adapter: str, turn: Turn) -> Any:
    """The turn as the body of a 200."""
    usage: Any = USAGE[adapter] if turn.usage else None
    if adapter == "openai":
        calls = [
            {
                "id": f"call_{turn.number}_{index}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": json.dumps(arguments) if isinstance(arguments, dict) else str(arguments),
                },
            }
            for index, (name, arguments) in enumerate(turn.calls)
        ]
        message: Any = {"content": turn.text or None, **({"tool_calls": calls} if calls else {})}
        stop = "tool_calls" if calls and turn.stop == "end" else OPENAI_STOPS[turn.stop]
        return openai_answer(message, stop, usage=usage)
    blocks: list[Any] = [{"type": "text", "text": turn.text}] if turn.text else []
    blocks += [
        {"type": "tool_use", "id": f"toolu_{turn.number}_{index}", "name": name, "input": arguments}
        for index, (name, arguments) in enumerate(turn.calls)
    ]
    stop = "tool_use" if turn.calls and turn.stop == "end" else ANTHROPIC_STOPS[turn.stop]
    return anthropic_answer(blocks, stop, usage=usage)


def play_turns(server: AnsweringServer, adapter: str, turns: Sequence[Turn]) -> None:
    """Let the server answer with `turns` in order, and with a 599 after them."""
    server.script(*(Reply(body=said(adapter, turn)) for turn in turns))
