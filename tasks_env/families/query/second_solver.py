"""A second solver that shares no code with the first: plain Python over the stored rows, exact arithmetic.

It reads the stored spec and world as bare JSON and imports nothing from this package. Agreement of both
solvers is what shows that the stored truth is the spec's only answer.
"""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import Any

_TESTS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def solve(spec: dict[str, Any], world: dict[str, Any]) -> str | list[str] | None:
    """The answer in canonical form, or None when there is no single one.

    Args:
        spec: The stored question.
        world: The stored tables.
    """
    database = _Database(world)
    chosen = [
        row
        for row in database.rows[spec["base"]]
        if all(_holds(database, spec["base"], row, predicate) for predicate in spec["predicates"])
    ]
    kind = spec["kind"]
    if kind == "count":
        return str(len(chosen))
    asked = spec["column"]
    pairs = [(row, database.value(spec["base"], row, asked)) for row in chosen]
    present = [(row, value) for row, value in pairs if value is not None]
    values = [value for _, value in present]
    decimals = spec["answer"].get("decimals", 0)
    if kind == "distinct":
        return str(len(dict.fromkeys(values)))
    if kind == "absent":
        entities = database.rows[database.target(spec["base"], asked.get("path", []))]
        return str(sum(entity["id"] not in values for entity in entities))
    if not values:
        return None
    if kind == "sum":
        return _decimal_text(sum(map(_exact, values), Fraction(0)), decimals)
    if kind == "average":
        return _decimal_text(sum(map(_exact, values), Fraction(0)) / len(values), decimals)
    if kind == "date":
        return str(max(values) if spec["direction"] == "latest" else min(values))
    if kind == "lookup":
        if len(chosen) != 1:
            return None
        number = spec["answer"]["kind"] == "number"
        return _decimal_text(_exact(values[0]), decimals) if number else str(values[0])
    if kind == "list":
        listed = sorted(map(str, dict.fromkeys(values)))
        return listed[::-1] if spec["answer"].get("order") == "descending" else listed
    if kind == "extreme":
        return _winner(
            [(value, database.value(spec["base"], row, spec["measure"])) for row, value in present],
            spec["direction"],
        )
    totals = _totals(database, spec, present)
    winner = _winner(totals, spec["direction"])
    amount = None if winner is None else _decimal_text(dict(totals)[winner], decimals)
    return None if winner is None or amount is None else [winner, amount]


class _Database:
    """Rows as dictionaries, looked up by table and id."""

    def __init__(self, world: dict[str, Any]) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.links: dict[tuple[str, str], str] = {}
        for table in world["tables"]:
            names = [column["name"] for column in table["columns"]]
            self.rows[table["name"]] = [dict(zip(names, row, strict=True)) for row in table["rows"]]
            for column in table["columns"]:
                if "references" in column:
                    self.links[table["name"], column["name"]] = column["references"]
        self.by_id = {name: {row["id"]: row for row in rows} for name, rows in self.rows.items()}

    def target(self, table: str, path: list[str]) -> str:
        for link in path:
            table = self.links[table, link]
        return table

    def value(self, table: str, row: dict[str, Any], ref: dict[str, Any]) -> Any:
        """The value that `ref` names, seen from `row`; None when it, or a row on the way, is missing."""
        for link in ref.get("path", []):
            if row[link] is None:
                return None
            table = self.links[table, link]
            row = self.by_id[table][row[link]]
        return row[ref["column"]]


def _holds(database: _Database, base: str, row: dict[str, Any], predicate: dict[str, Any]) -> bool:
    value = database.value(base, row, predicate["ref"])
    return value is not None and bool(_TESTS[predicate["operator"]](value, predicate["value"]))


def _totals(
    database: _Database, spec: dict[str, Any], present: list[tuple[dict[str, Any], Any]]
) -> list[tuple[Any, Any]]:
    totals: dict[Any, Fraction] = {}
    for row, group in present:
        measure = spec.get("measure")
        amount = 1 if measure is None else database.value(spec["base"], row, measure)
        if amount is not None:
            totals[group] = totals.get(group, Fraction(0)) + _exact(amount)
    return list(totals.items())


def _winner(ranked: list[tuple[Any, Any]], direction: str) -> str | None:
    """The only entry with the best rank; None when there is none or several."""
    ranks = [rank for _, rank in ranked if rank is not None]
    if not ranks:
        return None
    best = max(ranks) if direction == "highest" else min(ranks)
    winners = [entry for entry, rank in ranked if rank == best]
    return str(winners[0]) if len(winners) == 1 else None


def _exact(value: float | int) -> Fraction:
    """The decimal number that a stored value is written as."""
    return Fraction(repr(value))


def _decimal_text(value: Fraction, decimals: int) -> str | None:
    """`value` rounded to `decimals`; None at an exact tie, where conventions differ."""
    scaled = value * 10**decimals
    if (scaled * 2).denominator == 1 and scaled.denominator == 2:
        return None
    whole = round(scaled)
    digits = str(abs(whole)).rjust(decimals + 1, "0")
    sign = "-" if whole < 0 else ""
    return sign + (f"{digits[:-decimals]}.{digits[-decimals:]}" if decimals else digits)
