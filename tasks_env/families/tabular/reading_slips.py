"""Near misses that a misreading of the task leads to: neighbouring tasks, solved by the first solver."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_UP, Context, Decimal
from functools import partial

from tasks_env.families.tabular import operations
from tasks_env.families.tabular.csv_form import table_csv
from tasks_env.families.tabular.evaluate import evaluate, filtered, finished, parse_tables, widened
from tasks_env.families.tabular.readings import careless_readings, decisive_readings
from tasks_env.families.tabular.spec import Filter, Spec
from tasks_env.families.tabular.table import Cell, Row, Table, text_of
from tasks_env.types import Instance

_OPERATORS: tuple[tuple[str, str], ...] = (
    (r"filter \d+ left out", "filter left out"),
    (r"bound of filter \d+", "bound taken the other way"),
    (r"kind of join \d+", "join of the other kind"),
    (r"sort left out", "sort left out"),
    (r"sort reversed", "sort reversed"),
    (r"limit left out", "limit left out"),
    (r"limit one too high", "row beyond the limit added"),
    (r"limit one too low", "row within the limit left out"),
    (r"operator", "operator of the derived column"),
    (r"function of measure \d+", "function of a measure"),
    (r"column order", "last columns exchanged"),
    (r"tie-break reversed", "tie-break reversed or ignored"),
)
"""Names of readings, as `readings` gives them, and the operator that each belongs to."""

_ROUNDINGS: Mapping[str, tuple[str, ...]] = {
    "truncated instead of rounded": (ROUND_DOWN, ROUND_FLOOR),
    "rounded the other way": (ROUND_UP, ROUND_HALF_EVEN, ROUND_HALF_DOWN),
}
_FURTHER_DIGITS = 9
_WIDE = Context(prec=60)

READING_OPERATORS = (
    *(operator for _, operator in _OPERATORS),
    "limit before the sort",
    "numbers sorted as text",
    "empty cells counted",
    *_ROUNDINGS,
    "rounded too late or not at all",
)


def reading_slips(instance: Instance) -> Iterator[tuple[str, str]]:
    """Operator and CSV text of each mutant.

    The readings that generation promises to tell apart come whatever their result; the others only where it
    differs from the right one.
    """
    spec = Spec.model_validate(instance.spec)
    texts = instance.world["tables"]
    if not isinstance(texts, dict):
        raise TypeError(f"instance {instance.instance_id}: world.tables is not an object")
    tables = parse_tables(spec.tables, {name: str(text) for name, text in texts.items()})
    right = evaluate(spec, tables)
    for name, reading in decisive_readings(spec):
        yield operator_of(name), table_csv(evaluate(reading, tables))
    for operator, table in _further(spec, tables):
        if table.rows != right.rows or table.names() != right.names():
            yield operator, table_csv(table)


def operator_of(reading: str) -> str:
    """The operator that a reading belongs to, by its name. Raises `KeyError`."""
    for pattern, operator in _OPERATORS:
        if re.fullmatch(pattern, reading):
            return operator
    raise KeyError(f"no operator for the reading {reading!r}")


def _further(spec: Spec, tables: Mapping[str, Table]) -> Iterator[tuple[str, Table]]:
    for name, reading in careless_readings(spec):
        yield operator_of(name), evaluate(reading, tables)
    if len(spec.sort) > 1:
        yield "tie-break reversed or ignored", evaluate(spec.model_copy(update={"sort": spec.sort[:1]}), tables)
    if spec.limit is not None:
        yield "limit before the sort", _limited_first(spec, tables, spec.limit)
    if spec.sort:
        yield "numbers sorted as text", _sorted_as_text(spec, tables)
    yield from _null_slips(spec, tables)
    yield from _rounding_slips(spec, tables)


def _unsorted(spec: Spec, tables: Mapping[str, Table]) -> Table:
    """All rows of the result in the order before the sort, with every column that the sort needs."""
    everything = tuple(dict.fromkeys((*spec.columns, *(key.column for key in spec.sort))))
    return evaluate(spec.model_copy(update={"sort": (), "limit": None, "columns": everything}), tables)


def _limited_first(spec: Spec, tables: Mapping[str, Table], limit: int) -> Table:
    few = operations.limit_rows(_unsorted(spec, tables), limit)
    return operations.select_columns(operations.sort_rows(few, spec.sort), spec.columns)


def _sorted_as_text(spec: Spec, tables: Mapping[str, Table]) -> Table:
    table = _unsorted(spec, tables)
    rows = table.rows
    for key in reversed(spec.sort):
        position = table.index(key.column)
        rows = sorted(rows, key=partial(_text_at, position), reverse=key.order == "descending")
    return operations.select_columns(replace(table, rows=rows[: spec.limit]), spec.columns)


def _text_at(position: int, row: Row) -> str:
    return text_of(row[position])


def _null_slips(spec: Spec, tables: Mapping[str, Table]) -> Iterator[tuple[str, Table]]:
    wide = widened(spec, tables)
    for condition in spec.filters:
        if condition.condition not in ("is_empty", "is_not_empty") and wide.column(condition.column).optional:
            rest = wide
            for each in spec.filters:
                rest = _keeping_empty(rest, each) if each is condition else operations.filter_rows(rest, each)
            yield "empty cells counted", finished(spec, rest)
    zeroed = {name: _mapped(table, _zero_if_empty) for name, table in tables.items()}
    yield "empty cells counted", evaluate(spec, zeroed)


def _keeping_empty(table: Table, condition: Filter) -> Table:
    position = table.index(condition.column)
    met = {id(row) for row in operations.filter_rows(table, condition).rows}
    return Table(table.columns, [row for row in table.rows if row[position] is None or id(row) in met])


def _zero_if_empty(cell: Cell) -> Cell:
    return Decimal(0) if cell is None else cell


def _mapped(table: Table, change: Callable[[Cell], Cell], names: tuple[str, ...] | None = None) -> Table:
    """The table with the number cells in some columns changed; None: in all."""
    chosen = [c.kind == "number" and (names is None or c.name in names) for c in table.columns]
    rows = [
        tuple(change(cell) if is_chosen else cell for cell, is_chosen in zip(row, chosen, strict=True))
        for row in table.rows
    ]
    return replace(table, rows=rows)


def _rounding_slips(spec: Spec, tables: Mapping[str, Table]) -> Iterator[tuple[str, Table]]:
    """Everything computed anew, with each derived cell and mean rounded by another rule or not at all."""
    for operator, rules in _ROUNDINGS.items():
        for rule in rules:
            yield operator, _rounded_by(spec, tables, rule)
    if spec.derive or _means(spec):
        yield "rounded too late or not at all", _rounded_by(spec, tables, None)
    if spec.derive and spec.aggregate:
        late = spec.derive.model_copy(update={"decimals": spec.derive.decimals + _FURTHER_DIGITS})
        table = evaluate(spec.model_copy(update={"derive": late}), tables)
        exact = tuple(m.column for m in spec.aggregate.measures if m.of == late.column and m.function != "mean")
        digits = spec.derive.decimals
        yield (
            "rounded too late or not at all",
            _mapped(table, lambda cell: operations.rounded(cell, digits) if isinstance(cell, Decimal) else cell, exact),
        )


def _means(spec: Spec) -> tuple[str, ...]:
    return tuple(m.column for m in spec.aggregate.measures if m.function == "mean") if spec.aggregate else ()


def _rounded_by(spec: Spec, tables: Mapping[str, Table], rule: str | None) -> Table:
    """The result with another rounding; None leaves further digits."""
    if spec.derive:
        further = spec.derive.decimals + _FURTHER_DIGITS
        exact = spec.model_copy(update={"derive": spec.derive.model_copy(update={"decimals": further})})
        wide = _requantized(widened(exact, tables), (spec.derive.column,), spec.derive.decimals, rule)
    else:
        wide = widened(spec, tables)
    rows = filtered(spec, wide)
    if not spec.aggregate:
        return finished(spec, rows)
    aggregate = spec.aggregate
    groups = operations.group_rows(rows, aggregate.by, aggregate.measures, aggregate.decimals + _FURTHER_DIGITS)
    groups = _requantized(groups, _means(spec), aggregate.decimals, rule)
    return finished(spec.model_copy(update={"aggregate": None}), groups)


def _requantized(table: Table, names: tuple[str, ...], decimals: int, rule: str | None) -> Table:
    if rule is None:
        return table
    step = Decimal(1).scaleb(-decimals)

    def change(cell: Cell) -> Cell:
        return cell.quantize(step, rounding=rule, context=_WIDE) if isinstance(cell, Decimal) else cell

    return _mapped(table, change, names)
