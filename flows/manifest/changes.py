"""What differs between two resolved manifests, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tasks_env.canonical import canonical_json

SHOWN_CHARS = 80
"""Of each of two values; of longer ones what stands around the first difference."""
_LEAD = 20
_ABSENT = object()


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """A line for each field that was added, removed or changed, by its path.

    Args:
        before, after: Resolved manifests as JSON (`Manifest.model_dump(mode="json")`).
    """
    return [f"{path}: {_old_and_new(old, new)}" for path, old, new in _differences("", before, after)]


def _differences(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys([*before, *after]):
            inner = f"{path}.{name}" if path else str(name)
            yield from _differences(inner, before.get(name, _ABSENT), after.get(name, _ABSENT))
    elif before is _ABSENT or after is _ABSENT or canonical_json(before) != canonical_json(after):
        yield path, before, after


def _old_and_new(old: Any, new: Any) -> str:
    before, after = _text(old), _text(new)
    same = next(
        (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    return f"{_excerpt(before, same)} -> {_excerpt(after, same)}"


def _text(value: Any) -> str:
    return "(absent)" if value is _ABSENT else canonical_json(value)


def _excerpt(text: str, around: int) -> str:
    if len(text) <= SHOWN_CHARS:
        return text
    start = min(max(0, around - _LEAD), len(text) - SHOWN_CHARS)
    end = start + SHOWN_CHARS
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
