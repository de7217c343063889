"""The noise floor, first of all results, and the baseline scores it applies to."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from flows.report.blocks import Block, Column, Fold, Paragraph, Section, Warnings, field_column, reason_column, table
from flows.report.style import axis_label, table_of
from flows.report.wording import (
    count,
    decimal,
    delta_interval,
    known,
    p_value,
    percent,
    points,
    rate_interval,
    size,
    text,
)
from flows.stats.cells import ALL, BASELINE


def noise_floor(tables: Mapping[str, pd.DataFrame]) -> Section:
    """What nothing at all looks like in this study: the negative controls."""
    controls = table_of(tables, "negative_controls")
    title = "The noise floor"
    if controls.empty:
        return Section(
            "noise-floor",
            title,
            [
                Paragraph(
                    "No negative control has results, so the study cannot say how far its scores move by themselves."
                )
            ],
        )
    shown = controls[controls["scope"].isin(["overall", "model"])]
    blocks: list[Block] = [
        Paragraph(
            "A negative control is a change that cannot matter: new instances from the same generator and, where each "
            "task has a conversation of its own, another order of the tasks, which is a plain rerun. What its scores "
            "move by is noise. The noise floor is the distance from zero that 95% of such changes stay within; it is "
            "wider for one model than for the mean of all. A change elsewhere in this report that is smaller than the "
            "floor is what a rerun alone would give."
        ),
        Paragraph(
            "One in twenty intervals of a single stratum and model excludes zero by chance, on a control as anywhere. "
            "What would indict the pipeline is a control's change over all models: its p value, with Holm's correction "
            "over the controls, below 5%."
        ),
    ]
    for row in shown[(shown["scope"] == "overall")].to_dict("records"):
        blocks.append(Paragraph(_control_sentence(row)))
    blocks += _fewer_runs(table_of(tables, "pass_rates"), set(controls["axis"]))
    indicted = [row for row in shown.to_dict("records") if known(row["indicts_pipeline"]) and row["indicts_pipeline"]]
    if indicted:
        items = tuple(
            f"{axis_label(row['axis'], 'mean')}: {points(row['delta'])} points, "
            f"interval {delta_interval(row['ci_low'], row['ci_high'])}, "
            f"p = {p_value(row['p_holm'])} after Holm's correction."
            for row in indicted
        )
        blocks.append(Warnings("A control that cannot move has moved: suspect the pipeline before any model", items))
    blocks.append(
        table(
            "Negative controls, in percentage points",
            shown,
            [
                Column("control", lambda row: axis_label(row["axis"], "mean"), False),
                Column("model", lambda row: _model(row["model"]), False),
                field_column("instances", "n", count),
                field_column("difference", "delta", points),
                Column("95% interval", lambda row: delta_interval(row["ci_low"], row["ci_high"])),
                Column("noise floor ±", lambda row: size(row["noise_floor"])),
                Column("p, corrected", lambda row: p_value(row["p_holm"]), optional=True),
                reason_column(),
            ],
        )
    )
    return Section("noise-floor", title, blocks)


def _fewer_runs(rates: pd.DataFrame, controls: set[str]) -> list[Block]:
    """What the floor of a rerun means for changes that were run less often than it."""
    if rates.empty or "order" not in controls:
        return []
    totals = rates[rates["scope"] == "model"].groupby("axis")[["episodes", "n"]].sum()
    runs = {str(axis): total.episodes / total.n for axis, total in totals.iterrows() if total.n}
    others = [times for axis, times in runs.items() if axis not in {BASELINE.axis, *controls}]
    if not others or not {BASELINE.axis, "order"} <= runs.keys():
        return []
    base, rerun, least = 1 / runs[BASELINE.axis], 1 / runs["order"], 1 / min(others)
    factor = math.sqrt((base + least) / (base + rerun))
    if round(factor, 1) <= 1:
        return []
    return [
        Paragraph(
            f"The rerun has {decimal(1 / rerun, 1)} runs of each instance, the changes down to "
            f"{decimal(1 / least, 1)}. A level with so few moves by noise alone {decimal(factor, 1)} times as far as "
            "the floor of a rerun says; a mean over levels moves less than one level."
        )
    ]


def _control_sentence(row: Mapping[Hashable, Any]) -> str:
    name = axis_label(str(row["axis"]), "mean")
    if not known(row["noise_floor"]):
        because = f" ({row['reason']})" if known(row["reason"]) else ""
        return f"{name.capitalize()}: no floor could be measured{because}."
    chance = (
        f"{count(row['intervals_excluding_zero'])} of {count(row['intervals'])} single intervals exclude zero, where "
        f"{decimal(row['intervals_expected'], 1)} would by chance"
    )
    return (
        f"{name.capitalize()}: the mean over all models moved by {points(row['delta'])} points "
        f"({delta_interval(row['ci_low'], row['ci_high'])}); the floor is ±{size(row['noise_floor'])} points; {chance}."
    )


def _model(model: str) -> str:
    return "all, equal weight" if model == ALL else model


def baseline_scores(tables: Mapping[str, pd.DataFrame]) -> Section:
    """Pass rates of the baseline, per model and per stratum."""
    rates = table_of(tables, "pass_rates")
    own = rates if rates.empty else rates[rates["axis"] == BASELINE.axis]
    if own.empty:
        return Section("scores", "Baseline scores", [Paragraph("The baseline has no episodes.")])
    interval = Column("95% interval", lambda row: rate_interval(row["ci_low"], row["ci_high"]))
    bounds = Column(
        "bounds for infrastructure errors", lambda row: rate_interval(row["if_infra_failed"], row["if_infra_passed"])
    )
    common = [
        field_column("instances", "n", count),
        field_column("episodes", "episodes", count),
        field_column("pass rate", "pass_rate", percent),
        interval,
        bounds,
    ]
    model = Column("model", lambda row: _model(row["model"]), False)
    method = field_column("method", "method", text, numeric=False)
    reason = reason_column()
    wide = own[own["scope"].isin(["model", "overall"])]
    narrow = own[own["scope"].isin(["cell", "stratum"])]
    stratum = Column("tasks", lambda row: f"{row['family']} {row['difficulty']}", False)
    return Section(
        "scores",
        "Baseline scores",
        [
            Paragraph(
                "The pass rate is the mean over instances of the mean over run seeds, with equal weight on every "
                "family and difficulty. Intervals resample instances, since episodes of one instance depend on each "
                "other."
            ),
            table("Pass rate at the baseline", wide, [model, *common, method, reason]),
            Fold(
                "The same by family and difficulty",
                (table("Pass rate by family and difficulty", narrow, [model, stratum, *common, method, reason]),),
            ),
            *_partial(table_of(tables, "partial_scores")),
        ],
    )


def _partial(scores: pd.DataFrame) -> list[Block]:
    own = scores if scores.empty else scores[scores["axis"] == BASELINE.axis]
    own = own if own.empty else own[own["scope"].isin(["overall", "model"])]
    if own.empty or own["partial_score"].isna().all():
        return []
    columns = [
        Column("model", lambda row: _model(row["model"]), False),
        field_column("instances", "n", count),
        field_column("episodes", "episodes", count),
        field_column("mean partial score", "partial_score", percent),
        Column("95% interval", lambda row: rate_interval(row["ci_low"], row["ci_high"])),
        field_column("without a score", "without_score", count),
        field_column("method", "method", text, numeric=False),
        reason_column(),
    ]
    explained = (
        "Beside the verdict some families grade the part of a task that was done: goals reached, rows right. Episodes "
        "without such a grade are left out here alone."
    )
    return [Fold("Partial scores", (Paragraph(explained), table("Partial score at the baseline", own, columns)))]
