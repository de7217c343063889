"""An independent second solver: the spec as one SQL query, run by SQLite on scaled integers.

It reads the stored JSON of an instance and shares no code with the family: it has its own CSV reading, its
own arithmetic and its own order of rows. Numbers are integers in units of the last decimal, so every sum and
comparison is exact; the one rounding rule (halves away from zero) is integer division in SQL.
"""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_COMPARE = {
    "at_least": ">=",
    "at_most": "<=",
    "more_than": ">",
    "less_than": "<",
    "equals": "=",
    "not_equals": "<>",
}


@dataclass(frozen=True)
class Shape:
    """A column's kind and, for numbers, the decimals by which its integers are scaled."""

    numeric: bool
    decimals: int


@dataclass(frozen=True)
class Solution:
    """The result of a task; numbers are integers in units of their column's last decimal."""

    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    rows: tuple[tuple[str | int | None, ...], ...]


def solution(spec: Mapping[str, Any], world: Mapping[str, Any]) -> Solution:
    """The result of a task.

    Args:
        spec: The JSON of the instance's spec.
        world: The JSON of its world: CSV texts by table under `tables`.
    """
    with sqlite3.connect(":memory:") as connection:
        shapes: dict[str, Shape] = {}
        for table in spec["tables"]:
            _load(connection, table, world["tables"][table["name"]])
            for column in table["columns"]:
                shapes[column["name"]] = Shape(column.get("kind") == "number", column.get("decimals", 0))
        query, values, shapes = _query(spec, shapes)
        rows = connection.execute(query, values).fetchall()
    connection.close()
    names = tuple(spec["columns"])
    return Solution(names, tuple(shapes[name] for name in names), tuple(rows))


def solve(spec: Mapping[str, Any], world: Mapping[str, Any]) -> str:
    """The result of a task as CSV text; arguments as for `solution`."""
    solved = solution(spec, world)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(solved.names)
    for row in solved.rows:
        writer.writerow(_shown(cell, shape) for cell, shape in zip(row, solved.shapes, strict=True))
    return out.getvalue()


def _load(connection: sqlite3.Connection, table: Mapping[str, Any], text: str) -> None:
    """Create and fill one table; `_n_TABLE` keeps the order of its rows."""
    columns = table["columns"]
    types = ", ".join(f'"{c["name"]}" {"INTEGER" if c.get("kind") == "number" else "TEXT"}' for c in columns)
    connection.execute(f'CREATE TABLE "{table["name"]}" ("_n_{table["name"]}" INTEGER, {types})')
    records = list(csv.reader(text.splitlines()))[1:]
    marks = ", ".join("?" * (len(columns) + 1))
    for number, record in enumerate(records):
        cells = [_stored(cell, column) for cell, column in zip(record, columns, strict=True)]
        connection.execute(f'INSERT INTO "{table["name"]}" VALUES ({marks})', (number, *cells))


def _stored(text: str, column: Mapping[str, Any]) -> str | int | None:
    if text == "":
        return None
    return _scaled(text, column.get("decimals", 0)) if column.get("kind") == "number" else text


def _scaled(text: str, decimals: int) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole + (fraction + "0" * decimals)[:decimals])


def _shown(cell: object, shape: Shape) -> object:
    if cell is None or not shape.numeric:
        return cell
    digits = str(abs(int(str(cell)))).rjust(shape.decimals + 1, "0")
    sign = "-" if int(str(cell)) < 0 else ""
    if not shape.decimals:
        return sign + digits
    return f"{sign}{digits[: -shape.decimals]}.{digits[-shape.decimals :]}"


def _ratio(numerator: str, denominator: str) -> str:
    """SQL for numerator / denominator to the nearest integer, halves away from zero; denominator positive."""
    up = f"((2 * abs({numerator}) + {denominator}) / (2 * {denominator}))"
    return f"(CASE WHEN {numerator} < 0 THEN -{up} ELSE {up} END)"


def _query(spec: Mapping[str, Any], shapes: dict[str, Shape]) -> tuple[str, list[object], dict[str, Shape]]:
    """One SELECT for the whole task, its bound values, and the shapes of all columns."""
    source = spec["tables"][0]["name"]
    inner = f'SELECT * FROM "{source}"'
    for join in spec.get("joins", []):
        kind = "JOIN" if join["kind"] == "inner" else "LEFT JOIN"
        inner += f' {kind} "{join["table"]}" USING ("{join["column"]}")'
    derive = spec.get("derive")
    if derive:
        inner = f'SELECT *, {_derived(derive, shapes)} AS "{derive["column"]}" FROM ({inner})'
        shapes = {**shapes, derive["column"]: Shape(True, derive["decimals"])}
    conditions, values = [], list[object]()
    for condition in spec.get("filters", []):
        sql, bound = _condition(condition, shapes[condition["column"]])
        conditions.append(sql)
        values += bound
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    aggregate = spec.get("aggregate")
    if aggregate:
        items = [f'"{name}"' for name in aggregate["by"]]
        for measure in aggregate["measures"]:
            sql, shape = _measured(measure, aggregate.get("decimals", 2), shapes)
            items.append(f'{sql} AS "{measure["column"]}"')
            shapes = {**shapes, measure["column"]: shape}
        keys = ", ".join(f'"{name}"' for name in aggregate["by"])
        inner = f"SELECT {', '.join(items)} FROM ({inner}){where} GROUP BY {keys}"
        where = ""
    order = [f'"{k["column"]}" {"ASC" if k["order"] == "ascending" else "DESC"}' for k in spec.get("sort", [])]
    order = order or [f'"_n_{source}"']
    limit = f" LIMIT {int(spec['limit'])}" if spec.get("limit") is not None else ""
    chosen = ", ".join(f'"{name}"' for name in spec["columns"])
    return f"SELECT {chosen} FROM ({inner}){where} ORDER BY {', '.join(order)}{limit}", values, shapes


def _derived(derive: Mapping[str, Any], shapes: Mapping[str, Shape]) -> str:
    left, right = f'"{derive["left"]}"', f'"{derive["right"]}"'
    a, b, d = shapes[derive["left"]].decimals, shapes[derive["right"]].decimals, derive["decimals"]
    if derive["operator"] == "times":
        return _ratio(f"({left} * {right} * {10**d})", str(10 ** (a + b)))
    if derive["operator"] == "divided_by":
        return _ratio(f"({left} * {10 ** (b + d)})", f"({right} * {10**a})")
    sign = {"plus": "+", "minus": "-"}[derive["operator"]]
    return _ratio(f"(({left} * {10**b} {sign} {right} * {10**a}) * {10**d})", str(10 ** (a + b)))


def _condition(condition: Mapping[str, Any], shape: Shape) -> tuple[str, list[object]]:
    column, name = f'"{condition["column"]}"', condition["condition"]
    texts = condition.get("values", [])
    values: list[object] = [_scaled(text, shape.decimals) if shape.numeric else text for text in texts]
    if name in _COMPARE:
        return f"{column} {_COMPARE[name]} ?", values
    if name == "between":
        return f"{column} BETWEEN ? AND ?", values
    if name in ("in", "not_in"):
        marks = ", ".join("?" * len(values))
        return f"{column} {'IN' if name == 'in' else 'NOT IN'} ({marks})", values
    if name == "starts_with":
        return f"substr({column}, 1, length(?)) = ?", values * 2
    if name == "contains":
        return f"instr({column}, ?) > 0", values
    return f"{column} IS {'NULL' if name == 'is_empty' else 'NOT NULL'}", []


def _measured(measure: Mapping[str, Any], decimals: int, shapes: Mapping[str, Shape]) -> tuple[str, Shape]:
    if measure["function"] == "count":
        return "count(*)", Shape(True, 0)
    column, shape = f'"{measure["of"]}"', shapes[measure["of"]]
    if measure["function"] != "mean":
        return f"{measure['function']}({column})", shape
    total = f"(sum({column}) * {10**decimals})"
    return _ratio(total, f"(count({column}) * {10**shape.decimals})"), Shape(True, decimals)
