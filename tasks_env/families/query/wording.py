"""The parts that phrasings are put together from: columns, conditions, values and ranks in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tasks_env.families.query.answers import canonical_number
from tasks_env.families.query.question import Direction, Operator, Predicate, Question, Ref

Voice = Literal["plain", "formal", "terse"]
"""plain: "the member's town is 'Celle'"; formal: "the town of the member equals 'Celle'";
terse: "member.town = 'Celle'"."""

_NUMBER_TESTS: dict[Voice, dict[Operator, str]] = {
    "plain": {
        "eq": "is {value}",
        "ne": "is not {value}",
        "lt": "is less than {value}",
        "le": "is at most {value}",
        "gt": "is more than {value}",
        "ge": "is at least {value}",
    },
    "formal": {
        "eq": "equals {value}",
        "ne": "differs from {value}",
        "lt": "is strictly below {value}",
        "le": "does not exceed {value}",
        "gt": "is strictly above {value}",
        "ge": "is no less than {value}",
    },
    "terse": {
        "eq": "= {value}",
        "ne": "<> {value}",
        "lt": "< {value}",
        "le": "<= {value}",
        "gt": "> {value}",
        "ge": ">= {value}",
    },
}
_DATE_TESTS: dict[Voice, dict[Operator, str]] = {
    "plain": {
        "eq": "is {value}",
        "ne": "is not {value}",
        "lt": "is before {value}",
        "le": "is on or before {value}",
        "gt": "is after {value}",
        "ge": "is on or after {value}",
    },
    "formal": {
        "eq": "equals {value}",
        "ne": "differs from {value}",
        "lt": "is strictly earlier than {value}",
        "le": "is no later than {value}",
        "gt": "is strictly later than {value}",
        "ge": "is no earlier than {value}",
    },
    "terse": _NUMBER_TESTS["terse"],
}


def _plain_ref(names: list[str]) -> str:
    return "'s ".join(names)


def _formal_ref(names: list[str]) -> str:
    return " of the ".join(reversed(names))


def _terse_ref(names: list[str]) -> str:
    return ".".join(name.replace(" ", "_") for name in names)


_REFS: dict[Voice, Callable[[list[str]], str]] = {
    "plain": _plain_ref,
    "formal": _formal_ref,
    "terse": _terse_ref,
}


def ref_text(question: Question, ref: Ref, voice: Voice) -> str:
    """A column in words, seen from a row of the base table, without an article."""
    return _REFS[voice]([*_steps(ref), _label(question, ref)])


def relation_text(ref: Ref, voice: Voice) -> str:
    """The row at the end of the path of `ref` in words, without an article."""
    return _REFS[voice](_steps(ref))


def _steps(ref: Ref) -> list[str]:
    return [link.removesuffix("_id").replace("_", " ") for link in ref.path]


def _label(question: Question, ref: Ref) -> str:
    return question.database.follow(question.base, ref.path).column(ref.column).label


def value_text(question: Question, predicate: Predicate) -> str:
    """The value of a condition as shown: texts in single quotes, decimals with two decimals."""
    role = question.database.follow(question.base, predicate.ref.path).column(predicate.ref.column).role
    if role == "decimal":
        return canonical_number(float(predicate.value), 2)
    return str(predicate.value) if role in ("integer", "date") else f"'{predicate.value}'"


def condition_texts(question: Question, voice: Voice) -> list[str]:
    """Each condition in words, in the order of the spec."""
    article = "" if voice == "terse" else "the "
    texts = []
    for predicate in question.predicates:
        role = question.database.follow(question.base, predicate.ref.path).column(predicate.ref.column).role
        tests = _DATE_TESTS if role == "date" else _NUMBER_TESTS
        test = tests[voice][predicate.operator].format(value=value_text(question, predicate))
        texts.append(f"{article}{ref_text(question, predicate.ref, voice)} {test}")
    return texts


def rank_word(direction: Direction | None, words: dict[Direction, str]) -> str:
    """The word of a phrasing for `direction`; empty for questions that rank nothing."""
    return words[direction] if direction is not None else ""


def with_article(noun: str) -> str:
    """`noun` after the indefinite article; empty for an empty one."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}" if noun else ""
