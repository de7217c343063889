"""Intervals for pass rates and for paired differences, from per-instance vectors.

Many averages are estimated at once, so that all that share a set of instances share its resamples and one matrix
product. A method that resamples keeps its sorted draws, and gives any confidence from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import stdtrit

from flows.stats.bootstrap import (
    Draws,
    anchored_means,
    bootstrap_means,
    expanded_tail,
    quantile,
)
from flows.stats.cells import FloatArray
from flows.stats.estimate import Estimate, undefined
from flows.stats.intervals import Interval, jeffreys, mover_difference, tango
from flows.stats.pooling import (
    InstanceSet,
    Part,
    equal_weight_n,
    instance_count,
    pooled_mean,
    pooled_variance,
)
from tasks_env.seeding import derive_seed

ENOUGH = 10
"""Nonzero differences, and instances per stratum, from which the bootstrap is used."""
_ZERO = 1e-9
_DRAW_DECIMALS = 6


@dataclass(frozen=True)
class RateSummary:
    """A pass rate as an average over sets of instances, and how much data stands behind it."""

    rate: float
    n: int
    """Instances."""
    episodes: int
    se: float | None
    """Cluster standard error; null if no set has two instances."""
    n_eff: float
    """Independent episodes that would be as precise."""
    degenerate: bool
    """All pass or all fail."""


def summarise_rate(parts: Sequence[Part]) -> RateSummary:
    """Rate, cluster standard error and effective sample size of at least one part.

    n_eff = p(1-p)/SE² clamped to [n, episodes] in one set of instances, and to [n0, 4·n0·r] over several, with
    r the episodes per instance; the lower end if all pass or all fail.
    """
    rate = pooled_mean(parts)
    n, episodes = instance_count(parts), sum(part.episodes for part in parts)
    variance = pooled_variance(parts)
    lowest = equal_weight_n(parts)
    highest = float(max(episodes, n)) if len(parts) == 1 else 4 * lowest * max(episodes / n, 1.0)
    degenerate = rate in (0.0, 1.0)
    if degenerate or variance is None:
        n_eff = lowest
    elif variance == 0:
        n_eff = highest
    else:
        n_eff = min(max(rate * (1 - rate) / variance, lowest), highest)
    return RateSummary(rate, n, episodes, None if variance is None else math.sqrt(variance), n_eff, degenerate)


def rate_estimates(problems: Sequence[Sequence[Part]], *, seed: int, resamples: int) -> list[Estimate]:
    """Pass rates with their primary interval.

    One set of instances: the anchored Bayesian cluster bootstrap, in its closed form (Jeffreys) where every
    instance mean is 0 or 1. Several: Jeffreys on the effective sample size.

    Args:
        problems: Each the parts of one rate; an empty one is undefined.
    """
    sampled = [k for k, parts in enumerate(problems) if len(parts) == 1 and not _binary(parts[0])]
    draws = _anchored(sampled, problems, seed=seed, resamples=resamples)
    return [_rate_estimate(parts, draws.get(k)) for k, parts in enumerate(problems)]


def _binary(part: Part) -> bool:
    return bool(np.isin(part.values, (0.0, 1.0)).all())


def _anchored(
    chosen: Sequence[int], problems: Sequence[Sequence[Part]], *, seed: int, resamples: int
) -> dict[int, Draws]:
    by_size: dict[int, list[int]] = {}
    for k in chosen:
        by_size.setdefault(problems[k][0].n, []).append(k)
    sorted_draws: dict[int, Draws] = {}
    for n, members in sorted(by_size.items()):
        values = np.column_stack([problems[k][0].values for k in members])
        draws = anchored_means(values, seed=derive_seed(seed, "anchored", n), resamples=resamples)
        draws.sort(axis=1)
        sorted_draws.update(zip(members, draws, strict=True))
    return sorted_draws


def _rate_estimate(parts: Sequence[Part], draws: Draws | None) -> Estimate:
    if not parts:
        return undefined("no scored episode")
    summary = summarise_rate(parts)
    if draws is not None:
        return Estimate(summary.rate, summary.n, "anchored bootstrap", bounds=partial(_draws_in_unit, draws))
    if len(parts) == 1:
        n, method = float(summary.n), "jeffreys"
    else:
        n, method = summary.n_eff, "jeffreys on n_eff"
    bounds = partial(_jeffreys_bounds, min(max(summary.rate, 0.0), 1.0) * n, n)
    return Estimate(summary.rate, summary.n, method, degenerate=summary.degenerate, bounds=bounds)


def _jeffreys_bounds(successes: float, n: float, confidence: float) -> Interval:
    return jeffreys(successes, n, confidence)


def _draws_in_unit(ordered: Draws, confidence: float) -> Interval:
    tail = (1 - confidence) / 2
    return max(quantile(ordered, tail), 0.0), min(quantile(ordered, 1 - tail), 1.0)


def difference_unpaired(perturbed: Estimate, baseline: Estimate) -> Estimate:
    """Difference of two independent estimates by MOVER; no interval with fewer than two instances in an arm."""
    if perturbed.value is None or baseline.value is None:
        return undefined(f"no scored episode in the {'perturbed' if perturbed.value is None else 'baseline'} arm")
    first, second = perturbed.value, baseline.value
    value, n = first - second, min(perturbed.n, baseline.n)
    if n < 2:
        return undefined("fewer than two instances in an arm", n=n, value=value)

    def bounds(confidence: float) -> Interval:
        return mover_difference(
            first, _defined(perturbed.interval(confidence)), second, _defined(baseline.interval(confidence))
        )

    return Estimate(value, n, f"mover ({perturbed.method})", bounds=bounds)


def _defined(interval: tuple[float, float] | tuple[None, None]) -> Interval:
    if interval[0] is None:
        raise ValueError("an estimate from two instances or more has an interval")
    return interval


def nonzero_count(parts: Sequence[Part]) -> int:
    """Instances whose difference is not 0."""
    return sum(int((np.abs(part.raw) > _ZERO).sum()) for part in parts)


def paired_estimates(
    problems: Sequence[Sequence[Part]], *, seed: int, resamples: int, reach: float = 1.0
) -> list[Estimate]:
    """Paired differences with their interval, by the amount of data.

    Fewer than ten instances with a nonzero difference, or differences that do not vary: Tango's score interval on
    equal-weight counts. Else a stratum of fewer than ten instances: stratified t with n - H degrees of freedom.
    Else the stratified expanded percentile bootstrap. One instance: a value without an interval.

    Args:
        problems: Each the parts of one average of differences; an empty one is undefined.
        reach: Largest absolute difference that is possible: 1 for two rates, 2 for a change of a gap. Tango's
            interval is for differences up to 1; larger ones are brought to that scale and back.
    """
    chosen = [k for k, parts in enumerate(problems) if parts and _method(parts) == "expanded percentile"]
    draws = stratified_draws([problems[k] for k in chosen], seed=seed, resamples=resamples)
    draws.sort(axis=1)
    row = {k: draws[position] for position, k in enumerate(chosen)}
    return [_paired_estimate(parts, row.get(k), reach) for k, parts in enumerate(problems)]


def _method(parts: Sequence[Part]) -> str:
    n = instance_count(parts)
    if n < 2:
        return "none"
    variance = pooled_variance(parts)
    # A variance of rounding noise alone is that of constant differences.
    if nonzero_count(parts) < ENOUGH or variance is None or variance < _ZERO**2:
        return "tango"
    return "stratified t" if min(part.n for part in parts) < ENOUGH else "expanded percentile"


def _paired_estimate(parts: Sequence[Part], ordered: Draws | None, reach: float) -> Estimate:
    if not parts:
        return undefined("no instance scored in both arms")
    value, n, method = pooled_mean(parts), instance_count(parts), _method(parts)
    if method == "none":
        return undefined("fewer than two instances", n=n, value=value)
    if method == "tango":
        scale = reach if any(float(np.abs(part.raw).max()) > 1 for part in parts) else 1.0
        n0 = equal_weight_n(parts)
        gain = math.fsum(part.weight * float(part.raw.clip(min=0).mean()) for part in parts)
        loss = math.fsum(part.weight * float((-part.raw).clip(min=0).mean()) for part in parts)
        bounds = partial(_tango_bounds, n0 * gain / scale, n0 * loss / scale, n0, scale)
        return Estimate(value, n, method, bounds=bounds)
    df = n - len(parts)
    if method == "stratified t":
        variance = pooled_variance(parts)
        assert variance is not None
        return Estimate(value, n, method, bounds=partial(t_bounds, value, math.sqrt(variance), df, reach))
    assert ordered is not None
    smallest = min(part.n for part in parts)
    return Estimate(value, n, method, bounds=partial(_expanded_bounds, ordered, smallest, df))


def _tango_bounds(b: float, c: float, n: float, scale: float, confidence: float) -> Interval:
    low, high = tango(b, c, n, confidence)
    return scale * low, scale * high


def t_bounds(value: float, se: float, df: int, reach: float, confidence: float) -> Interval:
    """Student's t interval of a difference, cut to what is possible."""
    half = float(stdtrit(df, (1 + confidence) / 2)) * se
    return max(value - half, -reach), min(value + half, reach)


def _expanded_bounds(ordered: Draws, smallest: int, df: int, confidence: float) -> Interval:
    tail = expanded_tail(confidence, smallest, df)
    return quantile(ordered, tail), quantile(ordered, 1 - tail)


def stratified_draws(problems: Sequence[Sequence[Part]], *, seed: int, resamples: int) -> Draws:
    """Bootstrap draws of each average: instances drawn anew within every set, the same draw for all averages.

    Returns:
        Shape (problems, resamples), unsorted: column b is one and the same resample for every problem whose
        sets have the same instances.
    """
    totals = np.zeros((len(problems), resamples), dtype=np.float32)
    columns: dict[tuple[InstanceSet, int], list[tuple[int, float, FloatArray]]] = {}
    for k, parts in enumerate(problems):
        for part in parts:
            columns.setdefault((part.instances, part.n), []).append((k, part.weight, part.values))
    for (instances, n), members in sorted(columns.items(), key=lambda item: item[0]):
        matrix = np.column_stack([values for _, _, values in members])
        stratum_seed = derive_seed(seed, "resample", *instances, n)
        means = bootstrap_means(matrix, seed=stratum_seed, resamples=resamples)
        for (k, weight, _), mean in zip(members, means, strict=True):
            totals[k] += np.float32(weight) * mean
    # Resampled differences lie on a lattice with a heap at exactly 0, which float32 noise would split in two.
    totals.round(_DRAW_DECIMALS, out=totals)
    totals += np.float32(0)
    return totals
