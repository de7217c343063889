"""What differs between two resolved manifests, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tasks_env.canonical import canonical_json

SHOWN_CHARS = 80


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """A line for each field that was added, removed or changed, by its path.

    Args:
        before, after: Resolved manifests as JSON (`Manifest.model_dump(mode="json")`).
    """
    return [f"{path}: {_shown(old)} -> {_shown(new)}" for path, old, new in _differences("", before, after)]


_ABSENT = object()


def _differences(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys([*before, *after]):
            inner = f"{path}.{name}" if path else str(name)
            yield from _differences(inner, before.get(name, _ABSENT), after.get(name, _ABSENT))
    elif before is _ABSENT or after is _ABSENT or canonical_json(before) != canonical_json(after):
        yield path, before, after


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "(absent)"
    text = canonical_json(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
