"""Agents' SQL: one read-only, deterministic, bounded SELECT statement at a time.

The bounds are on steps, on bytes of a value and on comparisons within texts, and none on time, so that a statement
gives the same result on every machine. Together they keep the worst statement that is known near a second and under
100 MiB.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from tasks_env.errors import ToolError
from tasks_env.families.query.stand_ins import StandIns
from tasks_env.naming import literal

MAX_STEPS = 200_000
"""Virtual machine steps of one statement: some hundredths of a second."""
MAX_ROWS = 50
MAX_CELL_CHARS = 200
MAX_RESULT_CHARS = 4000
MAX_STATEMENT_CHARS = 4000
_MAX_VALUE_BYTES = 2000
"""Of a text and of a row: bounds the work of a single step."""
_SCHEMA_HINT = "see {tool:list_tables} and {tool:describe_table} for the names of tables and columns"

_TOO_BIG = "string or blob too big"
_FUNCTION_NAMES = """
    abs avg ceil ceiling char coalesce concat count cume_dist date datetime dense_rank first_value floor
    format glob group_concat hex ifnull iif instr julianday lag last_value lead length like likelihood likely
    lower ltrim max min mod nth_value ntile nullif percent_rank pow power printf quote rank replace round
    row_number rtrim sign sqrt strftime string_agg substr substring sum time total trim trunc typeof unicode
    unixepoch unlikely upper
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
"""Functions that depend on their arguments alone; random, file and extension functions are not among them."""

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: _MAX_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 * MAX_STATEMENT_CHARS,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 30,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 20_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}


class GuardedDatabase:
    """Runs agents' statements on `connection`, which it changes for good: nothing can be written any more."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._refused = ""
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        # Values come from statements within the limits; those of the computing connection are bound as parameters.
        self._stand_ins = StandIns(connection, {**_LIMITS, sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 50})
        connection.set_progress_handler(lambda: 1, MAX_STEPS)
        connection.set_authorizer(self._authorize)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._stand_ins.close()

    def select(self, statement: str) -> str:
        """The result of `statement` as text: a header, a line per row, the number of rows.

        Raises:
            ToolError: SQLite's message, or what was refused, and where to look.
        """
        self._refused = ""
        self._stand_ins.begin()
        if len(statement) > MAX_STATEMENT_CHARS:
            raise ToolError(
                f"the statement has {len(statement)} characters; at most {MAX_STATEMENT_CHARS} are allowed",
                argument="query",
            )
        try:
            cursor = self._connection.execute(statement)
            try:
                if cursor.description is None:
                    raise ToolError("no statement given; write one SELECT statement", argument="query")
                header = [str(column[0]) for column in cursor.description]
                rows = cursor.fetchmany(MAX_ROWS + 1)
            finally:
                cursor.close()
        # Warning: more than one statement; ValueError: a null character or a lone surrogate in the text.
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise ToolError(self._explain(error), argument="query") from None
        return result_text(header, rows)

    def _authorize(
        self, action: int, table: str | None, name: str | None, database: str | None, source: str | None
    ) -> int:
        del table, database, source
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            function = (name or "").lower()
            if function in _FUNCTIONS:
                return sqlite3.SQLITE_OK
            self._refused = f"the function {function[:100]} is not available"
        elif not self._refused:
            self._refused = f"the database is read-only: only a single SELECT statement is allowed; {_SCHEMA_HINT}"
        return sqlite3.SQLITE_DENY

    def _explain(self, error: Exception) -> str:
        refused = self._refused or self._stand_ins.refused
        if refused:
            return refused
        message = str(error)[:300]
        if message == "interrupted":
            return (
                f"stopped after {MAX_STEPS} steps: the statement does too much work; join on keys, and end"
                " every recursion"
            )
        if message == _TOO_BIG:
            return (
                f"a text or a row of more than {_MAX_VALUE_BYTES} bytes came up; select rows instead of putting many"
                " values into one"
            )
        # The agent's own text comes back in SQLite's messages and must not be taken for a placeholder.
        return f"SQLite: {literal(message)}; {_SCHEMA_HINT}"


def result_text(header: list[str], rows: list[tuple[Any, ...]]) -> str:
    """A result as lines with cells separated by ` | `; long cells, rows and results are cut, and say so."""
    lines = [" | ".join(_cell(name) for name in header)]
    size = len(lines[0])
    shown = 0
    for row in rows[:MAX_ROWS]:
        line = " | ".join(_cell(value) for value in row)
        size += len(line) + 1
        if size > MAX_RESULT_CHARS:
            break
        lines.append(line)
        shown += 1
    if shown < len(rows):
        lines.append(f"(cut after {shown} rows; there are more)")
    else:
        lines.append(f"({shown} row{'' if shown == 1 else 's'})")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    text = f"x'{value.hex()}'" if isinstance(value, bytes) else str(value)
    if not text.isprintable():
        text = "".join(
            character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
            for character in text
        )
    return text if len(text) <= MAX_CELL_CHARS else f"{text[:MAX_CELL_CHARS]}..."
