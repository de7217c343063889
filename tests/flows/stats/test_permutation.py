from __future__ import annotations

import itertools

import numpy as np
import pytest

from flows.stats.cells import BASELINE, Condition, Stratum, score_cube
from flows.stats.permutation import (
    PairedBlock,
    UnpairedBlock,
    complete_blocks,
    equal_weight_means,
    permuted_means,
    usable_models,
)
from tests.flows.stats.frames import cell, episodes

TABULAR = Stratum("tabular", "easy")


@pytest.mark.parametrize("conditions", [2, 3, 8])
def test_permuted_means_follow_the_permutation_distribution(conditions: int) -> None:
    """Mean and covariance of level means under within-instance permutation, in closed form.

    Eight conditions have more orders than are tabulated, so that both ways of drawing are covered.
    """
    rng = np.random.default_rng(conditions)
    values = rng.random((6, conditions, 2))
    draws = PairedBlock(values).permuted(np.random.default_rng(1), 40_000)
    np.testing.assert_allclose(draws.mean(axis=0), np.tile(values.mean(axis=(0, 1)), (conditions, 1)), atol=0.005)
    centred = values - values.mean(axis=1, keepdims=True)
    expected = np.einsum("ikm,ikn->mn", centred, centred) / conditions / 36
    np.testing.assert_allclose(np.cov(draws[:, 0].T, bias=True), expected, atol=0.0005)
    np.testing.assert_allclose(draws.sum(axis=1), np.tile(values.mean(axis=0).sum(axis=0), (40_000, 1)))


@pytest.mark.parametrize("runs", [1, 2, 3, 7])
def test_means_of_runs_are_permuted_without_rounding(runs: int) -> None:
    """Scores that are equal must tie: every mean is a whole number of passes over runs and instances."""
    values = np.random.default_rng(runs).integers(0, runs + 1, size=(50, 4, 3)) / runs
    draws = PairedBlock(values).permuted(np.random.default_rng(1), 500)
    passes = draws * 50 * runs
    np.testing.assert_allclose(passes, passes.round(), atol=1e-9)
    np.testing.assert_allclose(draws.sum(axis=1), np.tile(values.mean(axis=0).sum(axis=0), (500, 1)), atol=1e-12)


def test_a_permutation_moves_all_models_together() -> None:
    values = np.random.default_rng(0).random((5, 3, 1))
    draws = PairedBlock(np.concatenate([values, values], axis=2)).permuted(np.random.default_rng(1), 200)
    np.testing.assert_allclose(draws[..., 0], draws[..., 1])


def test_two_conditions_reach_exactly_the_swaps() -> None:
    values = np.random.default_rng(0).random((3, 2, 1))
    swaps = {
        tuple(np.mean([v[list(order)] for v, order in zip(values, orders, strict=True)], axis=0)[:, 0].round(9))
        for orders in itertools.product([(0, 1), (1, 0)], repeat=3)
    }
    draws = PairedBlock(values).permuted(np.random.default_rng(1), 2_000)[:, :, 0].round(9)
    assert {tuple(draw) for draw in draws} == swaps


def test_unpaired_samples_are_dealt_anew_at_their_sizes() -> None:
    block = UnpairedBlock((np.ones((3, 1)), np.zeros((7, 1))))
    draws = block.permuted(np.random.default_rng(1), 20_000)
    np.testing.assert_allclose(draws[:, 0, 0] * 3 + draws[:, 1, 0] * 7, 3)
    np.testing.assert_allclose(draws.mean(axis=0)[:, 0], 0.3, atol=0.01)
    # Variance of a hypergeometric mean: p(1-p)/n * (N-n)/(N-1).
    assert draws[:, 0, 0].var() == pytest.approx(0.3 * 0.7 / 3 * 7 / 9, rel=0.05)


def test_only_complete_instances_enter_a_block() -> None:
    frame = episodes(
        {
            cell("a"): ["1", "0", "x"],
            cell("a", "order", "s"): ["1", "1", "1"],
            cell("b"): ["1", "x", "1"],
            cell("b", "order", "s"): ["0", "1", "1"],
        }
    )
    cube = score_cube(frame)
    conditions = [BASELINE, Condition("order", "s")]
    blocks = complete_blocks(cube, conditions, (0, 1))
    np.testing.assert_array_equal(equal_weight_means(blocks), [[1, 1], [1, 0]])
    assert blocks[TABULAR].sizes() == (1, 1)
    assert complete_blocks(cube, [BASELINE, Condition("order", "absent")], (0, 1)) == {}


def test_models_without_data_in_a_condition_are_not_usable() -> None:
    frame = episodes({cell("a"): ["1"], cell("a", "order", "s"): ["1"], cell("b"): ["1"]})
    assert usable_models(score_cube(frame), [BASELINE, Condition("order", "s")]) == (0,)


def test_chunks_add_up_to_the_permutations_asked_for() -> None:
    blocks = {TABULAR: PairedBlock(np.random.default_rng(0).random((4, 3, 2)))}
    sizes = [len(chunk[TABULAR]) for chunk in permuted_means(blocks, seed=1, permutations=5_001)]
    assert sum(sizes) == 5_001
