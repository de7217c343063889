"""How it was computed: methods, their measured coverage if any was measured, and the meaning of every column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_float_dtype, is_numeric_dtype

from flows.report.blocks import Block, Column, Fold, Listing, Paragraph, Section, Verbatim, table
from flows.report.calibration import Calibration
from flows.report.wording import count, decimal, text, yes_no

METHODS = (
    "What is resampled is the instance (with context carried from task to task, the conversation). Episodes of one "
    "instance are never treated as independent.",
    "Pass rate of a cell: mean over instances of the mean over runs; anchored Bayesian cluster bootstrap (exponential "
    "weights on instances, half a pseudo-pass and half a pseudo-fail), which with one run is the Jeffreys interval. "
    "Over strata: equal weights, and the Jeffreys interval on the effective number of episodes.",
    "Change on a paired axis: differences within instances. With at least ten that are not zero the expanded "
    "percentile bootstrap, otherwise Tango's score interval, which is not empty even where nothing differs. New "
    "instances are unpaired: the two arms' intervals are combined by MOVER.",
    "Ranks: tau-b and concordance C beside a floor from permuting condition labels in blocks of runs within "
    "instances, the same for all models.",
    "Variance components: crossed random effects on the linear probability scale, by expected mean squares, or by "
    "Henderson's method I where data are missing. Models and levels are held fixed in the intervals.",
    "Power: normal approximation with the study's own variances. For any equivalent prompt the model × level variance "
    "enters and does not shrink with instances.",
    "Hypotheses: a directional one is supported if its 95% interval lies beyond zero, refuted if it lies wholly below "
    "the smallest effect of interest, else inconclusive; an equivalence is supported by two one-sided tests. Holm's "
    "correction over the registration, for support and refutation separately.",
    "All resampling draws from one seed, and the order of the rows changes nothing.",
)


def methods(calibration: Calibration | None) -> Section:
    """The methods and what was measured of them."""
    blocks: list[Block] = [Listing(METHODS)]
    if calibration is None:
        blocks.append(
            Paragraph(
                "Measured coverage: none. No calibration was run beside these results, so how often these intervals "
                "cover the truth is here only what their definitions promise. `agent-bench calibration` measures it."
            )
        )
    else:
        blocks += [
            Paragraph("Measured on simulated studies with known truth, by this command:"),
            Verbatim(calibration.command),
            _calibration(calibration.rows),
        ]
    return Section("methods", "Methods", blocks)


def _calibration(rows: pd.DataFrame) -> Block:
    columns = [
        Column(str(name).replace("_", " "), _cell(str(name), rows[name]), is_numeric_dtype(rows[name]))
        for name in rows.columns
    ]
    return table("Measured against nominal", rows, columns)


def _cell(name: str, values: pd.Series) -> Any:
    if is_bool_dtype(values):
        return lambda row: yes_no(row[name])
    if is_float_dtype(values):
        return lambda row: decimal(row[name], 4)
    if is_numeric_dtype(values):
        return lambda row: count(row[name])
    return lambda row: text(row[name])


def dictionary(columns: Mapping[str, Mapping[str, str]], tables: Mapping[str, pd.DataFrame]) -> Section:
    """The meaning of every column of every table that the analysis wrote."""
    blocks: list[Block] = [
        Paragraph(
            "The full tables lie beside this report in `tables/`, as Parquet, which is exact, and as CSV for "
            "spreadsheets: UTF-8 with a byte order mark, and with an apostrophe before any text that a spreadsheet "
            "would read as a formula. Rates and differences are fractions there."
        )
    ]
    for name, meanings in columns.items():
        rows = pd.DataFrame(list(meanings.items()), columns=["column", "meaning"])
        size = f", {count(len(tables[name]))} rows" if name in tables else ""
        fields = [
            Column("column", lambda row: str(row["column"]), False),
            Column("meaning", lambda row: str(row["meaning"]), False),
        ]
        blocks.append(Fold(f"{name}{size}", (table(f"Columns of {name}", rows, fields),)))
    return Section("dictionary", "Tables and columns", blocks)
