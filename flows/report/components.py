"""Variance components as standard deviations with intervals, and their shares beside them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from flows.report.style import (
    BLUE,
    GREY,
    POINTS,
    SMALL,
    VERMILLION,
    crossed,
    finished,
    headline,
    new_figure,
    notice,
    styled,
    table_of,
)

TITLE = "Where the variance of an episode's outcome comes from"

_ORDER = (
    "run",
    "instance",
    "model x instance",
    "level x instance",
    "model x level x instance",
    "model",
    "level",
    "model x level",
    "model x stratum",
    "level x stratum",
    "model x level x stratum",
)


def component_rows(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What the figure plots, in its order. Negative components and bounds are clipped to 0 here, not in the table.

    Columns: term, variance, share, sd, sd_lo, sd_hi (standard deviations as fractions), includes, reason.
    """
    columns = ["term", "variance", "share", "sd", "sd_lo", "sd_hi", "includes", "reason"]
    table = table_of(tables, "variance_components")
    if table.empty:
        return pd.DataFrame(columns=columns)
    rows = table.set_index("term").reindex([term for term in _ORDER if term in set(table["term"])]).reset_index()
    for name, source in (("sd_lo", "lo"), ("sd_hi", "hi")):
        rows[name] = rows[source].astype("Float64").clip(lower=0.0) ** 0.5
    return rows[columns]


def components_figure(tables: Mapping[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """The figure, and the rows it plots (see `component_rows`)."""
    rows = component_rows(tables)
    with styled():
        if rows.empty or rows["variance"].isna().all():
            reasons = sorted(set(rows["reason"].dropna())) if len(rows) else []
            return notice(TITLE, "; ".join(reasons) or "No variance components were estimated."), rows
        return _draw(rows), rows


def _draw(rows: pd.DataFrame) -> Figure:
    figure = new_figure(0.85 + 0.17 * len(rows) + 0.12 * len(_notes(rows)))
    axes = figure.subplots()
    labels = []
    for y, (_, row) in enumerate(rows.iterrows()):
        extra = isinstance(row["includes"], str)
        labels.append(crossed(row["term"]) + (" *" if extra else ""))
        if pd.isna(row["variance"]):
            axes.text(0.3, y, str(row["reason"]), color=GREY, va="center", fontsize=SMALL)
            continue
        if pd.notna(row["sd_lo"]):
            ends = [POINTS * float(row["sd_lo"]), POINTS * float(row["sd_hi"])]
            axes.plot(ends, [y, y], color=BLUE, linewidth=1.1, solid_capstyle="butt")
        negative = float(row["variance"]) < 0
        axes.plot(
            POINTS * float(row["sd"]),
            y,
            "o",
            color=VERMILLION if negative else BLUE,
            markerfacecolor="white" if negative else BLUE,
            markersize=3.8,
            markeredgewidth=0.8,
            clip_on=False,
            zorder=3,
        )
        share = "" if pd.isna(row["share"]) else f"{100 * float(row['share']):.1f}%"
        axes.text(1.01, y, share, transform=axes.get_yaxis_transform(), va="center", ha="left", fontsize=SMALL)
    axes.text(1.01, -1.0, "share", transform=axes.get_yaxis_transform(), va="center", ha="left", color=GREY)
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(len(rows) - 0.4, -0.7)
    axes.set_xlim(left=0)
    axes.set_xlabel("standard deviation in points, 95% interval")
    headline(figure, TITLE)
    axes.tick_params(axis="y", length=0, pad=5)
    axes.grid(axis="x", color="#E6E6E6", linewidth=0.5)
    notes = _notes(rows)
    if notes:
        figure.supxlabel("\n".join(notes), x=0.01, ha="left", fontsize=SMALL, color=GREY)
    return finished(figure)


def _notes(rows: pd.DataFrame) -> list[str]:
    """What stands beneath the figure, line by line."""
    notes = ["Models and levels are held fixed in the intervals."]
    if (rows["variance"].astype("Float64") < 0).any():
        notes.append("Open circle: the estimate is negative, drawn at 0.")
    for _, row in rows.iterrows():
        if isinstance(row["includes"], str):
            notes += textwrap.wrap(f"* {crossed(row['term'])} includes {crossed(row['includes'])}.", 62)
    return notes
