"""Gaps between pairs of models, and how an axis changes them: the inferential side of rank stability."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from flows.stats.cells import (
    BASELINE,
    MEAN_LEVEL,
    UNPAIRED_AXES,
    Condition,
    FloatArray,
    ScoreCube,
    Stratum,
    score_cube,
)
from flows.stats.columns import Field, build_table
from flows.stats.contrasts import difference_unpaired, paired_estimates, stratified_draws
from flows.stats.estimate import Estimate
from flows.stats.pooling import Part, Term, pool
from flows.stats.rates import instance_set
from flows.stats.scopes import Scope, equal_shares, missing_strata

_TIE = 1e-5
"""Resampled gaps closer to 0 than this are ties: they are float32 sums of multiples of 1/runs."""

FIELDS: dict[str, Field] = {
    "axis": Field("str", "perturbation axis"),
    "level": Field("str", "level of the axis, or `mean` for the mean over levels"),
    "model_a": Field("str", "first model of the pair, in alphabetical order"),
    "model_b": Field("str", "second model of the pair"),
    "n": Field("int64", "instances scored for both models (in both conditions if the axis is paired)"),
    "gap_baseline": Field("float64", "pass rate of model_a minus that of model_b at the baseline"),
    "gap_baseline_low": Field("float64", "lower end of its 95% interval"),
    "gap_baseline_high": Field("float64", "upper end of its 95% interval"),
    "gap_perturbed": Field("float64", "the same at the level"),
    "gap_perturbed_low": Field("float64", "lower end of its 95% interval"),
    "gap_perturbed_high": Field("float64", "upper end of its 95% interval"),
    "gap_change": Field("float64", "gap_perturbed - gap_baseline"),
    "gap_change_low": Field("float64", "lower end of its 95% interval"),
    "gap_change_high": Field("float64", "upper end of its 95% interval"),
    "method": Field("str", "method of the interval of the change"),
    "win_baseline": Field("float64", "P(model_a scores higher) + P(tie)/2 over resamples of instances, baseline"),
    "win_perturbed": Field("float64", "the same at the level"),
    "confirmed_flip": Field("boolean", "both gaps' intervals exclude 0, with opposite signs; null if undefined"),
    "missing_strata": Field("str", "strata (or level/stratum) where the pair cannot be compared"),
    "reason": Field("str", "why the change or its interval is undefined"),
}
"""Columns of `pair_gaps`."""


@dataclass(frozen=True)
class _Pair:
    """One pair at one level; each tuple of parts is empty if the pair cannot be compared."""

    axis: str
    level: str
    models: tuple[int, int]
    baseline: tuple[Part, ...]
    perturbed: tuple[Part, ...]
    change: tuple[Part, ...]
    missing: tuple[str, ...]


def pair_gaps(frame: pd.DataFrame, *, seed: int, resamples: int = 10_000) -> pd.DataFrame:
    """Gap of each pair of models at the baseline and at a level, and its change.

    Gaps have equal weight on strata. Intervals as for any paired difference; on an unpaired axis the change
    combines the two gaps' intervals by MOVER.

    Args:
        frame: Results of one benchmark.

    Returns:
        Columns as in `FIELDS`, one row per axis x level (also `mean`) x pair; no row with fewer than two models.
    """
    cube = score_cube(frame)
    pairs = [
        _build_pair(cube, axis, level, models)
        for axis in cube.axes()
        for level in (MEAN_LEVEL, *cube.levels(axis))
        for models in itertools.combinations(range(len(cube.models)), 2)
    ]
    gaps = [parts for pair in pairs for parts in (pair.baseline, pair.perturbed)]
    gap_estimates = paired_estimates(gaps, seed=seed, resamples=resamples)
    wins = _win_probabilities(gaps, seed=seed, resamples=resamples)
    paired = paired_estimates([pair.change for pair in pairs], seed=seed, resamples=resamples, reach=2.0)
    rows = []
    for position, (pair, change) in enumerate(zip(pairs, paired, strict=True)):
        baseline, perturbed = gap_estimates[2 * position], gap_estimates[2 * position + 1]
        if pair.axis in UNPAIRED_AXES:
            change = difference_unpaired(perturbed, baseline)
        rows.append(
            {
                **_row(cube, pair, baseline, perturbed, change),
                "win_baseline": wins[2 * position],
                "win_perturbed": wins[2 * position + 1],
            }
        )
    return build_table(rows, FIELDS)


def _row(cube: ScoreCube, pair: _Pair, baseline: Estimate, perturbed: Estimate, change: Estimate) -> dict[str, Any]:
    row: dict[str, Any] = {
        "axis": pair.axis,
        "level": pair.level,
        "model_a": cube.models[pair.models[0]],
        "model_b": cube.models[pair.models[1]],
        "n": change.n,
        "method": change.method,
        "confirmed_flip": confirmed_flip(baseline, perturbed),
        "missing_strata": "; ".join(pair.missing),
        "reason": "no instance scored for both models" if change.value is None else change.reason,
    }
    for name, estimate in (("gap_baseline", baseline), ("gap_perturbed", perturbed), ("gap_change", change)):
        row[name] = estimate.value
        row[f"{name}_low"], row[f"{name}_high"] = estimate.interval()
    return row


def confirmed_flip(baseline: Estimate, perturbed: Estimate, confidence: float = 0.95) -> bool | None:
    """Whether both gaps differ from 0 with opposite signs; null if an interval is undefined."""
    first, second = baseline.interval(confidence), perturbed.interval(confidence)
    if first[0] is None or second[0] is None:
        return None
    return (first[0] > 0 and second[1] < 0) or (first[1] < 0 and second[0] > 0)


def _build_pair(cube: ScoreCube, axis: str, level: str, models: tuple[int, int]) -> _Pair:
    levels = cube.levels(axis) if level == MEAN_LEVEL else (level,)
    paired = axis not in UNPAIRED_AXES

    def gap(stratum: Stratum, condition: Condition) -> FloatArray:
        return cube.values(stratum, models[0], condition) - cube.values(stratum, models[1], condition)

    def gaps(stratum: Stratum, one: str) -> tuple[FloatArray, FloatArray]:
        first, second = gap(stratum, BASELINE), gap(stratum, Condition(axis, one))
        if paired:
            both = ~(np.isnan(first) | np.isnan(second))
            first, second = np.where(both, first, np.nan), np.where(both, second, np.nan)
        return first, second

    scope = Scope("pair", (models[0],), cube.strata)

    def has(_: int, stratum: Stratum, one: str) -> bool:
        return not any(bool(np.isnan(values).all()) for values in gaps(stratum, one))

    shares = equal_shares(scope, levels, has)
    baseline, perturbed, change = [], [], []
    for share in shares:
        first, second = gaps(share.stratum, share.level)
        home = instance_set(share.stratum, BASELINE)
        baseline.append(Term(share.weight, home, first))
        perturbed.append(Term(share.weight, instance_set(share.stratum, Condition(axis, share.level)), second))
        if paired:
            change.append(Term(share.weight, home, second - first))
    missing = tuple(
        name.removeprefix(f"{cube.models[models[0]]}/") for name in missing_strata(scope, levels, shares, cube)
    )
    return _Pair(axis, level, models, pool(baseline), pool(perturbed), pool(change), missing)


def _win_probabilities(
    gaps: list[tuple[Part, ...]], *, seed: int, resamples: int, block: int = 256
) -> list[float | None]:
    wins: list[float | None] = []
    for start in range(0, len(gaps), block):
        draws = stratified_draws(gaps[start : start + block], seed=seed, resamples=resamples)
        for parts, row in zip(gaps[start : start + block], draws, strict=True):
            ties = np.abs(row) <= _TIE
            wins.append(float(((row > _TIE) + ties / 2).mean()) if parts else None)
    return wins
