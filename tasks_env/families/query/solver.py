"""The first solver: the question as SQL, run on the stored tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tasks_env.families.query.answers import Answer, canonical_number
from tasks_env.families.query.question import Question
from tasks_env.families.query.sql import Reading, right_reading, statement

_TIE_MARGIN = Decimal("0.000001")
_MIN_LISTED, _MAX_LISTED = 2, 7

ResultRows = Sequence[tuple[Any, ...]]


def run(connection: sqlite3.Connection, question: Question, reading: Reading) -> list[tuple[Any, ...]]:
    """The rows that the statement of `reading` gives."""
    return connection.execute(statement(question, reading)).fetchall()


def answer_from(question: Question, rows: ResultRows) -> Answer | None:
    """The answer that an agent would take from the result of a statement; None when there is none."""
    form = question.answer
    if form.kind == "list":
        return ["NULL" if row[0] is None else str(row[0]) for row in rows]
    if not rows or rows[0][0] is None:
        return None
    if form.kind == "pair":
        return [str(rows[0][0]), canonical_number(rows[0][1] or 0, form.decimals)]
    if form.kind == "number":
        return canonical_number(rows[0][0], form.decimals)
    return str(rows[0][0])


def solve(connection: sqlite3.Connection, question: Question) -> Answer | None:
    """The right answer; None when the question has no single safe one (tied, empty, near a rounding tie, a
    list whose order depends on the collation)."""
    rows = run(connection, question, right_reading(question))
    answer = answer_from(question, rows)
    if answer is None or not _safe(question, rows, answer):
        return None
    return answer


def _safe(question: Question, rows: ResultRows, answer: Answer) -> bool:
    kind = question.kind
    if kind == "lookup":
        return len(rows) == 1
    if kind in ("extreme", "top"):
        return len(rows) >= 3 and bool(rows[0][1] != rows[1][1])
    if kind in ("count", "distinct", "absent"):
        return int(rows[0][0]) >= 2
    if kind == "average":
        return _far_from_tie(rows[0][0], question.answer.decimals)
    if kind == "list" and isinstance(answer, list):
        return _MIN_LISTED <= len(answer) <= _MAX_LISTED and _order_is_plain(answer, question.answer.order)
    return True


def _far_from_tie(value: float, decimals: int) -> bool:
    scaled = Decimal(str(value)).scaleb(decimals)
    return abs(scaled % 1 - Decimal("0.5")) > _TIE_MARGIN


def _order_is_plain(values: list[str], order: str) -> bool:
    """Whether every usual collation (by bytes, without case, without blanks) sorts `values` alike."""
    reverse = order == "descending"
    return (
        values
        == sorted(values, key=str.casefold, reverse=reverse)
        == sorted(values, key=lambda value: value.replace(" ", "").casefold(), reverse=reverse)
    )


def agrees(question: Question, truth: Answer, rows: ResultRows) -> bool:
    """Whether a wrong statement's result may lead to the right answer all the same: it gives it, or it is
    tied and the right answer is among the tied ones."""
    if question.kind in ("extreme", "top"):
        tied = [row for row in rows if row[1] == rows[0][1]]
        return any(answer_from(question, [row]) == truth for row in tied)
    if question.kind == "lookup":
        # Of several rows an agent takes the first, unless all say the same.
        return bool(rows) and answer_from(question, rows) == truth
    return answer_from(question, rows) == truth
