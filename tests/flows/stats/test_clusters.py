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
from flows.stats.rates import pass_rates
from flows.stats.tables import TABLE_COLUMNS, core_tables
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


def test_what_is_about_repetitions_of_a_task_stays_with_the_instance() -> None:
    frame = carried(arms(["10", "11", "01", "00"], ["11", "11", "00", "00"]), 2)
    assert score_cube(frame).instances[score_cube(frame).strata[0]] == ("tabular-easy-0000", "tabular-easy-0002")
    assert len(score_cube(frame, unit="instance").means[score_cube(frame).strata[0]]) == 4
    table = consistency(frame, seed=1, resamples=200)
    alone = consistency(arms(["10", "11", "01", "00"], ["11", "11", "00", "00"]), seed=1, resamples=200)
    pd.testing.assert_frame_equal(table, alone)


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
    assert set(tables["consistency"]["n"]) == {8}, "instances"


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
