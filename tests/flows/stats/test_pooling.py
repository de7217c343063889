from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.stats.pooling import (
    Term,
    equal_weight_n,
    instance_count,
    pool,
    pooled_mean,
    pooled_variance,
)

A, B = ("tabular", "easy"), ("query", "hard")


def test_cells_with_the_same_instances_become_one_vector() -> None:
    (part,) = pool([Term(0.5, A, np.array([1.0, 0.0, 1.0])), Term(0.5, A, np.array([0.0, 0.0, 1.0]))])
    assert part.weight == 1
    np.testing.assert_allclose(part.values, [0.5, 0, 1])
    np.testing.assert_array_equal(part.raw, part.values)


def test_missing_instances_leave_the_mean_of_cell_means_unchanged() -> None:
    first, second = np.array([1.0, 0.0, 1.0, np.nan]), np.array([0.0, np.nan, 1.0, 1.0])
    parts = pool([Term(0.5, A, first), Term(0.5, A, second)])
    assert pooled_mean(parts) == pytest.approx((np.nanmean(first) + np.nanmean(second)) / 2)
    assert parts[0].values.mean() == pytest.approx(parts[0].raw.mean())


def test_variance_of_the_incomplete_average_is_that_of_the_jackknife() -> None:
    """Delete-one jackknife of the mean of two cell means, one instance (both cells) at a time."""
    rng = np.random.default_rng(8)
    table = rng.random((60, 2))
    table[rng.random((60, 2)) < 0.2] = np.nan
    table = table[~np.isnan(table).all(axis=1)]
    parts = pool([Term(0.5, A, table[:, 0]), Term(0.5, A, table[:, 1])])
    n = len(table)
    left_out = np.array([np.nanmean(np.delete(table, i, axis=0), axis=0).mean() for i in range(n)])
    jackknife = (n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()
    assert pooled_variance(parts) == pytest.approx(jackknife, rel=0.05)


def test_strata_add_their_variances() -> None:
    one, two = np.array([1.0, 0.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
    parts = pool([Term(0.5, A, one), Term(0.5, B, two)])
    assert [part.instances for part in parts] == [B, A]
    expected = 0.25 * one.var(ddof=1) / 4 + 0.25 * two.var(ddof=1) / 3
    assert pooled_variance(parts) == pytest.approx(expected)
    assert equal_weight_n(parts) == pytest.approx(1 / (0.25 / 4 + 0.25 / 3))
    assert instance_count(parts) == 7


def test_a_stratum_of_one_instance_borrows_the_variance_of_the_others() -> None:
    parts = pool([Term(0.5, A, np.array([1.0, 0.0])), Term(0.5, B, np.array([1.0]))])
    assert pooled_variance(parts) == pytest.approx(0.25 * 0.5 / 2 + 0.25 * 0.5)
    assert pooled_variance(pool([Term(1.0, B, np.array([1.0]))])) is None


@given(st.integers(1, 12))
def test_equal_shares_of_ones_are_exactly_one(cells: int) -> None:
    parts = pool([Term(1 / cells, A, np.ones(5)) for _ in range(cells)])
    assert pooled_mean(parts) == 1.0
    assert (parts[0].values == 1.0).all()
