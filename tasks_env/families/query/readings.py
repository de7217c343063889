"""The known wrong readings of a question: each must lead to another answer, or the question is rejected."""

from __future__ import annotations

from collections.abc import Iterator

from tasks_env.families.query.question import Operator, Predicate, Question, Ref
from tasks_env.families.query.schema import Path
from tasks_env.families.query.sql import Reading

_OTHER_BOUND: dict[Operator, Operator] = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
_MET_BY_A_LOW_VALUE: tuple[Operator, ...] = ("lt", "le", "ne")


def wrong_readings(question: Question) -> Iterator[Reading]:
    """Every wrong reading that applies, by name: a condition left out, a bound moved, missing values kept, a
    join on the wrong column or on none, duplicates kept, the opposite end, another way to rank."""
    predicates = question.predicates
    for index, predicate in enumerate(predicates):
        others = predicates[:index] + predicates[index + 1 :]
        yield Reading(f"without condition {index + 1}", others)
        if predicate.operator in _OTHER_BOUND:
            moved = Predicate(ref=predicate.ref, operator=_OTHER_BOUND[predicate.operator], value=predicate.value)
            yield Reading(
                f"other bound in condition {index + 1}",
                (*predicates[:index], moved, *predicates[index + 1 :]),
            )
        if predicate.operator in _MET_BY_A_LOW_VALUE and _nullable(question, predicate.ref):
            yield Reading(f"missing meets condition {index + 1}", predicates, null_satisfies=index, join="LEFT JOIN")
    for path in question.joins:
        yield Reading(f"wrong key to {' '.join(path)}", predicates, wrong_key=path)
        if not _ranks_pairs(question, path):
            yield Reading(f"no key to {' '.join(path)}", predicates, unlinked=path)
    for form, join in _wrong_forms(question):
        yield Reading(form, predicates, form=form, join=join)


def _nullable(question: Question, ref: Ref) -> bool:
    return question.database.nullable(question.base, ref.path, ref.column)


def _ranks_pairs(question: Question, path: Path) -> bool:
    """Whether pairing every row with every row at `path` would tie all of the answers that can be asked for."""
    column = question.column
    return question.kind == "extreme" and column is not None and column.path[: len(path)] == path


def _wrong_forms(question: Question) -> Iterator[tuple[str, str]]:
    """Form and join of each wrong statement that applies to the question's kind."""
    column, measure = question.column, question.measure
    if column is None:
        return
    missing = _nullable(question, column)
    table = question.database.follow(question.base, column.path)
    role = table.column(column.column).role
    unique = role == "name" and not column.path
    if question.kind == "distinct":
        yield "duplicates counted", "JOIN"
        if missing:
            yield "missing counted", "LEFT JOIN"
    elif question.kind == "average":
        if missing:
            yield "missing as zero", "LEFT JOIN"
        if role == "integer":
            yield "whole division", "JOIN"
    elif question.kind == "date":
        yield "opposite end", "JOIN"
    elif question.kind == "extreme":
        yield "opposite end", "JOIN"
        if measure is not None and question.direction == "lowest" and _nullable(question, measure):
            yield "missing ranked", "LEFT JOIN"
    elif question.kind == "list":
        yield "unordered", "JOIN"
        if not unique:
            yield "duplicates kept", "JOIN"
        if missing:
            yield "missing listed", "LEFT JOIN"
    elif question.kind == "top":
        yield "opposite end", "JOIN"
        if measure is not None:
            yield "rows counted", "JOIN"
            yield "single row", "JOIN"
        if question.direction == "lowest" and _groups_can_be_empty(question, column):
            yield "empty groups ranked", "JOIN"
    elif question.kind == "absent":
        yield "present counted", "JOIN"
        yield "other rows counted", "JOIN"


def _groups_can_be_empty(question: Question, group: Ref) -> bool:
    """Whether the groups' table can be read on its own, the rows joined to it."""
    size = len(group.path)
    return size > 0 and not any(len(path) > size and path[:size] == group.path for path in question.joins)
