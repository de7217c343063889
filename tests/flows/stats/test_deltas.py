from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from flows.stats.contrasts import paired_estimates
from flows.stats.deltas import axis_contrast, axis_deltas
from flows.stats.estimate import Estimate
from flows.stats.intervals import tango, z_quantile
from flows.stats.pooling import Term, pool
from flows.stats.rates import pass_rates
from tests.flows.stats.frames import cell, episodes, row_of
from tests.flows.stats.synthetic import Plan, Spread, synthetic_results

A, B = ("tabular", "easy"), ("query", "hard")
estimate_paired = partial(paired_estimates, seed=1, resamples=4_000)


def one_stratum(values: list[float]) -> Estimate:
    return estimate_paired([pool([Term(1.0, A, np.array(values))])])[0]


def paired_frame(base: list[str], perturbed: list[str], axis: str = "paraphrase", level: str = "p1") -> pd.DataFrame:
    return episodes({cell(): base, cell(axis=axis, level=level): perturbed})


def test_delta_is_perturbed_minus_baseline() -> None:
    frame = paired_frame(list("1111001101"), list("1011000111"))
    row = row_of(axis_deltas(frame, seed=1, resamples=500), scope="cell", level="p1")
    assert row["delta"] == pytest.approx(-0.1)
    assert (row["baseline_rate"], row["perturbed_rate"]) == (0.7, 0.6)
    assert row["n_nonzero"] == 3
    assert row["method"] == "tango"
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(tango(1, 2, 10))
    assert row["mcnemar_p"] == pytest.approx(stats.binomtest(1, 3).pvalue)


def test_few_discordant_instances_take_tango() -> None:
    estimate = one_stratum([1.0] * 2 + [-1.0] * 7 + [0.0] * 31)
    assert estimate.method == "tango"
    assert estimate.interval() == pytest.approx(tango(2, 7, 40))


def test_no_discordant_instance_never_gives_a_zero_width_interval() -> None:
    z = z_quantile(0.95)
    assert one_stratum([0.0] * 25).interval() == pytest.approx((-z * z / (25 + z * z), z * z / (25 + z * z)))


@pytest.mark.parametrize("constant", [1.0, -0.5, 1 / 3])
def test_constant_differences_take_tango(constant: float) -> None:
    estimate = one_stratum([constant] * 30)
    assert estimate.method == "tango"
    low, high = estimate.interval()
    assert low is not None
    assert high is not None
    assert low < constant <= high or low <= constant < high


def test_ten_nonzero_differences_take_the_expanded_percentile() -> None:
    rng = np.random.default_rng(4)
    values = rng.choice([-1, 0, 1], size=60, p=[0.2, 0.7, 0.1]).astype(float)
    estimate = estimate_paired([pool([Term(1.0, A, values)])], resamples=40_000)[0]
    assert estimate.method == "expanded percentile"
    tail = stats.norm.cdf(-np.sqrt(60 / 59) * stats.t.ppf(0.975, 59))
    draws = rng.choice(values, size=(40_000, 60)).mean(axis=1)
    assert estimate.interval() == pytest.approx(tuple(np.quantile(draws, [tail, 1 - tail])), abs=0.01)


def test_a_small_stratum_takes_the_stratified_t() -> None:
    rng = np.random.default_rng(4)
    big, small = rng.normal(0, 0.3, 40), rng.normal(0, 0.3, 6)
    estimate = estimate_paired([pool([Term(0.5, A, big), Term(0.5, B, small)])])[0]
    assert estimate.method == "stratified t"
    se = np.sqrt(0.25 * big.var(ddof=1) / 40 + 0.25 * small.var(ddof=1) / 6)
    centre = (big.mean() + small.mean()) / 2
    half = stats.t.ppf(0.975, 44) * se
    assert estimate.interval() == pytest.approx((centre - half, centre + half))


def test_aggregate_tango_uses_equal_weight_counts() -> None:
    """b* = n0 sum(w b/n): two strata of 40 and 10 with three discordant instances in all."""
    one, two = np.zeros(40), np.zeros(10)
    one[:2], two[0] = 1.0, -1.0
    estimate = estimate_paired([pool([Term(0.5, A, one), Term(0.5, B, two)])])[0]
    n0 = 1 / (0.25 / 40 + 0.25 / 10)
    assert estimate.method == "tango"
    assert estimate.interval() == pytest.approx(tango(n0 * 0.5 * 2 / 40, n0 * 0.5 * 1 / 10, n0))


def test_strata_weigh_equally_whatever_their_size() -> None:
    """Deltas of +.1 in 10 instances and -.1 in 30 average to 0, not to -.05."""
    one, two = np.full(10, 0.1), np.full(30, -0.1)
    (estimate,) = estimate_paired([pool([Term(0.5, A, one), Term(0.5, B, two)])])
    assert estimate.value == pytest.approx(0)
    assert np.concatenate([one, two]).mean() == pytest.approx(-0.05)


def test_one_instance_has_a_delta_but_no_interval() -> None:
    estimate = one_stratum([1.0])
    assert (estimate.value, estimate.reason) == (1.0, "fewer than two instances")
    assert estimate.interval() == (None, None)


def test_change_of_a_gap_up_to_two_keeps_a_valid_tango_interval() -> None:
    values = np.array([2.0, -1.0, 1.0] + [0.0] * 17)
    (estimate,) = estimate_paired([pool([Term(1.0, A, values)])], reach=2.0)
    low, high = tango(1.5, 0.5, 20)
    assert estimate.interval() == pytest.approx((2 * low, 2 * high))


def test_only_instances_scored_in_both_arms_are_compared() -> None:
    frame = paired_frame(["1", "1", "x", "0"], ["0", "x", "1", "0"])
    row = row_of(axis_deltas(frame, seed=1, resamples=200), scope="cell", level="p1")
    assert (row["n"], row["delta"]) == (2, -0.5)


def test_strata_missing_in_an_arm_are_dropped_from_both_and_listed() -> None:
    frame = episodes(
        {
            cell(): ["1", "0"],
            cell(family="query"): ["1", "1"],
            cell(axis="temperature", level="0.7"): ["1", "1"],
        }
    )
    row = row_of(axis_deltas(frame, seed=1, resamples=200), scope="model", level="0.7")
    assert row["missing_strata"] == "query-easy"
    assert (row["baseline_rate"], row["perturbed_rate"], row["delta"]) == (0.5, 1.0, 0.5)


def test_nothing_in_common_is_a_row_with_a_reason() -> None:
    frame = paired_frame(["1", "x"], ["x", "1"])
    table = axis_deltas(frame, seed=1, resamples=200)
    assert table["delta"].isna().all()
    assert (table["reason"] == "no instance scored in both arms").all()


@pytest.mark.parametrize("outcome", ["1", "0"])
def test_ceiling_and_floor_are_marked(outcome: str) -> None:
    frame = paired_frame([outcome] * 5, [outcome] * 5)
    estimate = axis_contrast(frame, "paraphrase", "p1", seed=1, resamples=200)
    assert estimate.degenerate
    assert estimate.value == 0
    assert not axis_contrast(paired_frame(["1", "0"], ["1", "0"]), "paraphrase", seed=1, resamples=200).degenerate


def test_mean_level_averages_the_levels() -> None:
    frame = episodes(
        {
            cell(): ["1"] * 4,
            cell(axis="paraphrase", level="p1"): ["1", "1", "0", "0"],
            cell(axis="paraphrase", level="p2"): ["1", "1", "1", "1"],
        }
    )
    estimate = axis_contrast(frame, "paraphrase", seed=1, resamples=200)
    assert estimate.value == pytest.approx(-0.25)
    assert estimate.n == 4


def test_unpaired_axis_combines_the_arms_by_mover() -> None:
    base, fresh = ["1"] * 14 + ["0"] * 6, ["1"] * 9 + ["0"] * 11
    frame = paired_frame(base, fresh, axis="resample", level="s1")
    row = row_of(axis_deltas(frame, seed=1, resamples=500), scope="cell", level="s1")
    assert not row["paired"]
    assert row["delta"] == pytest.approx(-0.25)
    rates = pass_rates(frame, seed=1, resamples=500)
    first, second = (row_of(rates, scope="cell", axis=axis) for axis in ("resample", "none"))
    low = -0.25 - np.hypot(0.45 - first["ci_low"], second["ci_high"] - 0.7)
    high = -0.25 + np.hypot(first["ci_high"] - 0.45, 0.7 - second["ci_low"])
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high))


def test_unpaired_standard_error_exceeds_the_paired_one_of_the_worked_example() -> None:
    first, second = np.array(list("1111001101"), dtype=float), np.array(list("1011000111"), dtype=float)
    assert np.sqrt(first.var(ddof=1) / 10 + second.var(ddof=1) / 10) == pytest.approx(0.223607, abs=1e-6)


def test_contrast_of_what_is_not_there_says_what() -> None:
    frame = paired_frame(["1", "0"], ["1", "0"])
    contrast = partial(axis_contrast, frame, seed=1, resamples=100)
    assert contrast("order").reason == "no row for axis order"
    assert contrast("paraphrase", "p9").reason == "no row for level p9 of axis paraphrase"
    assert contrast("paraphrase", model="z").reason == "no row for model z"
    assert contrast("paraphrase", stratum=("web", "easy")).reason == "no row for stratum web-easy"
    without = frame[frame["axis"] != "none"]
    assert axis_contrast(without, "paraphrase", seed=1, resamples=100).reason == "no baseline row"


def test_contrast_and_table_agree_for_every_scope() -> None:
    frame = synthetic_results(Plan(models=("a", "b"), instances=12, infra_rate=0.05), seed=5)
    table = axis_deltas(frame, seed=3, resamples=2_000)
    for axis in ("paraphrase", "resample", "distractors"):
        for labels, arguments in (
            ({"scope": "overall"}, {}),
            ({"scope": "model", "model": "b"}, {"model": "b"}),
            ({"scope": "stratum", "family": "query"}, {"stratum": ("query", "hard")}),
            ({"scope": "cell", "family": "query", "model": "a"}, {"model": "a", "stratum": ("query", "hard")}),
        ):
            row = row_of(table, axis=axis, level="mean", **labels)
            estimate = axis_contrast(frame, axis, seed=3, resamples=2_000, **arguments)  # type: ignore[arg-type]
            assert estimate.value == pytest.approx(row["delta"])
            assert estimate.interval() == pytest.approx((row["ci_low"], row["ci_high"]), abs=1e-5)
            assert estimate.n == row["n"]


def test_a_known_effect_is_recovered() -> None:
    plan = Plan(
        models=("a", "b"),
        instances=80,
        runs=3,
        effects={(None, "distractors", "5"): -0.15},
        spread=Spread(instance=0.1, model_instance=0.0),
    )
    frame = synthetic_results(plan, seed=11)
    hit = axis_contrast(frame, "distractors", "5", seed=1, resamples=2_000)
    low, high = hit.interval()
    assert low is not None
    assert high is not None
    assert low < -0.15 < high < 0
    p = hit.p_value()
    assert p is not None
    assert p < 1e-4


def test_a_family_is_the_equal_weight_mean_of_its_difficulties_with_the_interval_of_both() -> None:
    plan = Plan(
        models=("a", "b"),
        strata=(("tabular", "easy"), ("tabular", "hard"), ("query", "easy")),
        levels={"none": ("baseline",), "paraphrase": ("p1",)},
        instances=30,
        effects={(None, "paraphrase", "p1"): -0.2},
    )
    frame = synthetic_results(plan, 4)
    table = axis_deltas(frame, seed=1, resamples=2_000)
    find = partial(row_of, table, axis="paraphrase", level="p1")
    for models, family, stratum in (({"model": "all"}, "family", "stratum"), ({"model": "b"}, "model_family", "cell")):
        row = find(scope=family, family="tabular", **models)
        parts = [find(scope=stratum, family="tabular", difficulty=one, **models) for one in ("easy", "hard")]
        assert row["difficulty"] == "all"
        assert row["delta"] == pytest.approx(np.mean([part["delta"] for part in parts]))
        assert row["n"] == sum(part["n"] for part in parts)
        half = np.sqrt(sum((part["ci_high"] - part["ci_low"]) ** 2 for part in parts)) / 2
        assert row["ci_high"] - row["ci_low"] == pytest.approx(half, rel=0.1), "errors of independent strata add up"
    alone = find(scope="family", family="query", model="all")
    assert alone["delta"] == find(scope="stratum", family="query", model="all")["delta"]
    only = axis_deltas(frame[frame["difficulty"] == "easy"], seed=1, resamples=500)
    assert "family" not in set(only["scope"]), "a stratum that is its family is not there twice"
