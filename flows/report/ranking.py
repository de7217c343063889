"""Whether the order of the models holds: concordance beside its floor, gaps between pairs, confirmed flips."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from flows.report.blocks import Block, Column, Fold, Listing, Paragraph, Section, field_column, table
from flows.report.pictures import Pictures, picture
from flows.report.style import axis_label, table_of
from flows.report.wording import count, decimal, delta_interval, known, p_value, points, text


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
            "With few models a rank correlation is coarse and falls by noise alone. Concordance C (1: every pair in "
            "the baseline's order, −1: every pair reversed) therefore stands beside its floor C0, what it falls to "
            "when the condition labels are permuted within instances. A flip of two models is confirmed only if the "
            "intervals of both gaps exclude zero with opposite signs. Tau has no interval here: a bootstrap of it does "
            "not cover."
        )
    ]
    flips = confirmed_flips(tables)
    if flips:
        blocks += [Paragraph("Confirmed flips of order:"), Listing(tuple(flips))]
    elif len(gaps):
        blocks.append(Paragraph("No flip of order between two models is confirmed."))
    caption = "Scores across levels with 95% intervals; beneath, concordance beside its floor."
    blocks += picture(pictures, "rank_slopes", caption)
    if ranks.empty:
        return Section("ranks", "Does the ranking hold?", [*blocks, Paragraph("No level could be ranked.")])
    columns = [
        Column("level", lambda row: axis_label(row["axis"], row["level"]), False),
        field_column("models", "n_models", count),
        field_column("tau-b", "tau_b", decimal),
        field_column("C", "concordance", decimal),
        field_column("floor C0", "concordance_floor", decimal),
        field_column("excess", "excess", decimal),
        field_column("p", "p", p_value),
        Column("top-1 flips, floor", lambda row: f"{decimal(row['top1_flip'])}, {decimal(row['top1_flip_floor'])}"),
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
        blocks.append(Fold(f"Gaps of all {count(len(gaps))} pairs and levels", (_pairs(gaps),)))
    return Section("ranks", "Does the ranking hold?", blocks)


def _pairs(gaps: pd.DataFrame) -> Block:
    return table(
        "Gap between two models at the baseline and at a level, in percentage points, with 95% intervals",
        gaps,
        [
            Column("level", lambda row: axis_label(row["axis"], row["level"]), False),
            Column("pair", lambda row: f"{row['model_a']} − {row['model_b']}", False),
            Column("baseline", lambda row: points(row["gap_baseline"])),
            Column("interval", lambda row: delta_interval(row["gap_baseline_low"], row["gap_baseline_high"])),
            Column("at the level", lambda row: points(row["gap_perturbed"])),
            Column("interval", lambda row: delta_interval(row["gap_perturbed_low"], row["gap_perturbed_high"])),
            Column("change", lambda row: points(row["gap_change"])),
            Column("interval", lambda row: delta_interval(row["gap_change_low"], row["gap_change_high"])),
            Column("flip", _flip, False),
        ],
    )


def _flip(row: Mapping[str, object]) -> str:
    if not known(row["confirmed_flip"]):
        return text(row["reason"])
    return "confirmed" if row["confirmed_flip"] else "no"
