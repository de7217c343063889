"""Tables that no careful program writes, and partial ones that any study can end with: right, or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from flows.stats.cells import prepared
from flows.stats.deltas import axis_deltas
from flows.stats.inference_tables import inference_tables
from flows.stats.infra import infra_errors
from flows.stats.ranks import rank_stability
from flows.stats.rates import pass_rates
from flows.stats.tables import core_tables
from tests.flows.stats.frames import cell, episodes, row_of
from tests.flows.stats.synthetic import Plan, synthetic_results

PLAN = Plan(
    models=("a", "b"),
    strata=(("query", "hard"), ("tabular", "easy")),
    levels={"none": ("baseline",), "paraphrase": ("p1", "p2"), "order": ("shuffled",), "resample": ("s1",)},
    instances=12,
    infra_rate=0.1,
)
NAMES = ("benchmark", "model", "family", "difficulty", "axis", "level", "instance_id")
Frame = Callable[[pd.DataFrame], pd.DataFrame]


def all_tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {
        **core_tables(frame, seed=1, resamples=60),
        **inference_tables(frame, (), seed=1, resamples=60),
    }


def categories_in_any_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Categories sorted backwards, one of them unused."""
    return frame.assign(
        **{
            name: pd.Categorical(frame[name], categories=sorted({*frame[name], "unused"}, reverse=True))
            for name in NAMES
        }
    )


FORMS: dict[str, Frame] = {
    "categories": categories_in_any_order,
    "objects": lambda frame: frame.astype(dict.fromkeys((*NAMES, "passed"), object)),
    "verdicts as floats": lambda frame: frame.assign(passed=frame["passed"].astype("Float64").astype("float64")),
    "one label for every row": lambda frame: frame.set_axis(pd.Index([7] * len(frame))),
    "labels out of order": lambda frame: frame.sample(frac=1, random_state=1),
    "verdicts on infrastructure errors": lambda frame: frame.assign(passed=frame["passed"].fillna(True)),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_a_table_changes_no_number(form: str) -> None:
    frame = synthetic_results(PLAN, 1)
    expected = all_tables(frame)
    for name, table in all_tables(FORMS[form](frame)).items():
        assert_frame_equal(table, expected[name], check_exact=True, obj=f"{form}: {name}")


@settings(deadline=None, max_examples=3)
@given(st.integers(-50, 50).filter(bool), st.integers(0, 10_000))
def test_run_seeds_are_names(factor: int, shift: int) -> None:
    frame = synthetic_results(replace(PLAN, instances=3), 1)
    expected = all_tables(frame)
    for name, table in all_tables(frame.assign(run_seed=factor * frame["run_seed"] + shift)).items():
        assert_frame_equal(table, expected[name], check_exact=True, obj=name)


def test_a_table_that_is_prepared_stays_as_it_is() -> None:
    frame = prepared(synthetic_results(PLAN, 1))
    assert prepared(frame) is frame


def test_an_episode_that_is_there_twice_is_refused() -> None:
    frame = episodes({cell(): ["1", "0"]})
    with pytest.raises(ValueError, match="holds episode m/tabular/easy/none/baseline/0/1 more than once"):
        pass_rates(pd.concat([frame, frame.iloc[:1]]), seed=1, resamples=10)


def test_a_row_without_a_name_is_refused() -> None:
    frame = episodes({cell(): ["1", "0"]})
    frame.loc[1, "level"] = None
    with pytest.raises(ValueError, match="rows without level"):
        pass_rates(frame, seed=1, resamples=10)


RUNS = st.text("10x", max_size=3)
CONDITIONS = [("none", "baseline"), ("paraphrase", "p1"), ("paraphrase", "p2")]


@st.composite
def ragged(draw: st.DrawFn) -> pd.DataFrame:
    """Up to three models, two strata of different sizes, any number of runs, cells and instances missing."""
    cells = {}
    for family, size in (("query", draw(st.integers(1, 4))), ("tabular", draw(st.integers(1, 4)))):
        for model in "abc"[: draw(st.integers(1, 3))]:
            for axis, level in CONDITIONS:
                cells[cell(model, axis, level, family)] = draw(st.lists(RUNS, min_size=size, max_size=size))
    return episodes(cells)


def nested_mean(frame: pd.DataFrame, keys: list[str]) -> float:
    """Mean of `value` over the last key, then over the one before, and so on."""
    column = frame.groupby(keys, observed=True)["value"].mean()
    while column.index.nlevels > 1:
        column = column.groupby(level=list(range(column.index.nlevels - 1))).mean()
    return float(column.mean())


def instance_means(frame: pd.DataFrame) -> pd.DataFrame:
    scored = frame[frame["passed"].notna()]
    keys = ["model", "axis", "level", "family", "instance_id"]
    return scored.assign(value=scored["passed"].astype(float)).groupby(keys)["value"].mean().reset_index()


@settings(deadline=None, max_examples=10)
@given(ragged())
def test_rates_and_deltas_of_ragged_tables_are_nested_means(frame: pd.DataFrame) -> None:
    """By pandas alone: runs within an instance, instances within a stratum, strata, levels, models."""
    means = instance_means(frame)
    for row in pass_rates(frame, seed=1, resamples=5).to_dict("records"):
        own = means[means["level"] == row["level"]]
        own = own[own["model"].isin([row["model"]]) | (row["model"] == "all")]
        own = own[own["family"].isin([row["family"]]) | (row["family"] == "all")]
        if own.empty:
            assert pd.isna(row["pass_rate"])
            assert row["reason"] == "no scored episode"
        else:
            assert row["pass_rate"] == pytest.approx(nested_mean(own, ["model", "family"]), abs=1e-9)
    base = means[means["axis"] == "none"].drop(columns=["axis", "level"])
    pairs = means[means["axis"] != "none"].merge(base, on=["model", "family", "instance_id"], suffixes=("", "_base"))
    pairs = pairs.assign(value=pairs["value"] - pairs["value_base"])
    for row in axis_deltas(frame, seed=1, resamples=5).to_dict("records"):
        own = pairs[pairs["level"].isin([row["level"]]) | (row["level"] == "mean")]
        own = own[own["model"].isin([row["model"]]) | (row["model"] == "all")]
        own = own[own["family"].isin([row["family"]]) | (row["family"] == "all")]
        if own.empty:
            assert pd.isna(row["delta"])
            assert isinstance(row["reason"], str)
        else:
            assert row["delta"] == pytest.approx(nested_mean(own, ["model", "level", "family"]), abs=1e-9)
            assert pd.isna(row["ci_low"]) or row["ci_low"] - 1e-6 <= row["delta"] <= row["ci_high"] + 1e-6


def test_errors_in_one_arm_drop_their_instances_from_both_and_are_bounded() -> None:
    """The perturbed arm lost the three tasks that the baseline fails: only the comparison knows."""
    frame = episodes({cell(): list("1111111000"), cell("m", "paraphrase", "p1"): list("1111110xxx")})
    delta = row_of(axis_deltas(frame, seed=1, resamples=50), scope="cell", level="p1")
    assert delta["n"] == 7
    assert (delta["baseline_rate"], delta["perturbed_rate"]) == (1, pytest.approx(6 / 7))
    rate = row_of(pass_rates(frame, seed=1, resamples=50), scope="cell", level="p1")
    assert rate["pass_rate"] == pytest.approx(6 / 7)
    assert (rate["if_infra_failed"], rate["if_infra_passed"]) == (pytest.approx(0.6), pytest.approx(0.9))
    errors = row_of(infra_errors(frame), scope="cell", level="p1")
    assert errors["minus_baseline"] == pytest.approx(0.3)


def test_a_level_that_one_model_lacks_is_averaged_over_the_others_and_listed() -> None:
    levels = ("p1", "p2")
    cells = {cell("b", "paraphrase", one): list("0110") for one in levels}
    cells |= {cell("a", "paraphrase", "p1"): list("0000"), cell("a"): list("1111"), cell("b"): list("1111")}
    deltas = axis_deltas(episodes(cells), seed=1, resamples=50)
    assert row_of(deltas, scope="overall", level="p2")["delta"] == pytest.approx(-0.5)
    whole = row_of(deltas, scope="overall", level="mean")
    assert whole["delta"] == pytest.approx((-1 - 0.5) / 2), "each model by the levels it has"
    assert "a/p2/tabular-easy" in whole["missing_strata"]
    ranks = rank_stability(episodes(cells), seed=1, permutations=50)
    assert row_of(ranks, level="p2")["reason"] == "fewer than two models"
    assert row_of(ranks, level="mean")["n_models"] == 1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_samples_have_wide_intervals_or_none(n: int) -> None:
    frame = episodes({cell(): ["1"] * n, cell("m", "paraphrase", "p1"): ["0"] * n})
    rate = row_of(pass_rates(frame, seed=1, resamples=50), scope="overall", level="baseline")
    assert rate["ci_high"] == 1
    assert rate["ci_low"] < 0.5
    delta = row_of(axis_deltas(frame, seed=1, resamples=50), scope="overall", level="p1")
    assert delta["delta"] == -1
    if n == 1:
        assert delta["reason"] == "fewer than two instances"
    else:
        assert delta["ci_low"] == -1
        assert delta["ci_high"] > -0.8


def test_identical_instances_are_not_more_evidence_than_their_number() -> None:
    """Twice the runs of the same outcomes change no interval of a rate or a difference."""
    base, perturbed = (list(np.random.default_rng(k).choice(["0", "1"], 30)) for k in (1, 2))
    once = episodes({cell(): base, cell("m", "paraphrase", "p1"): perturbed})
    thrice = episodes({cell(): [3 * o for o in base], cell("m", "paraphrase", "p1"): [3 * o for o in perturbed]})
    columns = ["scope", "level", "delta", "ci_low", "ci_high", "n"]
    one, three = (axis_deltas(frame, seed=1, resamples=500)[columns] for frame in (once, thrice))
    assert_frame_equal(one, three)
    one, three = (pass_rates(frame, seed=1, resamples=500)[["n", "ci_low", "ci_high"]] for frame in (once, thrice))
    assert_frame_equal(one, three)
