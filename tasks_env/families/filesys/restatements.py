"""The right final tree in other bytes that mean the same by the documented rule of equality."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator

from tasks_env.families.base import Proposal
from tasks_env.families.filesys.goals import Files, tree
from tasks_env.types import FinalState

Restate = Callable[[Files], Files]


def _each(change: Callable[[str], str]) -> Restate:
    return lambda files: {path: change(text) for path, text in files.items()}


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


RESTATEMENTS: dict[str, Restate] = {
    "CRLF line breaks": _each(lambda text: text.replace("\n", "\r\n")),
    "CR line breaks": _each(lambda text: text.replace("\n", "\r")),
    "no newline at the end": _each(lambda text: text.rstrip("\n")),
    "more newlines at the end": _each(lambda text: text + "\n\n"),
    "normal form D": _each(_decomposed),
    "files in another order": lambda files: dict(reversed(files.items())),
    "several of these at once": lambda files: _each(
        lambda text: _decomposed(text).rstrip("\n").replace("\n", "\r\n") + "\r\n\r\n"
    )(dict(reversed(files.items()))),
}
"""Operator → what it makes of a tree."""


def restatements(right: FinalState) -> Iterator[Proposal]:
    """Every restatement that differs from `right` in its bytes."""
    files = tree(right.data["files"])
    for operator, restate in RESTATEMENTS.items():
        restated = restate(files)
        if list(restated.items()) != list(files.items()):
            state = FinalState(submitted=right.submitted, data={"files": dict(restated)})
            yield Proposal(operator=operator, state=state)
