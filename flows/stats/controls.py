"""Negative controls: axes that cannot move a score, and so measure the study's own noise.

Resampled instances come from the same generator, and with one task per conversation the order of presentation
reaches no agent. About 5% of single 95% intervals exclude 0 by chance on such an axis; only the overall delta,
after Holm's correction over the controls, would indict the pipeline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from flows.stats.cells import MEAN_LEVEL, score_cube
from flows.stats.clusters import control_axes
from flows.stats.columns import SCOPE_FIELDS, Field, build_table
from flows.stats.deltas import build_contrast, estimate_contrasts
from flows.stats.estimate import Estimate
from flows.stats.intervals import z_quantile
from flows.stats.multiplicity import holm
from flows.stats.scopes import Scope, all_scopes

ALPHA = 0.05

FIELDS: dict[str, Field] = {
    **SCOPE_FIELDS,
    "axis": Field("str", "negative control"),
    "n": Field("int64", "instances compared (of the smaller arm if unpaired); conversations, where they carry context"),
    "delta": Field("float64", "mean over the axis's levels of perturbed minus baseline rate; truly 0"),
    "ci_low": Field("float64", "lower end of the 95% interval"),
    "ci_high": Field("float64", "upper end of the 95% interval"),
    "excludes_zero": Field("boolean", "whether the 95% interval excludes 0"),
    "noise_floor": Field(
        "float64",
        "1.96 standard deviations of a delta of this scope when nothing is different, from the spread of the "
        "axis's deltas about 0: of all cells where the scope is about one model, of all strata where it is a mean over "
        "models",
    ),
    "intervals": Field("int64", "cell intervals on this axis"),
    "intervals_excluding_zero": Field("int64", "how many of them exclude 0"),
    "intervals_expected": Field("float64", "how many would by chance"),
    "p": Field("float64", "two-sided p value, by inverting the interval; overall rows only"),
    "p_holm": Field("float64", "p after Holm's correction over the controls; overall rows only"),
    "indicts_pipeline": Field("boolean", "whether p_holm is below .05; overall rows only"),
    "reason": Field("str", "why the delta or its interval is undefined"),
}
"""Columns of `negative_controls`."""


def negative_controls(
    frame: pd.DataFrame,
    *,
    seed: int,
    resamples: int = 10_000,
    controls: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Deltas of the negative controls and the noise floor they measure, one row per control x scope.

    Args:
        frame: Results of one benchmark.
        controls: Axes that cannot move a score in this study; null: `control_axes`, without order when context is
            carried from task to task. An axis without rows is left out.

    Returns:
        Columns as in `FIELDS`.
    """
    cube = score_cube(frame)
    axes = [axis for axis in sorted(control_axes(frame) if controls is None else controls) if axis in cube.axes()]
    contrasts = [build_contrast(cube, scope, axis, MEAN_LEVEL) for axis in axes for scope in all_scopes(cube)]
    estimates = estimate_contrasts(contrasts, seed=seed, resamples=resamples)
    found: dict[str, dict[Scope, Estimate]] = {axis: {} for axis in axes}
    for contrast, estimate in zip(contrasts, estimates, strict=True):
        found[contrast.axis][contrast.scope] = estimate
    rows = []
    for axis in axes:
        by_scope = found[axis]
        cells = [excludes(estimate) for scope, estimate in by_scope.items() if scope.name == "cell"]
        defined = [one for one in cells if one is not None]
        for scope, estimate in by_scope.items():
            low, high = estimate.interval()
            row: dict[str, Any] = {
                **scope.labels(cube),
                "axis": axis,
                "n": estimate.n,
                "delta": estimate.value,
                "ci_low": low,
                "ci_high": high,
                "excludes_zero": excludes(estimate),
                "noise_floor": noise_floor(by_scope, scope),
                "intervals": len(defined),
                "intervals_excluding_zero": sum(defined),
                "intervals_expected": ALPHA * len(defined),
                "reason": estimate.reason,
            }
            if scope.name == "overall":
                row["p"] = estimate.p_value()
            rows.append(row)
    overall = [row for row in rows if row["scope"] == "overall"]
    for row, adjusted in zip(overall, holm([row["p"] for row in overall]), strict=True):
        row["p_holm"] = adjusted
        row["indicts_pipeline"] = None if adjusted is None else adjusted < ALPHA
    return build_table(rows, FIELDS)


def excludes(estimate: Estimate, null: float = 0.0, confidence: float = 0.95) -> bool | None:
    """Whether the interval excludes a value; null if it is undefined."""
    low, high = estimate.interval(confidence)
    return None if low is None or high is None else not low <= null <= high


def noise_floor(deltas: Mapping[Scope, Estimate], scope: Scope) -> float | None:
    """1.96 standard deviations of a scope's delta under no effect.

    The variance of a delta whose true value is 0 is estimated by its square. The delta of several strata is the
    equal-weight mean of its cells' (one model) or of its strata's (mean over models), so that its variance is the mean
    square of all such parts over the number of strata that it averages.

    Args:
        deltas: The control's deltas in every scope.

    Returns:
        Null if no part has a delta.
    """
    parts = "cell" if scope.one_model else "stratum"
    values = {
        one: estimate.value for one, estimate in deltas.items() if one.name == parts and estimate.value is not None
    }
    averaged = len({one.strata for one in values if one.strata[0] in scope.strata})
    if not averaged:
        return None
    mean_square = math.fsum(value**2 for value in values.values()) / len(values)
    return z_quantile(1 - ALPHA) * math.sqrt(mean_square / averaged)
