"""Sample sizes against published values, other libraries and simulation; the study's tables against hand counts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pingouin as pg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import NormalIndPower, TTestPower

from flows.stats.cells import score_cube
from flows.stats.deltas import axis_contrast
from flows.stats.planning import MODELS, PERTURBATION, comparisons, moments
from flows.stats.power import (
    connor_n,
    detectable_difference,
    difference_variance,
    general_instances,
    general_power,
    instances_needed,
    k_factor,
    paired_n,
    run_variance,
    smallest_detectable_difference,
    smallest_general_difference,
    unpaired_n,
)
from flows.stats.power_general import POWER_GENERAL_FIELDS, power_general
from flows.stats.power_tables import (
    DETECTABLE_FIELDS,
    NO_SPREAD,
    ONE_RUN,
    POWER_EXACT_FIELDS,
    detectable,
    plan_moments,
    power_exact,
    study_rho,
)
from flows.stats.variance import variance_components
from tests.flows.stats.synthetic import Plan, Spread, synthetic_results

INF = math.inf


@pytest.mark.parametrize(
    ("first", "second", "unpaired", "paired"),
    [
        (0.7, 0.65, 1374, 688),
        (0.7, 0.67, 3760, 1881),
        (0.7, 0.6, 354, 177),
        (0.9, 0.85, 683, 347),
        (0.5, 0.47, 4353, 2177),
    ],
)
def test_reference_sample_sizes(first: float, second: float, unpaired: int, paired: int) -> None:
    assert math.ceil(unpaired_n(first, second)) == unpaired
    assert math.ceil(paired_n(first, second, 0.5)) == paired


def test_seventy_against_sixty_five_by_four_routes() -> None:
    assert unpaired_n(0.7, 0.65) == pytest.approx(1373.55, abs=0.01)
    assert paired_n(0.7, 0.65, 0.5) == pytest.approx(687.33, abs=0.01)
    assert connor_n(0.7, 0.65, 0.5) == pytest.approx(692.81, abs=0.01)
    effect = 0.05 / math.sqrt(difference_variance(0.7, 0.65, 0.5))
    by_t = pg.power_ttest(d=effect, power=0.8, contrast="paired")
    assert by_t == pytest.approx(689.25, abs=0.01)
    assert by_t == pytest.approx(TTestPower().solve_power(effect, power=0.8, alpha=0.05), abs=0.01)
    pooled = math.sqrt(difference_variance(0.7, 0.65, 0.0) / 2)
    by_z = NormalIndPower().solve_power(0.05 / pooled, power=0.8, alpha=0.05)
    assert unpaired_n(0.7, 0.65) == pytest.approx(by_z, rel=1e-5)


def test_values_published_by_miller() -> None:
    endless = run_variance(1 / 9, 1 / 6, 1 / 6, INF, INF)
    single = run_variance(1 / 9, 1 / 6, 1 / 6, 1, 1)
    ten = run_variance(1 / 9, 1 / 6, 1 / 6, 10, 10)
    assert math.ceil(instances_needed(0.03, endless)) == 969
    assert math.ceil(instances_needed(0.03, single)) == 3876
    assert detectable_difference(198, single) == pytest.approx(0.1327, abs=5e-5)
    assert detectable_difference(198, ten) == pytest.approx(0.0757, abs=5e-5)


def test_paired_power_is_what_simulation_finds() -> None:
    """At the n of the formula a paired z test finds 10 points about 80% of the time."""
    n = math.ceil(paired_n(0.7, 0.6, 0.5))
    covariance = 0.5 * math.sqrt(0.7 * 0.3 * 0.6 * 0.4)
    both = covariance + 0.7 * 0.6
    cells = np.random.default_rng(1).multinomial(n, [both, 0.7 - both, 0.6 - both, both - 0.3], size=20_000)
    mean = (cells[:, 1] - cells[:, 2]) / n
    error = np.sqrt(((cells[:, 1] + cells[:, 2]) / n - mean**2) / n)
    assert np.mean(mean / error > 1.959964) == pytest.approx(0.8, abs=0.02)


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.floats(0.0, 0.9))
def test_one_run_gives_the_bernoulli_formula_whatever_the_split(first: float, second: float, rho: float) -> None:
    v1, v2 = first * (1 - first), second * (1 - second)
    expected = v1 + v2 - 2 * rho * math.sqrt(v1 * v2)
    for icc in (None, rho, 1.0):
        assert difference_variance(first, second, rho, icc=icc) == pytest.approx(expected)


def test_runs_average_out_only_their_own_share() -> None:
    assert difference_variance(0.7, 0.7, 0.5, runs=INF, icc=0.5) == pytest.approx(0.0)
    assert difference_variance(0.7, 0.7, 0.5, runs=INF, icc=1.0) == pytest.approx(0.21)
    halves = difference_variance(0.7, 0.7, 0.5, runs=INF)
    assert halves == pytest.approx(difference_variance(0.7, 0.7, 0.5) / 2)


@settings(deadline=None)
@given(st.integers(20, 5000), st.floats(0.1, 0.9), st.floats(0.0, 0.8), st.integers(1, 8))
def test_smallest_detectable_difference_solves_its_equation(n: int, base: float, rho: float, runs: int) -> None:
    delta = smallest_detectable_difference(n, base, rho, runs)
    if delta is None:
        return
    second = base - delta if base >= 0.5 else base + delta
    variance = difference_variance(base, second, rho, runs=runs)
    assert instances_needed(delta, variance) == pytest.approx(n, rel=1e-6)


def test_smallest_detectable_difference_is_null_when_even_the_largest_change_goes_unseen() -> None:
    assert smallest_detectable_difference(2, 0.5, 0.0) is None
    assert smallest_detectable_difference(200, 0.5, 0.0) is not None


@pytest.mark.parametrize("levels", [40, 100])
def test_general_instances_with_many_levels_follow_the_closed_form(levels: int) -> None:
    k = k_factor()
    expected = k**2 * 0.1 / (0.05**2 - k**2 * 2 * 0.0005 / levels)
    assert general_instances(0.05, 0.1, 0.0005, levels).n == math.ceil(expected)


def test_general_instances_without_model_level_variance_are_the_exact_ones() -> None:
    assert general_instances(0.05, 0.1, 0.0, 10).n == math.ceil(instances_needed(0.05, 0.1))
    assert general_instances(0.05, 0.1, -0.01, 10).n == math.ceil(instances_needed(0.05, 0.1))


def test_few_levels_cost_more_than_normal_quantiles_say() -> None:
    few = general_instances(0.05, 0.1, 0.0005, 9).n
    k = k_factor()
    assert few is not None
    assert few > k**2 * 0.1 / (0.05**2 - k**2 * 2 * 0.0005 / 9)


def test_no_number_of_instances_gets_below_the_floor() -> None:
    floor = smallest_general_difference(0.0005, 9)
    assert floor > k_factor() * math.sqrt(2 * 0.0005 / 9)
    below, above = general_instances(floor * 0.99, 0.1, 0.0005, 9), general_instances(floor * 1.05, 0.1, 0.0005, 9)
    assert below.n is None
    assert (
        below.reason
        == f"unreachable: under 9 prompts and tool sets no number of instances finds less than {100 * floor:.1f} points"
    )
    assert above.n is not None


def test_what_is_out_of_reach_says_whether_anything_would_be_found() -> None:
    assert smallest_general_difference(0.0005, 1) == INF
    assert general_instances(0.5, 0.1, 0.0005, 1).reason == "unreachable: one prompt says nothing of others"
    assert str(general_instances(0.9, 0.1, 0.2, 2).reason).endswith(
        "no number of instances finds any difference at all"
    )


def test_general_power_at_the_needed_instances_is_the_wanted_power() -> None:
    n = general_instances(0.05, 0.1, 0.0, 10).n
    assert n is not None
    assert general_power(n, 0.05, 0.1, 0.0, 10) == pytest.approx(0.8, abs=0.002)
    few = general_instances(0.05, 0.1, 0.0005, 9).n
    assert few is not None
    assert general_power(few, 0.05, 0.1, 0.0005, 9) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(
    "call",
    [
        lambda: k_factor(alpha=0),
        lambda: k_factor(power=1),
        lambda: instances_needed(0, 0.1),
        lambda: difference_variance(1.2, 0.5, 0.5),
        lambda: difference_variance(0.5, 0.5, 0.9, icc=0.5),
        lambda: difference_variance(0.5, 0.5, 0.5, runs=0),
        lambda: detectable_difference(0, 0.1),
    ],
)
def test_impossible_arguments_are_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=r"need|must"):
        call()


PLAN = Plan(
    models=("a", "b"),
    strata=(("tabular", "easy"), ("query", "easy")),
    levels={"none": ("baseline",), "paraphrase": ("p1", "p2"), "temperature": ("0.7",), "resample": ("s1",)},
    instances=30,
    runs=3,
)


def test_moments_of_a_perturbation_have_the_standard_error_of_its_delta() -> None:
    frame = synthetic_results(replace(PLAN, models=("a",)), 1)
    cube = score_cube(frame)
    (found,) = (moments(cube, c) for c in comparisons(cube) if c.axis == "temperature")
    assert found is not None
    wide = frame.pivot_table(
        index=["family", "instance_id"], columns="axis", values="passed", aggfunc=lambda x: x.astype(float).mean()
    )
    difference = (wide["temperature"] - wide["none"]).dropna()
    strata = difference.groupby("family")
    squared = float((strata.var() / strata.count() / 4).sum())
    assert found.variance / found.n0 == pytest.approx(squared)
    assert found.n0 == pytest.approx(60)
    estimate = axis_contrast(frame, "temperature", "0.7", seed=1, resamples=4000)
    low, high = estimate.interval()
    assert low is not None
    assert high is not None
    assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(squared), rel=0.12)


def test_run_noise_and_instance_variance_are_recovered() -> None:
    """True run noise of one run is the mean of p(1-p) over both arms, and a perturbation that moves nothing has
    no instance variance of its own."""
    plan = Plan(
        models=("a",),
        strata=(("tabular", "easy"),),
        levels={"none": ("baseline",), "temperature": ("0.7",)},
        instances=3000,
        runs=3,
        spread=Spread(instance=0.15, model_instance=0.0),
    )
    cube = score_cube(synthetic_results(plan, 4))
    (found,) = (moments(cube, c) for c in comparisons(cube))
    assert found is not None
    assert found.run_noise == pytest.approx(2 * (0.24 - 0.15**2), rel=0.03)
    assert found.omega2 == pytest.approx(0.0, abs=0.01)
    assert found.rho == pytest.approx(0.15**2 / 0.24, abs=0.03)
    assert found.variance_at(3) == pytest.approx(found.variance, rel=0.05)


def test_the_noise_of_a_shared_baseline_is_counted_once_per_level() -> None:
    """Over two levels the baseline's noise does not average out, the levels' does: v + v/2 against 2v for one."""
    cube = score_cube(synthetic_results(replace(PLAN, models=("a",), instances=2000, runs=2), 5))
    noise = {
        c.level: found.run_noise for c in comparisons(cube) if c.axis == "paraphrase" and (found := moments(cube, c))
    }
    assert noise["mean"] is not None
    assert noise["p1"] is not None
    assert noise["mean"] / noise["p1"] == pytest.approx(0.75, abs=0.02)


def test_every_model_pair_and_every_axis_level_is_compared() -> None:
    cube = score_cube(synthetic_results(PLAN, 1))
    found = [(c.kind, c.model, c.versus, c.axis, c.level) for c in comparisons(cube)]
    assert found[0] == (MODELS, "a", "b", "none", "baseline")
    assert len(found) == len(set(found)) == 1 + 3 * (3 + 1 + 1)
    assert (PERTURBATION, "all", None, "paraphrase", "mean") in found
    for comparison in comparisons(cube):
        assert sum(pair.weight for pair in comparison.pairs) == pytest.approx(1)
        assert comparison.paired == (comparison.axis != "resample")


def test_exact_table_holds_the_reference_grid_and_the_study() -> None:
    table = power_exact(plan_moments(synthetic_results(PLAN, 1)))
    assert list(table.columns) == list(POWER_EXACT_FIELDS)
    reference = table[(table["source"] == "reference") & (table["rho_source"] == "reference")]
    grid = reference.set_index(["base_rate", "delta", "power"])
    assert len(grid) == 24
    assert grid.loc[(0.7, 0.05, 0.8), "n_instances"] == 688
    assert grid.loc[(0.9, 0.05, 0.8), "n_instances"] == 347
    assert grid.loc[(0.7, 0.05, 0.9), "n_instances"] > 688
    study = table[table["source"] == "study"]
    assert set(study["comparison"]) == {"models", "perturbation"}
    assert (study["n_instances"] >= 2).all()


def test_detectable_at_the_studys_own_size_and_what_runs_would_buy() -> None:
    table = detectable(plan_moments(synthetic_results(PLAN, 1)))
    assert list(table.columns) == list(DETECTABLE_FIELDS)
    rows = table[(table["comparison"] == "models") & (table["power"] == 0.8)]
    own = rows[rows["as_run"]].iloc[0]
    assert own["detectable"] == pytest.approx(k_factor() * math.sqrt(own["variance"] / own["n0"]))
    assert own["equivalent_n"] == own["n"]
    planned = rows[~rows["as_run"] & rows["runs"].notna()]
    assert list(planned["detectable"]) == sorted(planned["detectable"], reverse=True)
    assert planned.set_index("runs").loc[3.0, "detectable"] == pytest.approx(own["detectable"], rel=1e-6)


def test_with_one_run_what_runs_would_buy_is_null_with_a_reason() -> None:
    frame = synthetic_results(PLAN, 1)
    table = detectable(plan_moments(frame[frame["run_seed"] == 1]))
    assert (table.loc[~table["as_run"], "reason"] == ONE_RUN).all()
    assert table.loc[table["as_run"], "detectable"].notna().all()


def test_without_variation_nothing_is_detectable_at_zero() -> None:
    frame = synthetic_results(PLAN, 1)
    frame["passed"] = True
    planned = plan_moments(frame.astype({"passed": "boolean"}))
    table = detectable(planned)
    assert table["detectable"].isna().all()
    assert (table["reason"] == NO_SPREAD).all()
    study = power_exact(planned).query("source == 'study'")
    assert study["n_instances"].isna().all()
    assert study_rho(planned, MODELS) is None


def test_general_table_prints_the_estimate_and_its_upper_limit() -> None:
    plan = replace(PLAN, levels={**PLAN.levels, "paraphrase": ("p1", "p2", "p3", "p4", "p5")})
    frame = synthetic_results(replace(plan, spread=Spread(model_level=0.08)), 3)
    components = variance_components(frame)
    table = power_general(components, plan_moments(frame))
    assert list(table.columns) == list(POWER_GENERAL_FIELDS)
    assert set(table["sigma_ml2_source"]) == {"estimate", "upper limit"}
    assert (table["levels"] == 6).all()
    by_source = {name: own.reset_index(drop=True) for name, own in table.groupby("sigma_ml2_source")}
    assert (by_source["upper limit"]["smallest_reachable"] > by_source["estimate"]["smallest_reachable"]).all()
    unreachable = table[~table["reachable"].astype(bool)]
    assert len(unreachable) > 0
    assert unreachable["n_instances"].isna().all()
    assert unreachable["reason"].str.contains("unreachable").all()
    reached = table[table["reachable"].astype(bool)]
    assert (reached["n_instances"] >= reached["n_exact"]).all()


def test_general_table_says_when_the_estimate_was_not_positive() -> None:
    frame = synthetic_results(replace(PLAN, spread=Spread(instance=0.2, model_instance=0.1)), 8)
    components = variance_components(frame)
    components.loc[components["term"] == "model x level", "variance"] = -0.001
    table = power_general(components, plan_moments(frame))
    estimate = table[table["sigma_ml2_source"] == "estimate"]
    assert estimate["not_positive"].all()
    assert (estimate["n_instances"] == estimate["n_exact"]).all()


def test_general_table_of_one_model_is_null_with_a_reason() -> None:
    frame = synthetic_results(replace(PLAN, models=("a",)), 1)
    table = power_general(variance_components(frame), plan_moments(frame))
    assert table["n_instances"].isna().all()
    assert table["reason"].str.contains("one model").all()


def test_general_variance_is_that_of_simulated_averages_over_levels() -> None:
    """Two models, six levels: the per-instance difference of level averages, simulated, against the components."""
    spread = Spread(instance=0.1, model_instance=0.1, model_level_instance=0.08)
    plan = Plan(
        models=("a", "b"),
        strata=(("tabular", "easy"),),
        levels={"none": ("baseline",), "paraphrase": ("p1", "p2", "p3", "p4", "p5")},
        instances=2500,
        runs=2,
        spread=spread,
    )
    frame = synthetic_results(plan, 6)
    table = power_general(variance_components(frame), plan_moments(frame))
    own = table.query("source == 'study'")["variance"].iloc[0]
    means = frame.assign(y=frame["passed"].astype(float)).groupby(["instance_id", "model"])["y"].mean().unstack()
    assert own == pytest.approx(float((means["a"] - means["b"]).var()), rel=0.08)


def test_row_order_changes_no_byte() -> None:
    frame = synthetic_results(PLAN, 1)
    shuffled = frame.sample(frac=1, random_state=3)
    for table in (power_exact, detectable):
        pd.testing.assert_frame_equal(table(plan_moments(frame)), table(plan_moments(shuffled)))
