"""Right answers written wrongly: in another value by a little, or in a form that was not asked for.

Every slip differs from the right answer by the rules in `answers`; places are drawn from the generator given.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

Slip = tuple[str, str]
"""Operator and answer."""

NUMBER_SLIPS = (
    "last digit off by one",
    "off by one",
    "another digit",
    "sign changed",
    "fewer decimals",
    "truncated",
    "outside the tolerance",
    "comma or other separator",
    "unit or currency",
    "number in words",
    "exponent notation",
    "digits of another script",
)
TEXT_SLIPS = (
    "another case",
    "neighbour value",
    "extra word",
    "one letter changed",
    "look-alike letter",
    "part of the text",
)
DATE_SLIPS = ("date off", "other date format")
LIST_SLIPS = (
    "value missing",
    "value extra",
    "value duplicated",
    "values swapped",
    "reversed",
    "other separator",
    "empty value",
)
PAIR_SLIPS = ("pair swapped", "half of the pair", "third part")
COMMON_SLIPS = ("in a sentence", "in quotes", "as JSON", "empty answer")

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ARABIC_INDIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_CYRILLIC = dict(zip("aceopxyABCEHKMOPTX", "асеорхуАВСЕНКМОРТХ", strict=True))  # noqa: RUF001


def numbers(text: str, decimals: int, rng: random.Random) -> Iterator[Slip]:
    """Slips in a number with as many decimals as asked for."""
    value = Decimal(text)
    unit = Decimal(1).scaleb(-decimals)
    for near in (value + unit, value - unit):
        yield "last digit off by one", f"{near:f}"
    if decimals:
        yield "off by one", f"{value + rng.choice((1, -1)):f}"
        yield "comma or other separator", text.replace(".", ",")
    yield "another digit", _another_digit(text, rng)
    if value:
        yield "sign changed", f"{-value:f}"
    for fewer in range(decimals):
        rounded = value.quantize(Decimal(1).scaleb(-fewer), rounding=ROUND_HALF_UP)
        if rounded != value:
            yield "fewer decimals", f"{rounded:f}"
            yield "truncated", f"{value.quantize(rounded, rounding=ROUND_DOWN):f}"
    far = unit * (Decimal("0.5") if decimals else Decimal("0.01"))
    yield "outside the tolerance", f"{value + far:f}"
    yield "outside the tolerance", f"{value - far * Decimal('1.0001'):f}"
    if abs(value) >= 1000:
        yield "comma or other separator", f"{value:,f}"
        yield "comma or other separator", f"{value:,f}".replace(",", rng.choice((" ", "'", "_", "\u202f")))
    yield "unit or currency", rng.choice(("{} rows", "${}", "{}%", "{} EUR", "about {}", "~{}")).format(text)
    if not decimals and 0 <= value < 100:
        yield "number in words", in_words(int(value))
    yield "exponent notation", f"{value:e}"
    yield "digits of another script", text.translate(_ARABIC_INDIC)


def in_words(number: int) -> str:
    """A number from 0 to 99 in English."""
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


def _another_digit(text: str, rng: random.Random) -> str:
    place = rng.choice([place for place, character in enumerate(text) if character.isdigit()])
    digit = (int(text[place]) + rng.randint(1, 9)) % 10
    return f"{text[:place]}{digit}{text[place + 1 :]}"


def texts(text: str, others: Sequence[str], rng: random.Random) -> Iterator[Slip]:
    """Slips in a text. `others`: other values of its column."""
    cases = sorted({text.upper(), text.lower(), text.swapcase(), text.title()} - {text})
    for changed in rng.sample(cases, min(2, len(cases))):
        yield "another case", changed
    for other in rng.sample(others, min(2, len(others))):
        yield "neighbour value", other
    yield "extra word", rng.choice(("{} too", "the {}", "{} (see above)")).format(text)
    place = rng.choice([place for place, character in enumerate(text) if character.isalpha()])
    before, letter, after = text[:place], text[place], text[place + 1 :]
    yield "one letter changed", f"{before}{'b' if letter != 'b' else 'd'}{after}"
    yield "one letter changed", rng.choice((f"{before}{after}", f"{before}{letter}{letter}{after}"))
    alike = [place for place, character in enumerate(text) if character in _CYRILLIC]
    if alike:
        place = rng.choice(alike)
        yield "look-alike letter", f"{text[:place]}{_CYRILLIC[text[place]]}{text[place + 1 :]}"
    words = text.split(" ")
    if len(words) > 1:
        yield "part of the text", rng.choice(words)


def dates(text: str, rng: random.Random) -> Iterator[Slip]:
    """Slips in a date."""
    day = date.fromisoformat(text)
    for days in (1, -1, rng.choice((30, -30, 365, -365))):
        yield "date off", (day + timedelta(days=days)).isoformat()
    if day.day != day.month:
        yield "other date format", day.strftime("%Y-%d-%m")
    unpadded = f"{day.year}-{day.month}-{day.day}"
    formats = [day.strftime(form) for form in ("%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d.%m.%Y", "%Y%m%d", "%y-%m-%d")]
    written = [f"{text} 00:00:00", f"{text}T00:00:00Z", *([unpadded] if unpadded != text else [])]
    for shown in (*rng.sample(formats, 2), rng.choice(written)):
        yield "other date format", shown


def lists(values: list[str], others: Sequence[str], rng: random.Random) -> Iterator[Slip]:
    """Slips in a list of two different values or more. `others`: values of the column that are not in it."""
    size = len(values)
    place = rng.randrange(size)
    yield "value missing", _joined(values[:place] + values[place + 1 :])
    yield "value duplicated", _joined([*values[: place + 1], *values[place:]])
    if others:
        extra = rng.choice(others)
        yield "value extra", _joined([*values, extra])
        yield "value extra", _joined(sorted([*values, extra], reverse=values[0] > values[-1]))
        yield "neighbour value", _joined([*values[:place], extra, *values[place + 1 :]])
    first = rng.randrange(size - 1)
    yield "values swapped", _joined([*values[:first], values[first + 1], values[first], *values[first + 2 :]])
    yield "reversed", _joined(values[::-1])
    for separator in rng.sample((", ", "\n", " | ", " ", " and ", ":"), 2):
        yield "other separator", separator.join(values)
    yield "empty value", rng.choice((f"{_joined(values)};", f"; {_joined(values)}", ";; ".join(values)))
    yield "another case", _joined([*values[:place], values[place].swapcase(), *values[place + 1 :]])


def pairs(name: str, number: str, decimals: int, others: Sequence[str], rng: random.Random) -> Iterator[Slip]:
    """Slips in a pair of a text and a number, and in each of its halves."""
    yield "pair swapped", f"{number}; {name}"
    yield "half of the pair", name
    yield "half of the pair", number
    yield "other separator", rng.choice((", ", ": ", " ", " = ")).join((name, number))
    yield "third part", f"{name}; {number}; {rng.choice((name, number, ''))}"
    for operator, text in texts(name, others, rng):
        yield operator, f"{text}; {number}"
    for operator, text in numbers(number, decimals, rng):
        yield operator, f"{name}; {text}"


def common(answer: str, values: list[str], rng: random.Random) -> Iterator[Slip]:
    """Slips that any answer offers a place for. `values`: its parts."""
    yield "in a sentence", rng.choice(("The answer is {}", "Answer: {}", "{}.", "{} (checked)")).format(answer)
    mark = rng.choice(('"', "'", "`", "**"))
    yield "in quotes", f"{mark}{answer}{mark}"
    yield "as JSON", json.dumps(rng.choice((values, {"answer": answer})))
    yield "empty answer", rng.choice(("", " ", "\n", "NULL"))


def _joined(values: Sequence[str]) -> str:
    return "; ".join(values)
