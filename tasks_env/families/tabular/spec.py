"""The machine-readable task: the one source of wording, truth and reference solution.

The operations apply in this order, each one optional: joins, derived column, filters, grouping, sorting,
limit, choice of columns.
"""

from __future__ import annotations

from typing import Literal

from tasks_env.families.tabular.table import Column
from tasks_env.types import Frozen, JsonObject

JoinKind = Literal["inner", "left"]
Comparison = Literal[
    "equals",
    "not_equals",
    "at_least",
    "at_most",
    "more_than",
    "less_than",
    "between",
    "in",
    "not_in",
    "starts_with",
    "contains",
    "is_empty",
    "is_not_empty",
]
Operator = Literal["plus", "minus", "times", "divided_by"]
Function = Literal["count", "sum", "mean", "min", "max"]
Direction = Literal["ascending", "descending"]


class TableSpec(Frozen):
    """An input table."""

    name: str
    columns: tuple[Column, ...]


class Join(Frozen):
    """Adds the columns of `table`, whose `column` is unique, to the rows with the same value."""

    table: str
    column: str
    kind: JoinKind
    """inner: rows without a match are dropped; left: they stay, with empty cells."""


class Derive(Frozen):
    """A new column: `left` `operator` `right`, rounded to `decimals`, halves away from zero."""

    column: str
    left: str
    operator: Operator
    right: str
    decimals: int


class Filter(Frozen):
    """Keeps the rows whose cell in `column` meets the condition; an empty cell meets `is_empty` only."""

    column: str
    condition: Comparison
    values: tuple[str, ...] = ()
    """None, one, two (between, both ends included) or any number (in, not_in) of values, as text."""


class Measure(Frozen):
    """One aggregate per group; empty cells are left out, but `count` counts every row."""

    column: str
    """Name of the new column."""
    function: Function
    of: str = ""
    """The column that is aggregated; empty for `count`."""


class Aggregate(Frozen):
    """One row per distinct combination of the values in `by`."""

    by: tuple[str, ...]
    measures: tuple[Measure, ...]
    decimals: int = 2
    """Of every mean, rounded halves away from zero."""


class SortKey(Frozen):
    """A column to sort by: numbers by value, text by character code, dates by time."""

    column: str
    order: Direction


class Spec(Frozen):
    """A whole task."""

    tables: tuple[TableSpec, ...]
    """The main table first, then those joined to it."""
    joins: tuple[Join, ...] = ()
    derive: Derive | None = None
    filters: tuple[Filter, ...] = ()
    aggregate: Aggregate | None = None
    sort: tuple[SortKey, ...] = ()
    """Tie-breaks included, so that the order is total; empty: the order of the main table."""
    limit: int | None = None
    columns: tuple[str, ...]
    """Of the result, in order."""

    def to_json(self) -> JsonObject:
        """The spec as JSON, fields at their defaults left out."""
        data: JsonObject = self.model_dump(mode="json", exclude_defaults=True)
        return data
