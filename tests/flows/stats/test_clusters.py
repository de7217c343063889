"""Carried context: tasks of one conversation are resampled as one, and order is an axis like any other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from flows.report.forest import forest_rows
from flows.stats.cells import score_cube
from flows.stats.clusters import carries_context, cluster_ids, control_axes
from flows.stats.consistency import consistency
from flows.stats.controls import negative_controls
from flows.stats.costs import costs
from flows.stats.deltas import axis_contrast, axis_deltas
from flows.stats.henderson import TERMS, Design, components
from flows.stats.inference_tables import inference_tables
from flows.stats.power_tables import SHARED, detectable, plan_moments
from flows.stats.rates import pass_rates
from flows.stats.tables import TABLE_COLUMNS, core_tables
from flows.stats.trajectories import trajectory_stability
from flows.stats.variance import jackknifed
from tests.flows.stats.frames import cell, episodes

ORDER = ("order", "shuffled")
RESAMPLE = ("resample", "s1")


def carried(frame: pd.DataFrame, size: int) -> pd.DataFrame:
    """The same episodes, met `size` tasks at a time in the order of the instances."""
    number = frame["instance_id"].str[-4:].astype(int) // size
    place = frame["instance_id"].str[-4:].astype(int) % size + 1
    keys = [frame[name].astype(str) for name in ("model", "cell_id", "run_seed")]
    shared = keys[0] + "/" + keys[1] + "/" + keys[2] + "/" + number.astype(str)
    return frame.assign(conversation_id=shared.astype("str"), conversation_position=place.astype("Int64"))


def arms(baseline: list[str], order: list[str], resample: list[str] | None = None) -> pd.DataFrame:
    """One model's baseline and order cells, and one of redrawn instances."""
    cells = {cell(): baseline, cell("m", *ORDER): order}
    return episodes({**cells, **({cell("m", *RESAMPLE): resample} if resample else {})})


def mixed(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(["0", "1"], size=2, p=[0.4, 0.6])) for _ in range(n)]


def test_an_independent_episodes_cluster_is_its_instance() -> None:
    frame = arms(["10", "11", "01"], ["11", "11", "00"])
    assert not carries_context(frame)
    assert cluster_ids(frame).tolist() == frame["instance_id"].tolist()
    assert control_axes(frame) == ("order", "resample")
    lacking = frame.drop(columns=["conversation_id", "conversation_position"])
    assert cluster_ids(lacking).tolist() == frame["instance_id"].tolist()


def test_instances_that_ever_shared_a_conversation_are_one_cluster_called_by_the_first() -> None:
    frame = carried(arms(mixed(10, 1), mixed(10, 2)), 4)
    assert carries_context(frame)
    assert control_axes(frame) == ("resample",)
    first = {f"tabular-easy-{number:04d}": f"tabular-easy-{4 * (number // 4):04d}" for number in range(10)}
    assert cluster_ids(frame).tolist() == [first[name] for name in frame["instance_id"]]
    rows = frame.sample(frac=1, random_state=3)
    pd.testing.assert_series_equal(cluster_ids(rows).sort_index(), cluster_ids(frame))


def test_companies_that_cross_make_larger_clusters() -> None:
    frame = arms(["1", "0", "1", "0", "1"], ["1", "1", "1", "0", "0"])
    shared = {("none", 0): "a", ("none", 1): "a", ("order", 1): "b", ("order", 2): "b"}
    keys = [(axis, int(name[-4:])) for axis, name in zip(frame["axis"], frame["instance_id"], strict=True)]
    frame["conversation_id"] = pd.Series([shared.get(key) for key in keys], dtype="str")
    found = {name[-1]: found[-1] for name, found in zip(frame["instance_id"], cluster_ids(frame), strict=True)}
    assert found == {"0": "0", "1": "0", "2": "0", "3": "3", "4": "4"}


@pytest.mark.parametrize("size", [2, 4])
def test_tasks_that_always_end_alike_in_a_conversation_weigh_as_one_instance(size: int) -> None:
    """An independent route: the table of one instance per conversation must give the same figures."""
    n = 24
    base, order, other = mixed(n, 1), mixed(n, 2), mixed(n, 3)
    single = arms(base, order, other)
    repeated = carried(arms(*([runs for runs in arm for _ in range(size)] for arm in (base, order, other))), size)
    shown = ["scope", "axis", "level", "n", "delta", "ci_low", "ci_high", "method"]
    for table, columns in (
        (axis_deltas, shown),
        (pass_rates, ["scope", "axis", "n", "pass_rate", "ci_low", "ci_high", "se", "percentile_low"]),
    ):
        one, many = (table(frame, seed=1, resamples=1000)[columns] for frame in (single, repeated))
        pd.testing.assert_frame_equal(one, many)
    naive = axis_contrast(
        repeated.drop(columns=["conversation_id", "conversation_position"]), "order", seed=1, resamples=1000
    )
    honest = axis_contrast(repeated, "order", seed=1, resamples=1000)
    assert naive.n == size * honest.n
    assert width(naive.interval()) < 0.8 * width(honest.interval()), "taken as independent, they would look surer"
    assert costs(repeated, seed=1, resamples=200)["n"].max() == n


def width(interval: tuple[float, float] | tuple[None, None]) -> float:
    low, high = interval
    assert low is not None
    assert high is not None
    return high - low


def test_what_is_about_repetitions_of_a_task_is_about_its_own_runs_and_resamples_conversations() -> None:
    frame = carried(arms(["10", "11", "01", "00"], ["11", "11", "00", "00"]), 2)
    (stratum,) = score_cube(frame).strata
    assert score_cube(frame).instances[stratum] == ("tabular-easy-0000", "tabular-easy-0002")
    cube = score_cube(frame, unit="instance")
    assert cube.clusters[stratum].tolist() == [0, 0, 1, 1]
    assert cube.over_clusters(stratum, np.array([1.0, 0.0, np.nan, 0.5])).tolist() == [0.5, 0.5]
    columns = ["scope", "axis", "level", "measure", "k", "value"]
    table = consistency(frame, seed=1, resamples=200)
    alone = consistency(arms(["10", "11", "01", "00"], ["11", "11", "00", "00"]), seed=1, resamples=200)
    pd.testing.assert_frame_equal(table[columns], alone[columns])
    assert set(table["n"]) == {2}


@pytest.mark.parametrize("size", [2, 4])
def test_repetition_and_power_know_that_tasks_shared_a_conversation(size: int) -> None:
    """As above, by the table of one instance per conversation: tasks alike in all must add nothing."""
    base, order = mixed(24, 1), mixed(24, 2)
    single = arms(base, order)
    repeated = carried(arms(*([runs for runs in arm for _ in range(size)] for arm in (base, order))), size)
    for table in (consistency, trajectory_stability):
        one, many = (table(frame, seed=1, resamples=500) for frame in (single, repeated))
        pd.testing.assert_frame_equal(one, many)
    seen = [detectable(plan_moments(frame)).query("as_run").reset_index(drop=True) for frame in (single, repeated)]
    assert seen[0]["detectable"].notna().all()
    pd.testing.assert_series_equal(seen[0]["detectable"], seen[1]["detectable"])
    assert (seen[1]["n"] == size * seen[0]["n"]).all()
    assert (seen[1]["variance"] / seen[0]["variance"]).astype(float).to_numpy() == pytest.approx(size)
    split = detectable(plan_moments(repeated)).query("not as_run")
    assert (split["reason"] == SHARED).all(), "runs of one conversation's tasks are not told apart"


def test_sizes_for_any_equivalent_prompt_are_refused_where_tasks_shared_conversations() -> None:
    levels = [("none", "baseline"), *(("paraphrase", f"p{k}") for k in range(1, 4))]
    cells = {cell(name, *one): mixed(12, 10 * k + len(name)) for name in ("m", "mm") for k, one in enumerate(levels)}
    tables = inference_tables(carried(episodes(cells), 3), (), seed=1, resamples=50)
    assert (tables["power_general"]["reason"] == SHARED).all()
    terms = tables["variance_components"].set_index("term")
    assert set(terms["n_clusters"]) == {4}
    assert terms.loc["run", "interval_method"] != "none"


def conversations(rng: np.random.Generator, shape: tuple[int, int, int, int, int, int]) -> Design:
    """Outcomes of (strata, models, levels, conversations, tasks, runs): tasks of a conversation share most of it."""
    strata, models, levels, groups, tasks, runs = shape
    y = rng.normal(size=shape) + 0.7 * rng.normal(size=(strata, 1, 1, groups, tasks, 1))
    y = y + 0.6 * rng.normal(size=(strata, models, levels, groups, 1, 1))
    y = y + 0.7 * rng.normal(size=(strata, models, levels, groups, 1, runs))
    n = groups * tasks
    y = y.reshape(strata, models, levels, n, runs).transpose(0, 3, 1, 2, 4).reshape(strata * n, models, levels, runs)
    y = y - y.mean()
    return Design(
        counts=np.full(y.shape[:3], float(runs)),
        sums=y.sum(axis=3),
        squares=(y**2).sum(axis=(1, 2, 3)),
        strata=np.repeat(np.arange(strata), n),
        clusters=np.repeat(np.arange(strata * groups), tasks),
    )


@pytest.mark.slow
def test_what_a_conversation_has_in_common_is_not_taken_for_an_effect_of_models_and_levels() -> None:
    """120 studies without any such effect: fitted as if tasks were independent, some appears; corrected, none."""
    rng = np.random.default_rng(3)
    term = "model x level x stratum"
    position = [one.name for one in TERMS].index(term)
    fitted, corrected, covered = [], [], []
    for _ in range(120):
        design = conversations(rng, (2, 3, 4, 10, 3, 2))
        found = components(design)
        place = found.kept.index(position)
        honest = jackknifed(design, found)
        low, high = honest.bounds(0.95)[:, place]
        fitted.append(found[term])
        corrected.append(honest.estimate[place])
        covered.append(low <= 0 <= high)
    error = np.std(corrected) / np.sqrt(120)
    assert np.mean(np.array(fitted, dtype=float)) > 5 * error
    assert abs(np.mean(corrected)) < 4 * error
    assert np.mean(covered) > 0.92


def test_a_conversation_over_several_strata_is_refused() -> None:
    cells = {cell(family=family): ["10", "01"] for family in ("tabular", "query")}
    frame = episodes(cells).assign(conversation_id="one", conversation_position=1)
    frame = frame.astype({"conversation_id": "str", "conversation_position": "Int64"})
    with pytest.raises(ValueError, match="conversation one holds tasks of several families"):
        pass_rates(frame, seed=1, resamples=10)


def test_order_is_a_control_of_independent_episodes_alone() -> None:
    frame = arms(mixed(20, 1), mixed(20, 2), mixed(20, 3))
    assert set(negative_controls(frame, seed=1, resamples=200)["axis"]) == {"order", "resample"}
    assert set(negative_controls(carried(frame, 4), seed=1, resamples=200)["axis"]) == {"resample"}


def test_every_table_of_carried_results_can_be_made() -> None:
    names = ("m", "n")
    cells = {
        cell(name, *condition): mixed(8, seed)
        for name in names
        for seed, condition in enumerate((("none", "baseline"), ORDER, RESAMPLE, ("paraphrase", "p1")))
    }
    tables = core_tables(carried(episodes(cells), 4), seed=1, resamples=100)
    assert list(tables) == list(TABLE_COLUMNS)
    assert set(tables["deltas"]["n"]) == {2}, "conversations"
    assert set(tables["consistency"]["n"]) == set(tables["trajectory_stability"]["n"]) == {2}


def test_forest_shows_order_among_the_axes_where_context_is_carried() -> None:
    def shown(frame: pd.DataFrame) -> pd.DataFrame:
        tables = {
            "deltas": axis_deltas(frame, seed=1, resamples=200),
            "negative_controls": negative_controls(frame, seed=1, resamples=200),
        }
        return forest_rows(tables).set_index(["axis", "model"])

    frame = arms(mixed(20, 1), mixed(20, 2), mixed(20, 3))
    alone, together = shown(frame), shown(carried(frame, 4))
    assert alone["control"].groupby(level="axis").all().to_dict() == {"order": True, "resample": True}
    assert together["control"].groupby(level="axis").all().to_dict() == {"order": False, "resample": True}
    floors = together["noise_floor"]
    assert floors[("order", "m")] == floors[("resample", "m")], "the one control there is"
    assert list(together.index.get_level_values("axis").unique()) == ["order", "resample"], "controls last"
