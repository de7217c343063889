"""Promises as functions: each yields a line for every way in which its subject breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

SubjectT = TypeVar("SubjectT")
Promise = Callable[[SubjectT], Iterator[str]]

LINES = 5
"""At most so many of one promise; what breaks once often breaks everywhere."""
LINE_CHARS = 500


def broken_promises(promises: Mapping[str, Promise[SubjectT]], subject: SubjectT) -> list[str]:
    """A line for every broken promise and way, `<promise>: <what was seen>`; a check that raises is a broken one."""
    broken = []
    for name, promise in promises.items():
        seen: list[str] = []
        try:
            for line in promise(subject):
                if len(seen) == LINES:
                    seen.append("… and more")
                    break
                if line not in seen:
                    seen.append(line)
        except Exception as error:  # noqa: BLE001 - whatever a stranger's code raises is a broken promise
            seen.append(told(error))
        broken += [f"{name}: {' '.join(line.split())[:LINE_CHARS]}" for line in seen]
    return broken


def told(error: Exception) -> str:
    """An exception on one line."""
    return f"raised {type(error).__name__}: {' '.join(str(error).split())}"
