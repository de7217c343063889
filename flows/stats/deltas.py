"""Axis deltas: perturbed minus baseline pass rate, with intervals.

On a paired axis an instance is compared with itself; on an unpaired one (instance resampling) the intervals of
two rates are combined. Every difference is averaged with equal weight over strata, then over the levels of the
axis, then over models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
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
from flows.stats.columns import SCOPE_FIELDS, Field, build_table
from flows.stats.contrasts import difference_unpaired, nonzero_count, paired_estimates, rate_estimates
from flows.stats.estimate import Estimate, undefined
from flows.stats.paired_tests import mcnemar
from flows.stats.pooling import Part, Term, pool, pooled_mean
from flows.stats.rates import instance_set
from flows.stats.scopes import Scope, Share, all_scopes, equal_shares, missing_strata

FIELDS: dict[str, Field] = {
    **SCOPE_FIELDS,
    "axis": Field("str", "perturbation axis"),
    "level": Field("str", "level of the axis, or `mean` for the mean over its levels"),
    "paired": Field("bool", "whether an instance is compared with itself"),
    "n": Field(
        "int64",
        "instances compared (paired), or of the smaller arm (unpaired); conversations, where they carry context",
    ),
    "n_nonzero": Field("Int64", "instances (or conversations, as n) whose difference is not 0; null if unpaired"),
    "baseline_rate": Field("float64", "pass rate of the baseline arm, on the instances and strata compared"),
    "perturbed_rate": Field("float64", "pass rate of the perturbed arm, on the instances and strata compared"),
    "delta": Field("float64", "perturbed minus baseline rate"),
    "ci_low": Field("float64", "lower end of the 95% interval"),
    "ci_high": Field("float64", "upper end of the 95% interval"),
    "method": Field("str", "method of the interval"),
    "mcnemar_p": Field("float64", "exact McNemar p value; cells of a paired axis with one run per instance only"),
    "mcnemar_mid_p": Field("float64", "its mid-p value"),
    "degenerate": Field("boolean", "both arms passed everything, or failed everything: nothing could have moved"),
    "missing_strata": Field("str", "strata (or model/level/stratum) missing in an arm and dropped from both"),
    "reason": Field("str", "why the delta or its interval is undefined"),
}
"""Columns of `axis_deltas`."""


@dataclass(frozen=True)
class Contrast:
    """Perturbed against baseline for one scope and level, before its interval is known."""

    scope: Scope
    axis: str
    level: str
    missing: tuple[str, ...]
    differences: tuple[Part, ...]
    """Per-instance differences; empty on an unpaired axis."""
    baseline: tuple[Part, ...]
    perturbed: tuple[Part, ...]
    """The two arms, on what both have; empty if nothing can be compared."""

    @property
    def paired(self) -> bool:
        """Whether an instance is compared with itself."""
        return self.axis not in UNPAIRED_AXES

    @property
    def degenerate(self) -> bool | None:
        """Whether both arms passed everything or failed everything; null if there is nothing to compare."""
        if not self.baseline:
            return None
        rates = {pooled_mean(self.baseline), pooled_mean(self.perturbed)}
        return rates in ({0.0}, {1.0})


def build_contrast(cube: ScoreCube, scope: Scope, axis: str, level: str) -> Contrast:
    """The instances, differences and arms of one contrast; `level` may be `mean`."""
    levels = cube.levels(axis) if level == MEAN_LEVEL else (level,)
    paired = axis not in UNPAIRED_AXES

    @cache
    def arms(model: int, stratum: Stratum, one: str) -> tuple[FloatArray, FloatArray]:
        first = cube.values(stratum, model, BASELINE)
        second = cube.values(stratum, model, Condition(axis, one))
        if paired:
            both = ~(np.isnan(first) | np.isnan(second))
            first, second = np.where(both, first, np.nan), np.where(both, second, np.nan)
        return first, second

    def has(model: int, stratum: Stratum, one: str) -> bool:
        return not any(bool(np.isnan(arm).all()) for arm in arms(model, stratum, one))

    shares = equal_shares(scope, levels, has)
    baseline, perturbed, differences = [], [], []
    for share in shares:
        first, second = arms(share.model, share.stratum, share.level)
        condition = Condition(axis, share.level)
        sample = instance_set(share.stratum, condition)
        home = instance_set(share.stratum, BASELINE)
        baseline.append(Term(share.weight, home, first, _episodes(cube, share, BASELINE, first)))
        perturbed.append(Term(share.weight, sample, second, _episodes(cube, share, condition, second)))
        if paired:
            differences.append(Term(share.weight, home, second - first))
    return Contrast(
        scope,
        axis,
        level,
        missing_strata(scope, levels, shares, cube),
        pool(differences),
        pool(baseline),
        pool(perturbed),
    )


def _episodes(cube: ScoreCube, share: Share, condition: Condition, values: FloatArray) -> int:
    position = cube.index(condition)
    assert position is not None
    return int(cube.runs[share.stratum][~np.isnan(values), share.model, position].sum())


def estimate_contrasts(contrasts: Sequence[Contrast], *, seed: int, resamples: int) -> list[Estimate]:
    """Each contrast with its interval, all sharing one set of resamples."""
    differences = [contrast.differences if contrast.paired else () for contrast in contrasts]
    paired = paired_estimates(differences, seed=seed, resamples=resamples)
    unpaired = [k for k, contrast in enumerate(contrasts) if not contrast.paired]
    arms = [parts for k in unpaired for parts in (contrasts[k].perturbed, contrasts[k].baseline)]
    rates = rate_estimates(arms, seed=seed, resamples=resamples)
    estimates = list(paired)
    for position, k in enumerate(unpaired):
        estimates[k] = difference_unpaired(rates[2 * position], rates[2 * position + 1])
    return [
        replace(
            estimate,
            degenerate=bool(contrast.degenerate),
            notes=contrast.missing,
            reason=_missing_reason(contrast) if estimate.value is None else estimate.reason,
        )
        for contrast, estimate in zip(contrasts, estimates, strict=True)
    ]


def _missing_reason(contrast: Contrast) -> str:
    return "no instance scored in both arms" if contrast.paired else "no stratum scored in both arms"


def axis_contrast(
    frame: pd.DataFrame,
    axis: str,
    level: str = MEAN_LEVEL,
    *,
    seed: int,
    resamples: int = 10_000,
    model: str | None = None,
    stratum: tuple[str, str] | None = None,
) -> Estimate:
    """Perturbed minus baseline pass rate on one axis, as an estimate that gives any confidence and p value.

    Args:
        frame: Results of one benchmark.
        level: A level of the axis, or `mean` for the mean over its levels.
        model: One model; all with equal weight if null.
        stratum: One (family, difficulty); all with equal weight if null.

    Returns:
        Undefined, with a reason, if the axis, level, model or stratum has no data. `notes` lists what was
        dropped because an arm lacked it.
    """
    cube = score_cube(frame)
    if model is not None and model not in cube.models:
        return undefined(f"no row for model {model}")
    if stratum is not None and Stratum(*stratum) not in cube.strata:
        return undefined(f"no row for stratum {Stratum(*stratum)}")
    name = {(True, True): "overall", (True, False): "stratum", (False, True): "model", (False, False): "cell"}
    scope = Scope(
        name[model is None, stratum is None],
        tuple(range(len(cube.models))) if model is None else (cube.models.index(model),),
        cube.strata if stratum is None else (Stratum(*stratum),),
    )
    (estimate,) = scope_contrasts(cube, scope, [(axis, level)], seed=seed, resamples=resamples)
    return estimate


def scope_contrasts(
    cube: ScoreCube, scope: Scope, wanted: Sequence[tuple[str, str]], *, seed: int, resamples: int
) -> list[Estimate]:
    """Perturbed minus baseline pass rate of a scope at each (axis, level or `mean`), as `axis_contrast` gives it."""
    reasons = [_lacking(cube, axis, level) for axis, level in wanted]
    contrasts = [
        build_contrast(cube, scope, *one) for one, reason in zip(wanted, reasons, strict=True) if reason is None
    ]
    found = iter(estimate_contrasts(contrasts, seed=seed, resamples=resamples))
    return [next(found) if reason is None else undefined(reason) for reason in reasons]


def _lacking(cube: ScoreCube, axis: str, level: str) -> str | None:
    """Why a contrast has no row at all; null if both arms have some."""
    known = cube.levels(axis)
    if not known or (level != MEAN_LEVEL and level not in known):
        return f"no row for axis {axis}" if not known else f"no row for level {level} of axis {axis}"
    return None if cube.index(BASELINE) is not None else "no baseline row"


def axis_deltas(frame: pd.DataFrame, *, seed: int, resamples: int = 10_000) -> pd.DataFrame:
    """Deltas with intervals, one row per scope x axis x level, each axis also at level `mean`.

    Args:
        frame: Results of one benchmark.

    Returns:
        Columns as in `FIELDS`; overall first, then models, strata and cells. A cell that was never compared is a
        row with a reason.
    """
    cube = score_cube(frame)
    contrasts = [
        build_contrast(cube, scope, axis, level)
        for scope in all_scopes(cube)
        for axis in cube.axes()
        for level in (MEAN_LEVEL, *cube.levels(axis))
    ]
    estimates = estimate_contrasts(contrasts, seed=seed, resamples=resamples)
    return build_table(
        [delta_row(cube, contrast, estimate) for contrast, estimate in zip(contrasts, estimates, strict=True)],
        FIELDS,
    )


def delta_row(cube: ScoreCube, contrast: Contrast, estimate: Estimate) -> dict[str, Any]:
    """One row of `axis_deltas`."""
    low, high = estimate.interval()
    known = bool(contrast.baseline)
    return {
        **contrast.scope.labels(cube),
        "axis": contrast.axis,
        "level": contrast.level,
        "paired": contrast.paired,
        "n": estimate.n,
        "n_nonzero": nonzero_count(contrast.differences) if contrast.paired else None,
        "baseline_rate": pooled_mean(contrast.baseline) if known else None,
        "perturbed_rate": pooled_mean(contrast.perturbed) if known else None,
        "delta": estimate.value,
        "ci_low": low,
        "ci_high": high,
        "method": estimate.method,
        **_mcnemar_columns(contrast),
        "degenerate": contrast.degenerate,
        "missing_strata": "; ".join(contrast.missing),
        "reason": estimate.reason,
    }


def _mcnemar_columns(contrast: Contrast) -> dict[str, Any]:
    """McNemar's test where every difference is one run against one run."""
    single = all(
        len(parts) == 1 and parts[0].episodes == parts[0].n for parts in (contrast.baseline, contrast.perturbed)
    )
    if contrast.scope.name != "cell" or len(contrast.differences) != 1 or not single:
        return {}
    differences = contrast.differences[0].raw
    test = mcnemar(int((differences > 0).sum()), int((differences < 0).sum()))
    return {"mcnemar_p": test.exact, "mcnemar_mid_p": test.mid_p}
