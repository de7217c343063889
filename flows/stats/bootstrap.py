"""Seeded cluster bootstraps: many statistics of one set of instances in one matrix product.

Draws are float32 and come in chunks, so that memory stays bounded; a chunk's size never changes a draw. All
columns of one call share the draws, which keeps columns of the same instances paired.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, stdtrit

from flows.stats.cells import FloatArray

Draws = npt.NDArray[np.float32]
"""Statistics of resamples, shape (columns, resamples)."""

_CHUNK_ELEMENTS = 2_000_000
RESOLVED = 5
"""Draws that must lie beyond a quantile for the draws themselves to give it."""


def _chunks(n: int, resamples: int) -> Iterator[tuple[int, int]]:
    size = max(1, _CHUNK_ELEMENTS // max(n, 1))
    for start in range(0, resamples, size):
        yield start, min(start + size, resamples)


def _check(values: FloatArray, resamples: int) -> None:
    if values.ndim != 2 or len(values) == 0:
        raise ValueError(f"need values of shape (instances, columns) with at least one instance, got {values.shape}")
    if resamples < 1:
        raise ValueError(f"need at least one resample, got {resamples}")


def bootstrap_means(values: FloatArray, *, seed: int, resamples: int) -> Draws:
    """Means of instances drawn with replacement.

    Args:
        values: Shape (instances, columns), no NaN.

    Returns:
        Shape (columns, resamples).
    """
    _check(values, resamples)
    n, columns = values.shape
    rng = np.random.default_rng(seed)
    matrix = values.astype(np.float32)
    means = np.empty((columns, resamples), dtype=np.float32)
    for start, stop in _chunks(n, resamples):
        picks = rng.integers(0, n, size=(stop - start, n), dtype=np.int64)
        picks += np.arange(stop - start, dtype=np.int64)[:, None] * n
        counts = np.bincount(picks.ravel(), minlength=(stop - start) * n).astype(np.float32)
        means[:, start:stop] = (counts.reshape(stop - start, n) @ matrix).T
    means /= np.float32(n)
    return means


def weighted_sums(values: FloatArray, *, seed: int, resamples: int) -> Draws:
    """Sums of values under independent exponential weights on the instances (the Bayesian bootstrap, Rubin 1981).

    Args:
        values: Shape (instances, columns), no NaN.

    Returns:
        Shape (columns, resamples). A column of ones gives the total weight.
    """
    _check(values, resamples)
    n, columns = values.shape
    rng = np.random.default_rng(seed)
    matrix = values.astype(np.float32)
    sums = np.empty((columns, resamples), dtype=np.float32)
    for start, stop in _chunks(n, resamples):
        weights = rng.standard_exponential(size=(stop - start, n), dtype=np.float32)
        sums[:, start:stop] = (weights @ matrix).T
    return sums


def anchored_means(values: FloatArray, *, seed: int, resamples: int) -> Draws:
    """The anchored Bayesian cluster bootstrap of a mean of values in [0, 1].

    Weight Gamma(1) on each instance, Gamma(1/2) on a pseudo-fail and Gamma(1/2) on a pseudo-pass, normalised. For
    values of 0 and 1 the draws follow the Jeffreys posterior exactly.

    Args:
        values: Shape (instances, columns), no NaN, within [0, 1].

    Returns:
        Shape (columns, resamples).
    """
    padded = np.hstack([values, np.ones((len(values), 1))])
    sums = weighted_sums(padded, seed=seed, resamples=resamples)
    # A stream of its own, so that the anchors do not depend on how the weights were chunked.
    rng = np.random.default_rng([seed, 1])
    fail = rng.standard_gamma(0.5, size=resamples, dtype=np.float32)
    success = rng.standard_gamma(0.5, size=resamples, dtype=np.float32)
    draws: Draws = (sums[:-1] + success) / (sums[-1] + fail + success)
    return draws


def expanded_tail(confidence: float, n_smallest: int, df: int) -> float:
    """Tail level of the expanded percentile interval: Phi(-k·t), k = sqrt(n/(n-1)) of the smallest stratum.

    Source: Hesterberg 2015, with n - 1 degrees of freedom generalised to instances minus strata.
    """
    if n_smallest < 2 or df < 1:
        raise ValueError(f"need at least two instances and one degree of freedom, got {n_smallest} and {df}")
    t = float(stdtrit(df, (1 + confidence) / 2))
    return float(ndtr(-math.sqrt(n_smallest / (n_smallest - 1)) * t))


def quantile(ordered: Draws, level: float) -> float:
    """Quantile of sorted draws, shape (resamples,), by linear interpolation.

    Further out than the draws can resolve (fewer than five beyond), the distance from the median is carried on
    in proportion to the normal quantile, so that a bound never stops moving as confidence grows.
    """
    resolved = min(RESOLVED / len(ordered), 0.25)
    if resolved <= level <= 1 - resolved:
        return _interpolated(ordered, level)
    edge = resolved if level < resolved else 1 - resolved
    median = _interpolated(ordered, 0.5)
    return median + (_interpolated(ordered, edge) - median) * float(ndtri(level) / ndtri(edge))


def _interpolated(ordered: Draws, level: float) -> float:
    position = level * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    low, high = float(ordered[below]), float(ordered[above])
    return low + (high - low) * (position - below)
