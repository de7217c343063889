"""The first solver: what a spec says, carried out on its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasks_env.families.tabular import operations
from tasks_env.families.tabular.csv_form import parse_csv
from tasks_env.families.tabular.spec import Derive, Filter, Join, SortKey, Spec, TableSpec
from tasks_env.families.tabular.table import Column, Table, typed_table


def widened(spec: Spec, tables: Mapping[str, Table]) -> Table:
    """The main table with the columns of its joins and the derived one, before any filter."""
    return widened_by(tables[spec.tables[0].name], spec.joins, spec.derive, tables)


def widened_by(table: Table, joins: Sequence[Join], derive: Derive | None, tables: Mapping[str, Table]) -> Table:
    """`table` with the columns of the joins and the derived one."""
    for join in joins:
        table = operations.join_tables(table, tables[join.table], join)
    return operations.add_column(table, derive) if derive else table


def filtered(spec: Spec, table: Table) -> Table:
    """The rows of the widened table that meet every filter."""
    return filtered_by(spec.filters, table)


def filtered_by(filters: Sequence[Filter], table: Table) -> Table:
    """The rows that meet every filter."""
    for condition in filters:
        table = operations.filter_rows(table, condition)
    return table


def finished(spec: Spec, table: Table) -> Table:
    """The result from the filtered rows: grouping, sorting, limit, choice of columns."""
    return ranked(grouped(spec, table), spec.sort, spec.limit, spec.columns)


def grouped(spec: Spec, table: Table) -> Table:
    """The groups of the filtered rows, or the rows themselves without grouping."""
    if not spec.aggregate:
        return table
    return operations.group_rows(table, spec.aggregate.by, spec.aggregate.measures, spec.aggregate.decimals)


def ranked(table: Table, sort: Sequence[SortKey], limit: int | None, columns: Sequence[str]) -> Table:
    """The result from the groups or rows: sorting, limit, choice of columns."""
    table = operations.sort_rows(table, sort)
    if limit is not None:
        table = operations.limit_rows(table, limit)
    return operations.select_columns(table, columns)


def evaluate(spec: Spec, tables: Mapping[str, Table]) -> Table:
    """The result of the task on the given tables."""
    return finished(spec, filtered(spec, widened(spec, tables)))


def parse_tables(specs: tuple[TableSpec, ...], texts: Mapping[str, str]) -> dict[str, Table]:
    """The input tables from their CSV texts, typed as the spec says."""
    return {spec.name: typed_table(spec.columns, parse_csv(texts[spec.name])[1]) for spec in specs}


def working_columns(spec: Spec) -> tuple[Column, ...]:
    """The columns of the widened table."""
    return widened(spec, _no_rows(spec)).columns


def result_columns(spec: Spec) -> tuple[Column, ...]:
    """The columns of the result, with the kinds and decimals of the canonical form."""
    return evaluate(spec, _no_rows(spec)).columns


def _no_rows(spec: Spec) -> dict[str, Table]:
    return {table.name: Table(table.columns, []) for table in spec.tables}
