"""Plans of calls: the reference solution, and the same with one plausible mistake."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, timedelta
from decimal import Decimal
from itertools import chain

from tasks_env.errors import GenerationError
from tasks_env.families.query.answers import Answer, written
from tasks_env.families.query.database import connect
from tasks_env.families.query.question import Question
from tasks_env.families.query.readings import wrong_readings
from tasks_env.families.query.solver import answer_from, run, solve
from tasks_env.families.query.sql import Reading, right_reading, statement
from tasks_env.types import JsonObject, ToolCall

_SLIP_SHARE = 0.3


def reference_plan(question: Question, world: JsonObject) -> tuple[ToolCall, ...]:
    """Look at the schema, at the values that the conditions are about, run the statement, submit.

    Raises:
        GenerationError: the question has no single safe answer in this world.
    """
    with closing(connect(world)) as connection:
        answer = solve(connection, question)
    if answer is None:
        raise GenerationError("the stored question has no single answer in the stored tables")
    return _plan(question, statement(question, right_reading(question)), written(answer))


def mistaken_plan(
    question: Question, world: JsonObject, rng: random.Random, fails: Callable[[str], bool]
) -> tuple[ToolCall, ...] | None:
    """The reference with one plausible wrong step, drawn from `rng`: the statement of a wrong reading, or a slip in
    handing in the right result. None when no such plan fails.

    Args:
        fails: Whether a submitted answer fails.
    """
    right = statement(question, right_reading(question))
    with closing(connect(world)) as connection:
        readings = list(wrong_readings(question))
        rng.shuffle(readings)
        misread = ((statement(question, reading), _misread(connection, question, reading)) for reading in readings)
        truth = solve(connection, question)
        slips = [] if truth is None else _slips(question, truth)
        rng.shuffle(slips)
        slipped = ((right, slip) for slip in slips)
        order = (slipped, misread) if rng.random() < _SLIP_SHARE else (misread, slipped)
        for query, answer in chain(*order):
            if answer is not None and fails(answer):
                return _plan(question, query, answer)
    return None


def _misread(connection: sqlite3.Connection, question: Question, reading: Reading) -> str | None:
    answer = answer_from(question, run(connection, question, reading))
    return written(answer) or None if answer is not None else None


def _plan(question: Question, query: str, answer: str) -> tuple[ToolCall, ...]:
    schema = question.database
    needed = [question.base, *(schema.follow(question.base, path).name for path in question.joins)]
    calls = []
    if len(schema.tables) > 1:
        calls.append(ToolCall(name="list_tables", arguments={}))
    calls += [ToolCall(name="describe_table", arguments={"table": table}) for table in needed]
    if question.joins:
        calls += [ToolCall(name="run_query", arguments={"query": look}) for look in _looks(question)]
    calls.append(ToolCall(name="run_query", arguments={"query": query}))
    calls.append(ToolCall(name="submit", arguments={"answer": answer}))
    return tuple(calls)


def _looks(question: Question) -> Iterator[str]:
    """A look at the stored spelling of each text that a condition compares with."""
    for predicate in question.predicates:
        table = question.database.follow(question.base, predicate.ref.path)
        if table.column(predicate.ref.column).role == "category":
            yield f"SELECT DISTINCT {predicate.ref.column} FROM {table.name}"


def _slips(question: Question, truth: Answer) -> list[str]:
    """Answers that miss the truth by a slip of the pen."""
    if isinstance(truth, list) and question.answer.kind == "pair":
        name, number = truth
        return [name, f"{name}; {_next_number(number)}", f"{number}; {name}"]
    if isinstance(truth, list):
        return [
            written(truth[:-1]),
            written([*truth[1:], truth[0]]),
            written([*truth, truth[-1]]),
            ", ".join(truth),
        ]
    slips: dict[str, Callable[[str], list[str]]] = {
        "number": lambda text: [_next_number(text), f"about {text}"],
        "date": lambda text: [_next_day(text), "/".join(reversed(text.split("-")))],
        "text": lambda text: [text[:-1], f"The answer is {text}"],
    }
    return slips[question.answer.kind](truth)


def _next_number(text: str) -> str:
    number = Decimal(text)
    return str(number + Decimal(1).scaleb(int(number.as_tuple().exponent)))


def _next_day(text: str) -> str:
    return (date.fromisoformat(text) + timedelta(days=1)).isoformat()
