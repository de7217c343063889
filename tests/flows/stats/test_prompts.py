"""The variance of a score over prompts: in closed form, by redrawn prompts, and its interval's coverage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from flows.stats.cells import FloatArray
from flows.stats.henderson import Design, components
from flows.stats.power import smallest_general_difference
from flows.stats.prompts import PROMPTS, model_level_scores, prompt_interval
from flows.stats.variance import variance_components
from tests.flows.stats.synthetic import Plan, synthetic_results

STRATA, MODELS, LEVELS, INSTANCES = 3, 3, 8, 20


def redrawn(rng: np.random.Generator, everywhere: float, by_stratum: float, instances: int = INSTANCES) -> Design:
    """One run per cell under prompts drawn anew, with SDs of model x level in all strata alike and within each."""
    chance = 0.5 + rng.uniform(-0.2, 0.2, (STRATA, 1, 1, instances))
    chance = chance + everywhere * rng.normal(size=(1, MODELS, LEVELS, 1))
    chance = np.clip(chance + by_stratum * rng.normal(size=(STRATA, MODELS, LEVELS, 1)), 0, 1)
    passed = (rng.random(chance.shape) < chance).astype(float)
    sums = passed.transpose(0, 3, 1, 2).reshape(STRATA * instances, MODELS, LEVELS)
    sums = sums - sums.mean()
    strata = np.repeat(np.arange(STRATA), instances)
    return Design(np.ones(sums.shape), sums, (sums**2).sum(axis=(1, 2)), strata)


def over_prompts(design: Design) -> float:
    found = components(design)
    own, by_stratum = found["model x level"], found["model x level x stratum"]
    assert own is not None
    assert by_stratum is not None
    return own + by_stratum / STRATA


def test_scores_weigh_strata_equally_and_lack_of_one_is_null() -> None:
    design = redrawn(np.random.default_rng(1), 0, 0)
    cells = design.sums.reshape(STRATA, INSTANCES, MODELS, LEVELS).mean(axis=1)
    scores = model_level_scores(design)
    assert scores is not None
    np.testing.assert_allclose(scores, cells.mean(axis=0))
    lacking = design.counts.copy()
    lacking[:INSTANCES, 0, 0] = 0
    assert model_level_scores(Design(lacking, design.sums, design.squares, design.strata)) is None


def test_interval_without_noise_is_that_of_a_normal_variance() -> None:
    scores: FloatArray = np.random.default_rng(2).normal(size=(3, 6))
    residual = scores - scores.mean(axis=0) - scores.mean(axis=1, keepdims=True) + scores.mean()
    observed = float((residual**2).sum()) / 10
    low, high = prompt_interval(observed, scores, 50, 0.95)
    assert low == pytest.approx(10 * observed / stats.chi2.isf(0.025, 10))
    assert high == pytest.approx(10 * observed / stats.chi2.ppf(0.025, 10))


def test_floor_is_the_spread_of_model_differences_over_redrawn_prompts() -> None:
    """Prompts written for each stratum: sigma_ML² is 0, yet a difference between two models does not stand still."""
    rng = np.random.default_rng(3)
    designs = [redrawn(rng, 0, 0.12, instances=60) for _ in range(60)]
    estimate = np.mean([over_prompts(design) for design in designs])
    assert estimate == pytest.approx(0.12**2 / STRATA, rel=0.15)
    alone = np.mean([components(design)["model x level"] for design in designs])  # type: ignore[arg-type]
    assert abs(alone) < 0.15 * estimate
    differences = []
    for design in designs:
        scores = model_level_scores(design)
        assert scores is not None
        differences.append((scores[0] - scores[1]).mean())
    noise = 2 * 0.25 / (STRATA * 60 * LEVELS)
    k = stats.norm.isf(0.025) + stats.norm.isf(0.2)
    floor = k * np.sqrt(np.var(differences) - noise)
    assert floor == pytest.approx(smallest_general_difference(estimate, 30) * np.sqrt(30 / LEVELS), rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize(("everywhere", "by_stratum"), [(0.0, 0.0), (0.0, 0.1), (0.05, 0.05)])
def test_interval_covers_the_variance_over_prompts(everywhere: float, by_stratum: float) -> None:
    rng = np.random.default_rng(4)
    truth = everywhere**2 + by_stratum**2 / STRATA
    covered, below = [], []
    for _ in range(250):
        design = redrawn(rng, everywhere, by_stratum)
        scores = model_level_scores(design)
        assert scores is not None
        low, high = prompt_interval(over_prompts(design), scores, STRATA * (INSTANCES - 1), 0.95)
        covered.append(low <= truth <= high)
        below.append(truth <= high)
    assert np.mean(covered) > 0.91
    assert np.mean(below) > 0.94


def test_table_has_the_sum_with_its_interval_and_one_stratum_is_model_x_level() -> None:
    plan = Plan(strata=(("tabular", "easy"), ("query", "easy")), instances=10, runs=1)
    frame = synthetic_results(plan, 1)
    table = variance_components(frame).set_index("term")
    both = table.loc["model x level", "variance"] + table.loc["model x level x stratum", "variance"] / 2
    assert table.loc[PROMPTS, "variance"] == pytest.approx(both)
    assert table.loc[PROMPTS, "lo"] < both < table.loc[PROMPTS, "hi"]
    assert pd.isna(table.loc[PROMPTS, "share"])
    assert table["share"].sum() == pytest.approx(1), "it is no further source of variance"
    one = variance_components(frame[frame["family"] == "query"]).set_index("term")
    assert one.loc[PROMPTS, "variance"] == pytest.approx(one.loc["model x level", "variance"])
    assert one.loc[PROMPTS, "includes"] == "model x level x stratum"
    single = variance_components(frame[frame["model"] == "alpha"]).set_index("term")
    assert single.loc[PROMPTS, "reason"] == "not estimable: one model"


def test_a_model_without_a_level_has_an_estimate_and_no_interval() -> None:
    frame = synthetic_results(Plan(instances=10, runs=1), 1)
    lacking = frame[~((frame["model"] == "alpha") & (frame["level"] == "p1") & (frame["family"] == "query"))]
    row = variance_components(lacking).set_index("term").loc[PROMPTS]
    assert row["variance"] == row["variance"]
    assert row["reason"] == "no interval: a model lacks a level in some stratum"
