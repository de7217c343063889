"""How answers are written and compared.

    number  ASCII digits with an optional sign and an optional decimal point between digits, nothing else; at most
            15 digits before the point and 30 after it. Whole answers must be equal in value ("12" and "12.0" are);
            an answer with decimals is rounded to the question's decimals first, halves away from zero, so more
            decimals than asked for do no harm.
    text    the stored spelling, case included.
    date    YYYY-MM-DD.
    list    the different values in the stated order, separated by semicolons; nothing between two semicolons, or
            after the last, is a value too, and a wrong one.
    pair    a text and a number, separated by one semicolon.

White space (as `str.strip` has it) around an answer, and around each part of a list or pair, does not count. Stored
texts are ASCII, so they have a single Unicode normal form.

Right answers are never near a rounding tie and never depend on a collation: generation rejects those.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

from tasks_env.families.query.question import AnswerFormat

LIST_SEPARATOR = "; "
MAX_ANSWER_CHARS = 2000

_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,30})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Answer = str | list[str]
"""A right answer in canonical form: a list for lists and pairs, else one string."""


def canonical_number(value: Decimal | float | int, decimals: int) -> str:
    """`value` rounded half up and written with exactly `decimals` decimals; zero has no sign."""
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    rounded = number.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP)
    return format(abs(rounded) if rounded.is_zero() else rounded, "f")


def parse_answer(text: str, form: AnswerFormat) -> Answer | None:
    """An agent's answer in canonical form; None when it is not of the form asked for."""
    stripped = text.strip()
    if form.kind in ("list", "pair"):
        parts = [part.strip() for part in stripped.split(LIST_SEPARATOR.strip())]
        if form.kind == "list":
            return parts
        number = _parse_number(parts[-1], form.decimals)
        return [parts[0], number] if len(parts) == 2 and number is not None else None
    if form.kind == "date":
        return stripped if _DATE.fullmatch(stripped) else None
    if form.kind == "text":
        return stripped or None
    return _parse_number(stripped, form.decimals)


def _parse_number(text: str, decimals: int) -> str | None:
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    if decimals == 0 and number != number.to_integral_value():
        return text
    return canonical_number(number, decimals)


def written(answer: Answer) -> str:
    """A canonical answer as an agent writes it."""
    return answer if isinstance(answer, str) else LIST_SEPARATOR.join(answer)
