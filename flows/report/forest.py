"""Forest of deltas: per axis and model, with interval, smallest effect of interest and noise floor."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from flows.report.style import (
    BLACK,
    GREY,
    PALE,
    POINTS,
    axis_label,
    finished,
    headline,
    model_looks,
    new_figure,
    notice,
    shorten,
    styled,
    table_of,
    zero_line,
)
from flows.stats.cells import ALL, MEAN_LEVEL
from flows.stats.clusters import NEGATIVE_CONTROLS
from flows.stats.hypotheses import DEFAULT_SMALLEST_EFFECT

TITLE = "Change of pass rate, perturbed minus baseline"
MANY_LEVELS = 3
"""From this many levels on, an axis shows its mean alone; the paraphrase strip shows the levels."""

_COLUMNS = (
    *("group", "axis", "level", "model", "delta", "ci_low", "ci_high", "noise_floor", "control"),
    "smallest_effect",
)
_ROW = 0.112
_GAP = 1.2


def forest_rows(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What the forest plots: one row per axis, level and model (`all` first), negative controls last.

    Columns: group (axis and level in words), axis, level, model, delta, ci_low, ci_high, noise_floor,
    smallest_effect, control; all differences as fractions.
    """
    deltas = _comparable(tables)
    counts = deltas[deltas["level"] != MEAN_LEVEL].groupby("axis")["level"].nunique()
    many = set(counts[counts >= MANY_LEVELS].index)
    mean = deltas["level"] == MEAN_LEVEL
    shown = _plotted(deltas[mean == deltas["axis"].isin(many)], tables)
    shown["group"] = [axis_label(a, lv) for a, lv in zip(shown["axis"], shown["level"], strict=True)]
    return shown[list(_COLUMNS)]


def axis_rows(tables: Mapping[str, pd.DataFrame], axis: str) -> pd.DataFrame:
    """The same for one axis: every level and, if there are several, their mean last."""
    deltas = _comparable(tables)
    shown = deltas[deltas["axis"] == axis]
    if shown.loc[shown["level"] != MEAN_LEVEL, "level"].nunique() == 1:
        shown = shown[shown["level"] != MEAN_LEVEL]
    shown = _plotted(shown, tables)
    shown["last"] = shown["level"] == MEAN_LEVEL
    shown = shown.sort_values("last", kind="stable", ignore_index=True)
    shown["group"] = ["mean of levels" if lv == MEAN_LEVEL else lv.replace("_", " ") for lv in shown["level"]]
    return shown[list(_COLUMNS)]


def _comparable(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Deltas over all strata that are defined."""
    deltas = table_of(tables, "deltas")
    if deltas.empty:
        return pd.DataFrame(columns=["axis", "level", "model", "delta", "ci_low", "ci_high"])
    return deltas[deltas["scope"].isin(["overall", "model"]) & deltas["delta"].notna()]


def _plotted(shown: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Deltas with what is drawn behind them, in the order of drawing."""
    shown = shown.copy()
    measured = table_of(tables, "negative_controls")
    controls = set(NEGATIVE_CONTROLS) - _moving_axes(table_of(tables, "deltas"), measured)
    shown["control"] = shown["axis"].isin(controls)
    shown["first"] = shown["model"] != ALL
    if shown["model"].nunique() == 2:
        shown = shown[shown["model"] != ALL]
    shown = shown.sort_values(["control", "axis", "level", "first", "model"], kind="stable", ignore_index=True)
    floors = _noise_floors(measured)
    # Where order is an axis itself, redrawn instances are the one control: a floor that is on the wide side.
    replicate = "order" if "order" in controls else "resample"
    shown["noise_floor"] = [
        floors.get((axis if axis in controls else replicate, model))
        for axis, model in zip(shown["axis"], shown["model"], strict=True)
    ]
    shown["noise_floor"] = shown["noise_floor"].astype("Float64")
    effects = _smallest_effects(table_of(tables, "verdicts"))
    shown["smallest_effect"] = [
        effects.get((axis, level), effects.get((axis, MEAN_LEVEL), DEFAULT_SMALLEST_EFFECT))
        for axis, level in zip(shown["axis"], shown["level"], strict=True)
    ]
    return shown


def _moving_axes(deltas: pd.DataFrame, measured: pd.DataFrame) -> set[str]:
    """Axes with deltas that were measured as no control."""
    return set() if measured.empty or deltas.empty else set(deltas["axis"]) - set(measured["axis"])


def _noise_floors(controls: pd.DataFrame) -> dict[tuple[str, str], float]:
    if controls.empty:
        return {}
    known = controls[controls["scope"].isin(["overall", "model"]) & controls["noise_floor"].notna()]
    return {
        (str(axis), str(model)): float(floor)
        for axis, model, floor in zip(known["axis"], known["model"], known["noise_floor"], strict=True)
    }


def _smallest_effects(verdicts: pd.DataFrame) -> dict[tuple[str, str], float]:
    if verdicts.empty:
        return {}
    return {
        (str(axis), str(level)): float(effect)
        for axis, level, effect in zip(verdicts["axis"], verdicts["level"], verdicts["smallest_effect"], strict=True)
    }


def axis_forest(tables: Mapping[str, pd.DataFrame], axis: str) -> tuple[Figure, pd.DataFrame]:
    """The figure for one axis, and the rows it plots (see `axis_rows`)."""
    rows = axis_rows(tables, axis)
    title = f"{axis_label(axis, MEAN_LEVEL).capitalize()}: change of pass rate, level minus baseline"
    with styled():
        if rows.empty:
            return notice(title, "No level has a scored episode that can be compared with the baseline."), rows
        return _draw(rows, title), rows


def forest(tables: Mapping[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """The figure, and the rows it plots (see `forest_rows`)."""
    rows = forest_rows(tables)
    with styled():
        if rows.empty:
            return notice(TITLE, "No perturbed cell has a scored episode that can be compared with the baseline."), rows
        return _draw(rows, TITLE), rows


def _draw(rows: pd.DataFrame, title: str) -> Figure:
    models = sorted(set(rows["model"]) - {ALL})
    looks = model_looks(models)
    groups = list(dict.fromkeys(rows["group"]))
    positions, y = {}, 0.0
    for group in groups:
        for index in rows.index[rows["group"] == group]:
            positions[index] = y
            y += 1.0
        y += _GAP
    figure = new_figure(0.95 + 0.13 * math.ceil((len(models) + 3) / 2) + _ROW * y)
    axes = figure.subplots()
    zero_line(axes)
    for index, row in rows.iterrows():
        where = positions[index]
        if pd.notna(row["noise_floor"]):
            floor = POINTS * float(row["noise_floor"])
            axes.barh(where, 2 * floor, left=-floor, height=1.0, color=PALE, zorder=0)
        for side in (-1, 1):
            effect = side * POINTS * float(row["smallest_effect"])
            axes.plot([effect, effect], [where - 0.5, where + 0.5], color=GREY, linewidth=0.7, linestyle=(0, (2, 1.5)))
        look = looks.get(row["model"], {"color": BLACK, "marker": "s"})
        overall = row["model"] == ALL
        if pd.notna(row["ci_low"]):
            ends = [POINTS * float(row["ci_low"]), POINTS * float(row["ci_high"])]
            axes.plot(ends, [where, where], color=look["color"], linewidth=1.7 if overall else 1.0, zorder=3)
        axes.plot(
            POINTS * float(row["delta"]),
            where,
            marker=look["marker"],
            color=look["color"],
            markersize=4.2 if overall else 3.5,
            markeredgewidth=0.7,
            markerfacecolor=look["color"] if overall or pd.notna(row["ci_low"]) else "white",
            zorder=4,
        )
    _label_groups(axes, rows, positions, groups)
    axes.set_ylim(y - _GAP + 0.3, -0.9)
    axes.set_xlabel("percentage points, 95% interval")
    headline(figure, title)
    names = [ALL] if (rows["model"] == ALL).any() else []
    handles: list[Line2D | Patch] = [
        Line2D(
            [],
            [],
            color=looks.get(name, {"color": BLACK})["color"],
            marker=looks.get(name, {"marker": "s"})["marker"],
            label="all models, equal weight" if name == ALL else shorten(name),
        )
        for name in [*names, *models]
    ]
    handles.append(
        Line2D([], [], color=GREY, linewidth=0.7, linestyle=(0, (2, 1.5)), label="smallest effect of interest")
    )
    if rows["noise_floor"].notna().any():
        handles.append(Patch(color=PALE, label="noise floor"))
    figure.legend(handles=handles, loc="outside lower center", ncols=2, handlelength=1.8, columnspacing=1.2)
    return finished(figure)


def _label_groups(axes: Axes, rows: pd.DataFrame, positions: Mapping[object, float], groups: list[str]) -> None:
    ticks, labels = [], []
    for group in groups:
        own = [positions[index] for index in rows.index[rows["group"] == group]]
        ticks.append((own[0] + own[-1]) / 2)
        control = bool(rows.loc[rows["group"] == group, "control"].iloc[0])
        name = shorten(group, 24)
        labels.append(f"{name}\n(control)" if control else name)
    axes.set_yticks(ticks, labels)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
