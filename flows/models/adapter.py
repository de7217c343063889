"""The interface to a model, and the ways in which a call can fail.

A new provider is one class that makes requests and sends them. Retries are not its business: it makes one attempt and
raises

    ModelCallError
    ├── TransientError      worth another attempt, with the server's own advice on when
    ├── MalformedOutput     the server could not read the model's output: the model's failure
    ├── ContextOverflow     the conversation no longer fits
    ├── ContentFiltered     the provider's filter refuses the conversation
    ├── RequestRejected     another 4xx: infrastructure, no use in trying again
    └── AccessDenied        authentication or quota: every further call would fail the same way
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from flows.models.messages import Completion, Message
from tasks_env.canonical import canonical_json
from tasks_env.types import JsonObject, ToolSpec


class ModelCallError(Exception):
    """One attempt failed.

    Args:
        kind: A short label for tables: `http_503`, `timeout`, `connection`, `bad_answer` …
        detail: What the server said, bounded, without headers.
        status: The HTTP status, if there was one.
        raw: The answer's body as it came, if it was read.
    """

    def __init__(self, kind: str, detail: str, status: int | None = None, raw: JsonValue = None) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.status = status
        self.raw = raw


class TransientError(ModelCallError):
    """Worth another attempt; `wait_s` is the server's advice, null where it gave none that makes sense."""

    def __init__(
        self,
        kind: str,
        detail: str,
        status: int | None = None,
        raw: JsonValue = None,
        wait_s: float | None = None,
    ) -> None:
        super().__init__(kind, detail, status, raw)
        self.wait_s = wait_s


class MalformedOutput(ModelCallError):
    """The model's own output broke the server's parser."""


class ContextOverflow(ModelCallError):
    """The conversation is longer than the model's context."""


class ContentFiltered(ModelCallError):
    """The provider's content filter refuses the conversation: a refusal, as if the model had answered with one."""


class RequestRejected(ModelCallError):
    """The server refuses this request."""


class AccessDenied(ModelCallError):
    """The server refuses this key, or its quota is used up."""


class Adapter(Protocol):
    """Access to one model."""

    version: str
    """`<adapter>/<number>`; the number is raised with every change of what is sent or how it is read."""

    def request_body(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], temperature: float | None
    ) -> JsonObject:
        """What is sent for this conversation; null `temperature` sends none."""

    async def complete(self, request: Request) -> Completion:
        """One attempt at one answer. Raises `ModelCallError`."""


@dataclass(frozen=True)
class Request:
    """What one step asks: made once, then logged, priced and sent, however many attempts that takes."""

    messages: Sequence[Message]
    """The conversation that `body` says."""
    body: JsonObject
    canonical: str
    """The canonical JSON of `body`."""

    @property
    def size(self) -> int:
        """Bytes of `canonical`."""
        return len(self.canonical)


def request_of(
    adapter: Adapter, messages: Sequence[Message], tools: Sequence[ToolSpec], temperature: float | None
) -> Request:
    """The request by which `adapter` puts a conversation.

    Raises:
        ValueError: an invalid conversation, or a setting that the model does not accept.
    """
    body = adapter.request_body(messages, tools, temperature)
    return Request(messages, body, canonical_json(body))
