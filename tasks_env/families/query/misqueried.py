"""Answers of wrong statements: of every known wrong reading, and of statements that are wrong by one part."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from decimal import ROUND_DOWN, Decimal
from typing import Any

from tasks_env.families.query.answers import canonical_number, written
from tasks_env.families.query.database import connect
from tasks_env.families.query.question import Predicate, Question, Ref
from tasks_env.families.query.readings import READINGS, wrong_readings
from tasks_env.families.query.solver import answer_from, run
from tasks_env.families.query.sql import Reading, right_reading
from tasks_env.types import JsonObject

_KIN = {
    "missing as zero": "missing values kept",
    "empty groups ranked": "missing values kept",
    "whole division": "wrong aggregate",
}
"""Readings of rare questions, under the operator that they are counted with."""

MISQUERIES = (
    *(name for name in READINGS if name not in _KIN),
    "column counted",
    "duplicates left out",
    "another value in a condition",
    "another column",
)


def misqueried(question: Question, world: JsonObject, answer: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Operator and answer of each wrong statement.

    Generation promises that no wrong reading gives the right answer, so these are never left out. The other
    statements may agree with the right one by chance; then they are.

    Args:
        answer: The right answer.
    """
    with closing(connect(world)) as connection:
        for reading in wrong_readings(question):
            found = answer_from(question, run(connection, question, reading))
            if found is not None:
                yield _KIN.get(reading.name, reading.name), written(found)
        for reading in _other_statements(question, world, rng):
            found = answer_from(question, run(connection, question, reading))
            if found is not None and written(found) != answer:
                yield reading.name, written(found)
        if question.kind == "average":
            mean = Decimal(repr(run(connection, question, right_reading(question))[0][0]))
            cut = mean.quantize(Decimal(1).scaleb(-question.answer.decimals), rounding=ROUND_DOWN)
            if canonical_number(cut, question.answer.decimals) != answer:
                yield "truncated", f"{cut:f}"


def column_values(question: Question, world: JsonObject, ref: Ref) -> list[str | int | float]:
    """The different values of a column in its own table, sorted."""
    name = question.database.follow(question.base, ref.path).name
    tables: Any = world["tables"]
    table = next(table for table in tables if table["name"] == name)
    place = [column["name"] for column in table["columns"]].index(ref.column)
    return sorted({row[place] for row in table["rows"]} - {None})


def _other_statements(question: Question, world: JsonObject, rng: random.Random) -> Iterator[Reading]:
    predicates = question.predicates
    place = rng.randrange(len(predicates))
    changed = predicates[place]
    values = [value for value in column_values(question, world, changed.ref) if value != changed.value]
    if values:
        other = Predicate(ref=changed.ref, operator=changed.operator, value=rng.choice(values))
        yield Reading("another value in a condition", (*predicates[:place], other, *predicates[place + 1 :]))
    if question.kind == "count":
        for column in question.database.table(question.base).columns:
            ref = Ref(column=column.name)
            if column.nullable:
                yield Reading("column counted", predicates, form="column counted", column=ref)
            if column.role == "category":
                yield Reading("column counted", predicates, form="duplicates left out", column=ref)
    elif question.kind in ("sum", "average"):
        yield Reading("duplicates left out", predicates, form="duplicates left out")
        yield Reading("wrong aggregate", predicates, form="single row")
    elif question.kind == "top" and question.measure is not None:
        yield Reading("wrong aggregate", predicates, form="mean")
    asked = question.column
    if asked is not None and question.kind != "absent":
        table = question.database.follow(question.base, asked.path)
        role = table.column(asked.column).role
        alike = [column.name for column in table.columns if column.role == role and column.name != asked.column]
        if alike:
            yield Reading("another column", predicates, column=Ref(path=asked.path, column=rng.choice(alike)))
