"""The tools of the query family, and the world of one episode behind them."""

from __future__ import annotations

import difflib
import weakref
from typing import Any

from tasks_env.errors import ToolError
from tasks_env.families.base import Reply
from tasks_env.families.query import idle
from tasks_env.families.query.answers import MAX_ANSWER_CHARS
from tasks_env.families.query.database import SQL_TYPES, connect_again
from tasks_env.families.query.guard import MAX_ROWS, GuardedDatabase
from tasks_env.tools import parameter, tool
from tasks_env.types import JsonObject, ToolSpec

TOOLS: tuple[ToolSpec, ...] = (
    tool("list_tables", "List the tables of the database with their numbers of rows.", {}),
    tool(
        "describe_table",
        "Show the columns of one table: name, type, whether a value may be missing (NULL), and which table a"
        " foreign key refers to.",
        {"table": parameter("string", "Name of the table, as {tool:list_tables} shows it.")},
    ),
    tool(
        "run_query",
        f"Run one SELECT statement (SQLite) and show the result, at most {MAX_ROWS} rows. The database is read-only.",
        {"query": parameter("string", "The SELECT statement.")},
    ),
    tool(
        "submit",
        "Hand in the final answer. This ends the task.",
        {
            "answer": parameter(
                "string",
                "The answer alone, in the form that the task asks for.",
                maxLength=MAX_ANSWER_CHARS,
            )
        },
    ),
)


_COMPARED_CHARS = 100
"""Of a mistyped name, when a similar one is looked for: the search takes time with its length."""


class QueryWorld:
    """One episode: the database, its own from the first statement to the end of the episode, and the answer."""

    def __init__(self, world: JsonObject) -> None:
        self.submitted = False
        self._answer: str | None = None
        self._world = world
        tables: Any = world["tables"]
        self._tables: dict[str, Any] = {table["name"]: table for table in tables}
        self._database: GuardedDatabase | None = None
        self._close: weakref.finalize[..., Any] | None = None

    def call(self, name: str, arguments: JsonObject) -> Reply:
        """Carry out one call. Raises `ToolError`."""
        if name == "list_tables":
            return Reply(text=self._listing())
        if name == "describe_table":
            return self._description(str(arguments["table"]))
        if name == "run_query":
            return Reply(text=self._guarded().select(str(arguments["query"])))
        if name == "submit":
            return self._submit(str(arguments["answer"]))
        raise ToolError(f"there is no tool {name!r}")

    def state(self) -> JsonObject:
        """`{"answer": the submitted text, or null}`."""
        return {"answer": self._answer}

    def close(self) -> None:
        """Give the database back; a later statement takes another one. That of a collected world is closed."""
        if self._close is not None and self._database is not None:
            self._close.detach()
            idle.give(self._world, self._database)
        self._database = self._close = None

    def _guarded(self) -> GuardedDatabase:
        if self._database is None:
            self._database = idle.take(self._world) or GuardedDatabase(connect_again(self._world))
            self._close = weakref.finalize(self, self._database.close)
        return self._database

    def _listing(self) -> str:
        return "\n".join(f"{name}: {len(table['rows'])} rows" for name, table in self._tables.items())

    def _description(self, name: str) -> Reply:
        table = self._tables.get(name)
        if table is None:
            near = difflib.get_close_matches(name[:_COMPARED_CHARS], self._tables, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ToolError(f"there is no such table; tables: {', '.join(self._tables)}{hint}", argument="table")
        lines = [f"table {name}, {len(table['rows'])} rows; columns:"]
        lines += [f"- {_column_text(column)}" for column in table["columns"]]
        return Reply(text="\n".join(lines))

    def _submit(self, answer: str) -> Reply:
        if self.submitted:
            raise ToolError("an answer was handed in already")
        if not answer.strip():
            raise ToolError("the answer is empty; write the answer itself", argument="answer")
        self.submitted = True
        self._answer = answer
        self.close()
        return Reply(text="Answer received.")


def _column_text(column: dict[str, Any]) -> str:
    parts = [SQL_TYPES[column["type"]]]
    if column["type"] == "date":
        parts[0] += " (date, YYYY-MM-DD)"
    if column.get("key"):
        parts.append("primary key")
    if "references" in column:
        parts.append(f"refers to {column['references']}.id")
    if column.get("nullable"):
        parts.append("may be NULL")
    return f"{column['name']}: {', '.join(parts)}"
