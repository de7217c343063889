"""SQLite functions that agents may call only within bounds: checked here, then computed by SQLite itself.

Dates never depend on the present time or the local time zone. Text searches, whose time grows with the product of
two lengths and counts as a single step of the virtual machine, are charged for it.
"""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Any

_DATE_FUNCTIONS = {"date": 0, "datetime": 0, "time": 0, "julianday": 0, "unixepoch": 0, "strftime": 1}
"""With the place of the time among the arguments."""
_TEXT_FUNCTIONS = (
    ("like", 2),
    ("like", 3),
    ("glob", 2),
    ("instr", 2),
    ("replace", 3),
    ("trim", 2),
    ("ltrim", 2),
    ("rtrim", 2),
)
"""Functions that compare their first two arguments character by character, with their number of arguments."""

MAX_COMPARISONS = 20_000_000
"""Character comparisons of one statement's text functions at most: some hundredths of a second."""


class StandIns:
    """Takes the place of the bounded functions on `connection`.

    Args:
        limits: Limits of `sqlite3` for the connection that computes the results.
    """

    def __init__(self, connection: sqlite3.Connection, limits: dict[int, int]) -> None:
        self.refused = ""
        """Why the last call of the present statement was refused."""
        self._comparisons = 0
        self._limits = limits
        self._computing: sqlite3.Connection | None = None
        for name in _DATE_FUNCTIONS:
            connection.create_function(name, -1, partial(self._date, name), deterministic=True)
        for name, count in _TEXT_FUNCTIONS:
            connection.create_function(name, count, partial(self._text, name), deterministic=True)

    def begin(self) -> None:
        """Before each statement."""
        self.refused = ""
        self._comparisons = 0

    def close(self) -> None:
        """Close the connection that computes the results."""
        if self._computing is not None:
            self._computing.close()

    def _date(self, name: str, *arguments: Any) -> Any:
        times = arguments[_DATE_FUNCTIONS[name] :]
        words = [str(time, "utf-8", "replace") if isinstance(time, bytes) else str(time) for time in times]
        plain = [word.strip().lower() for word in words]
        # From 3.42 on, SQLite takes these two in the place of a time for a modifier of the present one.
        if not plain or plain[0] in ("subsec", "subsecond") or {"now", "localtime", "utc"} & set(plain):
            self._refuse(f"{name}() works on stored dates only, not on the present time or a time zone")
        return self._computed(name, arguments)

    def _text(self, name: str, *arguments: Any) -> Any:
        one, two = (len(value) if isinstance(value, str | bytes) else 20 for value in arguments[:2])
        self._comparisons += one * two
        if self._comparisons > MAX_COMPARISONS:
            self._refuse(f"stopped: {name} has too much text to search; search shorter texts, or fewer rows")
        return self._computed(name, arguments)

    def _refuse(self, message: str) -> None:
        self.refused = message
        raise ValueError(message)

    def _computed(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if self._computing is None:
            self._computing = sqlite3.connect(":memory:", check_same_thread=False)
            for limit, value in self._limits.items():
                self._computing.setlimit(limit, value)
        places = ", ".join("?" * len(arguments))
        try:
            return self._computing.execute(f"SELECT {name}({places})", arguments).fetchone()[0]
        except sqlite3.Error as error:
            self.refused = f"SQLite: {name}(): {str(error)[:200]}"
            raise
