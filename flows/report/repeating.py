"""Whether an agent does the same again: outcomes, paths, and what a solved task costs."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from flows.report.blocks import Block, Column, Fold, Paragraph, Section, field_column, reason_column, table
from flows.report.style import axis_label, table_of
from flows.report.wording import NOTHING, count, known, percent, rate_interval, text, usd
from flows.stats.cells import BASELINE
from flows.stats.consistency import FLIPS_BETWEEN_RUNS, FLIPS_ON_AXIS, PASS_HAT_K
from flows.stats.trajectories import AGAINST_BASELINE, BETWEEN_RUNS

_MODEL = field_column("model", "model", text, numeric=False)


def repeating(tables: Mapping[str, pd.DataFrame]) -> Section:
    """Consistency and trajectories."""
    blocks: list[Block] = [*_consistency(table_of(tables, "consistency"))]
    blocks += _trajectories(table_of(tables, "trajectory_stability"))
    return Section("repeating", "Would it do the same again?", blocks or [Paragraph("Nothing was run twice.")])


def _consistency(measured: pd.DataFrame) -> list[Block]:
    if measured.empty:
        return []
    own = measured[measured["scope"] == "model"]
    base = own[(own["axis"] == BASELINE.axis) & own["measure"].isin([PASS_HAT_K, FLIPS_BETWEEN_RUNS])]
    on_axes = own[own["measure"] == FLIPS_ON_AXIS]
    value = Column("share", lambda row: percent(row["value"]))
    interval = Column("95% interval", lambda row: rate_interval(row["ci_low"], row["ci_high"]))
    common = [field_column("instances", "n", count), value, interval]
    reason = reason_column()
    return [
        Paragraph(
            "pass^k is the chance that k runs of one instance all pass; pass^1 is the pass rate. An instance flips if "
            "it has both outcomes: among the runs of the baseline, or among all runs of the baseline and of every "
            "level of an axis. More runs have more chances to flip, so shares for axes of different numbers of levels "
            "cannot be compared with each other."
        ),
        table(
            "Repeated runs at the baseline",
            base,
            [_MODEL, Column("measure", _measure, False), *common, reason],
        ),
        table(
            "Instances whose outcome ever flips",
            on_axes,
            [_MODEL, Column("axis", lambda row: axis_label(row["axis"], "mean"), False), *common, reason],
            empty="No axis has an instance scored at the baseline and at every level.",
        ),
    ]


def _measure(row: Mapping[str, object]) -> str:
    return f"pass^{row['k']}" if row["measure"] == PASS_HAT_K else "flips between runs"


def _trajectories(measured: pd.DataFrame) -> list[Block]:
    if measured.empty:
        return []
    own = measured[(measured["scope"] == "model") & (measured["n"] > 0)]
    columns = [
        _MODEL,
        Column("condition", lambda row: axis_label(row["axis"], row["level"]), False),
        field_column("instances", "n", count),
        field_column("same path", "same_trajectory", percent),
        Column("95% interval", lambda row: rate_interval(row["same_trajectory_low"], row["same_trajectory_high"])),
        field_column("same outcome", "same_outcome", percent),
        Column("95% interval", lambda row: rate_interval(row["same_outcome_low"], row["same_outcome_high"])),
    ]
    runs = own[own["comparison"] == BETWEEN_RUNS]
    base = runs["axis"] == BASELINE.axis
    against = own[own["comparison"] == AGAINST_BASELINE]
    return [
        Paragraph(
            "A path (trajectory) is the sequence of tools called, under their original names. Both shares are over "
            "the same pairs of episodes of one instance: took the same path, had the same outcome. Two runs of one "
            "condition show what the shares under a change have to be read against."
        ),
        table(
            "Two runs of the baseline",
            runs[base],
            columns,
            empty="No two runs of one instance whose paths are on record.",
        ),
        Fold(
            "Two runs of every other condition",
            (
                table(
                    "Two runs of one condition",
                    runs[~base],
                    columns,
                    empty="No two such runs whose paths are on record.",
                ),
            ),
        ),
        Fold(
            "A run under a change against one of the baseline",
            (table("Same path and same outcome as the baseline", against, columns, empty="No such pair."),),
        ),
    ]


def costs(tables: Mapping[str, pd.DataFrame]) -> Section:
    """What a solved task costs."""
    measured = table_of(tables, "costs")
    own = measured if measured.empty else measured[(measured["scope"] == "model") & (measured["axis"] == BASELINE.axis)]
    if own.empty:
        return Section("costs", "What a solved task costs", [Paragraph("No cost is known.")])
    columns = [
        _MODEL,
        field_column("episodes", "episodes", count),
        field_column("solved", "solved", count),
        field_column("per episode", "cost_per_episode_usd", usd),
        field_column("per solved task", "cost_per_solved_usd", usd),
        Column("95% interval", _cost_interval),
        field_column("of unknown cost", "unknown_cost", count),
        reason_column(),
    ]
    explained = (
        "All money spent on scored episodes of the baseline over the tasks they solved, at the prices of the manifest. "
        "Prices of scripted agents are notional. An episode of unknown usage has no cost, rather than none."
    )
    return Section(
        "costs", "What a solved task costs", [Paragraph(explained), table("Cost at the baseline", own, columns)]
    )


def _cost_interval(row: Mapping[str, object]) -> str:
    return f"{usd(row['ci_low'])} to {usd(row['ci_high'])}" if known(row["ci_low"]) else NOTHING
