"""What the report is built from: sections of paragraphs, tables, figures, warnings and verdicts. Plain text only.

Strings may come from manifests, models or other harnesses; the template escapes them all. The one piece of markup is
an inline figure, which `flows.report.inline` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from flows.report.wording import NOTHING, text


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: str
    kind: str = "paragraph"


@dataclass(frozen=True)
class Warnings:
    """What must not be overlooked."""

    title: str
    items: tuple[str, ...]
    kind: str = "warnings"


@dataclass(frozen=True)
class Listing:
    """A list of short statements."""

    items: tuple[str, ...]
    kind: str = "listing"


@dataclass(frozen=True)
class Facts:
    """Terms and what they are here."""

    items: tuple[tuple[str, str], ...]
    kind: str = "facts"


@dataclass(frozen=True)
class Column:
    """A column of a printed table: its heading and how a row of the analysis fills it."""

    heading: str
    cell: Callable[[Mapping[str, Any]], str]
    numeric: bool = True
    optional: bool = False
    """Left out where no row has a value."""


@dataclass(frozen=True)
class Table:
    """A printed table."""

    caption: str
    headings: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str = "No rows."
    kind: str = "table"


@dataclass(frozen=True)
class Picture:
    """An inline figure with its caption; `markup` is safe SVG."""

    markup: str
    caption: str
    kind: str = "picture"


@dataclass(frozen=True)
class Verdict:
    """A registered hypothesis beside its outcome."""

    name: str
    label: str
    unadjusted: str
    registered: str
    claim: str
    outcome: tuple[tuple[str, str], ...]
    kind: str = "verdict"


@dataclass(frozen=True)
class Fold:
    """Blocks behind a heading that opens."""

    title: str
    blocks: tuple[Any, ...]
    printed: bool = True
    """Also on paper; what is long and in the tables anyway is not."""
    kind: str = "fold"


@dataclass(frozen=True)
class Verbatim:
    """Text printed as it is, line by line."""

    text: str
    kind: str = "verbatim"


Block = Paragraph | Warnings | Listing | Facts | Table | Picture | Verdict | Fold | Verbatim


@dataclass(frozen=True)
class Section:
    """A part of the report with its own entry in the contents."""

    name: str
    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)
    level: int = 2


def table(caption: str, frame: pd.DataFrame, columns: Iterable[Column], *, empty: str = "No rows.") -> Table:
    """Rows of an analysis table as printed ones, in their order."""
    records = _records(frame)
    filled = [(column, [column.cell(row) for row in records]) for column in columns]
    kept = [(column, cells) for column, cells in filled if not column.optional or set(cells) - {NOTHING}]
    return Table(
        caption,
        tuple(column.heading for column, _ in kept),
        tuple(column.numeric for column, _ in kept),
        tuple(zip(*(cells for _, cells in kept), strict=True)),
        empty,
    )


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def field_column(heading: str, name: str, form: Callable[[Any], str], *, numeric: bool = True) -> Column:
    """A column that prints one field."""
    return Column(heading, lambda row: form(row[name]), numeric)


def reason_column(name: str = "reason") -> Column:
    """Why a row is undefined, where any is."""
    return Column("undefined because", lambda row: text(row[name]), numeric=False, optional=True)
