"""What one phrasing of a tabular task consists of: templates for every statement that a spec can make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tasks_env.families.tabular.spec import Comparison, Direction, Function, JoinKind, Operator
from tasks_env.families.tabular.table import Kind


@dataclass(frozen=True, slots=True)
class Voice:
    """Templates in the notation of `string.Template`; rendering fails on an unknown or missing name."""

    layout: tuple[str, ...]
    """The order of: opening, joins, derive, filters, aggregate, sort, limit, columns, closing."""
    mark: str
    """What stands before each statement between opening and closing; `$n` is its number."""
    separator: str
    """What stands between statements."""
    table_list: tuple[str, str]
    """`$tables`: one table, several tables."""
    opening: str
    """`$tables`"""
    joins: Mapping[JoinKind, str]
    """`$table $source $column`"""
    derive: str
    """`$column $formula $decimals`, the last one with its unit: `2 decimals`."""
    operators: Mapping[Operator, str]
    """`$left $right`"""
    filters: str
    """`$conditions`, joined by `conjunction`."""
    conjunction: str
    conditions: Mapping[Comparison, str]
    """`$column`, and `$value`, `$low $high` or `$values`."""
    date_conditions: Mapping[Comparison, str]
    """The same for dates, where the words differ."""
    empty_filtered: str
    """`$columns`: filtered columns with empty cells."""
    aggregate: str
    """`$by $measures`, the measures joined by `measure_joint`."""
    measure_joint: str
    measures: Mapping[Function, str]
    """`$column $of $decimals`"""
    empty_measured: str
    """`$columns`: aggregated columns with empty cells."""
    sort: str
    """`$keys`, joined by `tie_break`."""
    tie_break: str
    sort_keys: Mapping[tuple[Kind, Direction], str]
    """`$column`"""
    unsorted: str
    """`$source`"""
    limit: str
    """`$count`"""
    columns: str
    """`$columns`"""
    repeated: str
    """That equal rows are all kept."""
    closing: str
    """Names the closing tool and its argument by placeholders."""
