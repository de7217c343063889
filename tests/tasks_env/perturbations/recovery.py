"""Reading wordings back: what a text says beside its spec, what a spec can be changed to, and templates reversed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import JsonValue

from tasks_env.families import family
from tasks_env.families.filesys.goals import Operator as CheckOperator
from tasks_env.families.query.params import QuestionKind
from tasks_env.families.query.question import AnswerKind, Direction, Question
from tasks_env.families.query.question import Operator as Test
from tasks_env.families.tabular import spec as tabular
from tasks_env.families.tabular.table import Kind
from tasks_env.types import Instance

WORD = re.compile(r"\w+(?:[.-]\d+)*")
Place = tuple[str | int, ...]

CHOICES: tuple[tuple[str, ...], ...] = tuple(
    get_args(each)
    for each in (
        *(CheckOperator, QuestionKind, AnswerKind, Direction, Test),
        *(tabular.JoinKind, tabular.Comparison, tabular.Operator, tabular.Function, tabular.Direction, Kind),
    )
)
"""The closed sets of words that a spec chooses from."""


def leaves(value: JsonValue, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every scalar of a JSON value with the keys and positions that lead to it."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, (*place, key))
    elif isinstance(value, list):
        for position, each in enumerate(value):
            yield from leaves(each, (*place, position))
    else:
        yield place, value


def replaced(value: Any, place: Place, new: Any) -> Any:
    """A copy of a JSON value with one scalar replaced."""
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(copy[place[0]], place[1:], new)
    return copy


def renamed(value: Any, old: Any, new: Any) -> Any:
    """A copy of a JSON value with every scalar that is `old` replaced."""
    for place, each in leaves(value):
        if each == old and type(each) is type(old):
            value = replaced(value, place, new)
    return value


def alternatives(old: Any, instance: Instance) -> list[Any]:
    """Other values for the place of `old`: a near one, the rest of its set, other names and texts of the task."""
    if isinstance(old, bool):
        return [not old]
    if isinstance(old, int | float):
        return [old + 1]
    if not isinstance(old, str):
        return ["other"]
    chosen = [word for words in CHOICES if old in words for word in words if word != old]
    if chosen:
        return chosen
    others = {each for _, each in leaves(instance.spec) if isinstance(each, str)}
    if instance.family == "query":
        tables = Question.model_validate(instance.spec).database.tables
        others |= {column.name for table in tables for column in table.columns}
    return [f"{old}x", *sorted(others - {old})]


def kind_of_place(place: Place) -> str:
    """`filters.*.values.*` for the second value of the first filter."""
    return ".".join("*" if isinstance(step, int) else step for step in place)


def spec_words(instance: Instance) -> set[str]:
    """Every word that the wording of an instance may take from its spec, in lower case."""
    texts = [str(each) for _, each in leaves(instance.spec)]
    if instance.family == "query":
        question = Question.model_validate(instance.spec)
        schema = question.database
        base = schema.table(question.base)
        texts += [schema.scene, base.singular, base.plural]
        texts += [link.removesuffix("_id") for ref in question.refs for link in ref.path]
        texts += [schema.follow(question.base, ref.path).plural for ref in question.refs]
        texts += [schema.follow(question.base, ref.path).column(ref.column).label for ref in question.refs]
        texts += [f"{each.value:.2f}" for each in question.predicates if isinstance(each.value, float)]
    return {word.lower() for text in texts for word in WORD.findall(f"{text} {text.replace('_', ' ')}")}


def residue(instance: Instance, phrasing: str) -> list[str]:
    """The words of a wording, in order and in lower case, that it does not take from the spec."""
    known = spec_words(instance)
    text = re.sub(r"\{(?:tool|arg):\w+\}", " ", family(instance.family).prompt(instance, phrasing))
    return [word for word in map(str.lower, WORD.findall(text)) if word not in known]


def pattern(template: str, slots: Mapping[str, str]) -> re.Pattern[str]:
    """A template of `str.format` reversed; `slots` says what each may hold, and one that recurs must repeat itself."""
    seen: set[str] = set()

    def group(name: str) -> str:
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>{slots[name]})"

    tokens = re.findall(r"\{\{|\}\}|\{\w+\}|[^{}]+", template)
    escaped = {"{{": r"\{", "}}": r"\}"}
    return re.compile(
        "".join(
            escaped.get(token) or (group(token[1:-1]) if token[0] == "{" else re.escape(token)) for token in tokens
        ),
        re.DOTALL,
    )
