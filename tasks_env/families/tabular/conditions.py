"""Drawing filters: bounds are cells of the table, and every one of them decides about some row."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tasks_env.families.tabular.operations import ORDERED, filter_rows
from tasks_env.families.tabular.readings import filter_readings
from tasks_env.families.tabular.spec import Comparison, Filter
from tasks_env.families.tabular.table import Table, text_of

_TRIES = 6
_TEXTS: tuple[Comparison, ...] = ("equals", "not_equals", "in", "in", "not_in", "starts_with", "contains")
_SHARES = (0.5, 0.65, 0.75)
"""The part of the rows that a filter aims to keep, by the number of filters."""


def draw_filters(table: Table, names: Sequence[str], rng: random.Random) -> tuple[tuple[Filter, ...], Table] | None:
    """One filter on each named column, of which each, and each bound of each, decides about some row; what they keep.

    Returns None if a few tries find none.
    """
    for _ in range(_TRIES):
        filters: list[Filter] = []
        rest = table
        for name in names:
            condition = _draw_filter(rest, name, _SHARES[len(names) - 1], rng)
            if condition is None:
                return None
            filters.append(condition)
            rest = filter_rows(rest, condition)
        if len(filters) < 2 or _all_matter(table, tuple(filters), rest):
            return tuple(filters), rest
    return None


def _all_matter(table: Table, filters: tuple[Filter, ...], kept: Table) -> bool:
    for _, reading in filter_readings(filters):
        rest = table
        for condition in reading:
            rest = filter_rows(rest, condition)
        if len(rest.rows) == len(kept.rows):
            return False
    return True


def _draw_filter(table: Table, name: str, share: float, rng: random.Random) -> Filter | None:
    """A condition that keeps some of the rows and drops some; its bounds are cells of the table."""
    position = table.index(name)
    column = table.columns[position]
    # Any: the cells of one column are of one type.
    cells: list[Any] = [row[position] for row in table.rows if row[position] is not None]
    if column.optional and len(cells) < len(table.rows) and rng.random() < 0.4:
        return Filter(column=name, condition=rng.choice(("is_empty", "is_not_empty")))
    if column.kind == "text":
        known = sorted(set(cells))
        return _draw_text_filter(name, known, share, rng) if len(known) > 1 else None
    if len(cells) < 3:
        return None
    ordered = sorted(cells)
    condition = rng.choice(ORDERED)
    dropped = round(len(ordered) * (1 - share))
    if condition == "between":
        each = (dropped + 1) // 2
        bounds = [ordered[each], ordered[-1 - each]]
    else:
        bounds = [ordered[dropped] if condition in ("at_least", "more_than") else ordered[-1 - dropped]]
    return Filter(column=name, condition=condition, values=tuple(map(text_of, bounds)))


def _draw_text_filter(name: str, known: list[str], share: float, rng: random.Random) -> Filter:
    condition = rng.choice(_TEXTS)
    value = rng.choice(known)
    if condition == "starts_with":
        return Filter(column=name, condition=condition, values=(value[: rng.randint(1, 2)],))
    if condition == "contains":
        start = rng.randrange(max(1, len(value) - 2))
        return Filter(column=name, condition=condition, values=(value[start : start + 2],))
    if condition in ("equals", "not_equals"):
        return Filter(column=name, condition=condition, values=(value,))
    part = share if condition == "in" else 1 - share
    count = min(len(known) - 1, max(1, round(len(known) * part)))
    return Filter(column=name, condition=condition, values=tuple(rng.sample(known, count)))
