"""Pass rates with intervals: per cell, per stratum, per model and overall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from flows.stats.bootstrap import quantile
from flows.stats.cells import UNPAIRED_AXES, Condition, FloatArray, IntArray, ScoreCube, Stratum, score_cube
from flows.stats.columns import SCOPE_FIELDS, Field, build_table
from flows.stats.contrasts import rate_estimates, stratified_draws, summarise_rate
from flows.stats.intervals import wilson
from flows.stats.pooling import InstanceSet, Part, Term, pool, pooled_mean
from flows.stats.scopes import Scope, Share, all_scopes, equal_shares, missing_strata

_DRAWS_AT_ONCE = 12_000_000
"""Each block draws anew, so that few are better; this many take 50 MB."""

FIELDS: dict[str, Field] = {
    **SCOPE_FIELDS,
    "axis": Field("str", "perturbation axis; `none` for the baseline"),
    "level": Field("str", "level of the axis"),
    "n": Field("int64", "instances with a scored episode; conversations, where they carry context"),
    "episodes": Field("int64", "scored episodes"),
    "infra_errors": Field("int64", "episodes with an infrastructure error, in no rate"),
    "pass_rate": Field(
        "float64",
        "mean over instances of the mean over run seeds, then equal weights; null if n = 0; where context is carried, "
        "the conversation stands for its instances",
    ),
    "ci_low": Field("float64", "lower end of the primary 95% interval"),
    "ci_high": Field("float64", "upper end of the primary 95% interval"),
    "method": Field("str", "method of the primary interval"),
    "se": Field("float64", "cluster standard error; null if no stratum has two instances"),
    "n_eff": Field("float64", "number of independent episodes that would be as precise"),
    "degenerate": Field("boolean", "every scored episode passed, or every one failed"),
    "percentile_low": Field("float64", "lower end of the plain cluster percentile interval, for comparison"),
    "percentile_high": Field("float64", "upper end of the plain cluster percentile interval, for comparison"),
    "wilson_low": Field("float64", "lower end of Wilson's interval on n_eff, for comparison"),
    "wilson_high": Field("float64", "upper end of Wilson's interval on n_eff, for comparison"),
    "if_infra_failed": Field("float64", "the rate if every infrastructure error were a fail"),
    "if_infra_passed": Field("float64", "the rate if every infrastructure error were a pass"),
    "missing_strata": Field("str", "strata (or model/level/stratum) left out of the average, `; ` between them"),
    "reason": Field("str", "why the rate is undefined"),
}
"""Columns of `pass_rates`."""


def pass_rates(frame: pd.DataFrame, *, seed: int, resamples: int = 10_000) -> pd.DataFrame:
    """Pass rates with intervals, one row per scope x axis x level that has an episode.

    Args:
        frame: Results of one benchmark (`flows.results`).

    Returns:
        Columns as in `FIELDS`, sorted by scope (overall, model, stratum, cell), then condition.
    """
    cube = score_cube(frame)
    grid = [
        (scope, condition)
        for scope in all_scopes(cube)
        for condition in cube.conditions
        if episode_count(cube, scope, condition)
    ]
    problems = [rate_parts(cube, scope, [condition]) for scope, condition in grid]
    estimates = rate_estimates(problems, seed=seed, resamples=resamples)
    percentiles = _percentiles(problems, seed=seed, resamples=resamples)
    rows = []
    for (scope, condition), parts, estimate, percentile in zip(grid, problems, estimates, percentiles, strict=True):
        low, high = estimate.interval()
        row: dict[str, Any] = {
            **scope.labels(cube),
            "axis": condition.axis,
            "level": condition.level,
            "n": estimate.n,
            "episodes": 0,
            "infra_errors": infra_count(cube, scope, condition),
            "pass_rate": estimate.value,
            "ci_low": low,
            "ci_high": high,
            "method": estimate.method,
            "percentile_low": percentile[0],
            "percentile_high": percentile[1],
            "reason": estimate.reason,
            "missing_strata": "; ".join(
                missing_strata(scope, [condition.level], rate_shares(cube, scope, [condition]), cube)
            ),
        }
        row["if_infra_failed"], row["if_infra_passed"] = infra_bounds(cube, scope, condition)
        if parts:
            summary = summarise_rate(parts)
            row |= {
                "episodes": summary.episodes,
                "se": summary.se,
                "n_eff": summary.n_eff,
                "degenerate": summary.degenerate,
            }
            row["wilson_low"], row["wilson_high"] = wilson(summary.rate * summary.n_eff, summary.n_eff)
        rows.append(row)
    return build_table(rows, FIELDS)


def _percentiles(
    problems: Sequence[Sequence[Part]], *, seed: int, resamples: int
) -> list[tuple[float | None, float | None]]:
    block = max(1, _DRAWS_AT_ONCE // resamples)
    intervals: list[tuple[float | None, float | None]] = []
    for start in range(0, len(problems), block):
        draws = stratified_draws(problems[start : start + block], seed=seed, resamples=resamples)
        draws.sort(axis=1)
        for parts, ordered in zip(problems[start : start + block], draws, strict=True):
            known = bool(parts)
            intervals.append((quantile(ordered, 0.025), quantile(ordered, 0.975)) if known else (None, None))
    return intervals


def rate_shares(cube: ScoreCube, scope: Scope, conditions: Sequence[Condition]) -> tuple[Share, ...]:
    """Equal weights of the cells of a scope, over conditions of one axis, that have a scored episode."""
    by_level = {condition.level: condition for condition in conditions}

    def has(model: int, stratum: Stratum, level: str) -> bool:
        return not bool(np.isnan(cube.values(stratum, model, by_level[level])).all())

    return equal_shares(scope, list(by_level), has)


def rate_parts(cube: ScoreCube, scope: Scope, conditions: Sequence[Condition]) -> tuple[Part, ...]:
    """Per-instance vectors of the mean pass rate over conditions of one axis; empty if nothing is scored."""
    return shares_parts(cube, rate_shares(cube, scope, conditions), conditions)


def shares_parts(cube: ScoreCube, shares: Sequence[Share], conditions: Sequence[Condition]) -> tuple[Part, ...]:
    """Per-instance vectors of pass rates averaged with given weights."""
    by_level = {condition.level: condition for condition in conditions}
    terms = []
    for share in shares:
        condition = by_level[share.level]
        position = cube.index(condition)
        assert position is not None
        terms.append(
            Term(
                share.weight,
                instance_set(share.stratum, condition),
                cube.means[share.stratum][:, share.model, position],
                int(cube.runs[share.stratum][:, share.model, position].sum()),
            )
        )
    return pool(terms)


def instance_set(stratum: Stratum, condition: Condition) -> InstanceSet:
    """Name of the instances that a condition shows: those of the baseline, or a sample of its own."""
    sample = (condition.level,) if condition.axis in UNPAIRED_AXES else ()
    return (stratum.family, stratum.difficulty, *sample)


def episode_count(cube: ScoreCube, scope: Scope, condition: Condition) -> int:
    """Episodes of a scope at a condition, with and without an infrastructure error."""
    return infra_count(cube, scope, condition) + _total(cube.runs, cube, scope, condition)


def infra_count(cube: ScoreCube, scope: Scope, condition: Condition) -> int:
    """Episodes of a scope at a condition that ended in an infrastructure error."""
    return _total(cube.infra, cube, scope, condition)


def _total(counts: Mapping[Stratum, IntArray], cube: ScoreCube, scope: Scope, condition: Condition) -> int:
    position = cube.index(condition)
    if position is None:
        return 0
    return sum(int(counts[stratum][:, list(scope.models), position].sum()) for stratum in scope.strata)


def infra_bounds(cube: ScoreCube, scope: Scope, condition: Condition) -> tuple[float | None, float | None]:
    """The pass rate with infrastructure errors counted as fails, and as passes; null without an episode."""
    position = cube.index(condition)
    if position is None:
        return None, None
    if not infra_count(cube, scope, condition):
        parts = rate_parts(cube, scope, [condition])
        return (pooled_mean(parts), pooled_mean(parts)) if parts else (None, None)

    def counts(model: int, stratum: Stratum) -> tuple[FloatArray, FloatArray, FloatArray]:
        runs = cube.runs[stratum][:, model, position].astype(np.float64)
        infra = cube.infra[stratum][:, model, position].astype(np.float64)
        passes = np.nan_to_num(cube.means[stratum][:, model, position]) * runs
        return passes, infra, runs + infra

    def has(model: int, stratum: Stratum, _: str) -> bool:
        return bool(counts(model, stratum)[2].sum() > 0)

    failed: list[Term] = []
    passed: list[Term] = []
    for share in equal_shares(scope, [condition.level], has):
        passes, infra, total = counts(share.model, share.stratum)
        shown = total > 0
        key = instance_set(share.stratum, condition)
        for terms, extra in ((failed, 0.0), (passed, 1.0)):
            values = np.full(len(total), np.nan)
            values[shown] = (passes[shown] + extra * infra[shown]) / total[shown]
            terms.append(Term(share.weight, key, values))
    if not failed:
        return None, None
    return pooled_mean(pool(failed)), pooled_mean(pool(passed))
