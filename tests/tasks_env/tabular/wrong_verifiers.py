"""Verifiers with one rule changed, as what they do to a submission before the real one judges it.

A lax verifier repairs what it ought to refuse; a strict one spoils what it ought to accept.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

from tasks_env.types import FinalState

Repair = Callable[[FinalState, str], FinalState]
Rows = list[list[str]]


def rows_of(text: str, delimiter: str = ",") -> Rows:
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]


def text_of(rows: Rows) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def on_text(repair: Callable[[str, str], str]) -> Repair:
    """A repair of the submitted text; a submission without one is left alone."""

    def changed(state: FinalState, truth: str) -> FinalState:
        text = state.data.get("csv")
        if not isinstance(text, str):
            return state
        return state.model_copy(update={"data": {**state.data, "csv": repair(text, truth)}})

    return changed


def on_rows(repair: Callable[[Rows, Rows], Rows]) -> Repair:
    """A repair of the rows, header included, given those of the truth."""

    def changed(text: str, truth: str) -> str:
        rows = rows_of(text.removeprefix("\ufeff"))
        return text_of(repair(rows, rows_of(truth))) if rows else text

    return on_text(changed)


def on_cells(accepts: Callable[[str, str], bool]) -> Repair:
    """Takes a cell for the true one in its place wherever `accepts(cell, true one)` says so."""

    def changed(rows: Rows, truth: Rows) -> Rows:
        if [len(row) for row in rows] != [len(row) for row in truth]:
            return rows
        cells = [
            [true if accepts(cell, true) else cell for cell, true in zip(row, right, strict=True)]
            for row, right in zip(rows[1:], truth[1:], strict=True)
        ]
        return [rows[0], *cells]

    return on_rows(changed)


def number(text: str) -> Decimal | None:
    try:
        return Decimal(text) if re.fullmatch(r"-?\d+(\.\d+)?", text, re.ASCII) else None
    except InvalidOperation:
        return None


def numbers(accepts: Callable[[Decimal, Decimal], bool]) -> Repair:
    def both(cell: str, true: str) -> bool:
        got, want = number(cell), number(true)
        return got is not None and want is not None and accepts(got, want)

    return on_cells(both)


def unit(value: Decimal) -> Decimal:
    return Decimal(1).scaleb(int(value.as_tuple().exponent))


def loosely(text: str) -> Decimal | None:
    """A number out of whatever holds one."""
    text = text.replace(",", "") if re.search(r",\d{3}(\D|$)", text) else text.replace(",", ".")
    try:
        return Decimal(re.sub(r"[^0-9eE.+-]", "", text.translate({0x660 + i: str(i) for i in range(10)})).rstrip(".e"))
    except InvalidOperation:
        return None


def loose_numbers(cell: str, true: str) -> bool:
    want = number(true)
    return want is not None and loosely(cell) == want


def days(text: str) -> set[str]:
    """Digits of a date, in every order of its parts."""
    year_first = re.fullmatch(r"(\d{4})\D?(\d\d)\D?(\d\d)(?:.00:00:00)?", text)
    day_first = re.fullmatch(r"(\d\d)\.(\d\d)\.(\d{4})", text)
    short = re.fullmatch(r"(\d\d)-(\d\d)-(\d\d)", text)
    found = {"".join(year_first.groups())} if year_first else set()
    found |= {"".join(day_first.groups()[::-1])} if day_first else set()
    return found | ({"20" + "".join(short.groups())} if short else set())


def submitted_regardless(state: FinalState, _: str) -> FinalState:
    return state.model_copy(update={"submitted": True})


def rows_as_text(state: FinalState, _: str) -> FinalState:
    rows = state.data.get("csv")
    if not isinstance(rows, list):
        return state
    lines = [",".join(map(str, row)) if isinstance(row, list) else str(row) for row in rows]
    return state.model_copy(update={"data": {**state.data, "csv": "\n".join(lines)}})


def nothing_as_right(state: FinalState, truth: str) -> FinalState:
    return state if state.data.get("csv") else state.model_copy(update={"data": {**state.data, "csv": truth}})


def padded(rows: Rows, _: Rows) -> Rows:
    width = len(rows[0])
    return [[*row[:width], *[""] * (width - len(row))] if len(row) > width else row for row in rows]


def by_name(rows: Rows, truth: Rows) -> Rows:
    if not set(truth[0]) <= set(rows[0]) or any(len(row) != len(rows[0]) for row in rows):
        return rows
    places = [rows[0].index(name) for name in truth[0]]
    return [[row[place] for place in places] for row in rows]


def as_set(rows: Rows, _: Rows) -> Rows:
    return [list(row) for row in dict.fromkeys(map(tuple, rows))]


def in_true_order(rows: Rows, truth: Rows) -> Rows:
    return truth if rows[0] == truth[0] and sorted(rows[1:]) == sorted(truth[1:]) else rows


def header_only_loosely(rows: Rows, truth: Rows) -> Rows:
    same = [name.strip().lower() for name in rows[0]] == truth[0]
    return [truth[0], *rows[1:]] if same else rows


def header_unread(rows: Rows, truth: Rows) -> Rows:
    return [truth[0], *rows[1:]] if len(rows[0]) == len(truth[0]) else rows


def header_added(rows: Rows, truth: Rows) -> Rows:
    return [truth[0], *(row for row in rows if row != truth[0])]


def some_missing(rows: Rows, truth: Rows) -> Rows:
    """Any part of the right rows, in order, counts as all of them."""
    rest = iter(truth)
    return truth if all(any(row == true for true in rest) for row in rows) else rows


def some_too_many(rows: Rows, truth: Rows) -> Rows:
    """All right rows, in order, count whatever stands between."""
    rest = iter(rows)
    return truth if all(any(row == true for row in rest) for true in truth) else rows


def table_found(text: str, truth: str) -> str:
    return truth if truth.strip("\n") in text else text


def any_delimiter(text: str, truth: str) -> str:
    for mark in "\t;|":
        rows = [[cell.strip() for cell in row] for row in rows_of(text, mark)]
        if rows and len(rows[0]) == len(rows_of(truth)[0]) > 1:
            return text_of(rows)
    return text


LAX: dict[str, tuple[Repair, str, set[str]]] = {
    "submission is needed": (submitted_regardless, "hard", {"not submitted"}),
    "the submission is text": (rows_as_text, "hard", {"not a text"}),
    "something is handed in": (nothing_as_right, "hard", {"no table"}),
    "rows are as long as the header": (on_rows(padded), "hard", {"row of another length"}),
    "names of columns": (on_rows(header_unread), "hard", {"column renamed", "header in another case"}),
    "case of the header": (on_rows(header_only_loosely), "hard", {"header in another case"}),
    "a header": (on_rows(header_added), "hard", {"header missing", "header repeated"}),
    "order and number of columns": (on_rows(by_name), "hard", {"columns swapped", "column added"}),
    "order of rows": (on_rows(in_true_order), "hard", {"rows swapped", "order of rows reversed"}),
    "repeated rows count": (on_rows(as_set), "hard", {"row duplicated", "header repeated"}),
    "every row is needed": (on_rows(some_missing), "hard", {"row missing", "row within the limit left out"}),
    "no other row": (on_rows(some_too_many), "hard", {"row duplicated", "row beyond the limit added"}),
    "values of numbers": (numbers(lambda got, want: abs(got - want) <= unit(want)), "hard", {"value off by one unit"}),
    "signs of numbers": (numbers(lambda got, want: abs(got) == abs(want)), "hard", {"sign changed"}),
    "no rounding": (
        numbers(lambda got, want: got.quantize(unit(want), rounding=ROUND_HALF_UP) == want),
        "hard",
        {"digit beyond the decimals", "rounded too late or not at all"},
    ),
    "plain numbers": (on_cells(loose_numbers), "hard", {"number with a unit", "value in another notation"}),
    "plain dates": (on_cells(lambda a, b: bool(days(a) & days(b))), "dates", {"value in another notation"}),
    "case of letters": (on_cells(lambda a, b: a.lower() == b.lower()), "hard", {"letter case changed"}),
    "letters": (on_cells(lambda a, b: a[:1].isalpha() and a[:2] == b[:2]), "hard", {"letter changed"}),
    "spaces": (on_cells(lambda a, b: a.strip() == b), "hard", {"space added"}),
    "empty cells": (on_cells(lambda a, b: not a or not b), "easy_missing", {"cell emptied or filled"}),
    "nothing around the table": (on_text(table_found), "hard", {"words around the table"}),
    "commas": (on_text(any_delimiter), "hard", {"another format"}),
}
"""What the rule is about: the repair that drops it, the level of the witnesses, the operators that must tell."""


def refusing(refused: Callable[[str, str], bool]) -> Repair:
    """Spoils a submission that a strict verifier refuses."""
    return on_text(lambda text, truth: "refused" if refused(text, truth) else text)


def size(text: str) -> int:
    """Characters in all cells."""
    return sum(len(cell) for row in rows_of(text.removeprefix("\ufeff")) for cell in row)


STRICT: dict[str, tuple[Repair, set[str]]] = {
    "LF alone": (refusing(lambda text, _: "\r" in text), {"CRLF line ends", "CR line ends", "all at once"}),
    "a last line end": (refusing(lambda text, _: text[-1:] not in "\r\n"), {"no last line end", "all at once"}),
    "no byte-order mark": (refusing(lambda text, _: text[:1] == "\ufeff"), {"byte-order mark", "all at once"}),
    "no blank line": (refusing(lambda text, _: "\n\n" in text or text[:1] == "\n"), {"blank lines"}),
    "no needless quote": (
        refusing(lambda text, truth: text.count('"') > truth.count('"')),
        {"every field quoted", "text fields quoted", "all at once"},
    ),
    "no zero more": (
        refusing(lambda text, truth: size(text) > size(truth)),
        {"zeros added at the end", "zeros added in front", "all at once"},
    ),
    "no zero less": (
        refusing(lambda text, truth: size(text) < size(truth)),
        {"zeros left out"},
    ),
    "exact bytes": (refusing(lambda text, truth: text != truth), {"CRLF line ends", "zeros left out", "all at once"}),
}
"""The rule that there is not: the spoiling that adds it, and the restatements that must tell."""
