"""Putting an instruction together from a question and a phrasing."""

from __future__ import annotations

from tasks_env.errors import UnknownName
from tasks_env.families.query.phrasings import PHRASINGS, Phrasing
from tasks_env.families.query.question import Question
from tasks_env.families.query.wording import condition_texts, rank_word, ref_text, relation_text, with_article


def instruction(question: Question, phrasing: str) -> str:
    """The whole instruction, with placeholders for the names of tools and arguments. Raises `UnknownName`."""
    try:
        wording = PHRASINGS[phrasing]
    except KeyError:
        raise UnknownName("phrasing", phrasing, PHRASINGS) from None
    slots = _slots(question, wording)
    return wording.frame.format(
        **slots,
        ask=wording.asks[question.kind].format(**slots),
        form=wording.forms[_form(question)].format(**slots),
        missing=wording.missing.format(**slots) if question.states_nulls else "",
    )


def _slots(question: Question, wording: Phrasing) -> dict[str, str]:
    schema, column = question.database, question.column
    base = schema.table(question.base)
    slots = {
        "scene": schema.scene,
        "row": base.singular,
        "rows": base.plural,
        "where": wording.conjunction.join(condition_texts(question, wording.voice)),
        "rank": rank_word(question.direction, wording.ranks),
        "decimals": str(question.answer.decimals),
        "order": wording.orders[question.answer.order == "descending"],
        "column": ref_text(question, column, wording.voice) if column else "",
        "entities": schema.follow(question.base, column.path).plural if column else "",
        "relation": relation_text(column, wording.voice) if column else "",
    }
    slots["Entities"] = slots["entities"].capitalize()
    slots["a_row"] = with_article(slots["row"])
    measure = ref_text(question, question.measure, wording.voice) if question.measure else ""
    if question.kind == "top":
        pattern = wording.total_measure if measure else wording.count_measure
        measure = pattern.format(measure=measure, rows=slots["rows"])
    return {**slots, "measure": measure}


def _form(question: Question) -> str:
    kind, decimals = question.answer.kind, question.answer.decimals
    if kind == "number":
        return "decimals" if decimals else "whole"
    if kind == "pair":
        return "pair_decimals" if decimals else "pair_whole"
    return kind
