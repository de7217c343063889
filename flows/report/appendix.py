"""How it was computed: methods, their measured coverage if any was measured, and the meaning of every column."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from flows.report.blocks import Block, Column, Facts, Fold, Paragraph, Section, Verbatim, field_column, table
from flows.report.calibration import Calibration
from flows.report.glossary import TABLES
from flows.report.wording import count, decimal, percent, size, text

METHODS = (
    (
        "what is resampled",
        "The instance; where context is carried from task to task, the conversation. Episodes of one instance are "
        "never treated as independent of each other.",
    ),
    (
        "pass rate of a cell",
        "Mean over instances of the mean over run seeds. Interval: anchored Bayesian cluster bootstrap, that is "
        "exponential weights on the instances and half a pseudo-pass and half a pseudo-fail. With one run per "
        "instance it is the Jeffreys interval. At 100% the upper end is 100%, at 0% the lower end 0%.",
    ),
    (
        "pass rate over cells",
        "Equal weight on every stratum, then on every model. Interval: Jeffreys, on the effective number of "
        "episodes that the clustered variance is worth (`jeffreys on n_eff`).",
    ),
    (
        "change on a paired axis",
        "Differences within instances that are complete in both arms. With fewer than ten differences that are not"
        " zero: Tango's score interval (`tango`), never empty, even where nothing differs. Else, with fewer than "
        "ten instances in some stratum: a t interval over strata (`stratified t`); else the percentile bootstrap "
        "with widened tails (`expanded percentile`). Strata missing in an arm are dropped from both and listed.",
    ),
    (
        "change on an unpaired axis",
        "New instances cannot be paired with the old ones: the two arms' intervals are combined by the method of "
        "variance estimates recovery (`mover`).",
    ),
    (
        "noise floor",
        "1.96 standard deviations of the changes on a negative control, taken about zero, at the scope (one model,"
        " or the mean of all) at which a change is read.",
    ),
    (
        "range over levels",
        "Largest minus smallest pass rate over an axis's levels, beside the same under permutations of the level "
        "labels of whole blocks of runs within instances, the baseline left out.",
    ),
    (
        "ranking",
        "Kendall's tau-b, and concordance C beside its floor C0 under permutations of the condition labels in "
        "blocks of runs within instances, the same for all models.",
    ),
    (
        "repetition",
        "pass^k without bias: the share of k-sets of an instance's runs that all passed. Shares of flips and of "
        "equal paths have the interval of a pass rate.",
    ),
    (
        "cost per solved task",
        "Money over solved tasks, failed attempts included; interval by resampling instances.",
    ),
    (
        "infrastructure errors",
        "In no rate. Rate with Wilson's interval; bounds of the pass rate count every such episode as failed, and "
        "as passed.",
    ),
    (
        "variance components",
        "Crossed random effects of model, level, instance and run on the linear probability scale, strata fixed, "
        "by expected mean squares, or by Henderson's method I where episodes are missing. Models and levels are "
        "held fixed in the intervals. Negative estimates are kept.",
    ),
    (
        "power",
        "Two-sided test at 5%, normal approximation, the study's own variances. For any equivalent prompt the "
        "variance over prompts enters (model × level, over all strata alike and within each), which does not shrink "
        "with instances.",
    ),
    (
        "hypotheses",
        "Directional: supported if the 95% interval lies beyond zero, else refuted if it lies wholly below the "
        "smallest effect of interest, else inconclusive. Equivalence: supported if the 90% interval lies within "
        "the smallest effect on both sides (two one-sided tests), refuted if the 95% interval lies beyond it. P "
        "values invert these intervals; Holm's correction over the verdicts of all registered texts, an amended "
        "hypothesis counting beside the one it replaces, for support and for refutation separately.",
    ),
    (
        "reproduction",
        "All resampling draws from one seed. Neither the order of the rows nor the machine's settings change a "
        "byte of tables and figures.",
    ),
)
"""Term and method."""

COVERAGE, FALSE = "coverage", "false conclusions"
"""Of the kinds of measure in a calibration, those that promise something in per cent."""
_SEVERAL = ("all hypotheses", "any of ")
"""How a measure of several hypotheses begins; those of single ones stand in the full list."""


def methods(calibration: Calibration) -> Section:
    """The methods and what was measured of them."""
    origin = (
        "The table ships with the code that wrote this report"
        if calibration.shipped
        else "The table was made beside these results"
    )
    rows = calibration.rows
    promised = rows[rows["misses"].notna()]
    missed = promised[promised["misses"].astype(bool)]
    blocks: list[Block] = [
        Facts(METHODS),
        Paragraph(
            "What these methods promise was measured on simulated studies whose truth is known: outcomes drawn from "
            "the documented error model of the scripted agents and analyzed by the same code. Three populations: "
            "`scripted`, the agents as documented; `correlated`, where runs of one instance depend on each other; `no "
            "effects`, where no change matters either. " + origin + "; the command that made it:"
        ),
        Verbatim(calibration.command or "unknown"),
        _measured(rows, COVERAGE, "Share of 95% intervals that hold the true value; 95% or more is promised"),
        _measured(rows, FALSE, "Share of false conclusions; as much as stated is allowed"),
        Paragraph(
            f"{count(len(missed))} of {count(len(promised))} measures are beyond what is promised by more than three "
            "standard errors of the simulation" + (":" if len(missed) else ".")
        ),
    ]
    if len(missed):
        blocks.append(_every(missed, "Measures that miss what is promised"))
    everything = (_every(rows, "Every measure"),)
    blocks.append(Fold(f"All {count(len(rows))} measures, with power and bias", everything, printed=False))
    return Section("methods", "Methods, and how well they do what they promise", blocks)


def _measured(rows: pd.DataFrame, measure: str, caption: str) -> Block:
    """One row per table and interval or test: the worst of populations and scopes, and the mean."""
    single = (rows["table"] == "verdicts") & ~rows["quantity"].str.startswith(_SEVERAL)
    own = rows[(rows["measure"] == measure) & rows["nominal"].notna() & ~single]
    found = []
    for (name, quantity), group in own.groupby(["table", "quantity"], sort=False):
        worst = group.sort_values("value", ascending=measure == COVERAGE, kind="stable").iloc[0]
        weights = group["rows"].astype(float)
        found.append(
            {
                "table": name,
                "quantity": quantity,
                "promised": group["nominal"].iloc[0],
                "mean": float((group["value"].astype(float) * weights).sum() / weights.sum()),
                "worst": worst["value"],
                "error": worst["mc_error"],
                "where": f"{worst['population']}, {worst['scope']}",
                "rows": int(group["rows"].sum()),
            }
        )
    columns = [
        field_column("table", "table", text, numeric=False),
        field_column("interval or test", "quantity", text, numeric=False),
        field_column("promised", "promised", percent),
        field_column("mean", "mean", percent),
        field_column("worst", "worst", percent),
        Column("± of the worst", lambda row: size(row["error"])),
        field_column("worst in", "where", text, numeric=False),
        field_column("cases", "rows", count),
    ]
    return table(caption, pd.DataFrame(found), columns, empty="Not measured.")


def _every(rows: pd.DataFrame, caption: str) -> Block:
    columns = [
        field_column("population", "population", text, numeric=False),
        field_column("table", "table", text, numeric=False),
        field_column("interval, test or estimate", "quantity", text, numeric=False),
        field_column("scope", "scope", text, numeric=False),
        field_column("measure", "measure", text, numeric=False),
        Column("promised", lambda row: decimal(row["nominal"], 3)),
        Column("measured", lambda row: decimal(row["value"], 4)),
        Column("±", lambda row: decimal(row["mc_error"], 4)),
        field_column("cases", "rows", count),
    ]
    return table(caption, rows, columns)


def dictionary(columns: Mapping[str, Mapping[str, str]], tables: Mapping[str, pd.DataFrame]) -> Section:
    """The meaning of every column of every table that the analysis wrote."""
    blocks: list[Block] = [
        Paragraph(
            "The full tables lie beside this report in `tables/`, as Parquet, which is exact, and as CSV for "
            "spreadsheets: UTF-8 with a byte order mark, and with an apostrophe before any text that a spreadsheet "
            "would read as a formula. Rates and differences are fractions there. `figures/` holds every figure as PNG "
            "and SVG, with the plotted data as Parquet. `columns.csv` and `tables.csv` say what follows here."
        )
    ]
    for name, meanings in columns.items():
        rows = pd.DataFrame(list(meanings.items()), columns=["column", "meaning"])
        extent = f", {count(len(tables[name]))} rows" if name in tables else ""
        fields = [
            Column("column", lambda row: str(row["column"]), False),
            Column("meaning", lambda row: str(row["meaning"]), False),
        ]
        said: tuple[Block, ...] = (Paragraph(TABLES[name]),) if name in TABLES else ()
        blocks.append(Fold(f"{name}{extent}", (*said, table(f"Columns of {name}", rows, fields))))
    return Section("dictionary", "Tables and columns", blocks)
