from __future__ import annotations

import itertools
from statistics import mean

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.stats.consistency import consistency, pass_hat_k
from tests.flows.stats.frames import cell, episodes, row_of


def test_pass_hat_k_reproduces_published_values() -> None:
    assert [pass_hat_k(3, 5, k) for k in (1, 2, 3, 4)] == pytest.approx([0.6, 0.3, 0.1, 0])
    assert (pass_hat_k(3, 4, 2), pass_hat_k(3, 4, 4)) == (0.5, 0)
    assert pass_hat_k(3, 4, 5) is None


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 7))
def test_pass_hat_k_is_the_share_of_subsets_of_runs_that_all_pass(runs: list[bool], k: int) -> None:
    subsets = list(itertools.combinations(runs, k))
    expected = mean(all(subset) for subset in subsets) if subsets else None
    assert pass_hat_k(sum(runs), len(runs), k) == (None if expected is None else pytest.approx(expected))


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="6 of 5"):
        pass_hat_k(6, 5, 1)


def test_table_averages_over_instances_with_enough_runs() -> None:
    table = consistency(episodes({cell(): ["111", "110", "10x", "000"]}), seed=1, resamples=500)
    chance = {k: row_of(table, scope="cell", measure="pass_hat_k", k=k) for k in (1, 2, 3)}
    assert chance[1]["value"] == pytest.approx((1 + 2 / 3 + 1 / 2 + 0) / 4)
    assert chance[2]["value"] == pytest.approx((1 + 1 / 3 + 0 + 0) / 4)
    assert (chance[3]["value"], chance[3]["n"]) == (pytest.approx(1 / 3), 3)
    flips = row_of(table, scope="cell", measure="flips_between_runs")
    assert (flips["value"], flips["n"]) == (0.5, 4)
    assert flips["ci_low"] < 0.5 < flips["ci_high"]


def test_flips_on_an_axis_look_at_every_run_of_baseline_and_levels() -> None:
    frame = episodes(
        {
            cell(): ["1", "1", "0", "1"],
            cell(axis="paraphrase", level="p1"): ["1", "1", "0", "x"],
            cell(axis="paraphrase", level="p2"): ["1", "0", "0", "1"],
        }
    )
    row = row_of(consistency(frame, seed=1, resamples=200), scope="model", measure="flips_on_axis")
    assert (row["axis"], row["level"], row["n"], row["value"]) == ("paraphrase", "all", 3, pytest.approx(1 / 3))


def test_too_few_runs_are_null_with_a_reason() -> None:
    table = consistency(episodes({cell(): ["1", "0"], cell(axis="order", level="s"): ["x", "x"]}), seed=1, resamples=50)
    reasons = {
        "pass_hat_k": "no instance has k scored runs",
        "flips_between_runs": "no instance has two scored runs",
        "flips_on_axis": "no instance is scored in the baseline and at every level",
    }
    missing = table[table["value"].isna()]
    assert set(missing["measure"]) == set(reasons)
    assert (missing["reason"] == missing["measure"].map(reasons)).all()
    assert (missing["n"] == 0).all()


def test_a_table_without_a_scored_episode_has_no_pass_hat_k() -> None:
    table = consistency(episodes({cell(): ["xx"]}), seed=1, resamples=50)
    assert table["value"].isna().all()
    assert not pd.isna(table["reason"]).any()
