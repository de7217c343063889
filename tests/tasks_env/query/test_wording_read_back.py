"""Every phrasing reversed: the question can be read back from the text, in one way only."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from tasks_env import Presentation, render
from tasks_env.families.query.phrasings import PHRASINGS, Phrasing
from tasks_env.families.query.question import Question, Ref
from tasks_env.families.query.themes import THEMES
from tests.tasks_env.perturbations.recovery import pattern
from tests.tasks_env.query.levels import KINDS, a_mix, made_of_kind, question_of

TESTS = {
    "lt": {"is less than", "is before", "is strictly below", "is strictly earlier than", "<"},
    "le": {"is at most", "is on or before", "does not exceed", "is no later than", "<="},
    "gt": {"is more than", "is after", "is strictly above", "is strictly later than", ">"},
    "ge": {"is at least", "is on or after", "is no less than", "is no earlier than", ">="},
    "eq": {"is", "equals", "="},
    "ne": {"is not", "differs from", "<>"},
}
"""Operator → the words for it, said here once more by hand."""


def one_of(words: set[str]) -> str:
    """A pattern of any of the words, the longer ones first."""
    return f"(?:{'|'.join(re.escape(word) for word in sorted(words, key=len, reverse=True))})"


TABLES = [table for theme in THEMES.values() for table in theme.tables]
LAST_WORDS = one_of({column.label.split()[-1] for table in TABLES for column in table.columns if " " in column.label})
LABEL = rf"[a-z]+(?: {LAST_WORDS})?"
LINK = "[a-z]+"
REFERENCES = {
    "plain": rf"(?:{LINK}'s )*{LABEL}",
    "formal": rf"{LABEL}(?: of the {LINK})*",
    "terse": rf"(?:{LINK}\.)*{LABEL}".replace(" ", "_"),
}
TEST = one_of(set().union(*TESTS.values()))
VALUE = r"'[^']+'|\d{4}-\d{2}-\d{2}|-?\d+(?:\.\d+)?"
ROWS = one_of({table.plural for table in TABLES})
ROW = one_of({table.singular for table in TABLES})


def condition(wording: Phrasing) -> str:
    """The pattern of a condition."""
    article = "" if wording.voice == "terse" else "the "
    return rf"{article}(?:{REFERENCES[wording.voice]}) {TEST} (?:{VALUE})"


def slots(wording: Phrasing) -> dict[str, str]:
    """What each slot of a phrasing may hold, whatever the question."""
    reference = REFERENCES[wording.voice]
    measures = [
        reference,
        wording.count_measure.replace("{rows}", ROWS),
        wording.total_measure.replace("{measure}", f"(?:{reference})"),
    ]
    return {
        "scene": one_of({theme.scene for theme in THEMES.values()}),
        "row": ROW,
        "rows": ROWS,
        "entities": ROWS,
        "Entities": one_of({table.plural.capitalize() for table in TABLES}),
        "a_row": rf"an? {ROW}",
        "relation": rf"{reference}",
        "column": reference,
        "measure": "|".join(measures),
        "rank": one_of(set(wording.ranks.values())),
        "decimals": r"\d",
        "order": one_of(set(wording.orders)),
        "where": rf"{condition(wording)}(?:{re.escape(wording.conjunction)}{condition(wording)})*",
    }


@cache
def sentences(name: str) -> list[tuple[str, str, bool, re.Pattern[str]]]:
    """Whatever a phrasing can say: kind of question, form of the answer, whether NULL is spoken of, and the pattern."""
    wording = PHRASINGS[name]
    frame = re.sub(r"\{\{(?:tool|arg):(\w+)\}\}", r"\1", wording.frame)
    held = slots(wording)
    return [
        (kind, form, bool(missing), pattern(template, held))
        for kind, ask in wording.asks.items()
        for form, words in wording.forms.items()
        for missing in ("", wording.missing)
        for template in [frame.replace("{ask}", ask).replace("{form}", words).replace("{missing}", missing)]
    ]


def steps_in(text: str, wording: Phrasing) -> list[str]:
    """A reference as the links to follow and the column at their end."""
    if wording.voice == "terse":
        return text.split(".")
    steps = text.split("'s ") if wording.voice == "plain" else text.split(" of the ")[::-1]
    return [step.replace(" ", "_") for step in steps]


def steps_of(ref: Ref, question: Question) -> list[str]:
    label = question.database.follow(question.base, ref.path).column(ref.column).label
    return [*(link.removesuffix("_id") for link in ref.path), label.replace(" ", "_")]


def forms_of(question: Question) -> set[str]:
    """The names of the forms that suit the answer."""
    number = "decimals" if question.answer.decimals else "whole"
    return {{"number": number, "pair": f"pair_{number}"}.get(question.answer.kind, question.answer.kind)}


@pytest.mark.parametrize("name", PHRASINGS)
def test_the_question_can_be_read_back_in_one_way_from_every_phrasing(name: str) -> None:
    wording = PHRASINGS[name]
    single = re.compile(condition(wording))
    parts = re.compile(rf"(?:the )?(?P<ref>.+?) (?P<test>{TEST}) (?P<value>{VALUE})")
    for instance in [made_of_kind(kind, seed) for kind in KINDS for seed in range(4)] + a_mix(3):
        question = question_of(instance)
        prompt = render(instance, Presentation(phrasing=name)).prompt
        readings = [(*each, match) for *each, said in sentences(name) if (match := said.fullmatch(prompt))]
        [(kind, form, speaks_of_nulls, match)] = readings
        read = match.groupdict()
        assert kind == question.kind
        assert {form} == forms_of(question)
        assert speaks_of_nulls == question.states_nulls
        assert int(read.get("decimals") or 0) == question.answer.decimals
        if form == "list":
            assert read["order"] == wording.orders[question.answer.order == "descending"]
        assert read["scene"] == question.database.scene
        assert {read[slot] for slot in ("rows", "row") if slot in read} <= {
            question.database.table(question.base).plural,
            question.database.table(question.base).singular,
        }
        if question.direction:
            assert read["rank"] == wording.ranks[question.direction]
        if question.column and kind != "absent":
            assert steps_in(read["column"], wording) == steps_of(question.column, question)
        if question.column and kind == "absent":
            target = question.database.follow(question.base, question.column.path)
            assert read["entities"] == target.plural
            assert steps_in(read["relation"], wording) == steps_of(question.column, question)[:-1]
        if kind == "top" and question.measure is None:
            assert re.fullmatch(wording.count_measure.replace("{rows}", ROWS), read["measure"])
        elif question.measure is not None:
            template = wording.total_measure if kind == "top" else "{measure}"
            measure: Any = pattern(template, {"measure": REFERENCES[wording.voice]}).fullmatch(read["measure"])
            assert steps_in(measure["measure"], wording) == steps_of(question.measure, question)
        conditions = single.findall(read["where"])
        assert wording.conjunction.join(conditions) == read["where"]
        assert len(conditions) == len(question.predicates)
        for text, predicate in zip(conditions, question.predicates, strict=True):
            part: Any = parts.fullmatch(text)
            assert steps_in(part["ref"], wording) == steps_of(predicate.ref, question)
            assert part["test"] in TESTS[predicate.operator]
            plain = part["value"].strip("'")
            assert plain == predicate.value or float(plain) == predicate.value
