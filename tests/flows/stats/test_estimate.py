from __future__ import annotations

import math
from functools import partial
from statistics import NormalDist

import pytest
from scipy import stats

from flows.stats.contrasts import t_bounds
from flows.stats.estimate import Estimate, undefined
from flows.stats.intervals import tango


def normal_estimate(value: float, se: float) -> Estimate:
    def bounds(confidence: float) -> tuple[float, float]:
        half = NormalDist().inv_cdf((1 + confidence) / 2) * se
        return value - half, value + half

    return Estimate(value, 30, "normal", bounds=bounds)


def test_p_values_of_a_normal_interval_are_those_of_the_z_test() -> None:
    estimate = normal_estimate(0.1, 0.05)
    assert estimate.p_value(0, "greater") == pytest.approx(stats.norm.sf(2), rel=1e-6)
    assert estimate.p_value(0, "less") == pytest.approx(stats.norm.cdf(2), rel=1e-6)
    assert estimate.p_value(0) == pytest.approx(2 * stats.norm.sf(2), rel=1e-6)
    assert estimate.p_value(0.3, "less") == pytest.approx(stats.norm.cdf(-4), rel=1e-6)


def test_p_value_is_the_confidence_at_which_the_bound_touches_the_null() -> None:
    estimate = Estimate(0.2, 50, "tango", bounds=partial(tango, 12, 2, 50))
    p = estimate.p_value(0)
    assert p is not None
    low, _ = estimate.interval(1 - p)
    assert low == pytest.approx(0, abs=1e-6)
    assert p == pytest.approx(2 * stats.norm.sf(10 / math.sqrt(14)), rel=1e-5)


def test_two_one_sided_t_tests_reproduce_the_published_example() -> None:
    """Differences of ten pairs: 1111001101 against 1011000111."""
    first, second = [1, 1, 1, 1, 0, 0, 1, 1, 0, 1], [1, 0, 1, 1, 0, 0, 0, 1, 1, 1]
    d = [b - a for a, b in zip(first, second, strict=True)]
    se = float(stats.sem(d))
    assert se == pytest.approx(0.179505, abs=1e-6)
    estimate = Estimate(-0.1, 10, "t", bounds=partial(t_bounds, -0.1, se, 9, 1.0))
    assert estimate.interval(0.95) == pytest.approx((-0.50607, 0.30607), abs=1e-5)
    assert estimate.interval(0.90) == pytest.approx((-0.42905, 0.22905), abs=1e-5)
    lower, upper = estimate.p_value(-0.3, "greater"), estimate.p_value(0.3, "less")
    assert lower is not None
    assert upper is not None
    assert max(lower, upper) == pytest.approx(0.147037, abs=1e-6)


def test_an_estimate_without_bounds_has_neither_interval_nor_p_value() -> None:
    estimate = undefined("one instance", n=1, value=0.5)
    assert estimate.interval() == (None, None)
    assert estimate.p_value() is None
    assert estimate.reason == "one instance"


def test_p_value_at_the_estimate_is_one() -> None:
    assert normal_estimate(0.1, 0.05).p_value(0.1) == pytest.approx(1, abs=1e-6)


def test_p_value_never_falls_below_its_floor() -> None:
    assert normal_estimate(1, 0.01).p_value(0, "greater") == pytest.approx(1e-12)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95])
def test_confidence_outside_zero_to_one_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        normal_estimate(0, 1).interval(confidence)


def test_unknown_side_is_refused() -> None:
    with pytest.raises(ValueError, match="'upper'"):
        normal_estimate(0, 1).p_value(0, "upper")  # type: ignore[arg-type]
