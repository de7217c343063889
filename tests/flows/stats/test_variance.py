"""Variance components against published values, textbook formulas, dense matrices and simulated truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pingouin as pg
import pytest
from scipy import stats

from flows.stats.henderson import TERMS, Design, components, design_from_arrays, reweighted_components
from flows.stats.prompts import PROMPTS
from flows.stats.variance import (
    VARIANCE_FIELDS,
    design_of,
    jackknifed,
    variance_components,
)
from tests.flows.stats.synthetic import Plan, Spread, synthetic_results

NAMES = [term.name for term in TERMS]


def balanced_design(y: np.ndarray) -> Design:
    """From y of shape (strata, models, levels, instances, runs)."""
    strata, _, _, instances, _ = y.shape
    h, m, level, i, _ = (index.ravel() for index in np.indices(y.shape))
    return design_from_arrays(y.ravel(), m, level, h * instances + i, np.repeat(np.arange(strata), instances))


def expected_mean_squares(y: np.ndarray) -> dict[str, float]:
    """The balanced formulas, from means alone. y has shape (strata, models, levels, instances, runs)."""
    s_n, m_n, l_n, i_n, r_n = y.shape

    def mean(*kept: int) -> np.ndarray:
        return y.mean(axis=tuple(axis for axis in range(5) if axis not in kept), keepdims=True)

    def square(effect: np.ndarray, df: int) -> float:
        return float((np.broadcast_to(effect, y.shape) ** 2).sum() / df)

    s, m, lv, i = 0, 1, 2, 3
    ms_m = square(mean(m) - mean(), m_n - 1)
    ms_l = square(mean(lv) - mean(), l_n - 1)
    ms_ml = square(mean(m, lv) - mean(m) - mean(lv) + mean(), (m_n - 1) * (l_n - 1))
    ms_ms = square(mean(m, s) - mean(m) - mean(s) + mean(), (m_n - 1) * (s_n - 1))
    ms_ls = square(mean(lv, s) - mean(lv) - mean(s) + mean(), (l_n - 1) * (s_n - 1))
    mls = mean(m, lv, s) - mean(m, lv) - mean(m, s) - mean(lv, s) + mean(m) + mean(lv) + mean(s) - mean()
    ms_mls = square(mls, (m_n - 1) * (l_n - 1) * (s_n - 1))
    ms_i = square(mean(s, i) - mean(s), s_n * (i_n - 1))
    ms_mi = square(mean(m, s, i) - mean(m, s) - mean(s, i) + mean(s), s_n * (m_n - 1) * (i_n - 1))
    ms_li = square(mean(lv, s, i) - mean(lv, s) - mean(s, i) + mean(s), s_n * (l_n - 1) * (i_n - 1))
    mli = mean(s, m, lv, i) - mean(s, m, lv) - mean(s, m, i) - mean(s, lv, i)
    mli = mli + mean(s, m) + mean(s, lv) + mean(s, i) - mean(s)
    ms_mli = square(mli, s_n * (m_n - 1) * (l_n - 1) * (i_n - 1))
    ms_e = square(y - mean(s, m, lv, i), s_n * m_n * l_n * i_n * (r_n - 1))
    return {
        "run": ms_e,
        "model x level x instance": (ms_mli - ms_e) / r_n,
        "model x instance": (ms_mi - ms_mli) / (r_n * l_n),
        "level x instance": (ms_li - ms_mli) / (r_n * m_n),
        "instance": (ms_i - ms_mi - ms_li + ms_mli) / (r_n * m_n * l_n),
        "model x level x stratum": (ms_mls - ms_mli) / (r_n * i_n),
        "model x stratum": (ms_ms - ms_mls - ms_mi + ms_mli) / (r_n * l_n * i_n),
        "level x stratum": (ms_ls - ms_mls - ms_li + ms_mli) / (r_n * m_n * i_n),
        "model x level": (ms_ml - ms_mls) / (r_n * s_n * i_n),
        "model": (ms_m - ms_ml - ms_ms + ms_mls) / (r_n * l_n * s_n * i_n),
        "level": (ms_l - ms_ml - ms_ls + ms_mls) / (r_n * m_n * s_n * i_n),
    }


def test_two_by_two_by_two_by_two_by_hand() -> None:
    y = np.array([int(digit) for digit in "1110100011000100"], dtype=float).reshape(2, 2, 2, 2)
    found = components(balanced_design(np.moveaxis(y, 1, 2)[None]))
    expected = {"level": 0.1875, "instance": 0.0625, "model x level x instance": -0.0625, "run": 0.1875}
    for name in ("run", "model", "level", "model x level", "instance", *NAMES[8:]):
        assert found[name] == pytest.approx(expected.get(name, 0.0), abs=1e-12), name


def test_three_instances_by_two_levels_by_hand() -> None:
    y = np.array([[1, 0], [0, 0], [1, 1]], dtype=float).T.reshape(1, 1, 2, 3, 1)
    found = components(balanced_design(y))
    assert found["instance"] == pytest.approx(1 / 6)
    assert found["level"] == pytest.approx(0, abs=1e-12)
    assert found["run"] == pytest.approx(1 / 6)
    assert found["level x instance"] is None


def test_shrout_and_fleiss_components_and_their_published_icc() -> None:
    ratings = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    found = components(balanced_design(ratings.T.reshape(1, 1, 4, 6, 1).astype(float)))
    target, judge, error = found["instance"], found["level"], found["run"]
    assert (target, judge, error) == pytest.approx((2.555556, 5.244444, 1.019444), abs=1e-6)
    assert target is not None
    assert judge is not None
    assert error is not None
    icc = target / (target + judge + error)
    assert icc == pytest.approx(0.2898, abs=5e-5)
    long = pd.DataFrame(ratings).melt(ignore_index=False, var_name="judge", value_name="score").reset_index()
    table = pg.intraclass_corr(long, targets="index", raters="judge", ratings="score").set_index("Type")
    single_random = table["ICC"][[name for name in table.index if name in ("ICC2", "ICC(A,1)")]].iloc[0]
    assert icc == pytest.approx(float(single_random), abs=1e-3)


def test_balanced_data_give_the_expected_mean_squares_solution() -> None:
    y = np.random.default_rng(3).normal(size=(3, 3, 4, 5, 2))
    found = components(balanced_design(y))
    for name, value in expected_mean_squares(y).items():
        assert found[name] == pytest.approx(value, abs=1e-10), name


def test_one_stratum_puts_the_instance_mean_square_where_the_stratum_one_stood() -> None:
    y = np.random.default_rng(4).normal(size=(1, 3, 4, 6, 2))
    found = components(balanced_design(y))
    ml = y.mean(axis=(0, 3, 4))
    interaction = ml - ml.mean(axis=0) - ml.mean(axis=1, keepdims=True) + ml.mean()
    ms_ml = (interaction**2).sum() * 6 * 2 / (2 * 3)
    mli = y.mean(axis=4)[0]
    effect = mli - mli.mean(2, keepdims=True) - mli.mean(1, keepdims=True) - mli.mean(0, keepdims=True)
    effect = effect + mli.mean((1, 2), keepdims=True) + mli.mean((0, 2), keepdims=True)
    effect = effect + mli.mean((0, 1), keepdims=True) - mli.mean()
    ms_mli = (effect**2).sum() * 2 / (2 * 3 * 5)
    assert found["model x level"] == pytest.approx((ms_ml - ms_mli) / (2 * 6), abs=1e-10)


def dense_solution(y: np.ndarray, columns: dict[str, np.ndarray], strata: np.ndarray) -> np.ndarray:
    """Method I with explicit matrices: sums of squares y'MPMy and coefficients tr(P M Z Z' M)."""

    def incidence(codes: np.ndarray) -> np.ndarray:
        return np.eye(codes.max() + 1)[codes][:, np.unique(codes)]

    x = incidence(strata)
    centre = np.eye(len(y)) - x @ np.linalg.pinv(x)
    z = [incidence(np.unique(columns[name], return_inverse=True)[1]) for name in NAMES]
    projectors = [a @ np.linalg.pinv(a) for a in z]
    left = [[np.trace(p @ centre @ b @ b.T @ centre) for b in z] for p in projectors]
    right = [y @ centre @ p @ centre @ y for p in projectors]
    return np.linalg.solve(np.array(left), np.array(right))


def missing_data(seed: int) -> tuple[np.ndarray, ...]:
    """Episodes with 30% missing at random: outcome, model, level, instance, stratum of each."""
    rng = np.random.default_rng(seed)
    shape = (2, 3, 3, 4, 2)
    h, m, level, i, _ = (index.ravel() for index in np.indices(shape))
    kept = rng.random(h.size) > 0.3
    y = rng.normal(size=h.size) + 2.0 * h
    return y[kept], m[kept], level[kept], (h * 4 + i)[kept], h[kept]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_missing_data_give_method_one_as_written_with_dense_matrices(seed: int) -> None:
    y, m, level, i, h = missing_data(seed)
    found = components(design_from_arrays(y, m, level, i, np.repeat([0, 1], 4)))
    codes = {
        "run": np.arange(len(y)),
        "model": m,
        "level": level,
        "model x level": m * 3 + level,
        "model x stratum": m * 2 + h,
        "level x stratum": level * 2 + h,
        "model x level x stratum": (m * 3 + level) * 2 + h,
        "instance": i,
        "model x instance": m * 8 + i,
        "level x instance": level * 8 + i,
        "model x level x instance": (m * 3 + level) * 8 + i,
    }
    assert list(found.variances) == pytest.approx(list(dense_solution(y, codes, h)), abs=1e-9)


def test_stratum_means_change_no_estimate() -> None:
    y, m, level, i, h = missing_data(5)
    strata = np.repeat([0, 1], 4)
    first = components(design_from_arrays(y, m, level, i, strata)).variances
    second = components(design_from_arrays(y + 7.0 * h, m, level, i, strata)).variances
    assert list(first) == pytest.approx(list(second), abs=1e-8)


def test_reweighting_instances_equals_cloning_them() -> None:
    y, m, level, i, _ = missing_data(7)
    strata = np.repeat([0, 1], 4)
    design = design_from_arrays(y, m, level, i, strata)
    fitted = components(design)
    weights = np.array([2, 0, 1, 1, 1, 3, 0, 0])
    chosen = np.repeat(np.arange(8), weights)
    cloned = Design(design.counts[chosen], design.sums[chosen], design.squares[chosen], strata[chosen])
    expected = components(cloned)
    draws = reweighted_components(design, fitted, weights[None].astype(float))
    assert list(draws[0]) == pytest.approx([expected.variances[k] for k in fitted.kept], abs=1e-8)


def test_estimates_are_unbiased_under_missingness() -> None:
    truth = {
        "run": 1.0,
        "model": 0.6,
        "level": 0.2,
        "model x level": 0.3,
        "instance": 0.8,
        "model x instance": 0.4,
        "level x instance": 0.2,
        "model x level x instance": 0.1,
    }
    rng = np.random.default_rng(11)
    shape = (2, 4, 4, 8, 2)
    h, m, level, i, _ = (index.ravel() for index in np.indices(shape))
    strata = np.repeat([0, 1], 8)
    found = []
    for _ in range(150):
        effects = {
            "model": rng.normal(size=4)[m],
            "level": rng.normal(size=4)[level],
            "model x level": rng.normal(size=(4, 4))[m, level],
            "instance": rng.normal(size=(2, 8))[h, i],
            "model x instance": rng.normal(size=(2, 4, 8))[h, m, i],
            "level x instance": rng.normal(size=(2, 4, 8))[h, level, i],
            "model x level x instance": rng.normal(size=(2, 4, 4, 8))[h, m, level, i],
            "run": rng.normal(size=h.size),
        }
        y = 3.0 * h + sum(np.sqrt(truth[name]) * effect for name, effect in effects.items())
        kept = rng.random(h.size) > 0.15
        design = design_from_arrays(y[kept], m[kept], level[kept], (h * 8 + i)[kept], strata)
        found.append(components(design).variances)
    draws = np.array(found, dtype=float)
    for index, name in enumerate(NAMES):
        error = draws[:, index].mean() - truth.get(name, 0.0)
        assert abs(error) < 4 * draws[:, index].std() / np.sqrt(len(draws)), name


SMALL = Plan(
    models=("a", "b", "c"),
    strata=(("tabular", "easy"), ("query", "easy")),
    levels={"none": ("baseline",), "paraphrase": ("p1", "p2"), "distractors": ("2",), "order": ("shuffled",)},
    instances=8,
    runs=2,
    infra_rate=0.1,
)


def terms(frame: pd.DataFrame) -> pd.DataFrame:
    return variance_components(frame).set_index("term")


def test_table_has_one_row_per_term_and_the_documented_columns() -> None:
    table = variance_components(synthetic_results(SMALL, 1))
    assert list(table["term"]) == [*NAMES, PROMPTS]
    assert list(table.columns) == list(VARIANCE_FIELDS)
    assert table["estimable"].all()
    assert (table["lo"] <= table["hi"]).all()
    assert (table["n_levels"] == 4).all()
    assert set(table["method"]) == {"Henderson I"}


def test_one_run_folds_the_triple_interaction_into_run() -> None:
    frame = synthetic_results(SMALL, 1)
    table = terms(frame[frame["run_seed"] == 1])
    assert table.loc["run", "includes"] == "model x level x instance"
    assert not table.loc["model x level x instance", "estimable"]
    assert "one run" in table.loc["model x level x instance", "reason"]


def test_one_model_leaves_model_terms_not_estimable() -> None:
    frame = synthetic_results(SMALL, 1)
    table = terms(frame[frame["model"] == "a"])
    for name in NAMES:
        assert bool(table.loc[name, "estimable"]) == ("model" not in name), name
    assert table.loc["model", "reason"] == "not estimable: one model"
    assert table.loc["instance", "includes"] == "model x instance"


def test_one_level_leaves_level_terms_not_estimable() -> None:
    frame = synthetic_results(SMALL, 1)
    table = terms(frame[frame["axis"] == "none"])
    for name in NAMES:
        assert bool(table.loc[name, "estimable"]) == ("level" not in name), name


def test_one_stratum_folds_stratum_terms() -> None:
    frame = synthetic_results(SMALL, 1)
    table = terms(frame[frame["family"] == "query"])
    assert table.loc["model", "includes"] == "model x stratum"
    assert table.loc["model x stratum", "reason"] == "not estimable: one stratum"


@pytest.mark.parametrize("passed", [True, False])
def test_no_variation_is_null_with_a_reason_not_zero(passed: bool) -> None:
    frame = synthetic_results(SMALL, 1)
    frame["passed"] = frame["passed"].where(frame["passed"].isna(), passed)
    table = terms(frame)
    assert table["variance"].isna().all()
    assert table["reason"].notna().all()


def test_no_scored_episode_is_null_with_a_reason() -> None:
    frame = synthetic_results(SMALL, 1)
    frame["passed"] = pd.array([pd.NA] * len(frame), dtype="boolean")
    for one in (frame, frame.iloc[:0]):
        table = terms(one)
        assert table["variance"].isna().all()
        assert (table["reason"] == "no scored episode").all()


def test_control_axes_and_row_order_change_nothing() -> None:
    frame = synthetic_results(SMALL, 1)
    expected = terms(frame)
    pd.testing.assert_frame_equal(terms(frame.sample(frac=1, random_state=5)), expected)
    pd.testing.assert_frame_equal(terms(frame[frame["axis"] != "order"]), expected)


def test_negative_estimates_stay_negative_and_their_share_is_zero() -> None:
    plan = Plan(models=SMALL.models, levels=SMALL.levels, instances=6, runs=2, spread=Spread(0, 0, 0, 0, 0, 0, 0))
    table = variance_components(synthetic_results(plan, 2))
    negative = table[table["variance"] < 0]
    assert len(negative) > 0
    assert (negative["share"] == 0).all()
    assert table["share"].sum() == pytest.approx(1)


def test_jackknife_leaves_out_every_instance_in_turn() -> None:
    y, m, level, i, _ = missing_data(7)
    strata = np.repeat([0, 1], 4)
    design = design_from_arrays(y, m, level, i, strata)
    fitted = components(design)
    without = []
    for left_out in range(8):
        kept = np.arange(8) != left_out
        one = Design(design.counts[kept], design.sums[kept], design.squares[kept], strata[kept])
        without.append([components(one).variances[k] for k in fitted.kept])
    halves = np.array(without).reshape(2, 4, -1)
    variance = (0.75 * ((halves - halves.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)).sum(axis=0)
    low, high = jackknifed(design, fitted).bounds(0.95)
    assert (high - low) / 2 == pytest.approx(stats.t.isf(0.025, 6) * np.sqrt(variance))
    assert (high + low) / 2 == pytest.approx([fitted.variances[k] for k in fitted.kept])


def test_jackknife_of_one_way_data_has_the_known_standard_error() -> None:
    """One model, one level, one run: the only component is the variance of the outcome, whose jackknife is known."""
    y = np.random.default_rng(2).normal(size=30)
    zeros = np.zeros(30, dtype=int)
    design = design_from_arrays(y, zeros, zeros, np.arange(30), zeros)
    fitted = components(design)
    assert fitted["run"] == pytest.approx(y.var(ddof=1))
    without = np.array([np.delete(y, k).var(ddof=1) for k in range(30)])
    error = np.sqrt(29 / 30 * ((without - without.mean()) ** 2).sum())
    low, high = jackknifed(design, fitted).bounds(0.95)
    assert float(high[0] - low[0]) / 2 == pytest.approx(stats.t.isf(0.025, 29) * error)


@pytest.mark.slow
def test_intervals_of_instance_and_run_cover_the_truth() -> None:
    """200 simulated studies; nominal 95%. Components that only instances carry, models and levels being fixed."""
    rng = np.random.default_rng(17)
    h, m, level, i, _ = (index.ravel() for index in np.indices((3, 3, 4, 20, 2)))
    strata = np.repeat([0, 1, 2], 20)
    truth = {"run": 1.0, "instance": 0.5, "model x instance": 0.3, "level x instance": 0.2}
    hits = dict.fromkeys(truth, 0)
    studies = 200
    for _ in range(studies):
        y = rng.normal(size=h.size) + np.sqrt(0.5) * rng.normal(size=(3, 20))[h, i]
        y = y + np.sqrt(0.3) * rng.normal(size=(3, 3, 20))[h, m, i]
        y = y + np.sqrt(0.2) * rng.normal(size=(3, 4, 20))[h, level, i]
        kept = rng.random(h.size) > 0.05
        design = design_from_arrays(y[kept], m[kept], level[kept], (h * 20 + i)[kept], strata)
        fitted = components(design)
        bounds = jackknifed(design, fitted).bounds(0.95)
        for name, value in truth.items():
            position = fitted.kept.index(NAMES.index(name))
            hits[name] += bool(bounds[0, position] <= value <= bounds[1, position])
    for name, count in hits.items():
        assert 0.90 < count / studies < 0.99, (name, count / studies)


def test_design_of_counts_scored_episodes_alone() -> None:
    frame = synthetic_results(SMALL, 1)
    design = design_of(frame)
    assert design is not None
    scored = frame[frame["passed"].notna() & frame["axis"].isin(["none", "paraphrase", "distractors"])]
    assert design.counts.sum() == len(scored)
    spread = scored["passed"].astype(float).var(ddof=0) * len(scored)
    assert design.squares.sum() == pytest.approx(spread)
