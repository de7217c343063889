"""The calibration table: each measure over all studies, beside its nominal value and its Monte-Carlo error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from flows.calibration.measures import BIAS, COVERAGE, FALSE, Found, Key
from flows.stats.columns import Field, build_table

ERRORS = 3.0
"""A measure misses its nominal value when it is beyond it by more than so many Monte-Carlo errors."""
FEWEST = 10
"""Studies from which a Monte-Carlo error is known well enough to call a miss."""

FIELDS: dict[str, Field] = {
    "population": Field("str", "what the studies were drawn from"),
    "instances": Field("int64", "instances per stratum"),
    "table": Field("str", "the table that is measured"),
    "quantity": Field("str", "interval, test or estimate"),
    "scope": Field("str", "rows that it speaks of"),
    "measure": Field(
        "str",
        "`coverage`: share of intervals that hold the true value; `false conclusions`: share of tests that say what "
        "is not so; `right conclusions`: share that say what is so (power); `bias`: mean error of the estimate",
    ),
    "nominal": Field(
        "Float64", "what is promised: coverage at least, false conclusions at most, bias 0; null: nothing is"
    ),
    "value": Field("Float64", "what was measured"),
    "mc_error": Field("Float64", "its standard error over studies; null with a single study"),
    "truth": Field("Float64", "the true value, where the rows have a single one"),
    "studies": Field("int64", "studies that had such a row"),
    "rows": Field("int64", "rows over all studies"),
    "misses": Field(
        "boolean",
        f"beyond the nominal value by more than {ERRORS:g} Monte-Carlo errors; null: no promise, or too few studies",
    ),
}
"""Columns of the calibration table."""


def summarise(population: str, instances: int, studies: Sequence[Iterable[Found]]) -> pd.DataFrame:
    """One row per measure, columns as in `FIELDS`, in the order of the tables.

    The unit of the Monte-Carlo error is the study: rows of one study depend on each other. Its variance has half a
    pseudo-study on either side for a share, so that one that was never (or always) seen has an error above 0.
    """
    totals: dict[Key, list[tuple[float, int]]] = {}
    truths: dict[Key, set[float | None]] = {}
    for study in studies:
        own: dict[Key, list[float]] = {}
        for found in study:
            own.setdefault(found.key, []).append(found.value)
            truths.setdefault(found.key, set()).add(found.truth)
        for key, values in own.items():
            totals.setdefault(key, []).append((math.fsum(values), len(values)))
    order = {name: position for position, name in enumerate(dict.fromkeys(key.table for key in totals))}
    rows = [
        {"population": population, "instances": instances, **_row(key, totals[key]), "truth": _single(truths[key])}
        for key in sorted(totals, key=lambda key: (order[key.table], key.measure, key.quantity, key.scope))
    ]
    return build_table(rows, FIELDS)


def _single(values: set[float | None]) -> float | None:
    return next(iter(values)) if len(values) == 1 else None


def _row(key: Key, totals: Sequence[tuple[float, int]]) -> Mapping[str, object]:
    sums, counts = np.array([total for total, _ in totals]), np.array([count for _, count in totals])
    value = float(sums.sum() / counts.sum())
    error = _error(key, sums, counts, value)
    return {
        **key._asdict(),
        "value": value,
        "mc_error": error,
        "studies": len(totals),
        "rows": int(counts.sum()),
        "misses": _misses(key, value, error, len(totals)),
    }


def _error(key: Key, sums: np.ndarray, counts: np.ndarray, value: float) -> float | None:
    """Of a ratio of sums over studies (cluster linearisation)."""
    studies = len(sums)
    if studies < 2:
        return None
    residual = sums - value * counts
    error = math.sqrt(studies / (studies - 1) * float((residual**2).sum())) / float(counts.sum())
    if key.measure == BIAS:
        return error
    added = (value * studies + 0.5) / (studies + 1)
    floor = math.sqrt(added * (1 - added) / studies) if counts.max() == 1 else 0.0
    return max(error, floor)


def _misses(key: Key, value: float, error: float | None, studies: int) -> bool | None:
    if key.nominal is None or error is None or studies < FEWEST:
        return None
    beyond = {COVERAGE: key.nominal - value, FALSE: value - key.nominal, BIAS: abs(value - key.nominal)}[key.measure]
    return beyond > ERRORS * error + 1e-12


def missed(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that miss their nominal value."""
    return table[table["misses"].fillna(False).astype(bool)]
