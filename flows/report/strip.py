"""Paraphrase strip: what every paraphrase scored, and whether their range exceeds what noise alone gives."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from flows.report.style import (
    BLACK,
    BLUE,
    GREY,
    PALE,
    POINTS,
    SMALL,
    VERMILLION,
    finished,
    headline,
    new_figure,
    notice,
    shorten,
    styled,
    table_of,
)
from flows.stats.cells import ALL

AXIS = "paraphrase"
TITLE = "Pass rate under each paraphrase, and the range that noise alone gives"


def strip_rows(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What the strip plots, one row per model (`all` first) and level, the baseline included.

    Columns: model, level, pass_rate, ci_low, ci_high, and, repeated per model, the range over paraphrases with its
    permutation null: range, null_mean, null_q95, p.
    """
    spread_columns = ["range", "null_mean", "null_q95", "p"]
    columns = ["model", "level", "pass_rate", "ci_low", "ci_high"]
    rates, spread = table_of(tables, "pass_rates"), table_of(tables, "paraphrase_spread")
    if rates.empty or not ((rates["axis"] == AXIS) & rates["pass_rate"].notna()).any():
        return pd.DataFrame(columns=[*columns, *spread_columns])
    shown = rates[
        rates["scope"].isin(["overall", "model"]) & rates["axis"].isin(["none", AXIS]) & rates["pass_rate"].notna()
    ]
    if shown["model"].nunique() == 2:
        shown = shown[shown["model"] != ALL]
    if spread.empty:
        spread = pd.DataFrame(columns=["model", *spread_columns])
    else:
        spread = spread[spread["scope"].isin(["overall", "model"]) & (spread["axis"] == AXIS)]
    shown = shown[columns].merge(spread[["model", *spread_columns]], on="model", how="left")
    shown["order"] = shown["model"] != ALL
    shown = shown.sort_values(["order", "model", "level"], kind="stable", ignore_index=True)
    return shown[[*columns, *spread_columns]]


def strip(tables: Mapping[str, pd.DataFrame]) -> tuple[Figure, pd.DataFrame]:
    """The figure, and the rows it plots (see `strip_rows`)."""
    rows = strip_rows(tables)
    with styled():
        if rows.empty:
            return notice(TITLE, "No paraphrase has a scored episode."), rows
        return _draw(rows), rows


def _draw(rows: pd.DataFrame) -> Figure:
    models = list(dict.fromkeys(rows["model"]))
    figure = new_figure(1.35 + 0.27 * len(models))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1.25, 1])
    for y, model in enumerate(models):
        _scores(left, rows[rows["model"] == model], y)
        _range(right, rows[rows["model"] == model].iloc[0], y)
    names = ["all models" if model == ALL else shorten(model, 18) for model in models]
    left.set_yticks(range(len(models)), names)
    left.set_ylim(len(models) - 0.45, -0.6)
    left.set_xlabel("pass rate, %")
    right.set_xlabel("range, points")
    right.set_xlim(left=0)
    right.margins(x=0.3)
    for axes in (left, right):
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    right.axvline(0, color=GREY, linewidth=0.6)
    headline(figure, TITLE)
    handles = [
        Line2D([], [], linestyle="", marker="o", color=BLUE, label="a paraphrase"),
        Line2D([], [], linestyle="", marker="D", markerfacecolor="white", color=BLACK, label="baseline, 95% interval"),
        Patch(color=PALE, label="range by noise (tick: mean)"),
        Line2D([], [], linestyle="", marker="s", color=BLACK, label="observed range"),
        Line2D([], [], linestyle="", marker="*", markersize=6.5, color=VERMILLION, label="beyond noise (p < .05)"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, handlelength=1.2, columnspacing=1.2)
    return finished(figure)


def _scores(axes: Axes, rows: pd.DataFrame, y: float) -> None:
    baseline = rows[rows["level"] == "baseline"]
    levels = rows[rows["level"] != "baseline"]
    for _, row in baseline.iterrows():
        if pd.notna(row["ci_low"]):
            ends = [POINTS * float(row["ci_low"]), POINTS * float(row["ci_high"])]
            axes.plot(ends, [y, y], color=GREY, linewidth=0.8, zorder=1)
        axes.plot(
            POINTS * float(row["pass_rate"]),
            y,
            "D",
            color=BLACK,
            markerfacecolor="white",
            markersize=4,
            markeredgewidth=0.7,
        )
    if not levels.empty:
        values = POINTS * levels["pass_rate"].astype(float)
        # paraphrases sit a little above the line of the baseline, so that neither hides the other
        axes.plot([values.min(), values.max()], [y - 0.22, y - 0.22], color=BLUE, linewidth=0.6, alpha=0.6)
        axes.plot(values, [y - 0.22] * len(values), "o", color=BLUE, markersize=3.3, alpha=0.8, markeredgewidth=0)


def _range(axes: Axes, row: pd.Series, y: float) -> None:
    if pd.isna(row["range"]):
        axes.text(0, y, " no range: too few data", color=GREY, va="center", fontsize=SMALL)
        return
    observed = POINTS * float(row["range"])
    edge = observed
    if pd.notna(row["null_q95"]):
        axes.barh(y, POINTS * float(row["null_q95"]), height=0.5, color=PALE, zorder=0)
        mean = POINTS * float(row["null_mean"])
        axes.plot([mean, mean], [y - 0.25, y + 0.25], color=GREY, linewidth=0.9)
        edge = max(edge, POINTS * float(row["null_q95"]))
    beyond = pd.notna(row["p"]) and float(row["p"]) < 0.05
    if beyond:
        axes.plot(observed, y, "*", color=VERMILLION, markersize=7, zorder=3)
    else:
        axes.plot(observed, y, "s", color=BLACK, markersize=3.8, zorder=3)
    if pd.notna(row["p"]):
        p = float(row["p"])
        text = (
            "p < .001"
            if p < 0.001
            else f"p = {p:.3f}".replace("0.", ".", 1)
            if p < 0.1
            else f"p = {p:.2f}".replace("0.", ".", 1)
        )
        axes.annotate(text, (edge, y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=SMALL)
