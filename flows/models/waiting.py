"""When a server says that it may be asked again."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+", re.ASCII)
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|us|µs|ns|h|m|s)", re.ASCII)
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

RESET_HEADERS = {
    "x-ratelimit-reset-requests": "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-tokens": "x-ratelimit-remaining-tokens",
    "anthropic-ratelimit-requests-reset": "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-tokens-reset": "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-input-tokens-reset": "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-output-tokens-reset": "anthropic-ratelimit-output-tokens-remaining",
}
"""Header with the reset of an allowance → header with what is left of it."""


def advised_wait(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait as the server advises; null if it gives no advice that makes sense.

    `retry-after-ms`, else `retry-after` (seconds, fractions, an HTTP date), else, after a 429, the rate
    limits' reset headers. Advice that is not a number or a date, not finite, or not after `now` is no advice,
    and the next source is asked; zero counts so too, as in both providers' own clients.

    Args:
        status: The answer's HTTP status.
        headers: The answer's headers, names in lower case or compared without case.
        now: Seconds since the epoch.
    """
    advice = [_seconds(headers.get("retry-after-ms"), 1e-3), _retry_after(headers.get("retry-after"), now)]
    if status == 429:
        advice.append(_reset(headers, now))
    return next((seconds for seconds in advice if seconds is not None), None)


def _seconds(text: str | None, unit: float) -> float | None:
    found = _NUMBER.fullmatch(text.strip()) if text is not None else None
    return _sensible(float(found.group()) * unit) if found else None


def _retry_after(text: str | None, now: float) -> float | None:
    if text is None:
        return None
    seconds = _seconds(text, 1.0)
    if seconds is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(text)
        return _until(moment, now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """The longest reset among the exhausted allowances, or among all where none is said to be exhausted."""
    resets: list[tuple[bool, float]] = []
    for name, remaining in RESET_HEADERS.items():
        seconds = _reset_value(headers.get(name), now)
        if seconds is not None:
            resets.append((headers.get(remaining, "").strip() == "0", seconds))
    exhausted = [seconds for used_up, seconds in resets if used_up]
    return max(exhausted or [seconds for _, seconds in resets], default=None)


def _reset_value(text: str | None, now: float) -> float | None:
    """`6m0s` or `12.5` (OpenAI and followers) or an RFC 3339 time (Anthropic), in seconds from now."""
    if text is None:
        return None
    text = text.strip()
    if "".join(part[0] for part in _parts(text)) == text and text:
        return _sensible(sum(float(number) * _SECONDS[unit] for _, number, unit in _parts(text)))
    if _NUMBER.fullmatch(text):
        return _seconds(text, 1.0)
    try:
        return _until(datetime.fromisoformat(text), now)
    except (ValueError, OverflowError):
        return None


def _parts(text: str) -> list[tuple[str, str, str]]:
    return [(found.group(0), found.group(1), found.group(2)) for found in _DURATION_PART.finditer(text)]


def _until(moment: datetime, now: float) -> float | None:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return _sensible(moment.timestamp() - now)


def _sensible(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and seconds > 0 else None
