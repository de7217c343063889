"""Power curves: the chance of telling two models apart, for this exact prompt and for any equivalent prompt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from flows.report.style import (
    BLACK,
    BLUE,
    GREY,
    HATCH,
    VERMILLION,
    finished,
    headline,
    new_figure,
    notice,
    styled,
    table_of,
)
from flows.stats.planning import MODELS
from flows.stats.power import general_power

TITLE = "Chance of telling two models apart"
_INSTANCES = tuple(round(float(n)) for n in np.geomspace(10, 10_000, 61))
_TICKS = (10, 100, 1_000, 10_000)

EXACT, ESTIMATE, LIMIT = (
    "this exact prompt",
    "any equivalent prompt, estimate",
    "any equivalent prompt, upper limit",
)


class _Setting(NamedTuple):
    """What a curve is computed from."""

    variance: float
    variance_ml: float
    levels: int


def power_rows(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What the curves plot: one row per curve, delta and number of instances.

    Columns: curve, prompts (prompts and tool sets per instance), delta, n, power, ceiling (power with endless
    instances), study_n.
    """
    columns = ["curve", "prompts", "delta", "n", "power", "ceiling", "study_n"]
    detectable, general = table_of(tables, "detectable"), table_of(tables, "power_general")
    if detectable.empty:
        return pd.DataFrame(columns=columns)
    own = detectable[(detectable["comparison"] == MODELS) & detectable["as_run"] & detectable["variance"].notna()]
    own = own[own["variance"] > 0].drop_duplicates(["model", "versus"])
    if own.empty:
        return pd.DataFrame(columns=columns)
    study_n = float(own["n"].astype(float).mean())
    settings = {EXACT: _Setting(float(own["variance"].astype(float).mean()), 0.0, 1)}
    if not general.empty:
        study = general[(general["source"] == "study") & general["variance"].notna()]
        for curve, source in ((ESTIMATE, "estimate"), (LIMIT, "upper limit")):
            chosen = study[study["sigma_ml2_source"] == source]
            if not chosen.empty:
                row = chosen.iloc[0]
                settings[curve] = _Setting(float(row["variance"]), float(row["sigma_ml2"]), int(row["levels"]))
    deltas = sorted(set(general["delta"].astype(float))) if not general.empty else [0.03, 0.05, 0.10]
    rows = []
    for delta in deltas:
        for curve, setting in settings.items():
            ceiling = general_power(math.inf, delta, *setting)
            for n in _INSTANCES:
                power = general_power(n, delta, *setting)
                rows.append((curve, setting.levels, delta, n, power, ceiling, study_n))
    return pd.DataFrame(rows, columns=columns)


def power_curves(tables: Mapping[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """The figure, and the rows it plots (see `power_rows`)."""
    rows = power_rows(tables)
    with styled():
        if rows.empty:
            return notice(TITLE, "Needs two models with varying outcomes on the same instances."), rows
        return _draw(rows), rows


_LOOKS: dict[str, tuple[str, Any]] = {EXACT: (BLUE, "-"), ESTIMATE: (VERMILLION, "--"), LIMIT: (BLACK, ":")}


def _draw(rows: pd.DataFrame) -> Figure:
    deltas = list(dict.fromkeys(rows["delta"]))
    figure = new_figure(2.45)
    panels = figure.subplots(1, len(deltas), sharey=True, squeeze=False)[0]
    for axes, delta in zip(panels, deltas, strict=True):
        _panel(axes, rows[rows["delta"] == delta])
        axes.set_title(f"{100 * delta:g} points", loc="center", fontsize=7)
    panels[0].set_ylabel("power (two-sided, 5%)")
    panels[len(panels) // 2].set_xlabel("instances")
    headline(figure, TITLE)
    curves = rows.drop_duplicates("curve")
    handles: list[Line2D | Patch] = []
    for curve, prompts in zip(curves["curve"], curves["prompts"], strict=True):
        colour, line = _LOOKS[str(curve)]
        label = f"{curve} ({prompts} per instance)"
        handles.append(Line2D([], [], color=colour, linestyle=line, linewidth=1.1, label=label))
    handles.append(
        Line2D([], [], color=GREY, linewidth=0.8, label=f"this study: {rows['study_n'].iloc[0]:.0f} instances")
    )
    if len(curves) > 1:
        handles.append(Patch(facecolor="none", edgecolor=HATCH, hatch="////", label="out of reach at the upper limit"))
    figure.legend(handles=handles, loc="outside lower center", ncols=1, handlelength=2.6)
    return finished(figure)


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    axes.axhline(0.8, color="#BBBBBB", linewidth=0.6)
    for curve, own in rows.groupby("curve", sort=False):
        colour, line = _LOOKS[str(curve)]
        axes.plot(own["n"], own["power"], color=colour, linestyle=line, linewidth=1.1)
    last = str(rows["curve"].iloc[-1])
    ceiling = float(rows.loc[rows["curve"] == last, "ceiling"].iloc[0])
    if last != EXACT and ceiling < 0.999:
        axes.fill_between(
            [_INSTANCES[0], _INSTANCES[-1]],
            ceiling,
            1.0,
            facecolor="none",
            edgecolor=HATCH,
            hatch="////",
            linewidth=0,
            zorder=0,
        )
        axes.axhline(ceiling, color=HATCH, linewidth=0.7, zorder=0)
    axes.axvline(float(rows["study_n"].iloc[0]), color=GREY, linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(_TICKS))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:g}" if n < 1000 else f"{n / 1000:g}k"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(min(_INSTANCES[0], 0.8 * float(rows["study_n"].iloc[0])), _INSTANCES[-1])
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
