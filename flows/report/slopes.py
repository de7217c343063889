"""Slope chart of every model's score across levels, with the concordance of the ranking beneath."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from flows.report.style import (
    BLACK,
    GREY,
    POINTS,
    VERMILLION,
    axis_label,
    finished,
    headline,
    model_looks,
    new_figure,
    notice,
    shorten,
    styled,
    table_of,
)
from flows.stats.cells import MEAN_LEVEL

TITLE = "Scores and ranking across levels"
_BASELINE = "baseline"
_LINE = 11
"""Levels, baselines included, that stand side by side in one line of panels."""


def slope_rows(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What the chart plots: one row per axis, level (the baseline first) and model.

    Columns: axis, level, model, pass_rate, ci_low, ci_high, flips (models with which the order of the baseline is
    reversed, confirmed), and, repeated per level, concordance and concordance_floor.
    """
    columns = ["axis", "level", "model", "pass_rate", "ci_low", "ci_high"]
    extra = ["flips", "concordance", "concordance_floor"]
    rates = table_of(tables, "pass_rates")
    if rates.empty:
        return pd.DataFrame(columns=[*columns, *extra])
    known = rates[(rates["scope"] == "model") & rates["pass_rate"].notna()][columns]
    baseline, perturbed = known[known["axis"] == "none"], known[known["axis"] != "none"]
    if perturbed.empty:
        return pd.DataFrame(columns=[*columns, *extra])
    starts = [
        baseline.assign(axis=axis, level=_BASELINE) for axis in sorted(perturbed["axis"].unique()) if len(baseline)
    ]
    rows = pd.concat([*starts, perturbed], ignore_index=True)
    rows["start"] = rows["level"] != _BASELINE
    rows = rows.sort_values(["axis", "start", "level", "model"], kind="stable", ignore_index=True)
    flips = _flips(table_of(tables, "pair_gaps"))
    keys = zip(rows["axis"], rows["level"], rows["model"], strict=True)
    rows["flips"] = pd.array(["; ".join(flips.get(key, [])) or None for key in keys], dtype="str")
    ranks = table_of(tables, "rank_stability")
    if ranks.empty:
        rows["concordance"] = rows["concordance_floor"] = pd.Series(pd.NA, index=rows.index, dtype="Float64")
        return rows[[*columns, *extra]]
    own = ranks[["axis", "level", "concordance", "concordance_floor"]]
    return rows.merge(own, on=["axis", "level"], how="left")[[*columns, *extra]]


def _flips(gaps: pd.DataFrame) -> dict[tuple[str, str, str], list[str]]:
    """(axis, level, model) -> models with which the order is reversed, confirmed."""
    found: dict[tuple[str, str, str], list[str]] = {}
    if gaps.empty:
        return found
    confirmed = gaps[gaps["confirmed_flip"].fillna(False).astype(bool) & (gaps["level"] != MEAN_LEVEL)]
    for _, row in confirmed.iterrows():
        for one, other in (("model_a", "model_b"), ("model_b", "model_a")):
            found.setdefault((row["axis"], row["level"], row[one]), []).append(str(row[other]))
    return found


def slopes(tables: Mapping[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """The figure, and the rows it plots (see `slope_rows`)."""
    rows = slope_rows(tables)
    with styled():
        if rows.empty:
            return notice(TITLE, "No perturbed cell has a scored episode."), rows
        return _draw(rows), rows


def _draw(rows: pd.DataFrame) -> Figure:
    names = list(dict.fromkeys(rows["axis"]))
    levels = {name: list(dict.fromkeys(rows.loc[rows["axis"] == name, "level"])) for name in names}
    looks = model_looks(sorted(rows["model"].unique()))
    ranked = bool(rows["concordance"].notna().any())
    lines = _lines(names, levels)
    entries = len(looks) + 2 * ranked + int(rows["flips"].notna().any())
    figure = new_figure(0.35 + (2.35 if ranked else 1.75) * len(lines) + 0.14 * math.ceil(entries / 2))
    outer = figure.add_gridspec(len(lines), 1)
    first: list[Axes | None] = [None, None]
    for place, line in enumerate(lines):
        grid = outer[place].subgridspec(
            2 if ranked else 1,
            len(line),
            height_ratios=[2.2, 1] if ranked else [1],
            width_ratios=[len(levels[name]) + 0.5 for name in line],
        )
        for column, name in enumerate(line):
            own = rows[rows["axis"] == name]
            scores = figure.add_subplot(grid[0, column], sharey=first[0])
            _scores(scores, own, levels[name], looks)
            scores.set_title("\n".join(axis_label(name, MEAN_LEVEL).split()), fontsize=7, loc="center")
            first[0] = first[0] or scores
            panels = [(scores, "pass rate, %")]
            if ranked:
                below = figure.add_subplot(grid[1, column], sharey=first[1])
                _concordance(below, own, levels[name])
                first[1] = first[1] or below
                panels.append((below, "concordance"))
            for axes, label in panels:
                axes.set_xlim(-0.5, len(levels[name]) - 0.5)
                axes.set_xticks(range(len(levels[name])), [])
                axes.tick_params(labelleft=column == 0)
                if column == 0:
                    axes.set_ylabel(label)
            panels[-1][0].set_xticklabels([_short(level) for level in levels[name]], rotation=90)
    headline(figure, TITLE)
    figure.legend(
        handles=_handles(looks, flips=bool(rows["flips"].notna().any()), ranked=ranked),
        loc="outside lower center",
        ncols=2,
        columnspacing=1.2,
        handlelength=2.2,
    )
    return finished(figure)


def _lines(names: list[str], levels: Mapping[str, list[str]]) -> list[list[str]]:
    """The axes in lines that the page's width holds, in their order."""
    lines: list[list[str]] = [[]]
    for name in names:
        if lines[-1] and sum(len(levels[other]) for other in [*lines[-1], name]) > _LINE:
            lines.append([])
        lines[-1].append(name)
    return lines


def _handles(looks: Mapping[str, dict[str, Any]], *, flips: bool, ranked: bool) -> list[Line2D]:
    handles = [
        Line2D(
            [], [], color=look["color"], marker=look["marker"], linestyle=look["linestyle"], label=shorten(model, 24)
        )
        for model, look in looks.items()
    ]
    if flips:
        ring = Line2D([], [], color=VERMILLION, marker="o", linestyle="", label="confirmed flip of order")
        ring.set(markerfacecolor="none", markersize=6.5, markeredgewidth=1.2)
        handles.append(ring)
    if ranked:
        floor = Line2D([], [], color=GREY, marker="_", linestyle="", label="C0: agreement under noise")
        floor.set(markersize=7, markeredgewidth=1.6)
        observed = Line2D([], [], color=BLACK, marker="o", linestyle="", label="C: agreement with baseline")
        handles += [observed, floor]
    return handles


def _short(level: str) -> str:
    return shorten(level.replace("_", " "), 12)


def _scores(axes: Axes, rows: pd.DataFrame, levels: list[str], looks: Mapping[str, dict[str, Any]]) -> None:
    place = {level: k for k, level in enumerate(levels)}
    dodge = 0.32 / max(len(looks) - 1, 1)
    for number, (model, look) in enumerate(looks.items()):
        own = rows[rows["model"] == model]
        shift = (number - (len(looks) - 1) / 2) * dodge
        x = [place[level] + shift for level in own["level"]]
        y = [POINTS * float(rate) for rate in own["pass_rate"]]
        axes.plot(x, y, color=look["color"], linestyle=look["linestyle"], linewidth=0.8, zorder=2)
        axes.plot(x, y, color=look["color"], marker=look["marker"], linestyle="", markersize=3, zorder=3)
        for where, low, high, value, flips in zip(x, own["ci_low"], own["ci_high"], y, own["flips"], strict=True):
            if pd.notna(low):
                ends = [POINTS * float(low), POINTS * float(high)]
                axes.plot([where, where], ends, color=look["color"], linewidth=0.6, alpha=0.7, zorder=1)
            if isinstance(flips, str):
                axes.plot(
                    where,
                    value,
                    "o",
                    markersize=6.5,
                    markerfacecolor="none",
                    color=VERMILLION,
                    markeredgewidth=1.2,
                    zorder=4,
                )


def _concordance(axes: Axes, rows: pd.DataFrame, levels: list[str]) -> None:
    axes.axhline(0, color=GREY, linewidth=0.5)
    axes.set_ylim(-1.15, 1.15)
    axes.set_yticks([-1, 0, 1])
    for place, level in enumerate(levels):
        own = rows[rows["level"] == level]
        observed, floor = own["concordance"].iloc[0], own["concordance_floor"].iloc[0]
        if pd.notna(floor):
            axes.plot(place, float(floor), "_", color=GREY, markersize=7, markeredgewidth=1.6)
        if pd.notna(observed):
            axes.plot(place, float(observed), "o", color=BLACK, markersize=3.2)
