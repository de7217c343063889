from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.stats import bootstrap as scipy_bootstrap

from flows.stats import bootstrap
from flows.stats.bootstrap import (
    anchored_means,
    bootstrap_means,
    expanded_tail,
    quantile,
    weighted_sums,
)
from flows.stats.intervals import jeffreys

FIVE = np.array([[1.0], [2 / 3], [0.0], [2 / 3], [1 / 3]])
"""Instance means of the runs 111, 101, 000, 110, 010."""


def test_anchored_bootstrap_of_single_runs_is_jeffreys() -> None:
    values = np.array([1.0] * 8 + [0.0] * 12)[:, None]
    draws = np.sort(anchored_means(values, seed=1, resamples=400_000)[0])
    interval = quantile(draws, 0.025), quantile(draws, 0.975)
    assert interval == pytest.approx((0.2113, 0.6161), abs=0.002)
    assert interval == pytest.approx(jeffreys(8, 20), abs=0.002)
    assert stats.kstest(draws[::400], stats.beta(8.5, 12.5).cdf).pvalue > 0.01


def test_cluster_bootstrap_agrees_with_full_enumeration() -> None:
    """All 5^5 resamples of five instances."""
    exact = np.array([np.mean(pick) for pick in itertools.product(FIVE[:, 0], repeat=5)])
    assert exact.std() == pytest.approx(0.152023, abs=1e-6)
    draws = np.sort(bootstrap_means(FIVE, seed=3, resamples=100_000)[0])
    assert draws.std() == pytest.approx(exact.std(), rel=0.01)
    assert (quantile(draws, 0.025), quantile(draws, 0.975)) == pytest.approx((0.2, 0.8), abs=1e-5)
    for level in (0.1, 0.5, 0.9):
        assert quantile(draws, level) == pytest.approx(float(np.quantile(exact, level)), abs=1e-5)


def test_cluster_bootstrap_agrees_with_scipy() -> None:
    values = np.random.default_rng(5).random(40)
    theirs = scipy_bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=7)
    draws = np.sort(bootstrap_means(values[:, None], seed=7, resamples=20_000)[0])
    ours = quantile(draws, 0.025), quantile(draws, 0.975)
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=0.006)


def test_columns_share_the_draws() -> None:
    values = np.random.default_rng(2).random((30, 1))
    first, second, third = bootstrap_means(np.hstack([values, values, 1 - values]), seed=4, resamples=500)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first + third, 1, atol=1e-5)


def test_draws_do_not_depend_on_the_size_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).random((30, 3))
    makers = (bootstrap_means, weighted_sums, anchored_means)
    whole = [maker(values, seed=4, resamples=500) for maker in makers]
    monkeypatch.setattr(bootstrap, "_CHUNK_ELEMENTS", 30 * 64)
    for maker, expected in zip(makers, whole, strict=True):
        np.testing.assert_allclose(maker(values, seed=4, resamples=500), expected, rtol=1e-6)


def test_seed_decides_the_draws() -> None:
    values = np.random.default_rng(2).random((10, 1))
    one = bootstrap_means(values, seed=1, resamples=50)
    np.testing.assert_array_equal(one, bootstrap_means(values, seed=1, resamples=50))
    assert (one != bootstrap_means(values, seed=2, resamples=50)).any()


def test_bayesian_weights_are_standard_exponential() -> None:
    sums = weighted_sums(np.eye(3), seed=9, resamples=5_000)
    for weights in sums:
        assert stats.kstest(weights, "expon").pvalue > 0.001


def test_expanded_tail_is_wider_than_nominal_and_tends_to_it() -> None:
    assert expanded_tail(0.95, 10, 9) == pytest.approx(stats.norm.cdf(-np.sqrt(10 / 9) * stats.t.ppf(0.975, 9)))
    assert expanded_tail(0.95, 10, 9) < 0.01
    assert expanded_tail(0.95, 100_000, 99_999) == pytest.approx(0.025, abs=1e-5)
    with pytest.raises(ValueError, match="two instances"):
        expanded_tail(0.95, 1, 0)


def test_quantile_beyond_the_draws_goes_on_like_the_normal() -> None:
    draws = np.sort(np.random.default_rng(0).standard_normal(10_000).astype(np.float32))
    assert quantile(draws, 0.3) == pytest.approx(float(np.quantile(draws, 0.3)), abs=1e-6)
    for tail in (1e-5, 1e-8):
        assert quantile(draws, tail) == pytest.approx(stats.norm.ppf(tail), rel=0.15)
        assert quantile(draws, 1 - tail) == pytest.approx(stats.norm.ppf(1 - tail), rel=0.15)


def test_quantiles_are_monotone_through_the_resolved_edge() -> None:
    draws = np.sort(np.random.default_rng(0).random(1_000).astype(np.float32))
    found = [quantile(draws, level) for level in np.logspace(-9, -0.31, 200)]
    assert (np.diff(found) >= -1e-7).all()


def test_no_instances_and_no_resamples_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one instance"):
        bootstrap_means(np.empty((0, 2)), seed=1, resamples=10)
    with pytest.raises(ValueError, match="at least one resample"):
        weighted_sums(np.ones((2, 2)), seed=1, resamples=0)
