from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from flows.stats.cells import Stratum
from flows.stats.permutation import PairedBlock
from flows.stats.spread import crossfit_worst, level_sd, level_spread, range_nulls, residual_mean_square
from tests.flows.stats.frames import cell, episodes, row_of
from tests.flows.stats.synthetic import Plan, Spread, synthetic_results

TABULAR = Stratum("tabular", "easy")


def levels_frame(*levels: list[str], axis: str = "paraphrase", base: list[str] | None = None) -> pd.DataFrame:
    cells = {cell(axis=axis, level=f"p{k}"): outcomes for k, outcomes in enumerate(levels, start=1)}
    return episodes({cell(): base or ["1"] * len(levels[0]), **cells})


def test_range_null_agrees_with_enumeration_of_all_permutations() -> None:
    values = np.array([[1, 0, 1], [0, 0, 1], [1, 0, 0.5]])
    ranges = np.array(
        [
            np.ptp(np.mean([row[list(order)] for row, order in zip(values, orders, strict=True)], axis=0))
            for orders in itertools.product(itertools.permutations(range(3)), repeat=3)
        ]
    ).round(10)
    blocks = {TABULAR: PairedBlock(values[:, :, None])}
    (null,) = range_nulls(blocks, [[TABULAR]], seed=2, permutations=40_000)
    assert null is not None
    assert null.observed == pytest.approx(np.ptp(values.mean(axis=0)))
    assert null.mean == pytest.approx(ranges.mean(), abs=4 * ranges.std() / 200)
    assert null.p == pytest.approx((ranges >= round(null.observed, 10)).mean(), abs=0.01)


def test_noise_alone_gives_a_range_of_eleven_to_sixteen_points() -> None:
    """Fifty instances, one run, five levels with the same pass probability."""
    found = []
    for difficulty_spread, seed in itertools.product((0.0, 0.4), range(2)):
        plan = Plan(
            models=("a",),
            strata=[("tabular", "easy")],
            levels={"none": ["baseline"], "paraphrase": ["p1", "p2", "p3", "p4", "p5"]},
            instances=50,
            runs=1,
            base=0.5,
            spread=Spread(instance=difficulty_spread, model_instance=0),
        )
        table = level_spread(synthetic_results(plan, seed), seed=1, permutations=1_000)
        found.append(row_of(table, scope="cell")["null_mean"])
    assert min(found) > 0.09
    assert max(found) < 0.18


def test_level_sd_of_the_worked_example_is_zero() -> None:
    """In [[1,0],[0,0],[1,1]] the residual mean square .166667 is as large as that of levels."""
    table = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    assert residual_mean_square(table) == pytest.approx(0.166667, abs=1e-6)
    assert level_sd([table]) == 0


def test_level_sd_is_the_anova_estimator_in_one_stratum() -> None:
    table = np.random.default_rng(3).random((20, 4)) + np.array([0, 0.5, 1, 0])
    ms_level = 20 * table.mean(axis=0).var(ddof=1)
    assert level_sd([table]) == pytest.approx(np.sqrt((ms_level - residual_mean_square(table)) / 20))


def test_level_sd_recovers_a_known_spread_over_strata() -> None:
    rng = np.random.default_rng(6)
    shift = np.array([-0.2, 0, 0.2])
    found = [level_sd([shift + rng.normal(0, 0.3, (n, 3)) for n in (40, 60)]) for _ in range(50)]
    assert np.mean([value**2 for value in found if value is not None]) == pytest.approx(shift.var(ddof=1), rel=0.1)


def test_level_sd_is_undefined_with_one_instance() -> None:
    assert level_sd([np.ones((1, 3))]) is None
    assert level_sd([]) is None


def test_crossfitting_undoes_what_picking_the_worst_exaggerates() -> None:
    """No level differs, so that the truth is 0."""
    rng = np.random.default_rng(9)
    naive, fitted = [], []
    for study in range(200):
        base, levels = (rng.random((40, 1)) < 0.6), (rng.random((40, 5)) < 0.6)
        # The baseline's own noise, common to both figures, is taken out.
        deltas = levels.astype(float) - base + (base.mean() - 0.6)
        naive.append(deltas.mean(axis=0).min())
        fitted.append(crossfit_worst([deltas], seed=study, splits=40))
    assert np.mean(naive) < -0.07
    assert np.mean(fitted) == pytest.approx(0, abs=0.015)


def test_crossfitting_finds_a_level_that_is_clearly_worst() -> None:
    deltas = np.random.default_rng(0).normal(0, 0.01, (30, 4)) + np.array([0, 0, -0.5, 0])
    assert crossfit_worst([deltas], seed=1, splits=50) == pytest.approx(-0.5, abs=0.01)
    assert crossfit_worst([deltas[:1]], seed=1, splits=50) is None


def test_cochran_q_is_for_one_run_per_instance() -> None:
    row = row_of(
        level_spread(levels_frame(list("111101"), list("110110"), list("010000")), seed=1, permutations=200),
        scope="cell",
    )
    assert (row["cochran_q"], row["cochran_p"]) == pytest.approx((5.2, 0.0742736), abs=1e-6)
    assert (row["worst_level"], row["worst_delta_naive"]) == ("p3", pytest.approx(-5 / 6))
    several = row_of(level_spread(levels_frame(["11", "00"], ["10", "00"]), seed=1, permutations=50), scope="cell")
    assert pd.isna(several["cochran_q"])
    assert several["cochran_reason"] == "several runs per instance"


def test_all_pass_has_no_range_and_no_variation() -> None:
    row = row_of(level_spread(levels_frame(["1"] * 6, ["1"] * 6), seed=1, permutations=100), scope="cell")
    assert (row["range"], row["null_mean"], row["p"]) == (0, 0, 1)
    assert (row["cochran_p"], row["cochran_reason"]) == (1, "no variation")


def test_a_single_level_has_no_spread() -> None:
    assert level_spread(levels_frame(["1", "0"]), seed=1, permutations=50).empty


def test_levels_without_a_common_instance_are_a_row_with_a_reason() -> None:
    row = row_of(level_spread(levels_frame(["1", "x"], ["x", "0"]), seed=1, permutations=50), scope="cell")
    assert row["reason"] == "no instance scored at every level"
    assert row[["range", "null_mean", "null_q95", "p", "level_sd", "worst_delta_naive"]].isna().all()


def test_without_a_baseline_the_range_stands_and_the_worst_delta_does_not() -> None:
    frame = levels_frame(["1", "1", "0"], ["0", "1", "0"])
    row = row_of(level_spread(frame[frame["axis"] != "none"], seed=1, permutations=50), scope="cell")
    assert row["range"] == pytest.approx(1 / 3)
    assert row["worst_reason"] == "no instance scored in the baseline and at every level"


def test_unpaired_levels_are_compared_by_dealing_instances() -> None:
    frame = levels_frame(["1"] * 5 + ["0"] * 5, ["1"] * 6 + ["0"] * 4, axis="resample", base=["1"] * 7 + ["0"] * 3)
    row = row_of(level_spread(frame, seed=1, permutations=2_000), scope="cell")
    assert row["range"] == pytest.approx(0.1)
    assert row["p"] > 0.5
    assert row["worst_delta_naive"] == pytest.approx(-0.2)
    assert row["level_sd_reason"] == row["worst_reason"] == row["cochran_reason"] == "unpaired axis"


def test_a_model_in_a_family_is_that_model_alone() -> None:
    strata = (("tabular", "easy"), ("tabular", "hard"), ("query", "easy"))
    frame = synthetic_results(Plan(strata=strata, instances=10, skill={"alpha": 0.3, "gamma": -0.3}), seed=5)
    together = level_spread(frame, seed=1, permutations=50, splits=10)
    columns = ["family", "range", "level_sd", "worst_level", "worst_delta_naive", "worst_delta_crossfit"]
    for model in ("alpha", "gamma"):
        # Alone in the table the model is also the mean over models.
        alone = level_spread(frame[frame["model"] == model], seed=1, permutations=50, splits=10)
        rows = together[(together["scope"] == "model_family") & (together["model"] == model)]
        expected = alone[alone["scope"] == "family"]
        pd.testing.assert_frame_equal(
            rows[[*columns, "axis"]].reset_index(drop=True), expected[[*columns, "axis"]].reset_index(drop=True)
        )
