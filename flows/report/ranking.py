"""Whether the order of the models holds: concordance beside its floor, gaps between pairs, confirmed flips."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from flows.report.blocks import Block, Column, Fold, Listing, Paragraph, Section, field_column, table
from flows.report.pictures import Pictures, picture
from flows.report.style import axis_label, table_of
from flows.report.wording import count, decimal, delta_interval, known, p_value, points, text
from flows.stats.cells import MEAN_LEVEL


def confirmed_flips(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """A sentence for each pair of models whose order is reversed beyond doubt."""
    gaps = table_of(tables, "pair_gaps")
    return [
        f"{axis_label(row['axis'], row['level'])}: {row['model_a']} against {row['model_b']}, "
        f"{points(row['gap_baseline'])} points at the baseline, {points(row['gap_perturbed'])} here."
        for row in gaps.to_dict("records")
        if known(row["confirmed_flip"]) and row["confirmed_flip"]
    ]


def ranking(tables: Mapping[str, pd.DataFrame], pictures: Pictures) -> Section:
    """The section."""
    ranks, gaps = table_of(tables, "rank_stability"), table_of(tables, "pair_gaps")
    blocks: list[Block] = [
        Paragraph(
            "With few models a rank correlation is coarse and falls by noise alone. Concordance C (1: every pair of "
            "models in the baseline's order, −1: every pair reversed, ties 0) therefore stands beside its floor C0, "
            "what it falls to when the condition labels are permuted within instances. The excess C0 − C is "
            "instability beyond noise; p is the share of permutations with as little concordance. A flip of the top "
            "means that none of the baseline's best models is best at the level."
        ),
        Paragraph(
            "What is inferred is the change of the gap between two models. A flip of their order is confirmed only if "
            "the intervals of both gaps, at the baseline and at the level, exclude zero with opposite signs. Kendall's "
            "tau-b has no interval here, since a bootstrap of it does not hold the true value."
        ),
    ]
    flips = confirmed_flips(tables)
    if flips:
        blocks += [Paragraph("Confirmed flips of order:"), Listing(tuple(flips))]
    elif len(gaps):
        blocks.append(Paragraph("No flip of order between two models is confirmed."))
    caption = "Pass rates across levels with 95% intervals; beneath each, concordance beside its floor."
    blocks += picture(pictures, "rank_slopes", caption)
    if ranks.empty:
        return Section("ranks", "Does the ranking hold?", [*blocks, Paragraph("No level could be ranked.")])
    several = ranks[ranks["level"] != MEAN_LEVEL].groupby("axis")["level"].nunique()
    ranks = ranks[(ranks["level"] != MEAN_LEVEL) | ranks["axis"].isin(several[several > 1].index)]
    columns = [
        Column("level", _level, False),
        field_column("models", "n_models", count),
        field_column("tau-b", "tau_b", decimal),
        field_column("C", "concordance", decimal),
        field_column("floor C0", "concordance_floor", decimal),
        field_column("excess", "excess", decimal),
        field_column("p", "p", p_value),
        field_column("flip of the top", "top1_flip", decimal),
        field_column("the same by noise", "top1_flip_floor", decimal),
        Column(
            "undefined because",
            lambda row: text(row["reason"] if known(row["reason"]) else row["tau_reason"]),
            False,
            True,
        ),
    ]
    blocks.append(table("Rank stability against the baseline", ranks, columns))
    if any(known(value) and value for value in ranks["conservative"]):
        blocks.append(Paragraph("With two or three models the test is conservative: it rejects less often than 5%."))
    if len(gaps):
        blocks.append(Fold(f"Gaps of all {count(len(gaps))} pairs and levels", (_pairs(gaps),), printed=False))
    return Section("ranks", "Does the ranking hold?", blocks)


def _level(row: Mapping[str, object]) -> str:
    name = axis_label(str(row["axis"]), str(row["level"]))
    return f"{name}: mean of levels" if row["level"] == MEAN_LEVEL else name


def _pairs(gaps: pd.DataFrame) -> Block:
    return table(
        "Gap between two models at the baseline and at a level, in percentage points, with 95% intervals",
        gaps,
        [
            Column("level", _level, False),
            Column("pair", lambda row: f"{row['model_a']} − {row['model_b']}", False),
            Column("baseline", lambda row: points(row["gap_baseline"])),
            Column("interval", lambda row: delta_interval(row["gap_baseline_low"], row["gap_baseline_high"])),
            Column("at the level", lambda row: points(row["gap_perturbed"])),
            Column("interval", lambda row: delta_interval(row["gap_perturbed_low"], row["gap_perturbed_high"])),
            Column("change", lambda row: points(row["gap_change"])),
            Column("interval", lambda row: delta_interval(row["gap_change_low"], row["gap_change_high"])),
            Column("flip", _flip, False),
            field_column("method", "method", text, numeric=False),
        ],
    )


def _flip(row: Mapping[str, object]) -> str:
    if not known(row["confirmed_flip"]):
        return text(row["reason"])
    return "confirmed" if row["confirmed_flip"] else "no"
