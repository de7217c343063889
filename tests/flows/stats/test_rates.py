from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.regression.linear_model import OLS

from flows.stats.intervals import jeffreys
from flows.stats.rates import pass_rates
from tests.flows.stats.frames import cell, episodes, row_of
from tests.flows.stats.synthetic import Plan, synthetic_results

FIVE = ["111", "101", "000", "110", "010"]


def only_cell(instances: list[str], resamples: int = 4_000) -> pd.Series:
    return row_of(pass_rates(episodes({cell(): instances}), seed=1, resamples=resamples), scope="cell")


def test_cluster_standard_error_and_effective_size_reproduce_the_worked_example() -> None:
    row = only_cell(FIVE, resamples=100_000)
    assert row["pass_rate"] == pytest.approx(0.533333, abs=1e-6)
    assert row["se"] == pytest.approx(0.169967, abs=1e-6)
    assert row["n_eff"] == pytest.approx(8.615385, abs=1e-6)
    assert (row["wilson_low"], row["wilson_high"]) == pytest.approx((0.245821, 0.800287), abs=1e-6)
    assert (row["percentile_low"], row["percentile_high"]) == pytest.approx((0.2, 0.8), abs=1e-5)
    assert (row["n"], row["episodes"]) == (5, 15)


def test_cluster_standard_error_agrees_with_statsmodels() -> None:
    y = np.array([int(c) for runs in FIVE for c in runs], dtype=float)
    fit = OLS(y, np.ones((15, 1))).fit(
        cov_type="cluster", cov_kwds={"groups": np.repeat(np.arange(5), 3), "use_correction": False}
    )
    assert fit.bse[0] == pytest.approx(0.152023, abs=1e-6)
    assert only_cell(FIVE)["se"] * np.sqrt(4 / 5) == pytest.approx(fit.bse[0])
    naive = np.sqrt(y.mean() * (1 - y.mean()) / 15)
    assert naive == pytest.approx(0.128812, abs=1e-6)


def test_identical_repetitions_do_not_narrow_the_interval() -> None:
    """Ten instances, five pass, each repeated four times."""
    repeated, single = only_cell(["1111"] * 5 + ["0000"] * 5), only_cell(["1"] * 5 + ["0"] * 5)
    assert repeated["se"] == pytest.approx(0.167, abs=5e-4)
    assert repeated["n_eff"] == 10
    assert (repeated["ci_low"], repeated["ci_high"]) == (single["ci_low"], single["ci_high"])


def test_single_runs_give_jeffreys_exactly() -> None:
    row = only_cell(["1"] * 8 + ["0"] * 12)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(jeffreys(8, 20))


@pytest.mark.parametrize(("outcome", "rate"), [("1", 1.0), ("0", 0.0)])
@pytest.mark.parametrize("runs", [1, 3])
def test_all_pass_and_all_fail_keep_an_interval_and_are_flagged(outcome: str, rate: float, runs: int) -> None:
    table = pass_rates(episodes({cell(): [outcome * runs] * 12}), seed=1, resamples=500)
    for _, row in table.iterrows():
        assert row["pass_rate"] == rate
        assert row["degenerate"]
        assert row["n_eff"] == 12
        assert row["ci_high"] - row["ci_low"] > 0.1
        assert row["ci_high" if rate else "ci_low"] == rate


def test_one_instance_has_the_jeffreys_interval() -> None:
    row = only_cell(["1"])
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((0.147, 1), abs=5e-4)
    assert pd.isna(row["se"])


def test_unbalanced_runs_are_the_mean_of_instance_means() -> None:
    assert only_cell(["1111", "0"])["pass_rate"] == 0.5


def test_only_infrastructure_errors_give_no_rate_but_a_reason_and_bounds() -> None:
    row = only_cell(["xx", "x"])
    assert row["n"] == 0
    assert row["episodes"] == 0
    assert row["infra_errors"] == 3
    assert row[["pass_rate", "ci_low", "ci_high", "wilson_low", "percentile_low"]].isna().all()
    assert row["reason"] == "no scored episode"
    assert (row["if_infra_failed"], row["if_infra_passed"]) == (0, 1)


def test_bounds_count_infrastructure_errors_as_fail_and_as_pass() -> None:
    row = only_cell(["1x", "00", "xx"])
    assert row["pass_rate"] == 0.5
    assert row["if_infra_failed"] == pytest.approx((0.5 + 0 + 0) / 3)
    assert row["if_infra_passed"] == pytest.approx((1 + 0 + 1) / 3)


def test_strata_and_models_weigh_equally_whatever_their_size() -> None:
    frame = episodes(
        {
            cell("a", family="tabular"): ["1"] * 30,
            cell("a", family="query"): ["0"] * 10,
            cell("b", family="tabular"): ["0"] * 30,
            cell("b", family="query"): ["0"] * 10,
        }
    )
    table = pass_rates(frame, seed=1, resamples=500)
    assert row_of(table, scope="model", model="a")["pass_rate"] == 0.5
    assert row_of(table, scope="overall")["pass_rate"] == 0.25
    assert row_of(table, scope="stratum", family="tabular")["pass_rate"] == 0.5


def test_aggregate_interval_is_jeffreys_on_the_effective_size() -> None:
    """The formula, computed by hand for two strata of unequal size."""
    one, two = ["11", "10", "01", "11", "10", "00"], ["10", "10", "01", "11"]
    frame = episodes({cell(family="query"): one, cell(family="tabular"): two})
    row = row_of(pass_rates(frame, seed=1, resamples=500), scope="model")
    means = [np.array([np.mean([int(c) for c in runs]) for runs in stratum]) for stratum in (one, two)]
    p = sum(m.mean() for m in means) / 2
    variance = sum(0.25 * m.var(ddof=1) / len(m) for m in means)
    n0 = 1 / sum(0.25 / len(m) for m in means)
    n_eff = min(max(p * (1 - p) / variance, n0), 4 * n0 * 2)
    assert row["n_eff"] == pytest.approx(n_eff)
    assert row["se"] == pytest.approx(np.sqrt(variance))
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(jeffreys(p * n_eff, n_eff))


def test_strata_that_a_condition_lacks_are_listed() -> None:
    frame = episodes(
        {
            cell(): ["1", "0"],
            cell(family="query"): ["1", "0"],
            cell(axis="order", level="shuffled"): ["1", "1"],
        }
    )
    row = row_of(pass_rates(frame, seed=1, resamples=200), scope="model", axis="order")
    assert row["missing_strata"] == "query-easy"
    assert row["pass_rate"] == 1


def test_seed_moves_an_interval_only_within_resampling_noise() -> None:
    frame = synthetic_results(Plan(models=("a",), instances=30), seed=2)
    one, two = (pass_rates(frame, seed=seed, resamples=10_000) for seed in (1, 2))
    assert (one["ci_low"] - two["ci_low"]).abs().max() < 0.01
    assert (one["ci_low"] != two["ci_low"]).any()
