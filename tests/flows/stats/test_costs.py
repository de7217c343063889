from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from flows.stats.costs import costs, ratio_intervals
from tests.flows.stats.frames import cell, episodes, row_of
from tests.flows.stats.synthetic import Plan, synthetic_results


def test_failed_attempts_are_paid_for_by_the_solved_ones() -> None:
    row = row_of(costs(episodes({cell(): ["11", "10", "00"]}, cost=0.03), seed=1, resamples=500), scope="cell")
    assert (row["episodes"], row["solved"]) == (6, 3)
    assert row["cost_usd"] == pytest.approx(0.18)
    assert row["cost_per_episode_usd"] == pytest.approx(0.03)
    assert row["cost_per_solved_usd"] == pytest.approx(0.06)
    assert row["ci_low"] < 0.06 < row["ci_high"]


def test_infrastructure_errors_are_paid_for_apart() -> None:
    row = row_of(costs(episodes({cell(): ["1x", "x0"]}, cost=0.02), seed=1, resamples=100), scope="cell")
    assert (row["cost_usd"], row["cost_infra_usd"]) == (pytest.approx(0.04), pytest.approx(0.04))
    assert row["cost_per_solved_usd"] == pytest.approx(0.04)


def test_unknown_costs_are_counted_and_never_zero() -> None:
    frame = episodes({cell(): ["1", "1", "0"]}, cost=0.02)
    frame.loc[0, "cost_usd"] = pd.NA
    row = row_of(costs(frame, seed=1, resamples=100), scope="cell")
    assert (row["unknown_cost"], row["episodes"], row["solved"]) == (1, 2, 1)
    assert row["cost_per_solved_usd"] == pytest.approx(0.04)
    unknown = row_of(costs(episodes({cell(): ["1", "1"]}, cost=None), seed=1, resamples=100), scope="cell")
    assert unknown[["cost_usd", "cost_per_episode_usd", "cost_per_solved_usd", "ci_low"]].isna().all()
    assert unknown["reason"] == "no scored episode of known cost"


def test_nothing_solved_has_no_cost_per_solved() -> None:
    row = row_of(costs(episodes({cell(): ["0", "0"]}), seed=1, resamples=100), scope="cell")
    assert pd.isna(row["cost_per_solved_usd"])
    assert row["reason"] == "nothing solved"


def test_a_model_adds_up_its_strata() -> None:
    frame = synthetic_results(Plan(models=("a",), instances=5, infra_rate=0.1), seed=2)
    table = costs(frame, seed=1, resamples=100)
    cells = table[(table["scope"] == "cell") & (table["axis"] == "none")]
    row = row_of(table, scope="model", axis="none")
    for column in ("n", "episodes", "solved", "cost_usd", "cost_infra_usd"):
        assert row[column] == pytest.approx(cells[column].sum())


def test_interval_agrees_with_the_delta_method() -> None:
    rng = np.random.default_rng(4)
    solved = rng.integers(0, 4, 200).astype(float)
    cost = 0.01 + 0.02 * rng.random(200)
    ((low, high, reason),) = ratio_intervals([np.column_stack([cost, solved])], seed=1, resamples=20_000)
    ratio = cost.sum() / solved.sum()
    se = np.std(cost - ratio * solved, ddof=1) / np.sqrt(200) / solved.mean()
    assert reason is None
    assert low is not None
    assert high is not None
    assert high - low == pytest.approx(2 * 1.96 * se, rel=0.05)
    assert (low + high) / 2 == pytest.approx(ratio, rel=0.02)


@pytest.mark.parametrize("n", [5, 20, 100])
def test_few_instances_widen_the_interval_and_never_leave_what_costs_can_be(n: int) -> None:
    """Against the percentiles of the same draws: further out, but within the instances' own ratios."""
    rng = np.random.default_rng(n)
    table = np.column_stack([0.01 + 0.02 * rng.random(n), rng.integers(1, 4, n)])
    ((low, high, _),) = ratio_intervals([table], seed=1, resamples=5_000)
    draws = np.random.default_rng(2).dirichlet(np.ones(n), 5_000) @ table
    plain = np.quantile(draws[:, 0] / draws[:, 1], [0.025, 0.975])
    assert low is not None
    assert high is not None
    ratios = table[:, 0] / table[:, 1]
    assert ratios.min() < low < plain[0]
    assert plain[1] < high < ratios.max()


def test_two_instances_keep_to_their_own_ratios() -> None:
    ((low, high, _),) = ratio_intervals([np.array([[0.01, 1.0], [0.03, 1.0]])], seed=1, resamples=2_000)
    assert low is not None
    assert high is not None
    assert 0.01 <= low < 0.0105
    assert 0.0295 < high <= 0.03
