"""Numbers as the report prints them: percentages, points, intervals, p values; a dash for what is null."""

from __future__ import annotations

from typing import Any

import pandas as pd

NOTHING = "–"
"""Printed for a null."""


def known(value: Any) -> bool:
    """Whether a cell of a table holds a value."""
    return not (value is None or value is pd.NA or pd.isna(value))


def text(value: Any) -> str:
    """The value as it is."""
    return str(value) if known(value) and str(value) else NOTHING


def count(value: Any) -> str:
    """A whole number with thousands set apart."""
    return f"{round(float(value)):,}" if known(value) else NOTHING


def percent(value: Any) -> str:
    """A fraction as a percentage, one decimal."""
    return f"{100 * float(value):.1f}%" if known(value) else NOTHING


def points(value: Any) -> str:
    """A difference of fractions as signed percentage points, one decimal."""
    return signed(100 * float(value)) if known(value) else NOTHING


def size(value: Any) -> str:
    """A size (a range, a standard deviation) as percentage points without a sign, one decimal."""
    return f"{100 * float(value):.1f}" if known(value) else NOTHING


def signed(value: float, decimals: int = 1) -> str:
    """A number with its sign; what rounds to zero has none."""
    rounded = round(value, decimals)
    sign = "+" if rounded > 0 else "−" if rounded < 0 else ""
    return f"{sign}{abs(rounded):.{decimals}f}"


def decimal(value: Any, decimals: int = 2) -> str:
    """A plain number."""
    if not known(value):
        return NOTHING
    return signed(float(value), decimals).removeprefix("+")


def rate_interval(low: Any, high: Any) -> str:
    """An interval of a pass rate or another share."""
    return f"{100 * float(low):.1f} to {100 * float(high):.1f}" if known(low) and known(high) else NOTHING


def delta_interval(low: Any, high: Any) -> str:
    """An interval of a difference, in points."""
    return f"{points(low)} to {points(high)}" if known(low) and known(high) else NOTHING


def p_value(value: Any) -> str:
    """A p value, three decimals."""
    if not known(value):
        return NOTHING
    return "<.001" if float(value) < 0.001 else f"{float(value):.3f}".removeprefix("0")


def usd(value: Any) -> str:
    """Money, with as many decimals as small sums need."""
    if not known(value):
        return NOTHING
    amount = float(value)
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"


def moment(value: Any) -> str:
    """A UTC time to the minute."""
    return f"{value:%Y-%m-%d %H:%M} UTC" if known(value) else NOTHING


def span(first: Any, last: Any) -> str:
    """From one UTC time to another, the day once if it is one."""
    if not known(first) or not known(last):
        return NOTHING
    if f"{first:%Y-%m-%d %H:%M}" == f"{last:%Y-%m-%d %H:%M}":
        return moment(first)
    end = f"{last:%H:%M}" if f"{first:%Y-%m-%d}" == f"{last:%Y-%m-%d}" else f"{last:%Y-%m-%d %H:%M}"
    return f"{first:%Y-%m-%d %H:%M} to {end} UTC"
