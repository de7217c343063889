"""Final states that miss the right one by a little: answers written wrongly, answers of wrong statements,
answers not handed in."""

from __future__ import annotations

import random
from collections.abc import Iterator

from pydantic import JsonValue

from tasks_env.families.query import miswritten
from tasks_env.families.query.misqueried import MISQUERIES, column_values, misqueried
from tasks_env.families.query.miswritten import Slip
from tasks_env.families.query.question import Question
from tasks_env.types import FinalState, JsonObject

NEAR_MISS_OPERATORS = (
    *miswritten.NUMBER_SLIPS,
    *miswritten.TEXT_SLIPS,
    *miswritten.DATE_SLIPS,
    *miswritten.LIST_SLIPS,
    *miswritten.PAIR_SLIPS,
    *miswritten.COMMON_SLIPS,
    *MISQUERIES,
    "never handed in",
    "answer of another type",
)


def missed(question: Question, world: JsonObject, answer: str, rng: random.Random) -> Iterator[tuple[str, FinalState]]:
    """Operator and final state of each near miss of the right answer."""
    for operator, text in _slips(question, world, answer, rng):
        yield operator, _handed_in(text)
    for operator, text in misqueried(question, world, answer, rng):
        yield operator, _handed_in(text)
    yield "never handed in", FinalState(submitted=False, data={"answer": answer})
    yield "never handed in", FinalState(submitted=False, data={"answer": None})
    yield "answer of another type", _handed_in(_of_another_type(question, answer, rng))
    yield "answer of another type", FinalState(submitted=True, data={})


def _handed_in(answer: JsonValue) -> FinalState:
    return FinalState(submitted=True, data={"answer": answer})


def _slips(question: Question, world: JsonObject, answer: str, rng: random.Random) -> Iterator[Slip]:
    form = question.answer
    values = [value.strip() for value in answer.split(";")] if form.kind in ("list", "pair") else [answer]
    others: list[str] = []
    if question.column is not None and form.kind in ("text", "list", "pair"):
        others = [str(value) for value in column_values(question, world, question.column) if value not in values]
    if form.kind == "number":
        yield from miswritten.numbers(answer, form.decimals, rng)
    elif form.kind == "text":
        yield from miswritten.texts(answer, others, rng)
    elif form.kind == "date":
        yield from miswritten.dates(answer, rng)
    elif form.kind == "list":
        yield from miswritten.lists(values, others, rng)
    else:
        yield from miswritten.pairs(values[0], values[1], form.decimals, others, rng)
    yield from miswritten.common(answer, values, rng)


def _of_another_type(question: Question, answer: str, rng: random.Random) -> JsonValue:
    """The right answer as JSON that is not a text."""
    parts: list[JsonValue] = [value.strip() for value in answer.split(";")]
    others: list[JsonValue] = [parts, {"answer": answer}]
    if question.answer.kind == "number":
        others += [float(answer), int(float(answer))]
    return rng.choice(others)
