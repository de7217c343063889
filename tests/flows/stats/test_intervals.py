"""Reference values, and the same intervals by other libraries."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq, minimize_scalar
from statsmodels.stats.proportion import proportion_confint

from flows.stats.intervals import (
    bonett_price,
    clopper_pearson,
    jeffreys,
    mover_difference,
    newcombe_paired,
    tango,
    wilson,
    z_quantile,
)


@pytest.mark.parametrize(
    ("successes", "n", "expected"),
    [(8, 20, (0.218807, 0.613418)), (20, 20, (0.838875, 1)), (81, 263, (0.255289, 0.366210))],
)
def test_wilson_reproduces_published_values(successes: int, n: int, expected: tuple[float, float]) -> None:
    assert wilson(successes, n) == pytest.approx(expected, abs=1e-6)


def test_clopper_pearson_and_jeffreys_reproduce_published_values() -> None:
    assert clopper_pearson(0, 20) == pytest.approx((0, 0.168433), abs=1e-6)
    assert jeffreys(8, 20) == pytest.approx((0.210629, 0.616080), abs=1e-6)
    assert jeffreys(1, 1) == pytest.approx((0.147, 1), abs=5e-4)


@pytest.mark.parametrize(("successes", "n"), [(0, 7), (3, 7), (7, 7), (1, 250), (100, 101)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_wilson_and_clopper_pearson_agree_with_statsmodels(successes: int, n: int, confidence: float) -> None:
    for ours, name in ((wilson, "wilson"), (clopper_pearson, "beta")):
        theirs = proportion_confint(successes, n, alpha=1 - confidence, method=name)
        assert ours(successes, n, confidence) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("successes", "n"), [(3, 7), (1, 250), (100, 101)])
def test_jeffreys_is_the_beta_posterior_inside_the_range(successes: int, n: int) -> None:
    posterior = stats.beta(successes + 0.5, n - successes + 0.5)
    assert jeffreys(successes, n) == pytest.approx((posterior.ppf(0.025), posterior.ppf(0.975)), abs=1e-9)


def test_jeffreys_reaches_the_end_when_all_pass_or_all_fail() -> None:
    assert jeffreys(12, 12)[1] == 1
    assert jeffreys(0, 12)[0] == 0


def test_paired_intervals_reproduce_published_values() -> None:
    assert newcombe_paired(36, 12, 2, 0) == pytest.approx((0.05693, 0.34043), abs=1e-5)
    assert tango(12, 2, 50) == pytest.approx((0.06111, 0.34471), abs=1e-5)
    assert bonett_price(12, 2, 50) == pytest.approx((0.05089, 0.33372), abs=1e-5)


def test_tango_without_a_discordant_pair_is_its_closed_form() -> None:
    assert tango(0, 0, 20) == pytest.approx((-0.161125, 0.161125), abs=1e-6)
    for n, confidence in itertools.product((1, 5, 300), (0.5, 0.9, 0.99)):
        z = z_quantile(confidence)
        assert tango(0, 0, n, confidence) == pytest.approx((-z * z / (n + z * z), z * z / (n + z * z)), abs=1e-9)


def tango_by_constrained_likelihood(b: int, c: int, n: int, confidence: float) -> tuple[float, float]:
    """The score interval with the nuisance parameter found by numerical maximisation, not by its formula."""
    z = stats.norm.ppf((1 + confidence) / 2)

    def score(delta: float) -> float:
        def loss(p_c: float) -> float:
            probabilities = np.array([p_c + delta, p_c, 1 - delta - 2 * p_c])
            counts = np.array([b, c, n - b - c])
            return -float(np.sum(counts * np.log(np.maximum(probabilities, 1e-300))))

        low, high = max(0.0, -delta), (1 - delta) / 2
        p_c = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
        return (b - c - n * delta) / np.sqrt(n * (2 * p_c + delta * (1 - delta)))

    estimate = (b - c) / n
    low = brentq(lambda d: score(d) - z, -1 + 1e-9, estimate - 1e-9)
    high = brentq(lambda d: score(d) + z, estimate + 1e-9, 1 - 1e-9)
    return float(low), float(high)


@pytest.mark.parametrize(("b", "c", "n"), [(12, 2, 50), (5, 5, 30), (1, 7, 25), (3, 2, 12)])
def test_tango_agrees_with_numerical_constrained_maximisation(b: int, c: int, n: int) -> None:
    assert tango(b, c, n) == pytest.approx(tango_by_constrained_likelihood(b, c, n, 0.95), abs=1e-4)


@given(
    b=st.floats(0, 30),
    c=st.floats(0, 30),
    rest=st.floats(0.5, 100),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.999]),
)
def test_tango_contains_the_estimate_mirrors_and_grows(b: float, c: float, rest: float, confidence: float) -> None:
    n = b + c + rest
    low, high = tango(b, c, n, confidence)
    assert -1 <= low <= (b - c) / n + 1e-9
    assert (b - c) / n - 1e-9 <= high <= 1
    assert low < high
    assert tango(c, b, n, confidence) == pytest.approx((-high, -low), abs=1e-9)
    wider = tango(b, c, n, (1 + confidence) / 2)
    assert wider[0] <= low + 1e-9
    assert wider[1] >= high - 1e-9


@given(x=st.floats(0, 1), n=st.floats(0.5, 1000), confidence=st.floats(0.01, 0.999))
def test_intervals_for_a_proportion_lie_in_the_unit_interval_and_contain_it(
    x: float, n: float, confidence: float
) -> None:
    for interval in (wilson, clopper_pearson):
        low, high = interval(x * n, n, confidence)
        assert 0 <= low <= x + 1e-9
        assert x - 1e-9 <= high <= 1


def test_mover_of_two_wald_intervals_is_the_wald_interval_of_the_difference() -> None:
    low, high = mover_difference(0.6, (0.6 - 0.03, 0.6 + 0.03), 0.5, (0.5 - 0.04, 0.5 + 0.04))
    assert (low, high) == pytest.approx((0.1 - 0.05, 0.1 + 0.05))


@pytest.mark.parametrize("interval", [wilson, clopper_pearson, jeffreys])
@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_are_refused(interval, successes: float, n: float) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="successes"):
        interval(successes, n)


def test_more_discordant_pairs_than_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="b \\+ c <= n"):
        tango(8, 8, 10)
