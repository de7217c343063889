from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from flows.stats.trajectories import against_baseline, between_runs, trajectory_stability
from tests.flows.stats.frames import cell, episodes, row_of
from tests.flows.stats.synthetic import Plan, synthetic_results


def test_pairs_of_runs_agree_with_enumeration() -> None:
    frame = synthetic_results(Plan(models=("a",), instances=6, runs=4, infra_rate=0.2), seed=1)
    known = frame[frame["passed"].notna()]
    keys = ["family", "difficulty", "axis", "level", "instance_id"]
    found = between_runs(known).set_index(keys)
    for key, group in known.groupby(keys):
        pairs = list(itertools.combinations(zip(group["trajectory_hash"], group["passed"], strict=True), 2))
        if pairs:
            row = found.loc[key]
            assert row["same_trajectory"] == pytest.approx(np.mean([a[0] == b[0] for a, b in pairs]))
            assert row["same_outcome"] == pytest.approx(np.mean([a[1] == b[1] for a, b in pairs]))
        else:
            assert key not in found.index


def test_pairs_with_the_baseline_agree_with_enumeration() -> None:
    frame = synthetic_results(Plan(models=("a",), instances=4, runs=3, infra_rate=0.2), seed=1)
    known = frame[frame["passed"].notna()]
    home = dict(list(known[known["axis"] == "none"].groupby("instance_id")))
    found = against_baseline(known).set_index(["axis", "level", "instance_id"])
    compared = 0
    for (axis, level, instance), group in known[known["axis"] != "none"].groupby(["axis", "level", "instance_id"]):
        if instance not in home:
            assert (axis, level, instance) not in found.index
            continue
        pairs = [
            (a == b, p == q)
            for (a, p), (b, q) in itertools.product(
                zip(group["trajectory_hash"], group["passed"], strict=True),
                zip(home[instance]["trajectory_hash"], home[instance]["passed"], strict=True),
            )
        ]
        row = found.loc[(axis, level, instance)]
        assert (row["same_trajectory"], row["same_outcome"]) == pytest.approx(tuple(np.mean(pairs, axis=0)))
        compared += 1
    assert compared == len(found) > 50


def test_table_has_strata_of_equal_weight() -> None:
    frame = episodes({cell(): ["11", "10"], cell(family="query"): ["00", "00", "00"]})
    table = trajectory_stability(frame, seed=1, resamples=200)
    # Trajectories are told apart by outcome in this table, so both columns are equal.
    for column in ("same_trajectory", "same_outcome"):
        assert row_of(table, scope="cell", family="tabular")[column] == 0.5
        assert row_of(table, scope="model")[column] == pytest.approx(0.75)
    assert row_of(table, scope="model")["n"] == 5


def test_resampled_instances_are_compared_between_runs_only() -> None:
    table = trajectory_stability(synthetic_results(Plan(instances=3), seed=1), seed=1, resamples=50)
    assert set(table.loc[table["axis"] == "resample", "comparison"]) == {"between_runs"}
    assert set(table.loc[table["axis"] == "none", "comparison"]) == {"between_runs"}
    assert set(table.loc[table["axis"] == "order", "comparison"]) == {"between_runs", "against_baseline"}


def test_unknown_trajectories_are_null_with_a_reason() -> None:
    frame = episodes({cell(): ["11", "10"], cell(axis="order", level="s"): ["11", "00"]})
    frame["trajectory_hash"] = pd.Series([None] * len(frame), dtype="str")
    table = trajectory_stability(frame, seed=1, resamples=50)
    assert table["same_trajectory"].isna().all()
    assert (table["reason"] == "no pair of scored episodes with known trajectories").all()
    assert len(table) == 6


def test_one_run_per_instance_has_no_pair_within_a_condition() -> None:
    frame = episodes({cell(): ["1", "0"], cell(axis="order", level="s"): ["1", "1"]})
    table = trajectory_stability(frame, seed=1, resamples=50)
    assert row_of(table, scope="cell", axis="none")["n"] == 0
    row = row_of(table, scope="cell", axis="order", comparison="against_baseline")
    assert (row["n"], row["same_outcome"]) == (2, 0.5)
