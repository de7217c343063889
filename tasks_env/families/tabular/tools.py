"""The tools of the tabular family, as an agent is told about them."""

from __future__ import annotations

from typing import get_args

from tasks_env.families.tabular.spec import Comparison, Direction, Function, JoinKind, Operator
from tasks_env.tools import parameter, tool
from tasks_env.types import ToolSpec

CLOSING_TOOL = "submit"
PREVIEW_ROWS = 50
"""Most rows of one preview."""
TEXT_CHARS = 50_000
"""Longest CSV text that can be typed."""
NAME_CHARS = 64
MAX_DECIMALS = 6

_TABLE = parameter("string", "Name of the table to work on.", maxLength=NAME_CHARS)
_OUTPUT = parameter(
    "string",
    "Name for the new table that holds the result: letters, digits and underscores.",
    pattern=f"^[A-Za-z0-9_]{{1,{NAME_CHARS}}}$",
)
_NAMES = {"type": "string", "maxLength": NAME_CHARS}


def _name(description: str) -> dict[str, object]:
    return parameter("string", description, maxLength=NAME_CHARS)


def _array(description: str, item: dict[str, object] | None = None, least: int = 1) -> dict[str, object]:
    return parameter("array", description, items=item or _NAMES, minItems=least, maxItems=50)


TOOLS: tuple[ToolSpec, ...] = (
    tool("list_tables", "List all tables with their row counts and columns.", {}),
    tool(
        "preview_table",
        "Show rows of a table as CSV.",
        {"table": _TABLE},
        {
            "offset": parameter("integer", "How many rows to skip; 0 if left out.", minimum=0),
            "count": parameter("integer", "How many rows to show; 10 if left out.", minimum=1, maximum=PREVIEW_ROWS),
        },
    ),
    tool(
        "filter_rows",
        "Keep the rows of a table that meet one condition. Text is compared exactly, upper and lower case "
        "differ. An empty cell meets is_empty only.",
        {
            "table": _TABLE,
            "column": _name("The column to test."),
            "condition": parameter(
                "string",
                "at_least, at_most, more_than, less_than and between are for numbers and dates; between "
                "includes both ends.",
                enum=list(get_args(Comparison)),
            ),
            "output": _OUTPUT,
        },
        {
            "values": _array(
                'What to compare with, always as an array of strings: one, such as ["12.50"]; two for '
                "between; any number for in and not_in; none for is_empty and is_not_empty.",
                {"type": "string", "maxLength": 200},
                least=0,
            )
        },
    ),
    tool(
        "join_tables",
        "Add the columns of a second table to the rows of a first one, matched by a column that both have.",
        {
            "table": _name("The first table."),
            "other_table": _name("The second table."),
            "column": _name("The column that both tables have."),
            "kind": parameter(
                "string",
                "inner drops rows of the first table without a match; left keeps them with empty cells.",
                enum=list(get_args(JoinKind)),
            ),
            "output": _OUTPUT,
        },
    ),
    tool(
        "add_column",
        "Add a column computed from two numeric columns, rounded halves away from zero.",
        {
            "table": _TABLE,
            "column": parameter("string", "Name of the new column.", pattern=f"^[A-Za-z0-9_]{{1,{NAME_CHARS}}}$"),
            "left": _name("The first column."),
            "operator": parameter("string", "How to combine them.", enum=list(get_args(Operator))),
            "right": _name("The second column."),
            "decimals": parameter("integer", "Digits after the point of the result.", minimum=0, maximum=MAX_DECIMALS),
            "output": _OUTPUT,
        },
    ),
    tool(
        "group_rows",
        "Make one row per group: the columns grouped by, then one new column per function. The arrays "
        "{arg:functions}, {arg:columns} and {arg:names} go together, item by item. Empty cells are left out; "
        "count counts all rows.",
        {
            "table": _TABLE,
            "by": _array("Columns to group by."),
            "functions": _array("One function per new column.", {"type": "string", "enum": list(get_args(Function))}),
            "columns": _array("The column that each function is applied to; for count an empty string."),
            "names": _array(
                "Name of each new column.", {"type": "string", "pattern": f"^[A-Za-z0-9_]{{1,{NAME_CHARS}}}$"}
            ),
            "output": _OUTPUT,
        },
        {
            "decimals": parameter(
                "integer",
                "Digits after the point of every mean, rounded halves away from zero; needed with mean.",
                minimum=0,
                maximum=MAX_DECIMALS,
            )
        },
    ),
    tool(
        "sort_rows",
        "Sort the rows of a table by one or more columns, the first one first. Empty cells come last.",
        {"table": _TABLE, "columns": _array("Columns to sort by."), "output": _OUTPUT},
        {
            "directions": _array(
                "One per column; all ascending if left out.",
                {"type": "string", "enum": list(get_args(Direction))},
            )
        },
    ),
    tool(
        "limit_rows",
        "Keep the first rows of a table.",
        {
            "table": _TABLE,
            "count": parameter("integer", "How many rows to keep.", minimum=0),
            "output": _OUTPUT,
        },
    ),
    tool(
        "select_columns",
        "Keep the named columns of a table, in the order given.",
        {"table": _TABLE, "columns": _array("Columns to keep."), "output": _OUTPUT},
    ),
    tool(
        "write_table",
        "Make a table from CSV text with a header line.",
        {"text": parameter("string", "The CSV text.", maxLength=TEXT_CHARS), "output": _OUTPUT},
    ),
    tool(
        CLOSING_TOOL,
        "Hand in a table as the answer. This ends the task.",
        {"table": _name("Name of the table to hand in.")},
    ),
)
