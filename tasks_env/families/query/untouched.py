"""Plans that hand in what an agent is shown without looking for an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tasks_env.families.query.question import Question
from tasks_env.types import JsonObject, ToolCall


def untouched_answers(question: Question, world: JsonObject) -> Iterator[str]:
    """What the listing of the tables and the question itself put before an agent: each table's name and number
    of rows, and every value that the question states. Generation rejects a question that one of them answers."""
    tables: Any = world["tables"]
    for table in tables:
        yield table["name"]
        yield str(len(table["rows"]))
    for predicate in question.predicates:
        yield str(predicate.value)


def untouched_plans(question: Question, world: JsonObject) -> Iterator[tuple[ToolCall, ...]]:
    """Each of `untouched_answers` handed in, and nothing at all."""
    for answer in ("", *dict.fromkeys(untouched_answers(question, world))):
        yield (ToolCall(name="submit", arguments={"answer": answer}),)
