"""The operations on tables: pure functions, exact arithmetic, used by the tools and by the truth alike."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from tasks_env.families.tabular.spec import Comparison, Derive, Filter, Join, Measure, Operator, SortKey
from tasks_env.families.tabular.table import Cell, Column, Row, Table, text_of

EXACT = Context(prec=60, rounding=ROUND_HALF_UP, traps=[DivisionByZero, InvalidOperation, Overflow])
"""Enough digits for sums and products of the largest cells; only divisions are inexact before rounding."""

VALUE_COUNTS: Mapping[Comparison, tuple[int, int | None]] = {
    "equals": (1, 1),
    "not_equals": (1, 1),
    "at_least": (1, 1),
    "at_most": (1, 1),
    "more_than": (1, 1),
    "less_than": (1, 1),
    "between": (2, 2),
    "in": (1, None),
    "not_in": (1, None),
    "starts_with": (1, 1),
    "contains": (1, 1),
    "is_empty": (0, 0),
    "is_not_empty": (0, 0),
}
"""How many values each condition takes, least and most; None: any number."""

ORDERED: tuple[Comparison, ...] = ("at_least", "at_most", "more_than", "less_than", "between")
"""Conditions for numbers and dates only."""


_COMPARED: Mapping[Comparison, Callable[[Any, Any], bool]] = {
    "equals": operator.eq,
    "not_equals": operator.ne,
    "at_least": operator.le,
    "at_most": operator.ge,
    "more_than": operator.lt,
    "less_than": operator.gt,
}
"""How the condition's value compares with a cell that meets it: the value first, the cell second."""


def rounded(value: Decimal, decimals: int) -> Decimal:
    """`value` to `decimals` digits after the point, halves away from zero."""
    result = value.quantize(_unit(decimals), context=EXACT)
    return result if result else abs(result)


@lru_cache(maxsize=64)
def _unit(decimals: int) -> Decimal:
    return Decimal(1).scaleb(-decimals)


def _test(condition: Filter, column: Column) -> Callable[[Any], bool]:
    """The condition as a test of one non-empty cell; values of a numeric column are compared as numbers."""
    name = condition.condition
    if name == "starts_with":
        return lambda cell: text_of(cell).startswith(condition.values[0])
    if name == "contains":
        return lambda cell: condition.values[0] in text_of(cell)
    # Any: the cells of one column and the bounds are of one type.
    values: list[Any] = [Decimal(text) if column.kind == "number" else text for text in condition.values]
    first, last = values[0], values[-1]
    if name == "between":
        return lambda cell: bool(first <= cell <= last)
    if name == "in":
        return lambda cell: cell in values
    if name == "not_in":
        return lambda cell: cell not in values
    return partial(_COMPARED[name], first)


def filter_rows(table: Table, condition: Filter) -> Table:
    """The rows that meet the condition, in their order."""
    position = table.index(condition.column)
    if condition.condition == "is_empty":
        return Table(table.columns, [row for row in table.rows if row[position] is None])
    if condition.condition == "is_not_empty":
        return Table(table.columns, [row for row in table.rows if row[position] is not None])
    column = table.columns[position]
    test = _test(condition, column)
    if column.optional:
        kept = [row for row in table.rows if row[position] is not None and test(row[position])]
    else:
        kept = [row for row in table.rows if test(row[position])]
    return Table(table.columns, kept)


def join_tables(table: Table, other: Table, join: Join, max_rows: int | None = None) -> Table:
    """The rows of `table`, each with the other columns of its matches in `other`, in the order of both.

    Raises:
        OverflowError: the result would have more than `max_rows` rows.
    """
    own, theirs = table.index(join.column), other.index(join.column)
    matches: dict[Cell, list[Row]] = {}
    for row in other.rows:
        if row[theirs] is not None:
            matches.setdefault(row[theirs], []).append(row[:theirs] + row[theirs + 1 :])
    added = other.columns[:theirs] + other.columns[theirs + 1 :]
    unmatched: list[Row] = []
    if join.kind == "left":
        added = tuple(column.model_copy(update={"optional": True}) for column in added)
        unmatched = [(None,) * len(added)]
    joined = (row + match for row in table.rows for match in matches.get(row[own], unmatched))
    rows = list(joined if max_rows is None else islice(joined, max_rows + 1))
    if max_rows is not None and len(rows) > max_rows:
        raise OverflowError(f"more than {max_rows} rows")
    return Table(table.columns + added, rows)


_OPERATORS: Mapping[Operator, Callable[[Decimal, Decimal], Decimal]] = {
    "plus": EXACT.add,
    "minus": EXACT.subtract,
    "times": EXACT.multiply,
    "divided_by": EXACT.divide,
}


def add_column(table: Table, derive: Derive) -> Table:
    """The table with a computed column at the end; it is empty where an operand is.

    Raises:
        ZeroDivisionError: a divisor is zero.
    """
    left, right = table.index(derive.left), table.index(derive.right)
    compute = _OPERATORS[derive.operator]
    rows: list[Row] = []
    for row in table.rows:
        a, b = row[left], row[right]
        if isinstance(a, Decimal) and isinstance(b, Decimal):
            if not b and derive.operator == "divided_by":
                raise ZeroDivisionError(f"column {derive.right!r} holds a zero")
            rows.append((*row, rounded(compute(a, b), derive.decimals)))
        else:
            rows.append((*row, None))
    optional = table.columns[left].optional or table.columns[right].optional
    column = Column(name=derive.column, kind="number", decimals=derive.decimals, optional=optional)
    return Table((*table.columns, column), rows)


def _measure(measure: Measure, cells: list[Cell], decimals: int) -> Cell:
    # Any: the cells of one column are of one type.
    values: list[Any] = [cell for cell in cells if cell is not None]
    if not values:
        return None
    if measure.function in ("min", "max"):
        extreme: Cell = min(values) if measure.function == "min" else max(values)
        return extreme
    total = sum(values, Decimal(0))
    return total if measure.function == "sum" else rounded(EXACT.divide(total, Decimal(len(values))), decimals)


def _measure_column(measure: Measure, table: Table, decimals: int) -> Column:
    if measure.function == "count":
        return Column(name=measure.column, kind="number")
    source = table.column(measure.of)
    digits = decimals if measure.function == "mean" else source.decimals
    return Column(name=measure.column, kind=source.kind, decimals=digits, optional=source.optional)


def group_rows(table: Table, by: Sequence[str], measures: Sequence[Measure], decimals: int) -> Table:
    """One row per distinct combination in `by`, in order of first appearance: the keys, then the measures.

    Args:
        table: The rows to group; empty cells form a group of their own.
        by: The columns to group by.
        measures: The aggregates; empty cells are left out, an aggregate of no values is empty.
        decimals: Of every mean.
    """
    keys = [table.index(name) for name in by]
    groups: dict[Row, list[Row]] = {}
    for row in table.rows:
        groups.setdefault(tuple([row[key] for key in keys]), []).append(row)
    sources = [None if m.function == "count" else table.index(m.of) for m in measures]
    rows: list[Row] = []
    with localcontext(EXACT):
        for key, members in groups.items():
            cells: list[Cell] = [
                Decimal(len(members)) if source is None else _measure(m, [row[source] for row in members], decimals)
                for m, source in zip(measures, sources, strict=True)
            ]
            rows.append((*key, *cells))
    columns = [table.columns[key] for key in keys] + [_measure_column(m, table, decimals) for m in measures]
    return Table(tuple(columns), rows)


def count_groups(table: Table, by: Sequence[str]) -> int:
    """How many rows `group_rows` would give."""
    keys = [table.index(name) for name in by]
    return len({tuple([row[key] for key in keys]) for row in table.rows})


def sort_rows(table: Table, keys: Sequence[SortKey]) -> Table:
    """The rows sorted by the keys; empty cells last; rows that tie keep their order."""
    rows = list(table.rows)
    for key in reversed(keys):
        position = table.index(key.column)
        absent: list[Row] = []
        if table.columns[position].optional:
            absent = [row for row in rows if row[position] is None]
            rows = [row for row in rows if row[position] is not None]
        rows.sort(key=operator.itemgetter(position), reverse=key.order == "descending")
        rows += absent
    return Table(table.columns, rows)


def limit_rows(table: Table, count: int) -> Table:
    """The first `count` rows."""
    return Table(table.columns, table.rows[:count])


def select_columns(table: Table, names: Sequence[str]) -> Table:
    """The named columns, in the order given; repeated rows stay."""
    places = {column.name: position for position, column in enumerate(table.columns)}
    positions = [places[name] for name in names]
    columns = tuple([table.columns[position] for position in positions])
    if len(positions) == 1:
        return Table(columns, [(row[positions[0]],) for row in table.rows])
    return Table(columns, list(map(operator.itemgetter(*positions), table.rows)))
