"""What an episode was to produce and what it produced, line by line where they differ.

Each family's states are brought to the form in which its verifier compares them, so that what the verifier overlooks
(quoting, line breaks) is no difference here either. States of other families are compared as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from tasks_env import FinalState, Instance
from tasks_env.families.filesys.goals import tree
from tasks_env.families.filesys.verifier import canonical_text, final_tree
from tasks_env.families.query.answers import parse_answer
from tasks_env.families.query.question import AnswerFormat
from tasks_env.families.tabular.csv_form import CsvError, canonical_lines
from tasks_env.families.tabular.evaluate import result_columns
from tasks_env.families.tabular.spec import Spec

SAME = "no difference"

MAX_LINES = 2000
"""Of each side that are compared."""
SHOWN_LINES = 400
LINE_CHARS = 300
_CONTEXT = 3


@dataclass(frozen=True)
class Line:
    """One line of a difference."""

    sign: str
    """`-` expected alone, `+` produced alone, a blank for both, `@` for what stands between and for headings."""
    text: str


@dataclass(frozen=True)
class Difference:
    """Where two states differ; no lines where they do not."""

    what: str
    """What was compared."""
    lines: tuple[Line, ...]


def state_difference(instance: Instance, state: FinalState) -> Difference:
    """The truth of `instance` against a final state, whatever JSON that holds.

    Raises:
        Exception: whatever a family's own reader makes of a state that no world of it leaves.
    """
    what, compare = _COMPARED.get(instance.family, ("the state as JSON", _as_json))
    lines = [Line(line.sign, _cut(line.text)) for line in compare(instance, state)]
    if len(lines) > SHOWN_LINES:
        lines = [*lines[:SHOWN_LINES], Line("@", f"… {len(lines) - SHOWN_LINES} more lines")]
    return Difference(what, tuple(lines))


def _tabular(instance: Instance, state: FinalState) -> Iterator[Line]:
    columns = result_columns(Spec.model_validate(instance.spec))

    def lines(text: object) -> list[str]:
        if not isinstance(text, str):
            return []
        try:
            return canonical_lines(text, columns)
        except CsvError:
            return text.splitlines()

    return _compared(lines(instance.truth["csv"]), lines(state.data.get("csv")))


def _filesys(instance: Instance, state: FinalState) -> Iterator[Line]:
    expected, found = tree(instance.truth["files"]), final_tree(state.data)
    if found is None:
        yield from _as_json(instance, state)
        return
    for path in sorted(expected.keys() | found.keys()):
        wanted, got = expected.get(path), found.get(path)
        if wanted is not None and got is not None and canonical_text(wanted) == canonical_text(got):
            continue
        how = " is missing" if got is None else " should not exist" if wanted is None else ""
        yield Line("@", f"{path}{how}")
        yield from _compared(_text_lines(wanted), _text_lines(got))


def _text_lines(text: str | None) -> list[str]:
    return [] if text is None else canonical_text(text).split("\n")


def _query(instance: Instance, state: FinalState) -> Iterator[Line]:
    form, given = AnswerFormat.model_validate(instance.spec["answer"]), state.data.get("answer")
    if given is None:
        produced = []
    elif isinstance(given, str):
        parsed = parse_answer(given, form)
        produced = _values(given if parsed is None else parsed)
    else:
        produced = [f"{line} (JSON, where a text was expected)" for line in _json_lines(given)]
    return _compared(_values(instance.truth["answer"]), produced)


def _values(answer: object) -> list[str]:
    """A line for each value."""
    return [str(value) for value in answer] if isinstance(answer, list) else str(answer).splitlines()


def _as_json(instance: Instance, state: FinalState) -> Iterator[Line]:
    return _compared(_json_lines(instance.truth), _json_lines(state.data))


def _json_lines(value: Any) -> list[str]:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True).splitlines()


def _compared(expected: Sequence[str], produced: Sequence[str]) -> Iterator[Line]:
    want, got = list(expected[:MAX_LINES]), list(produced[:MAX_LINES])
    for text in list(unified_diff(want, got, lineterm="", n=_CONTEXT))[2:]:
        yield Line("@", text.strip("@ ")) if text.startswith("@@") else Line(text[0], text[1:])
    for side, lines in (("expected", expected), ("produced", produced)):
        if len(lines) > MAX_LINES:
            yield Line("@", f"{side}: {len(lines) - MAX_LINES} more lines were not compared")


def _cut(text: str) -> str:
    return text if len(text) <= LINE_CHARS else f"{text[:LINE_CHARS]}… {len(text) - LINE_CHARS} more characters"


_COMPARED: dict[str, tuple[str, Callable[[Instance, FinalState], Iterator[Line]]]] = {
    "tabular": ("the table in its canonical form", _tabular),
    "filesys": ("the files", _filesys),
    "query": ("the values of the answer", _query),
}
