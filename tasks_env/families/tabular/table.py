"""A table in memory: typed columns and rows of exact cells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from tasks_env.types import Frozen

Kind = Literal["text", "date", "number"]
Cell = str | Decimal | None
"""Text and ISO dates as `str`, numbers as `Decimal`, an empty cell as None."""

Row = tuple[Cell, ...]

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,6})?")
_DATE = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")


class Column(Frozen):
    """What a column holds."""

    name: str
    kind: Kind = "text"
    decimals: int = 0
    """Digits after the point, for numbers."""
    optional: bool = False
    """Whether cells may be empty."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns; every row has one cell per column."""

    columns: tuple[Column, ...]
    rows: list[Row]

    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    def index(self, name: str) -> int:
        """The position of the column called `name`. Raises `KeyError`."""
        for position, column in enumerate(self.columns):
            if column.name == name:
                return position
        raise KeyError(f"no column {name!r} among {self.names()}")

    def column(self, name: str) -> Column:
        """The column called `name`. Raises `KeyError`."""
        return self.columns[self.index(name)]


def is_number(text: str) -> bool:
    """Whether `text` is a plain decimal number: at most 15 digits before and 6 after the point."""
    return _NUMBER.fullmatch(text) is not None


def is_date(text: str) -> bool:
    """Whether `text` has the form of an ISO date."""
    return _DATE.fullmatch(text) is not None


def text_of(cell: Cell) -> str:
    """A cell as a CSV field; an empty cell is the empty text."""
    # At 0 to 6 decimals, str() of a Decimal never takes the scientific form.
    return "" if cell is None else str(cell)


def typed_table(columns: tuple[Column, ...], lines: list[list[str]]) -> Table:
    """Text cells under known columns, as typed ones.

    Args:
        columns: What each column holds; number cells must be numbers.
        lines: One list per row, one text per column.
    """
    numeric = [column.kind == "number" for column in columns]
    rows: list[Row] = [
        tuple((Decimal(text) if number else text) if text else None for text, number in zip(line, numeric, strict=True))
        for line in lines
    ]
    return Table(columns, rows)


def inferred_table(names: list[str], lines: list[list[str]]) -> Table:
    """Text cells under columns of inferred kinds: numbers or dates if all non-empty cells are."""
    columns = []
    for position, name in enumerate(names):
        cells = [line[position] for line in lines if line[position]]
        optional = len(cells) < len(lines)
        if cells and all(is_number(cell) for cell in cells):
            decimals = max(len(cell.partition(".")[2]) for cell in cells)
            columns.append(Column(name=name, kind="number", decimals=decimals, optional=optional))
        elif cells and all(is_date(cell) for cell in cells):
            columns.append(Column(name=name, kind="date", optional=optional))
        else:
            columns.append(Column(name=name, kind="text", optional=optional))
    return typed_table(tuple(columns), lines)
