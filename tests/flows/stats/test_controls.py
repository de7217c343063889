from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from flows.stats.controls import negative_controls
from flows.stats.deltas import axis_contrast
from flows.stats.multiplicity import holm
from tests.flows.stats.frames import cell, episodes, row_of
from tests.flows.stats.synthetic import Plan, synthetic_results


def test_controls_without_an_effect_do_not_indict_the_pipeline() -> None:
    table = negative_controls(synthetic_results(Plan(instances=40), seed=8), seed=1, resamples=2_000)
    overall = table[table["scope"] == "overall"]
    assert overall["axis"].tolist() == ["order", "resample"]
    assert not overall["indicts_pipeline"].any()
    assert (table["intervals"] == 9).all()
    assert table["intervals_expected"].tolist() == [pytest.approx(0.45)] * len(table)


def test_an_effect_planted_on_a_control_indicts_the_pipeline() -> None:
    plan = Plan(instances=60, effects={(None, "order", "shuffled"): -0.2})
    table = negative_controls(synthetic_results(plan, seed=8), seed=1, resamples=2_000)
    assert row_of(table, scope="overall", axis="order")["indicts_pipeline"]
    assert not row_of(table, scope="overall", axis="resample")["indicts_pipeline"]


def test_p_values_are_corrected_over_the_controls() -> None:
    frame = synthetic_results(Plan(instances=20), seed=3)
    overall = negative_controls(frame, seed=1, resamples=1_000).query("scope == 'overall'")
    expected = [axis_contrast(frame, axis, seed=1, resamples=1_000).p_value() for axis in overall["axis"]]
    assert overall["p"].tolist() == pytest.approx(expected, abs=1e-3)
    assert overall["p_holm"].tolist() == holm(overall["p"].tolist())
    cells = negative_controls(frame, seed=1, resamples=1_000).query("scope != 'overall'")
    assert cells[["p", "p_holm", "indicts_pipeline"]].isna().all(axis=None)


def test_noise_floor_is_the_spread_of_deltas_between_replicates() -> None:
    """Across simulated A/A studies a model's delta has the standard deviation that one study's floor states."""
    floors, deltas = [], []
    for seed in range(20):
        plan = Plan(models=("a", "b"), levels={"none": ["baseline"], "order": ["shuffled"]}, instances=15, runs=1)
        table = negative_controls(synthetic_results(plan, seed), seed=1, resamples=50)
        rows = table[table["scope"] == "model"]
        floors += rows["noise_floor"].tolist()
        deltas += rows["delta"].tolist()
    root_mean_square = np.sqrt(np.mean(np.square(floors)))
    assert root_mean_square == pytest.approx(1.96 * np.sqrt(np.mean(np.square(deltas))), rel=0.3)


def test_order_is_no_control_when_the_caller_says_so() -> None:
    frame = synthetic_results(Plan(instances=5), seed=3)
    table = negative_controls(frame, seed=1, resamples=50, controls=("resample",))
    assert set(table["axis"]) == {"resample"}


def test_a_study_without_controls_has_an_empty_table() -> None:
    frame = episodes({cell(): ["1", "0"], cell(axis="paraphrase", level="p1"): ["1", "0"]})
    assert negative_controls(frame, seed=1, resamples=50).empty


def test_a_control_that_only_met_infrastructure_errors_is_a_row_with_a_reason() -> None:
    frame = episodes({cell(): ["1", "0"], cell(axis="order", level="shuffled"): ["x", "x"]})
    row = row_of(negative_controls(frame, seed=1, resamples=50), scope="overall")
    assert pd.isna(row["delta"])
    assert pd.isna(row["indicts_pipeline"])
    assert row["reason"] == "no instance scored in both arms"


def test_noise_floor_of_a_family_is_that_of_a_mean_over_its_difficulties() -> None:
    strata = (("tabular", "easy"), ("tabular", "hard"), ("query", "easy"))
    table = negative_controls(synthetic_results(Plan(strata=strata, instances=12), seed=3), seed=1, resamples=50)
    own = table[table["axis"] == "order"]
    for wide, narrow, parts in (("model_family", "cell", 9), ("family", "stratum", 3)):
        deltas = own.loc[own["scope"] == narrow, "delta"]
        assert len(deltas) == parts
        single = 1.959964 * np.sqrt(np.mean(np.square(deltas)))
        rows = own[own["scope"] == wide]
        expected = rows["family"].map({"tabular": single / np.sqrt(2), "query": single})
        assert rows["noise_floor"].tolist() == pytest.approx(expected.tolist())
