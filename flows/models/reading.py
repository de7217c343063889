"""Reading a provider's JSON: never dies on what a model or a server put there, nor passes it off as sound."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from pydantic import JsonValue

from flows.models.messages import MAX_DEPTH, depth
from tasks_env.types import JsonObject

BODY_DEPTH = 3 * MAX_DEPTH
"""Deepest body that is read: arguments at their own limit and the answer around them."""


class NotFinite(str):
    """The text of NaN, an infinity, or a number too large for a float, in place of the number."""


class Doubled(dict[str, JsonValue]):
    """An object in which a key stood twice; the last one's value is kept."""


def parse_body(text: str, scrub: Callable[[str], str] | None = None) -> JsonValue:
    """JSON in which unsound places are marked by `NotFinite` and `Doubled` rather than refused.

    Args:
        text: The body.
        scrub: Takes secrets out of a text; applied to strings that stood escaped in the body.

    Raises:
        ValueError: not JSON at all, or nested deeper than `BODY_DEPTH`.
    """
    try:
        value: JsonValue = json.loads(text, parse_constant=NotFinite, parse_float=_finite, object_pairs_hook=_pairs)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if depth(value) > BODY_DEPTH:
        raise ValueError("nested too deeply")
    return _scrubbed(value, scrub) if scrub and "\\" in text else value


def _scrubbed(value: JsonValue, scrub: Callable[[str], str]) -> JsonValue:
    if isinstance(value, NotFinite):
        return value
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrubbed(item, scrub) for item in value]
    if isinstance(value, dict):
        return type(value)((scrub(key), _scrubbed(item, scrub)) for key, item in value.items())
    return value


def _finite(text: str) -> float | NotFinite:
    value = float(text)
    return value if math.isfinite(value) else NotFinite(text)


def _pairs(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    value = dict(pairs)
    return Doubled(value) if len(value) < len(pairs) else value


def flaw(value: JsonValue) -> str | None:
    """What is unsound in a value that `parse_body` read, or null."""
    if isinstance(value, NotFinite):
        return f"{value[:40]} is not JSON"
    if isinstance(value, Doubled):
        return "a key stands twice"
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for item in inner if (found := flaw(item)) is not None), None)


def count(value: JsonValue, absent: int | None = None) -> int | None:
    """A number of tokens; `absent` for null, and null for anything else that is not a number of tokens."""
    if value is None:
        return absent
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def section(value: JsonObject, name: str) -> JsonObject:
    """The object under `name`; empty where the provider sent null, nothing, or something else."""
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}
