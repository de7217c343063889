"""Filling a schema with rows."""

from __future__ import annotations

import random
from datetime import date, timedelta

from pydantic import JsonValue

from tasks_env.families.query.schema import WORLD_TYPES, Column, Schema, Table
from tasks_env.types import JsonObject

_FIRST_DAY = date(2022, 1, 1)
_DAYS = [(_FIRST_DAY + timedelta(days=day)).isoformat() for day in range(730)]
_SHARE_OF_ROWS = (1.0, 1 / 3, 1 / 8, 1 / 4)
_FEWEST_ROWS = (1, 6, 4, 6)

Rows = list[list[JsonValue]]


def table_sizes(rows: int) -> tuple[int, ...]:
    """Rows of a theme's four tables when the largest has `rows`."""
    return tuple(max(least, int(rows * share)) for share, least in zip(_SHARE_OF_ROWS, _FEWEST_ROWS, strict=True))


def generate_world(rng: random.Random, schema: Schema, sizes: dict[str, int], null_share: float) -> JsonObject:
    """The database as JSON: `{"tables": [{"name", "columns", "rows"}]}`, ids from 1, rows by id.

    Args:
        sizes: Rows of each table.
        null_share: Chance that a value of a nullable column is missing.
    """
    return {
        "tables": [
            {
                "name": table.name,
                "columns": [column_json(column) for column in table.columns],
                "rows": _rows(rng, table, sizes, null_share),
            }
            for table in schema.tables
        ]
    }


def column_json(column: Column) -> JsonObject:
    """A column as stored: name, type (integer, decimal, text, date), and what deviates from a plain
    column."""
    described: JsonObject = {"name": column.name, "type": WORLD_TYPES[column.role]}
    if column.role == "key":
        described["key"] = True
    if column.nullable:
        described["nullable"] = True
    if column.target:
        described["references"] = column.target
    return described


def _rows(rng: random.Random, table: Table, sizes: dict[str, int], null_share: float) -> list[JsonValue]:
    count = sizes[table.name]
    columns = [_values(rng, table, column, count, sizes, null_share) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _values(
    rng: random.Random, table: Table, column: Column, count: int, sizes: dict[str, int], null_share: float
) -> list[JsonValue]:
    draw = rng.random
    values: list[JsonValue]
    if column.role == "key":
        return list(range(1, count + 1))
    if column.role == "name":
        first, second = table.names
        width = len(second)
        pairs = rng.sample(range(len(first) * width), count)
        values = [f"{first[pair // width]} {second[pair % width]}" for pair in pairs]
    elif column.role == "category":
        # Squared, so that some values are common and some are rare.
        pool = rng.sample(column.values, len(column.values))
        values = [pool[int(len(pool) * (0.3 * u + 0.7 * u * u))] for u in (draw() for _ in range(count))]
    elif column.role == "link":
        target = sizes[column.target]
        order = rng.sample(range(1, target + 1), target)
        values = [order[int(target * (0.7 * u + 0.3 * u * u))] for u in (draw() for _ in range(count))]
    elif column.role == "date":
        values = [_DAYS[int(len(_DAYS) * draw())] for _ in range(count)]
    else:
        span = column.high - column.low + 1
        numbers = [column.low + int(span * draw()) for _ in range(count)]
        values = [number / 100 for number in numbers] if column.role == "decimal" else list(numbers)
    if column.nullable:
        values = [None if draw() < null_share else value for value in values]
    return values
