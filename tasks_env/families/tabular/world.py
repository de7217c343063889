"""One episode's tables, and the tools acting on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks_env.errors import ToolError
from tasks_env.families.base import Reply
from tasks_env.families.tabular import operations
from tasks_env.families.tabular.csv_form import CsvError, csv_text, parse_csv, table_csv
from tasks_env.families.tabular.spec import Derive, Filter, Join, Measure, SortKey
from tasks_env.families.tabular.table import Column, Table, inferred_table, is_date, is_number, text_of
from tasks_env.naming import literal
from tasks_env.types import JsonObject

MAX_TABLES = 60
MAX_ROWS = 2000
MAX_COLUMNS = 60
MAX_CELL_CHARS = 200
MAX_SUBMISSION_CHARS = 200_000
_REPLY_ROWS = 3
_LARGEST = 10**15


@dataclass(frozen=True, slots=True)
class _Entry:
    """A table; `text` is the CSV as typed, null for a computed table."""

    table: Table
    text: str | None = None


class TabularWorld:
    """The tables of one episode.

    Args:
        tables: The input tables by name; they cannot be replaced.
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self.submitted = False
        self._inputs = frozenset(tables)
        self._entries = {name: _Entry(table) for name, table in tables.items()}
        self._submission: JsonObject = {"table": None, "csv": None}
        self._tools: dict[str, Callable[[dict[str, Any]], Reply]] = {
            "list_tables": self._list_tables,
            "preview_table": self._preview_table,
            "filter_rows": self._filter_rows,
            "join_tables": self._join_tables,
            "add_column": self._add_column,
            "group_rows": self._group_rows,
            "sort_rows": self._sort_rows,
            "limit_rows": self._limit_rows,
            "select_columns": self._select_columns,
            "write_table": self._write_table,
            "submit": self._submit,
        }

    def call(self, name: str, arguments: JsonObject) -> Reply:
        """Carry out one call with validated arguments. Raises `ToolError`."""
        if self.submitted:
            raise ToolError("the answer has been handed in; nothing can be changed any more")
        return self._tools[name](arguments)

    def state(self) -> JsonObject:
        """`table`: the name of the submitted table; `csv`: its CSV text, as typed if typed. Or nulls."""
        return dict(self._submission)

    def _list_tables(self, _: dict[str, Any]) -> Reply:
        return Reply(text="\n".join(_summary(name, entry.table) for name, entry in self._entries.items()))

    def _preview_table(self, arguments: dict[str, Any]) -> Reply:
        name = arguments["table"]
        table = self._table(name)
        offset, count = arguments.get("offset", 0), arguments.get("count", 10)
        rows = table.rows[offset : offset + count]
        total = len(table.rows)
        if not rows:
            return Reply(text=f"{_head(table, [])}[no rows after row {min(offset, total)}; the table has {total}]")
        last = offset + len(rows)
        text = f"{_head(table, rows)}[rows {offset + 1} to {last} of {total}]"
        more = f"For more rows call {{tool:preview_table}} with {{arg:offset}} {last}." if last < total else ""
        return Reply(text=text, note=more)

    def _filter_rows(self, arguments: dict[str, Any]) -> Reply:
        table = self._table(arguments["table"])
        column = _column(table, arguments["column"], "column")
        condition, values = arguments["condition"], arguments.get("values", [])
        least, most = operations.VALUE_COUNTS[condition]
        if len(values) < least or (most is not None and len(values) > most):
            expected = f"{least} or more" if most is None else str(least)
            raise ToolError(f"{condition} takes {expected} of them, got {len(values)}", argument="values")
        if condition in operations.ORDERED and column.kind == "text":
            raise ToolError(
                f"{condition} is for numbers and dates, but column {_quoted([column.name])} holds text",
                argument="condition",
            )
        if condition not in ("starts_with", "contains"):
            _check_values(column, values)
        kept = Filter(column=column.name, condition=condition, values=tuple(values))
        return self._keep(arguments["output"], operations.filter_rows(table, kept))

    def _join_tables(self, arguments: dict[str, Any]) -> Reply:
        table = self._table(arguments["table"])
        other = self._table(arguments["other_table"], "other_table")
        name = arguments["column"]
        own, theirs = _column(table, name, "column"), _column(other, name, "column")
        if own.kind != theirs.kind:
            raise ToolError(
                f"column {_quoted([name])} holds {own.kind} in one table and {theirs.kind} in the other",
                argument="column",
            )
        twice = sorted(set(table.names()) & set(other.names()) - {name})
        if twice:
            raise ToolError(
                f"both tables have {_quoted(twice)}; drop some with {{tool:select_columns}} first",
                argument="other_table",
            )
        try:
            join = Join(table=arguments["other_table"], column=name, kind=arguments["kind"])
            joined = operations.join_tables(table, other, join, MAX_ROWS)
        except OverflowError as error:
            raise ToolError(f"the result would have {error}", argument="other_table") from None
        return self._keep(arguments["output"], joined)

    def _add_column(self, arguments: dict[str, Any]) -> Reply:
        table = self._table(arguments["table"])
        for side in ("left", "right"):
            column = _column(table, arguments[side], side)
            if column.kind != "number":
                raise ToolError(f"column {_quoted([column.name])} holds {column.kind}, not numbers", argument=side)
        if arguments["column"] in table.names():
            raise ToolError(f"the table already has a column {_quoted([arguments['column']])}", argument="column")
        fields = ("column", "left", "operator", "right", "decimals")
        derive = Derive(**{field: arguments[field] for field in fields})
        try:
            wider = operations.add_column(table, derive)
        except ZeroDivisionError:
            raise ToolError(f"column {_quoted([derive.right])} holds a zero to divide by", argument="right") from None
        _check_size(wider, "operator")
        return self._keep(arguments["output"], wider)

    def _group_rows(self, arguments: dict[str, Any]) -> Reply:
        table = self._table(arguments["table"])
        by, functions = arguments["by"], arguments["functions"]
        for field in ("columns", "names"):
            if len(arguments[field]) != len(functions):
                raise ToolError(
                    f"expected one item per function ({len(functions)}), got {len(arguments[field])}",
                    argument=field,
                )
        for name in by:
            _column(table, name, "by")
        _check_distinct(by, "by")
        _check_distinct([*by, *arguments["names"]], "names")
        if "mean" in functions and "decimals" not in arguments:
            raise ToolError("missing; expected an integer, since there is a mean", argument="decimals")
        measures = []
        for function, source, name in zip(functions, arguments["columns"], arguments["names"], strict=True):
            if function == "count":
                source = ""
            elif function in ("sum", "mean") and _column(table, source, "columns").kind != "number":
                raise ToolError(
                    f"{function} needs numbers, but column {_quoted([source])} holds none", argument="columns"
                )
            else:
                _column(table, source, "columns")
            measures.append(Measure(column=name, function=function, of=source))
        grouped = operations.group_rows(table, by, measures, arguments.get("decimals", 0))
        _check_size(grouped, "functions")
        return self._keep(arguments["output"], grouped)

    def _sort_rows(self, arguments: dict[str, Any]) -> Reply:
        table = self._table(arguments["table"])
        columns = arguments["columns"]
        directions = arguments.get("directions", ["ascending"] * len(columns))
        if len(directions) != len(columns):
            raise ToolError(f"expected one per column ({len(columns)}), got {len(directions)}", argument="directions")
        for name in columns:
            _column(table, name, "columns")
        keys = [SortKey(column=name, order=order) for name, order in zip(columns, directions, strict=True)]
        return self._keep(arguments["output"], operations.sort_rows(table, keys))

    def _limit_rows(self, arguments: dict[str, Any]) -> Reply:
        table = self._table(arguments["table"])
        return self._keep(arguments["output"], operations.limit_rows(table, arguments["count"]))

    def _select_columns(self, arguments: dict[str, Any]) -> Reply:
        table = self._table(arguments["table"])
        for name in arguments["columns"]:
            _column(table, name, "columns")
        _check_distinct(arguments["columns"], "columns")
        return self._keep(arguments["output"], operations.select_columns(table, arguments["columns"]))

    def _write_table(self, arguments: dict[str, Any]) -> Reply:
        text = arguments["text"]
        try:
            names, lines = parse_csv(text)
        except CsvError as error:
            raise ToolError(f"not a CSV table: {error}", argument="text") from None
        if not all(names):
            raise ToolError("the header has a column without a name", argument="text")
        _check_distinct(names, "text")
        if any(len(cell) > MAX_CELL_CHARS for line in (names, *lines) for cell in line):
            raise ToolError(f"a cell is longer than {MAX_CELL_CHARS} characters", argument="text")
        if len(lines) > MAX_ROWS or len(names) > MAX_COLUMNS:
            raise ToolError(f"at most {MAX_ROWS} rows and {MAX_COLUMNS} columns are allowed", argument="text")
        return self._keep(arguments["output"], inferred_table(names, lines), text)

    def _submit(self, arguments: dict[str, Any]) -> Reply:
        name = arguments["table"]
        self._table(name)
        entry = self._entries[name]
        text = table_csv(entry.table) if entry.text is None else entry.text
        if len(text) > MAX_SUBMISSION_CHARS:
            raise ToolError(f"the table is longer than {MAX_SUBMISSION_CHARS} characters", argument="table")
        self.submitted = True
        self._submission = {"table": name, "csv": text}
        return Reply(text=f"handed in: {_summary(name, entry.table)}")

    def _table(self, name: str, argument: str = "table") -> Table:
        if name not in self._entries:
            raise ToolError(
                f"there is no table {_quoted([name])}; tables: {_listed([*self._entries][-20:])}",
                argument=argument,
            )
        return self._entries[name].table

    def _keep(self, name: str, table: Table, text: str | None = None) -> Reply:
        if name in self._inputs:
            raise ToolError(
                f"{_quoted([name])} is an input table and stays as it is; choose another name", argument="output"
            )
        if name not in self._entries and len(self._entries) >= MAX_TABLES:
            raise ToolError(f"there are {MAX_TABLES} tables already; reuse a name", argument="output")
        if len(table.columns) > MAX_COLUMNS:
            raise ToolError(f"the result would have more than {MAX_COLUMNS} columns", argument="output")
        self._entries[name] = _Entry(table, text)
        rows = table.rows[:_REPLY_ROWS]
        more = f"[first {_REPLY_ROWS} rows]" if len(table.rows) > _REPLY_ROWS else ""
        return Reply(text=f"{_shape(name, table)}\n{_head(table, rows)}{more}".rstrip("\n"))


def _shape(name: str, table: Table) -> str:
    count = len(table.rows)
    return f"table {name}: {count} {'row' if count == 1 else 'rows'}"


def _summary(name: str, table: Table) -> str:
    return f"{_shape(name, table)}; columns {', '.join(table.names())}"


def _head(table: Table, rows: Sequence[tuple[Any, ...]]) -> str:
    return csv_text(table.names(), [[text_of(cell) for cell in row] for row in rows])


def _quoted(names: Sequence[str]) -> str:
    return literal(", ".join(map(repr, names)))


def _listed(names: Sequence[str]) -> str:
    return literal(", ".join(names))


def _column(table: Table, name: str, argument: str) -> Column:
    if name not in table.names():
        raise ToolError(f"there is no column {_quoted([name])}; columns: {_listed(table.names())}", argument=argument)
    return table.column(name)


def _check_distinct(names: Sequence[str], argument: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ToolError(f"the same name appears twice: {_quoted(twice[:5])}", argument=argument)


def _check_values(column: Column, values: Sequence[str]) -> None:
    checks: dict[str, tuple[Callable[[str], bool], str]] = {
        "number": (is_number, "a plain number such as 12.50"),
        "date": (is_date, "a date such as 2024-03-31"),
    }
    if column.kind not in checks:
        return
    accepts, expected = checks[column.kind]
    for value in values:
        if not accepts(value):
            raise ToolError(
                f"column {_quoted([column.name])} needs {expected}, got {_quoted([value])}", argument="values"
            )


def _check_size(table: Table, argument: str) -> None:
    for row in table.rows:
        for cell in row:
            if cell is not None and not isinstance(cell, str) and abs(cell) >= _LARGEST:
                raise ToolError(f"the result holds numbers of {_LARGEST} or more", argument=argument)
