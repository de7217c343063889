"""Does an agent that passes a task pass it again? pass^k, and instances whose outcome ever flips."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from flows.stats.cells import BASELINE, UNPAIRED_AXES, Condition, FloatArray, IntArray, ScoreCube, score_cube
from flows.stats.columns import SCOPE_FIELDS, Field, build_table
from flows.stats.contrasts import rate_estimates
from flows.stats.pooling import Part, Term, pool
from flows.stats.rates import episode_count, instance_set
from flows.stats.scopes import Scope, all_scopes, equal_shares

PASS_HAT_K = "pass_hat_k"
FLIPS_BETWEEN_RUNS = "flips_between_runs"
FLIPS_ON_AXIS = "flips_on_axis"

FIELDS: dict[str, Field] = {
    **SCOPE_FIELDS,
    "axis": Field("str", "perturbation axis; `none` for the baseline"),
    "level": Field("str", "level of the axis; `all` where the axis is taken as a whole"),
    "measure": Field(
        "str",
        f"`{PASS_HAT_K}`: chance that k runs of an instance all pass; `{FLIPS_BETWEEN_RUNS}`: share of instances "
        f"with both outcomes among the runs of one condition; `{FLIPS_ON_AXIS}`: share of instances with both "
        "outcomes among all runs of the baseline and of every level of the axis",
    ),
    "k": Field("Int64", "runs that must all pass; null for the other measures"),
    "n": Field("int64", "instances with enough scored runs; conversations, where they carry context"),
    "value": Field("float64", "mean over instances, equal weight on strata"),
    "ci_low": Field("float64", "lower end of the 95% interval"),
    "ci_high": Field("float64", "upper end of the 95% interval"),
    "method": Field("str", "method of the interval"),
    "reason": Field("str", "why the value is undefined"),
}
"""Columns of `consistency`."""


def pass_hat_k(passes: int, runs: int, k: int) -> float | None:
    """Unbiased estimate that k runs all pass: C(passes, k)/C(runs, k); null if k > runs.

    Source: Yao et al. 2024 (tau-bench).

    Raises:
        ValueError: k < 1, or passes outside [0, runs].
    """
    if k < 1 or not 0 <= passes <= runs:
        raise ValueError(f"need k >= 1 and 0 <= passes <= runs, got k={k}, {passes} of {runs}")
    return None if k > runs else math.comb(passes, k) / math.comb(runs, k)


def consistency(frame: pd.DataFrame, *, seed: int, resamples: int = 10_000) -> pd.DataFrame:
    """pass^k and flips, one row per model scope x condition x measure (x k).

    Only the scopes `model` and `cell`: repeating is something that one model does. Where context is carried, an
    instance's value is about its own runs still, but conversations are resampled, each the mean of its instances.

    Args:
        frame: Results of one benchmark.

    Returns:
        Columns as in `FIELDS`. k runs up to the largest number of runs in the table.
    """
    cube = score_cube(frame, unit="instance")
    most = max((int(runs.max(initial=0)) for runs in cube.runs.values()), default=0)
    keys: list[tuple[Scope, Condition, str, int | None]] = []
    problems: list[tuple[Part, ...]] = []
    for scope in all_scopes(cube):
        if scope.name not in ("model", "cell"):
            continue
        for condition in cube.conditions:
            if not episode_count(cube, scope, condition):
                continue
            for k in range(1, most + 1):
                keys.append((scope, condition, PASS_HAT_K, k))
                problems.append(_problem(cube, scope, [condition], PASS_HAT_K, k))
            keys.append((scope, condition, FLIPS_BETWEEN_RUNS, None))
            problems.append(_problem(cube, scope, [condition], FLIPS_BETWEEN_RUNS, None))
        for axis in cube.axes():
            levels = [Condition(axis, level) for level in cube.levels(axis)]
            if axis in UNPAIRED_AXES or not sum(episode_count(cube, scope, level) for level in levels):
                continue
            keys.append((scope, Condition(axis, "all"), FLIPS_ON_AXIS, None))
            problems.append(_problem(cube, scope, [BASELINE, *levels], FLIPS_ON_AXIS, None))
    estimates = rate_estimates(problems, seed=seed, resamples=resamples)
    rows = []
    for (scope, condition, measure, runs_needed), estimate in zip(keys, estimates, strict=True):
        low, high = estimate.interval()
        row: dict[str, Any] = {
            **scope.labels(cube),
            "axis": condition.axis,
            "level": condition.level,
            "measure": measure,
            "k": runs_needed,
            "n": estimate.n,
            "value": estimate.value,
            "ci_low": low,
            "ci_high": high,
            "method": estimate.method,
            "reason": _TOO_FEW[measure] if estimate.value is None else estimate.reason,
        }
        rows.append(row)
    return build_table(rows, FIELDS)


_TOO_FEW = {
    PASS_HAT_K: "no instance has k scored runs",
    FLIPS_BETWEEN_RUNS: "no instance has two scored runs",
    FLIPS_ON_AXIS: "no instance is scored in the baseline and at every level",
}


def _problem(
    cube: ScoreCube, scope: Scope, conditions: Sequence[Condition], measure: str, k: int | None
) -> tuple[Part, ...]:
    """Per-instance values of one measure; empty if no instance has enough runs."""
    positions = [cube.conditions.index(condition) for condition in conditions if condition in cube.conditions]
    if len(positions) < len(conditions):
        return ()
    model = scope.models[0]
    values = {}
    for stratum in scope.strata:
        runs = cube.runs[stratum][:, model][:, positions]
        means = np.nan_to_num(cube.means[stratum][:, model][:, positions])
        passes = np.rint(means * runs).astype(np.int64)
        values[stratum] = cube.over_clusters(stratum, _measure(passes, runs, measure, k))
    shares = equal_shares(
        Scope(scope.name, (model,), scope.strata),
        [conditions[-1].level],
        lambda _, stratum, __: not bool(np.isnan(values[stratum]).all()),
    )
    return pool(
        Term(share.weight, instance_set(share.stratum, conditions[-1]), values[share.stratum]) for share in shares
    )


def _measure(passes: IntArray, runs: IntArray, measure: str, k: int | None) -> FloatArray:
    """Value per instance from counts of the shape (instances, conditions), NaN where there are too few runs."""
    result = np.full(len(runs), np.nan)
    if measure == PASS_HAT_K:
        assert k is not None
        # A few distinct counts stand for many instances.
        for passed, total in sorted(set(zip(passes[:, 0].tolist(), runs[:, 0].tolist(), strict=True))):
            chance = pass_hat_k(passed, total, k)
            if chance is not None:
                result[(passes[:, 0] == passed) & (runs[:, 0] == total)] = chance
        return result
    enough = (runs[:, 0] >= 2) if measure == FLIPS_BETWEEN_RUNS else (runs > 0).all(axis=1)
    passed_all, all_runs = passes.sum(axis=1), runs.sum(axis=1)
    result[enough] = ((passed_all > 0) & (passed_all < all_runs))[enough].astype(np.float64)
    return result
