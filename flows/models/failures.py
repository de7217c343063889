"""What a failed request means: status, headers and body → one of the interface's errors.

In this order: the server's own `x-should-retry`, the entry's patterns of malformed output, a full context, the
content filter, access and quota, the status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue

from flows.manifest.schema import MalformedPattern
from flows.models.adapter import (
    AccessDenied,
    ContentFiltered,
    ContextOverflow,
    MalformedOutput,
    ModelCallError,
    RequestRejected,
    TransientError,
)
from flows.models.reading import parse_body
from flows.models.waiting import advised_wait

DETAIL_CHARS = 500
"""Length of an error's detail."""
RAW_CHARS = 20_000
"""A longer body of an error is cut."""

TRANSIENT_STATUS = frozenset({408, 409, 429})
"""Besides everything from 500 upwards."""
ACCESS_STATUS = frozenset({401, 402, 403})
CONTEXT_STATUS = frozenset({200, 400, 413, 422})
CONTEXT_LABELS = frozenset({"context_length_exceeded", "exceed_context_size_error"})
"""OpenAI and its followers; llama.cpp."""
CONTEXT_PHRASES = (
    "prompt is too long",
    "exceed context limit",
    "maximum context length",
    "exceeds the available context size",
    "maximum prompt length",
    "input token count",
    "reduce the length of the messages",
)
"""Anthropic (the prompt alone; with the output); vLLM and other OpenAI-compatible servers; llama.cpp; xAI; Gemini's
OpenAI-compatible endpoint; OpenAI and Groq."""
FILTER_STATUS = frozenset({200, 400})
FILTER_LABEL = "content_filter"
"""Azure: the filter refuses the prompt by a 400 with this code, as it refuses an answer by a finish reason."""
QUOTA_STATUS = frozenset({200, 400, 429})
QUOTA_LABELS = frozenset({"insufficient_quota", "exceeded_current_quota_error"})
"""OpenAI; Moonshot."""
QUOTA_PHRASES = ("insufficient_quota", "credit balance is too low", "reached your specified api usage limits")
"""OpenAI (429); Anthropic (400): no credit; the account's own spend limit."""


def failure(
    status: int,
    headers: Mapping[str, str],
    body: str,
    patterns: Sequence[MalformedPattern],
    now: float,
    scrub: Callable[[str], str] = str,
) -> ModelCallError:
    """The error that an answer with this status means; a 200 is one whose body carries an error.

    Args:
        status: HTTP status.
        headers: The answer's headers.
        body: The answer's text, free of keys.
        patterns: Server errors that are the model's own doing.
        now: Seconds since the epoch.
        scrub: Takes keys out of the texts that the body's JSON escapes stood for.
    """
    try:
        parsed: JsonValue = parse_body(body, scrub) if len(body) <= RAW_CHARS else body[:RAW_CHARS]
    except ValueError:
        parsed = body[:RAW_CHARS]
    labels, message = _said(parsed)
    kind = "error_in_answer" if status == 200 else f"http_{status}"
    detail = bounded(message or body)
    said = (message or body).lower()

    advice = headers.get("x-should-retry", "").strip().lower()
    if advice == "true":
        return TransientError(kind, detail, status, parsed, advised_wait(status, headers, now))
    if any(status == pattern.status and (pattern.body in body or pattern.body in message) for pattern in patterns):
        return MalformedOutput(kind, detail, status, parsed)
    if status in CONTEXT_STATUS and (labels & CONTEXT_LABELS or any(phrase in said for phrase in CONTEXT_PHRASES)):
        return ContextOverflow(kind, detail, status, parsed)
    if status in FILTER_STATUS and FILTER_LABEL in labels:
        return ContentFiltered(kind, detail, status, parsed)
    if status in ACCESS_STATUS or (status in QUOTA_STATUS and _quota_used_up(labels, said)):
        return AccessDenied(kind, detail, status, parsed)
    transient = status in TRANSIENT_STATUS or status >= 500 or status == 200
    if transient and advice != "false":
        return TransientError(kind, detail, status, parsed, advised_wait(status, headers, now))
    return RequestRejected(kind, detail, status, parsed)


def bad_answer(detail: str, raw: JsonValue, status: int | None = 200) -> TransientError:
    """A 200 that is no answer: worth another attempt."""
    return TransientError("bad_answer", bounded(detail), status, raw)


def bounded(text: str) -> str:
    """`text` on one line, at most `DETAIL_CHARS` long."""
    line = " ".join(text[: 4 * DETAIL_CHARS].split())
    return line if len(line) <= DETAIL_CHARS else f"{line[: DETAIL_CHARS - 3]}..."


def _quota_used_up(labels: frozenset[str], said: str) -> bool:
    """Codes and types decide about billing: an ordinary rate limit's message may link to a billing page."""
    named = any("billing" in label for label in labels)
    return named or bool(labels & QUOTA_LABELS) or any(phrase in said for phrase in QUOTA_PHRASES)


def _said(parsed: JsonValue) -> tuple[frozenset[str], str]:
    """The codes and types of an error body, in lower case, and its message. Gemini wraps the body into a list."""
    if isinstance(parsed, list) and len(parsed) == 1:
        parsed = parsed[0]
    if not isinstance(parsed, dict):
        return frozenset(), ""
    error = parsed.get("error")
    if isinstance(error, str):
        return frozenset(), error
    source = error if isinstance(error, dict) else parsed
    labels = frozenset(str(source[key]).lower() for key in ("code", "type") if source.get(key) is not None)
    message = source.get("message")
    return labels, message if isinstance(message, str) else ""
