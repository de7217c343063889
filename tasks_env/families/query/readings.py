"""The known wrong readings of a question: each must lead to another answer, or the question is rejected.

Readings that the wording rules out in so many words, and that happen to agree for want of a case, are no
ambiguity: entities without rows (`absent`), the rounding of averages, the order of equal values.
"""

from __future__ import annotations

from collections.abc import Iterator

from tasks_env.families.query.question import Operator, Predicate, Question, Ref
from tasks_env.families.query.schema import Path
from tasks_env.families.query.sql import Reading

READINGS = (
    "condition left out",
    "bound inclusive or exclusive",
    "missing values kept",
    "missing as zero",
    "wrong join key",
    "join without a key",
    "same column of another table",
    "duplicates kept",
    "wrong aggregate",
    "whole division",
    "opposite end",
    "order ignored",
    "empty groups ranked",
    "complement counted",
)
"""The names of all readings. Several readings of one question may share a name."""

_OTHER_BOUND: dict[Operator, Operator] = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
_MET_BY_A_LOW_VALUE: tuple[Operator, ...] = ("lt", "le", "ne")


def wrong_readings(question: Question) -> Iterator[Reading]:
    """Every wrong reading that applies, under one of `READINGS`."""
    predicates = question.predicates
    for index, predicate in enumerate(predicates):
        others = predicates[:index] + predicates[index + 1 :]
        yield Reading("condition left out", others)
        if _can_be_lost(question, predicate.ref, others):
            yield Reading("condition left out", others, lean=True)
        if predicate.operator in _OTHER_BOUND:
            moved = Predicate(ref=predicate.ref, operator=_OTHER_BOUND[predicate.operator], value=predicate.value)
            yield Reading("bound inclusive or exclusive", (*predicates[:index], moved, *predicates[index + 1 :]))
        if predicate.operator in _MET_BY_A_LOW_VALUE and _nullable(question, predicate.ref):
            yield Reading("missing values kept", predicates, null_satisfies=index, join="LEFT JOIN")
    for path in question.joins:
        yield Reading("wrong join key", predicates, wrong_key=path)
        if not _ranks_pairs(question, path):
            yield Reading("join without a key", predicates, unlinked=path)
    for column in _namesakes(question):
        yield Reading("same column of another table", predicates, column=column)
    for name, form, join in _wrong_forms(question):
        yield Reading(name, predicates, form=form, join=join)


def _nullable(question: Question, ref: Ref) -> bool:
    return question.database.nullable(question.base, ref.path, ref.column)


def _can_be_lost(question: Question, ref: Ref, others: tuple[Predicate, ...]) -> bool:
    """Whether a join serves the condition on `ref` alone and drops rows with missing links."""
    left = [other.ref.path for other in others]
    left += [asked.path for asked in (question.column, question.measure) if asked is not None]
    own = [ref.path[:size] for size in range(1, len(ref.path) + 1)]
    return any(
        question.database.follow(question.base, path[:-1]).column(path[-1]).nullable
        for path in own
        if not any(other[: len(path)] == path for other in left)
    )


def _ranks_pairs(question: Question, path: Path) -> bool:
    """Whether pairing every row with every row at `path` would tie all of the answers that can be asked for."""
    column = question.column
    return question.kind == "extreme" and column is not None and column.path[: len(path)] == path


def _namesakes(question: Question) -> Iterator[Ref]:
    """Columns of the question's other tables that are called as the one asked for."""
    asked = question.column
    if asked is None or question.kind == "absent":
        return
    for path in ((), *question.joins):
        table = question.database.follow(question.base, path)
        if path != asked.path and any(column.name == asked.column for column in table.columns):
            yield Ref(path=path, column=asked.column)


def _wrong_forms(question: Question) -> Iterator[tuple[str, str, str]]:
    """Name, form and join of each wrong statement that applies to the question's kind."""
    column, measure = question.column, question.measure
    if column is None:
        return
    missing = _nullable(question, column)
    table = question.database.follow(question.base, column.path)
    role = table.column(column.column).role
    unique = role == "name" and not column.path
    if question.kind == "distinct":
        yield "duplicates kept", "duplicates counted", "JOIN"
        if missing:
            yield "missing values kept", "missing counted", "LEFT JOIN"
    elif question.kind == "sum":
        yield "wrong aggregate", "mean", "JOIN"
        yield "wrong aggregate", "rows counted", "JOIN"
    elif question.kind == "average":
        yield "wrong aggregate", "total", "JOIN"
        if missing:
            yield "missing as zero", "missing as zero", "LEFT JOIN"
        if role == "integer":
            yield "whole division", "whole division", "JOIN"
    elif question.kind == "date":
        yield "opposite end", "opposite end", "JOIN"
    elif question.kind == "extreme":
        yield "opposite end", "opposite end", "JOIN"
        if measure is not None and question.direction == "lowest" and _nullable(question, measure):
            yield "missing values kept", "missing ranked", "LEFT JOIN"
    elif question.kind == "list":
        yield "order ignored", "unordered", "JOIN"
        if not unique:
            yield "duplicates kept", "duplicates kept", "JOIN"
        if missing:
            yield "missing values kept", "missing listed", "LEFT JOIN"
    elif question.kind == "top":
        yield "opposite end", "opposite end", "JOIN"
        if measure is not None:
            yield "wrong aggregate", "rows counted", "JOIN"
            yield "wrong aggregate", "single row", "JOIN"
        if question.direction == "lowest" and _groups_can_be_empty(question, column):
            yield "empty groups ranked", "empty groups ranked", "JOIN"
    elif question.kind == "absent":
        yield "complement counted", "present counted", "JOIN"
        yield "complement counted", "other rows counted", "JOIN"
        yield "condition left out", "all counted", "JOIN"


def _groups_can_be_empty(question: Question, group: Ref) -> bool:
    """Whether the groups' table can be read on its own, the rows joined to it."""
    size = len(group.path)
    return size > 0 and not any(len(path) > size and path[:size] == group.path for path in question.joins)
