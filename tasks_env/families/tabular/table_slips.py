"""Near misses of the table's shape: rows, columns and header."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tasks_env.families.tabular.answer import Answer, Lines

TABLE_OPERATORS = (
    "row missing",
    "row duplicated",
    "row replaced by a copy of another",
    "rows swapped",
    "order of rows reversed",
    "column shifted by a row",
    "columns swapped",
    "cells swapped under the header",
    "column missing",
    "column added",
    "column renamed",
    "header in another case",
    "header missing",
    "header repeated",
    "header only",
    "row of another length",
)


def table_slips(answer: Answer, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Operator and CSV text of each mutant; every mutant means another table."""
    yield from _rows(answer, rng)
    yield from _columns(answer, rng)
    yield from _header(answer, rng)


def _rows(answer: Answer, rng: random.Random) -> Iterator[tuple[str, str]]:
    lines = answer.lines
    count = len(lines)
    for row in {rng.randrange(count), count - 1}:
        yield "row missing", answer.text(lines=lines[:row] + lines[row + 1 :])
    row = rng.randrange(count)
    yield "row duplicated", answer.text(lines=[*lines[: row + 1], *lines[row:]])
    yield "row duplicated", answer.text(lines=[*lines, lines[row]])
    values = [answer.values(line) for line in lines]
    unlike = [(i, j) for i in range(count) for j in range(i + 1, count) if values[i] != values[j]]
    if unlike:
        first, second = rng.choice(unlike)
        yield "row replaced by a copy of another", answer.text(lines=_replaced(lines, first, lines[second]))
        yield "rows swapped", answer.text(lines=_swapped(lines, first, second))
        beside = rng.choice([(i, j) for i, j in unlike if j == i + 1] or unlike)
        yield "rows swapped", answer.text(lines=_swapped(lines, *beside))
    if values != values[::-1]:
        yield "order of rows reversed", answer.text(lines=lines[::-1])
    row = rng.randrange(count)
    longer = rng.choice(([*lines[row], ""], [*lines[row], "0"], lines[row][:-1]))
    yield "row of another length", answer.text(lines=_replaced(lines, row, longer))


def _replaced(lines: Lines, position: int, line: list[str]) -> Lines:
    return [*lines[:position], line, *lines[position + 1 :]]


def _swapped(lines: Lines, first: int, second: int) -> Lines:
    return _replaced(_replaced(lines, first, lines[second]), second, lines[first])


def _columns(answer: Answer, rng: random.Random) -> Iterator[tuple[str, str]]:
    width = len(answer.header)
    if width > 1:
        first, second = sorted(rng.sample(range(width), 2))
        order = [*range(width)]
        order[first], order[second] = second, first
        swapped = [[line[i] for i in order] for line in answer.lines]
        yield "columns swapped", answer.text([answer.header[i] for i in order], swapped)
        # Under the old header the swap shows only where the two cells of a row mean different things.
        if [answer.values(line) for line in swapped] != [answer.values(line) for line in answer.lines]:
            yield "cells swapped under the header", answer.text(lines=swapped)
        gone = rng.randrange(width)
        fewer = [line[:gone] + line[gone + 1 :] for line in answer.lines]
        yield "column missing", answer.text(answer.header[:gone] + answer.header[gone + 1 :], fewer)
    column = rng.randrange(width)
    values = [answer.value(column, line[column]) for line in answer.lines]
    if values[1:] + values[:1] != values:
        cells = [line[column] for line in answer.lines]
        rotated = cells[1:] + cells[:1]
        shifted = [[*ln[:column], cell, *ln[column + 1 :]] for ln, cell in zip(answer.lines, rotated, strict=True)]
        yield "column shifted by a row", answer.text(lines=shifted)
    name, cells = _addition(answer, rng)
    if rng.random() < 0.5:
        added = [[*line, cell] for line, cell in zip(answer.lines, cells, strict=True)]
        yield "column added", answer.text([*answer.header, name], added)
    else:
        added = [[cell, *line] for line, cell in zip(answer.lines, cells, strict=True)]
        yield "column added", answer.text([name, *answer.header], added)


def _addition(answer: Answer, rng: random.Random) -> tuple[str, list[str]]:
    """A column too many: a row index, an empty one, or one of the result's again."""
    count = len(answer.lines)
    again = rng.randrange(len(answer.header))
    return rng.choice(
        (
            ("", [str(i) for i in range(count)]),
            ("extra", [""] * count),
            (answer.header[again], [line[again] for line in answer.lines]),
        )
    )


def _header(answer: Answer, rng: random.Random) -> Iterator[tuple[str, str]]:
    header = answer.header
    column = rng.randrange(len(header))
    name = header[column]
    other = rng.choice((f"{name}_1", name[:-1], f" {name}", name.replace("_", " ") + "s", "value"))
    yield "column renamed", answer.text([*header[:column], other, *header[column + 1 :]])
    cased = [*header[:column], name.title() if rng.random() < 0.5 else name.upper(), *header[column + 1 :]]
    yield "header in another case", answer.text(cased)
    yield "header missing", answer.text().partition("\n")[2]
    yield "header repeated", answer.text(lines=[header, *answer.lines])
    yield "header only", answer.text(lines=[])
