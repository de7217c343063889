"""Right answers in other bytes that the rules for answers take as the same."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from tasks_env.families.query.question import AnswerFormat

RESTATEMENT_OPERATORS = (
    "surrounding white space",
    "white space around values",
    "trailing zeros",
    "leading zeros",
    "plus sign",
    "inside the tolerance",
)

Restatement = tuple[str, str]
"""Operator and answer."""


def restated(answer: str, form: AnswerFormat) -> Iterator[Restatement]:
    """Every restatement of a right answer."""
    yield "surrounding white space", f"  {answer} "
    yield "surrounding white space", f"\r\n\t{answer}\u00a0\n"
    if form.kind in ("list", "pair"):
        values = [value.strip() for value in answer.split(";")]
        for separator in (";", " ; ", "  ;\n", "\t;"):
            yield "white space around values", separator.join(values)
    if form.kind == "number":
        yield from _numbers(answer, form.decimals)
    elif form.kind == "pair":
        name, number = values
        for operator, text in _numbers(number, form.decimals):
            yield operator, f"{name}; {text}"


def _numbers(text: str, decimals: int) -> Iterator[Restatement]:
    value = Decimal(text)
    for zeros in ("0", "0000"):
        yield "trailing zeros", text + (zeros if decimals else f".{zeros}")
    if value < 0:
        return
    yield "leading zeros", f"00{text}"
    yield "plus sign", f"+{text}"
    if decimals:
        half = Decimal("0.5").scaleb(-decimals)
        yield "inside the tolerance", f"{value + half * Decimal('0.9999'):f}"
        yield "inside the tolerance", f"{value - half * Decimal('0.9999'):f}"
        if value:
            yield "inside the tolerance", f"{value - half:f}"
