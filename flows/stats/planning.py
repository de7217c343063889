"""What a study says about the size of the next one: the variances of its comparisons.

A comparison is a pair of models on the baseline, or a perturbed level against the baseline. Its difference is a
weighted sum of cell means, with equal weight over strata, then levels, then models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from flows.stats.cells import (
    ALL,
    BASELINE,
    MEAN_LEVEL,
    UNPAIRED_AXES,
    BoolArray,
    Condition,
    FloatArray,
    ScoreCube,
    Stratum,
)
from flows.stats.pooling import Part, Term, equal_weight_n, instance_count, pool, pooled_mean, pooled_variance
from flows.stats.rates import instance_set
from flows.stats.scopes import Scope, equal_shares

MODELS, PERTURBATION = "models", "perturbation"


class Cell(NamedTuple):
    """One model in one condition of one stratum."""

    stratum: Stratum
    model: int
    condition: Condition


class Pair(NamedTuple):
    """Two cells whose difference enters a comparison with `weight`; the weights of a comparison sum to 1."""

    weight: float
    first: Cell
    second: Cell


@dataclass(frozen=True)
class Comparison:
    """Two arms to compare: `second` minus `first`."""

    kind: str
    """`models` (two models on the baseline) or `perturbation` (perturbed minus baseline)."""
    model: str
    """The model, or `all`."""
    versus: str | None
    """The second model of a pair; null for a perturbation."""
    axis: str
    level: str
    paired: bool
    """Whether both arms have the same instances."""
    pairs: tuple[Pair, ...]
    """Empty if nothing can be compared."""


@dataclass(frozen=True)
class Moments:
    """Variances of a comparison, per instance: divided by `n0` they are variances of the estimate."""

    n: int
    """Instances; of the smaller arm if unpaired."""
    n0: float
    """1/sum(w_h²/n_h): the instances of an equally precise study with strata of one size."""
    runs: float
    """Harmonic mean of the runs per instance and cell."""
    first_rate: float
    second_rate: float
    variance: float
    """Of an instance's difference, at the study's own runs."""
    omega2: float | None
    """The part that run seeds cannot average out, raw: may be negative. Null with one run."""
    run_noise: float | None
    """The part due to runs if every cell had a single run. Null with one run."""
    rho: float | None
    """Correlation of single episodes of the two arms on one instance; null if unpaired or constant."""
    shared: bool = False
    """Whether instances shared conversations. The variance is then still per instance, but from the spread between
    conversations, so that it holds for conversations of the study's size; runs of their tasks are not told apart."""

    def variance_at(self, runs: float) -> float | None:
        """Variance per instance with `runs` runs per cell; null if the run noise is unknown."""
        if self.omega2 is None or self.run_noise is None:
            return None
        return max(self.omega2, 0.0) + self.run_noise / runs


def comparisons(cube: ScoreCube) -> Iterator[Comparison]:
    """Every pair of models on the baseline, then every axis level, over all models and per model."""
    if cube.index(BASELINE) is None:
        return
    for first, second in combinations(range(len(cube.models)), 2):
        strata = [h for h in cube.strata if _scored(cube, Cell(h, first, BASELINE), Cell(h, second, BASELINE)).any()]
        weight = 1 / max(len(strata), 1)
        pairs = tuple(Pair(weight, Cell(h, first, BASELINE), Cell(h, second, BASELINE)) for h in strata)
        names = cube.models[first], cube.models[second]
        yield Comparison(MODELS, *names, BASELINE.axis, BASELINE.level, True, pairs)
    everyone = tuple(range(len(cube.models)))
    scopes = [(ALL, everyone)] if len(everyone) > 1 else []
    scopes += [(cube.models[m], (m,)) for m in everyone]
    for axis in cube.axes():
        levels = cube.levels(axis)
        for level in (MEAN_LEVEL, *levels) if len(levels) > 1 else levels:
            for name, models in scopes:
                chosen = levels if level == MEAN_LEVEL else (level,)
                pairs = tuple(_axis_pairs(cube, models, axis, chosen))
                yield Comparison(PERTURBATION, name, None, axis, level, axis not in UNPAIRED_AXES, pairs)


def _scored(cube: ScoreCube, first: Cell, second: Cell) -> BoolArray:
    """Instances scored in both cells."""
    a = cube.values(*first)
    return np.asarray(~np.isnan(a) & ~np.isnan(cube.values(*second)))


def _axis_pairs(cube: ScoreCube, models: Sequence[int], axis: str, levels: Sequence[str]) -> Iterator[Pair]:
    paired = axis not in UNPAIRED_AXES

    def cells(model: int, stratum: Stratum, level: str) -> tuple[Cell, Cell]:
        return Cell(stratum, model, BASELINE), Cell(stratum, model, Condition(axis, level))

    def has(model: int, stratum: Stratum, level: str) -> bool:
        first, second = cells(model, stratum, level)
        if paired:
            return bool(_scored(cube, first, second).any())
        return not any(bool(np.isnan(cube.values(*cell)).all()) for cell in (first, second))

    for share in equal_shares(Scope("planning", tuple(models), cube.strata), levels, has):
        yield Pair(share.weight, *cells(share.model, share.stratum, share.level))


def moments(cube: ScoreCube, comparison: Comparison) -> Moments | None:
    """The variances behind a comparison; None if no stratum has two instances to take a variance from."""
    if not comparison.pairs:
        return None
    first, second, differences = [], [], []
    for pair in comparison.pairs:
        a, b = (cube.values(*cell) for cell in (pair.first, pair.second))
        if comparison.paired:
            both = _scored(cube, pair.first, pair.second)
            a, b = np.where(both, a, np.nan), np.where(both, b, np.nan)
            differences.append((Term(pair.weight, instance_set(pair.first.stratum, BASELINE), b - a), pair))
        first.append((Term(pair.weight, instance_set(*_place(pair.first)), a), pair))
        second.append((Term(pair.weight, instance_set(*_place(pair.second)), b), pair))
    arms = _pooled(first), _pooled(second)
    clustered = [_pooled(arm, cube) for arm in (first, second)]
    if comparison.paired:
        parts = _pooled(differences)
        squared_error = pooled_variance(_pooled(differences, cube))
        n0, n = equal_weight_n(parts), instance_count(parts)
    else:
        squared_error = _sum_or_none(pooled_variance(arm) for arm in clustered)
        n0 = 2 / sum(1 / equal_weight_n(arm) for arm in arms)
        n = min(instance_count(arm) for arm in arms)
    if squared_error is None:
        return None
    shared = cube.shares_conversations()
    runs, noise_now, noise_single = _run_noise(cube, comparison)
    if shared:
        noise_now = noise_single = None
    return Moments(
        n=n,
        n0=n0,
        runs=runs,
        first_rate=pooled_mean(clustered[0]),
        second_rate=pooled_mean(clustered[1]),
        variance=squared_error * n0,
        omega2=None if noise_now is None else (squared_error - noise_now) * n0,
        run_noise=None if noise_single is None else noise_single * n0,
        rho=_single_run_correlation(cube, comparison) if comparison.paired else None,
        shared=shared,
    )


def _pooled(terms: Sequence[tuple[Term, Pair]], cube: ScoreCube | None = None) -> tuple[Part, ...]:
    """Parts over instances; over the clusters of a cube, if one is given."""
    if cube is None:
        return pool(term for term, _ in terms)
    return pool(term._replace(values=cube.over_clusters(pair.first.stratum, term.values)) for term, pair in terms)


def _place(cell: Cell) -> tuple[Stratum, Condition]:
    return cell.stratum, cell.condition


def _sum_or_none(values: Iterable[float | None]) -> float | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return math.fsum(known) if len(known) == len(found) else None


def _cell_runs(cube: ScoreCube, cell: Cell) -> tuple[FloatArray, FloatArray]:
    """Means and runs of the scored instances of a cell."""
    position = cube.index(cell.condition)
    assert position is not None
    runs = cube.runs[cell.stratum][:, cell.model, position].astype(np.float64)
    values = cube.values(*cell)
    return values[runs > 0], runs[runs > 0]


def _single_run_variance(values: FloatArray, runs: FloatArray) -> float | None:
    """Mean within-instance variance of one episode, from instances with two runs or more; null if there is none."""
    several = runs >= 2
    if not several.any():
        return None
    a, r = values[several], runs[several]
    return float((a * (1 - a) * r / (r - 1)).mean())


def _run_noise(cube: ScoreCube, comparison: Comparison) -> tuple[float, float | None, float | None]:
    """Harmonic mean of the runs; squared error due to runs as they are, and with a single run per cell."""
    weights: dict[Cell, float] = {}
    for pair in comparison.pairs:
        # a baseline cell serves every level: its runs' noise is shared, so weights add before they are squared
        weights[pair.first] = weights.get(pair.first, 0.0) - pair.weight
        weights[pair.second] = weights.get(pair.second, 0.0) + pair.weight
    data = {cell: _cell_runs(cube, cell) for cell in weights}
    inverse = {cell: float((1 / runs).mean()) for cell, (_, runs) in data.items()}
    harmonic = 1 / (math.fsum(inverse.values()) / len(inverse))
    variances = {cell: _single_run_variance(*columns) for cell, columns in data.items()}
    known = [value for value in variances.values() if value is not None]
    if not known:
        return harmonic, None, None
    typical = math.fsum(known) / len(known)
    now, single = [], []
    for cell, weight in weights.items():
        own = variances[cell]
        share = weight**2 * (typical if own is None else own) / len(data[cell][0])
        now.append(share * inverse[cell])
        single.append(share)
    return harmonic, math.fsum(now), math.fsum(single)


def _single_run_correlation(cube: ScoreCube, comparison: Comparison) -> float | None:
    """Covariance over root of variances of single episodes, each pooled over the cells by their weights."""
    covariance, first_variance, second_variance = [], [], []
    for pair in comparison.pairs:
        both = _scored(cube, pair.first, pair.second)
        if both.sum() < 2:
            continue
        a, b = (cube.values(*cell)[both] for cell in (pair.first, pair.second))
        covariance.append(pair.weight * float(np.cov(a, b)[0, 1]))
        first_variance.append(pair.weight * _episode_variance(cube, pair.first, a))
        second_variance.append(pair.weight * _episode_variance(cube, pair.second, b))
    product = math.fsum(first_variance) * math.fsum(second_variance)
    if product <= 0:
        return None
    return min(1.0, max(-1.0, math.fsum(covariance) / math.sqrt(product)))


def _episode_variance(cube: ScoreCube, cell: Cell, values: FloatArray) -> float:
    """Variance of one episode over instances and runs: that of the means plus what averaging took away."""
    scored, runs = _cell_runs(cube, cell)
    within = _single_run_variance(scored, runs)
    lost = 0.0 if within is None else within * (1 - float((1 / runs).mean()))
    return float(values.var(ddof=1)) + lost
