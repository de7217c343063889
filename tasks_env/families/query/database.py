"""The stored tables as an in-memory SQLite database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import lru_cache
from typing import Any

from tasks_env.identity import Same
from tasks_env.types import JsonObject

SQL_TYPES = {"integer": "INTEGER", "decimal": "REAL", "text": "TEXT", "date": "TEXT"}


def connect(world: JsonObject) -> sqlite3.Connection:
    """A new database with the tables of `world`; the caller closes it.

    The connection may be used from any thread, one at a time, and keeps no statement cache, so that the step
    count of each statement starts at zero.
    """
    connection = _empty()
    tables: Any = world["tables"]
    connection.execute("BEGIN")
    for table in tables:
        name, columns = table["name"], table["columns"]
        connection.execute(f"CREATE TABLE {name} ({', '.join(map(_definition, columns))})")
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", table["rows"])
    connection.execute("COMMIT")
    return connection


def connect_again(world: JsonObject) -> sqlite3.Connection:
    """`connect` at a fraction of its cost for a world that was connected to before: a copy of the same pages."""
    connection = _empty()
    connection.deserialize(_pages(Same(world)))
    return connection


@lru_cache(maxsize=256)
def _pages(world: Same[JsonObject]) -> bytes:
    with closing(connect(world.value)) as connection:
        return connection.serialize()


def _empty() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=0)


def _definition(column: dict[str, Any]) -> str:
    parts = [column["name"], SQL_TYPES[column["type"]]]
    if column.get("key"):
        parts.append("PRIMARY KEY")
    elif not column.get("nullable"):
        parts.append("NOT NULL")
    if "references" in column:
        parts.append(f"REFERENCES {column['references']}(id)")
    return " ".join(parts)
