from __future__ import annotations

import numpy as np
import pytest

from flows.stats.cells import BASELINE, Condition, Stratum, score_cube
from tests.flows.stats.frames import cell, episodes
from tests.flows.stats.synthetic import Plan, synthetic_results


def test_an_instance_mean_averages_the_scored_runs_only() -> None:
    cube = score_cube(episodes({cell(): ["111", "10x", "xxx", "0"]}))
    stratum = Stratum("tabular", "easy")
    np.testing.assert_allclose(cube.means[stratum][:, 0, 0], [1, 0.5, np.nan, 0])
    assert cube.runs[stratum][:, 0, 0].tolist() == [3, 2, 0, 1]
    assert cube.infra[stratum][:, 0, 0].tolist() == [0, 1, 3, 0]


def test_the_baseline_comes_first_whatever_sorts_before_it() -> None:
    cube = score_cube(episodes({cell(axis="distractors", level="2"): ["1"], cell(): ["1"]}))
    assert cube.conditions == (BASELINE, Condition("distractors", "2"))
    assert cube.axes() == ("distractors",)
    assert cube.levels("distractors") == ("2",)


def test_instance_means_agree_with_a_pandas_group_by() -> None:
    frame = synthetic_results(Plan(instances=7, infra_rate=0.2), seed=3)
    cube = score_cube(frame)
    keys = ["family", "difficulty", "instance_id", "model", "axis", "level"]
    expected = frame.dropna(subset=["passed"]).astype({"passed": float}).groupby(keys)["passed"].mean()
    found = 0
    for stratum in cube.strata:
        for (i, m, c), value in np.ndenumerate(cube.means[stratum]):
            if not np.isnan(value):
                key = (*stratum, cube.instances[stratum][i], cube.models[m], *cube.conditions[c])
                assert value == pytest.approx(expected[key])
                found += 1
    assert found == len(expected)


def test_absent_condition_gives_missing_values() -> None:
    cube = score_cube(episodes({cell(): ["1", "0"]}))
    assert np.isnan(cube.values(Stratum("tabular", "easy"), 0, Condition("order", "shuffled"))).all()


def test_several_benchmarks_are_refused() -> None:
    frame = episodes({cell(): ["1", "0"]})
    frame.loc[0, "benchmark"] = "other"
    with pytest.raises(ValueError, match="one benchmark at a time; the table holds other, stability"):
        score_cube(frame)


def test_missing_columns_are_named() -> None:
    with pytest.raises(ValueError, match="lacks the columns level, passed"):
        score_cube(episodes({cell(): ["1"]}).drop(columns=["passed", "level"]))


def test_a_table_without_rows_is_an_empty_cube() -> None:
    cube = score_cube(episodes({cell(): ["1"]}).iloc[:0])
    assert (cube.models, cube.strata, cube.conditions) == ((), (), ())
