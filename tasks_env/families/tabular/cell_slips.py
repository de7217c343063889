"""Near misses in single cells: a number, a text, a date or an empty cell that is a little off."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal

from tasks_env.families.tabular.answer import Answer

CELL_OPERATORS = (
    "value off by one unit",
    "sign changed",
    "digit beyond the decimals",
    "number with a unit",
    "value in another notation",
    "letter case changed",
    "letter changed",
    "space added",
    "cell emptied or filled",
)

_UNITS = ("{} EUR", "${}", "{}%", "{} pcs")
_FILLS = ("NULL", "None", "nan", "N/A", "0", "-", " ", '""')
_PLACES = 2
"""Most cells that one operator is tried on."""


def cell_slips(answer: Answer, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Operator and CSV text of each mutant; every mutant means something else in one cell.

    A unit is one of a number's last decimal, and a date's day.
    """
    yield from _numbers(answer, rng)
    yield from _texts(answer, rng)
    yield from _dates(answer, rng)
    yield from _empty(answer, rng)


def _some(places: list[tuple[int, int]], rng: random.Random, most: int = _PLACES) -> list[tuple[int, int]]:
    return rng.sample(places, min(len(places), most))


def _numbers(answer: Answer, rng: random.Random) -> Iterator[tuple[str, str]]:
    numbers = answer.places("number")
    for place in _some(numbers, rng):
        row, column = place
        value = Decimal(answer.lines[row][column])
        unit = Decimal(1).scaleb(-answer.columns[column].decimals)
        yield "value off by one unit", answer.with_cell(place, format(value + rng.choice((unit, -unit)), "f"))
    for row, column in _some([(r, c) for r, c in numbers if Decimal(answer.lines[r][c])], rng):
        text = answer.lines[row][column]
        changed = text.removeprefix("-") if text.startswith("-") else f"-{text}"
        yield "sign changed", answer.with_cell((row, column), changed)
    for row, column in _some(numbers, rng, 1):
        text = answer.lines[row][column]
        further = f"{text if '.' in text else text + '.'}{'0' * rng.randrange(3)}{rng.randint(1, 9)}"
        if len(further.partition(".")[2]) > answer.columns[column].decimals:
            yield "digit beyond the decimals", answer.with_cell((row, column), further)
        yield "number with a unit", answer.with_cell((row, column), rng.choice(_UNITS).format(text))
    for row, column in _some(numbers, rng):
        notations = _notations(answer.lines[row][column])
        yield "value in another notation", answer.with_cell((row, column), rng.choice(notations))


def _notations(text: str) -> list[str]:
    """Other ways to write a number, none of them a plain decimal number."""
    value = Decimal(text)
    whole, _, fraction = text.partition(".")
    found = [f"{value:e}", f"'{text}", f"{whole},{fraction or '0'}", text.translate(_ARABIC), f"{whole}.{fraction}."]
    if not value.is_signed():
        found.append(f"+{text}")
    if abs(value) >= 1000:
        found += [f"{value:,}"] * 3
    if not fraction:
        found.append(f"{whole}.")
    elif whole in ("0", "-0"):
        found.append(f"{whole[:-1]}.{fraction}")
    return found


_ARABIC = {ord("0") + digit: chr(0x660 + digit) for digit in range(10)}


def _texts(answer: Answer, rng: random.Random) -> Iterator[tuple[str, str]]:
    texts = answer.places("text")
    lettered = [(r, c) for r, c in texts if answer.lines[r][c].swapcase() != answer.lines[r][c]]
    for row, column in _some(lettered, rng):
        text = answer.lines[row][column]
        first = next(i for i, letter in enumerate(text) if letter.swapcase() != letter)
        capital = text[:first] + text[first].swapcase() + text[first + 1 :]
        yield "letter case changed", answer.with_cell((row, column), rng.choice((text.swapcase(), capital)))
    for row, column in _some(texts, rng):
        text = answer.lines[row][column]
        changed = rng.choice((text[:-1] + chr(ord(text[-1]) ^ 1), text[:-1], text + text[-1]))
        yield "letter changed", answer.with_cell((row, column), changed)
    for row, column in _some([*texts, *answer.places("number"), *answer.places("date")], rng):
        text = answer.lines[row][column]
        yield "space added", answer.with_cell((row, column), rng.choice((f" {text}", f"{text} ", f"{text}\u00a0")))


def _dates(answer: Answer, rng: random.Random) -> Iterator[tuple[str, str]]:
    for row, column in _some(answer.places("date"), rng):
        day = date.fromisoformat(answer.lines[row][column])
        other = day + timedelta(days=rng.choice((-1, 1)))
        yield "value off by one unit", answer.with_cell((row, column), other.isoformat())
        written = rng.choice(("%d.%m.%Y", "%Y/%m/%d", "%Y%m%d", "%y-%m-%d", "%Y-%m-%dT00:00:00", "%Y-%m-%d 00:00:00"))
        yield "value in another notation", answer.with_cell((row, column), day.strftime(written))


def _empty(answer: Answer, rng: random.Random) -> Iterator[tuple[str, str]]:
    every = [(row, column) for row, line in enumerate(answer.lines) for column in range(len(line))]
    for row, column in _some([(r, c) for r, c in every if answer.lines[r][c]], rng, 1):
        yield "cell emptied or filled", answer.with_cell((row, column), "")
    for row, column in _some([(r, c) for r, c in every if not answer.lines[r][c]], rng):
        yield "cell emptied or filled", answer.with_cell((row, column), rng.choice(_FILLS))
