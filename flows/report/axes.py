"""One part of the report for each axis: its figure, every level's change, and the range over levels beside its null."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from flows.report.blocks import Block, Column, Fold, Paragraph, Section, field_column, reason_column, table
from flows.report.pictures import Pictures, axis_picture, picture
from flows.report.strip import AXIS as PARAPHRASE
from flows.report.style import axis_label, table_of
from flows.report.wording import count, delta_interval, known, p_value, percent, points, size, text
from flows.stats.cells import ALL, MEAN_LEVEL

ABOUT = {
    "paraphrase": "The task in other words, each level a rewording written by hand that keeps every parameter.",
    "tool_names": "Tools and their arguments under other names, their descriptions kept. `synonyms` are common words "
    "for the same, `opaque` names say nothing.",
    "distractors": "Irrelevant, well-described tools beside the needed ones; the level is their number.",
    "temperature": "The sampling temperature raised; the level is the temperature.",
    "resample": "New instances from the same generator: a negative control. Different instances cannot be compared one "
    "by one, so these intervals are wider than those of other changes.",
    "order": "The tasks of a set in another order. With one task per conversation this cannot reach the agent: a plain "
    "rerun, and so a negative control.",
}
"""Axis -> what it changes; an axis that is not here is shown without."""


def all_axes(tables: Mapping[str, pd.DataFrame], pictures: Pictures) -> list[Section]:
    """The overview, then a section for every axis with a result, negative controls last."""
    deltas = table_of(tables, "deltas")
    overview = Section(
        "changes",
        "What each change does to the score",
        [
            Paragraph(
                "Each row is the pass rate under a change less that of the baseline, on the same instances (new "
                "instances apart), averaged with equal weight over families, difficulties and models. A change is "
                "established where its interval excludes zero, and matters where the interval lies beyond the "
                "smallest effect of interest."
            ),
            *picture(
                pictures,
                "deltas_forest",
                "Change of pass rate per axis and model. Grey bands: the noise floor of a plain rerun (order), or of "
                "new instances where there is none; a control has its own. Axes with three or more levels show the "
                "mean over levels; their own sections show each.",
            ),
        ],
    )
    if deltas.empty:
        return [overview]
    measured = table_of(tables, "negative_controls")
    controls = set(measured["axis"]) if len(measured) else set()
    names = sorted(deltas["axis"].unique(), key=lambda axis: (axis in controls, axis))
    return [overview, *(_axis(tables, pictures, axis, axis in controls) for axis in names)]


def _axis(tables: Mapping[str, pd.DataFrame], pictures: Pictures, axis: str, control: bool) -> Section:
    deltas = table_of(tables, "deltas")
    own = deltas[(deltas["axis"] == axis) & deltas["scope"].isin(["overall", "model"])]
    levels = [level for level in own["level"].unique() if level != MEAN_LEVEL]
    if len(levels) == 1:
        own = own[own["level"] != MEAN_LEVEL]
    own = own.assign(last=own["level"] == MEAN_LEVEL, first=own["model"] != ALL)
    own = own.sort_values(["last", "level", "first", "model"], kind="stable")
    blocks: list[Block] = [Paragraph(ABOUT[axis])] if axis in ABOUT else []
    blocks.append(Paragraph(_sentence(own, control)))
    title = axis_label(axis, MEAN_LEVEL).capitalize()
    blocks += picture(pictures, axis_picture(axis), f"{title}: every level and model.")
    if axis == PARAPHRASE:
        caption = "Left: each paraphrase's pass rate. Right: their range beside the range that noise alone gives."
        blocks += picture(pictures, "paraphrase_strip", caption)
    blocks += _spread(tables, axis)
    blocks.append(_changes(own))
    tasks = deltas[(deltas["axis"] == axis) & deltas["scope"].isin(["family", "stratum"])]
    if len(tasks):
        tasks = tasks.assign(last=tasks["level"] == MEAN_LEVEL)
        tasks = tasks.sort_values(["family", "difficulty", "last", "level"], kind="stable")  # `all` comes first
        blocks.append(Fold("By family and difficulty, mean over models", (_changes(tasks),)))
    return Section(axis_picture(axis), title, blocks, level=3)


def _sentence(own: pd.DataFrame, control: bool) -> str:
    """How many of the axis's aggregate intervals exclude zero, in words."""
    overall = own[own["scope"] == "overall"]
    parts = []
    for row in overall.to_dict("records"):
        name = "on average over levels" if row["level"] == MEAN_LEVEL else f"`{row['level'].replace('_', ' ')}`"
        if not known(row["ci_low"]):
            parts.append(f"{name}: undefined ({text(row['reason'])})")
            continue
        clear = row["ci_low"] > 0 or row["ci_high"] < 0
        verdict = "" if control else ", which excludes zero" if clear else ""
        parts.append(
            f"{name}: {points(row['delta'])} points ({delta_interval(row['ci_low'], row['ci_high'])}){verdict}"
        )
    if not parts:
        return "No mean over models is defined here."
    return "Mean over all models: " + "; ".join(parts) + "."


def _changes(own: pd.DataFrame) -> Block:
    by_tasks = own["scope"].eq("stratum").any()
    first = (
        Column(
            "tasks", lambda row: f"{row['family']}{'' if row['difficulty'] == ALL else ' ' + row['difficulty']}", False
        )
        if by_tasks
        else Column("model", lambda row: "all" if row["model"] == ALL else row["model"], False)
    )
    columns = [
        Column("level", lambda row: "mean" if row["level"] == MEAN_LEVEL else row["level"], False),
        first,
        field_column("instances", "n", count),
        field_column("baseline", "baseline_rate", percent),
        field_column("changed", "perturbed_rate", percent),
        field_column("difference", "delta", points),
        Column("95% interval", lambda row: delta_interval(row["ci_low"], row["ci_high"])),
        field_column("method", "method", text, numeric=False),
        Column(
            "left out or undefined",
            lambda row: text(row["reason"] if known(row["reason"]) else row["missing_strata"]),
            numeric=False,
            optional=True,
        ),
    ]
    return table("Pass rates and their difference, in percentage points", own, columns)


def _spread(tables: Mapping[str, pd.DataFrame], axis: str) -> list[Block]:
    spread = table_of(tables, "paraphrase_spread")
    own = spread if spread.empty else spread[(spread["axis"] == axis) & spread["scope"].isin(["overall", "model"])]
    if own.empty:
        return []
    columns = [
        Column("model", lambda row: "all" if row["model"] == ALL else row["model"], False),
        field_column("levels", "levels", count),
        field_column("range", "range", size),
        Column("noise alone, mean", lambda row: size(row["null_mean"])),
        Column("noise alone, 95% below", lambda row: size(row["null_q95"])),
        field_column("p", "p", p_value),
        field_column("SD of levels", "level_sd", size),
        Column("worst level", lambda row: text(row["worst_level"]), False),
        Column("its change, cross-fitted", lambda row: points(row["worst_delta_crossfit"])),
        Column("its change, naive", lambda row: points(row["worst_delta_naive"])),
        reason_column(),
    ]
    return [
        Paragraph(
            "Noise alone spreads the levels: their range, largest less smallest pass rate, stands beside the range "
            "when the level labels are permuted within instances, where no level differs; p is the share of "
            "permutations with at least the observed range. The standard deviation of the levels has that noise "
            "removed. The worst level was picked for being worst, so its plain change is too extreme; picked on one "
            "half of the instances and measured on the other (cross-fitted) it is too mild where levels differ: the "
            "two are a bracket."
        ),
        table("Range over levels beside its null, in percentage points", own, columns),
    ]
