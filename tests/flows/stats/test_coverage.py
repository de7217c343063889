"""Coverage and size on data with known truth. Slow; the margins allow for the error of the simulation."""

from __future__ import annotations

import numpy as np
import pytest

from flows.stats.cells import FloatArray, Stratum
from flows.stats.contrasts import difference_unpaired, paired_estimates, rate_estimates
from flows.stats.estimate import Estimate
from flows.stats.permutation import PairedBlock, permuted_means
from flows.stats.pooling import Part, Term, pool
from flows.stats.ranks import compare_ranks
from flows.stats.spread import range_nulls

pytestmark = pytest.mark.slow

STUDIES = 600


def coverage(estimates: list[Estimate], truth: float) -> float:
    intervals = [estimate.interval() for estimate in estimates]
    return float(np.mean([low is not None and low <= truth <= high for low, high in intervals]))


def instance_means(rng: np.random.Generator, p: FloatArray, runs: int) -> FloatArray:
    return rng.binomial(runs, p) / runs


def beta(rng: np.random.Generator, mean: float, n: int, concentration: float = 1.5) -> FloatArray:
    """Pass probabilities of instances: from nearly all-or-nothing to alike, by concentration."""
    return rng.beta(mean * concentration, (1 - mean) * concentration, n)


@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("mean", [0.05, 0.5, 0.9])
def test_pass_rate_of_a_cell_is_covered(n: int, runs: int, mean: float) -> None:
    rng = np.random.default_rng([n, runs, int(100 * mean)])
    problems = [
        pool([Term(1.0, ("f", "d"), instance_means(rng, beta(rng, mean, n), runs), n * runs)]) for _ in range(STUDIES)
    ]
    assert coverage(rate_estimates(problems, seed=1, resamples=2_000), mean) > 0.92


@pytest.mark.parametrize("mean", [0.1, 0.6, 0.95])
def test_pass_rate_over_strata_is_covered(mean: float) -> None:
    rng = np.random.default_rng(int(100 * mean))
    sizes = (10, 20, 30, 50)

    def study() -> tuple[Part, ...]:
        return pool(
            Term(0.25, ("f", str(k)), instance_means(rng, beta(rng, mean, n), 2), 2 * n) for k, n in enumerate(sizes)
        )

    assert coverage(rate_estimates([study() for _ in range(STUDIES)], seed=1, resamples=500), mean) > 0.89


@pytest.mark.parametrize(
    ("sizes", "mean", "effect", "runs"),
    [
        ((20,), 0.9, 0.0, 1),
        ((20,), 0.5, 0.1, 1),
        ((60,), 0.7, -0.1, 3),
        ((5, 10, 40), 0.8, 0.05, 1),
        ((12, 20, 30, 50), 0.6, 0.0, 2),
        ((30, 30, 30, 30, 30, 30), 0.95, -0.03, 1),
    ],
)
def test_paired_delta_is_covered(sizes: tuple[int, ...], mean: float, effect: float, runs: int) -> None:
    rng = np.random.default_rng([*sizes, runs])
    margin = abs(effect)

    def stratum(n: int) -> FloatArray:
        p = margin + (1 - 2 * margin) * beta(rng, (mean - margin) / (1 - 2 * margin), n)
        return instance_means(rng, np.clip(p + effect, 0, 1), runs) - instance_means(rng, p, runs)

    problems = [
        pool(Term(1 / len(sizes), ("f", str(k)), stratum(n)) for k, n in enumerate(sizes)) for _ in range(STUDIES)
    ]
    assert coverage(paired_estimates(problems, seed=1, resamples=2_000), effect) > 0.92


def test_unpaired_delta_is_covered() -> None:
    rng = np.random.default_rng(5)
    arms = [
        pool([Term(1.0, ("f", arm), instance_means(rng, beta(rng, 0.8, 25), 2), 50)])
        for _ in range(STUDIES)
        for arm in ("baseline", "sample")
    ]
    rates = rate_estimates(arms, seed=1, resamples=2_000)
    differences = [difference_unpaired(rates[2 * k + 1], rates[2 * k]) for k in range(STUDIES)]
    assert coverage(differences, 0) > 0.92


def test_range_null_rejects_at_its_level_with_repeated_runs() -> None:
    """Blocks of three runs that depend on each other strongly: permuting single episodes would reject far more."""
    rng = np.random.default_rng(6)
    stratum = Stratum("f", "d")
    rejected = []
    for study in range(300):
        probabilities = beta(rng, 0.5, 30)[:, None] + rng.uniform(-0.4, 0.4, (30, 5))
        values = instance_means(rng, np.clip(probabilities, 0, 1), 3)
        (null,) = range_nulls({stratum: PairedBlock(values[:, :, None])}, [[stratum]], seed=study, permutations=200)
        assert null is not None
        rejected.append(null.p <= 0.05)
    assert np.mean(rejected) < 0.09


def test_rank_test_rejects_at_most_at_its_level_when_nothing_changes() -> None:
    rng = np.random.default_rng(7)
    stratum = Stratum("f", "d")
    rejected = []
    for study in range(300):
        skill = np.array([0.35, 0.45, 0.5, 0.55, 0.65])
        p = np.clip(skill[None, None, :] + rng.uniform(-0.3, 0.3, (40, 1, 1)), 0, 1)
        block = PairedBlock(instance_means(rng, np.broadcast_to(p, (40, 2, 5)), 1))
        observed = compare_ranks(block.means()).concordance[0]
        null = np.concatenate(
            [
                compare_ranks(chunk[stratum]).concordance[:, 0]
                for chunk in permuted_means({stratum: block}, seed=study, permutations=200)
            ]
        )
        rejected.append((1 + (null <= observed + 1e-10).sum()) / 201 <= 0.05)
    assert np.mean(rejected) < 0.09
