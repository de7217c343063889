"""All inferential tables at once: documented, never a crash on a partial study, independent of row order."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import pandas as pd
import pytest

from flows.results import SCHEMA
from flows.stats.hypotheses import Registration, parse_hypotheses
from flows.stats.inference_tables import TABLE_COLUMNS, inference_tables
from tests.flows.stats.synthetic import Plan, synthetic_results
from tests.flows.stats.test_hypotheses import REGISTERED

REGISTRATION = Registration(parse_hypotheses(REGISTERED.read_text("utf-8")))
FRAME = synthetic_results(Plan(instances=4, infra_rate=0.05), 1)


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return inference_tables(frame, [REGISTRATION], seed=1, resamples=60)


def test_synthetic_frames_are_valid_results() -> None:
    SCHEMA.validate(FRAME, lazy=True)


def test_every_column_is_documented_and_no_other() -> None:
    found = tables(FRAME)
    assert list(found) == list(TABLE_COLUMNS)
    for name, table in found.items():
        assert list(table.columns) == list(TABLE_COLUMNS[name]), name
        assert all(meaning.strip() for meaning in TABLE_COLUMNS[name].values())


PARTIAL: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "no row": lambda f: f.iloc[:0],
    "one row": lambda f: f.iloc[:1],
    "baseline alone": lambda f: f[f["axis"] == "none"],
    "no baseline": lambda f: f[f["axis"] != "none"],
    "one axis": lambda f: f[f["axis"].isin(["none", "resample"])],
    "one model": lambda f: f[f["model"] == "alpha"],
    "one family": lambda f: f[f["family"] == "query"],
    "one run": lambda f: f[f["run_seed"] == 1],
    "one instance": lambda f: f[f["instance_id"].str.endswith("000000")],
    "a model without a family": lambda f: f[(f["model"] != "alpha") | (f["family"] != "query")],
    "a model without the baseline": lambda f: f[(f["model"] != "alpha") | (f["axis"] != "none")],
    "all infrastructure errors": lambda f: f.assign(passed=pd.array([pd.NA] * len(f), dtype="boolean")),
    "all pass": lambda f: f.assign(passed=f["passed"].where(f["passed"].isna(), True)),
    "all fail": lambda f: f.assign(passed=f["passed"].where(f["passed"].isna(), False)),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_a_partial_study_gives_nulls_with_reasons(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tables(PARTIAL[name](FRAME))
    main = {
        "variance_components": "variance",
        "power_exact": "n_instances",
        "power_general": "n_instances",
        "detectable": "detectable",
        "verdicts": "delta",
    }
    for table, column in main.items():
        undefined = found[table][found[table][column].isna()]
        assert undefined["reason"].notna().all(), table
    assert len(found["verdicts"]) == len(REGISTRATION.hypotheses)
    assert found["verdicts"]["label"].isin(["supported", "refuted", "inconclusive"]).all()


def test_row_order_changes_no_byte() -> None:
    first, second = tables(FRAME), tables(FRAME.sample(frac=1, random_state=2))
    for name, table in first.items():
        pd.testing.assert_frame_equal(table, second[name], obj=name)


def test_adding_an_infrastructure_error_changes_no_table() -> None:
    row = FRAME.iloc[[0]].assign(episode_id="extra", run_seed=9, passed=pd.array([pd.NA], dtype="boolean"))
    first, second = tables(FRAME), tables(pd.concat([FRAME, row], ignore_index=True))
    for name, table in first.items():
        pd.testing.assert_frame_equal(table, second[name], obj=name)


@pytest.mark.slow
def test_a_hundred_thousand_rows_take_seconds_of_processor_time() -> None:
    strata = tuple((family, difficulty) for family in "tfq" for difficulty in "emh")
    frame = synthetic_results(
        Plan(models=("a", "b", "c", "d"), strata=strata, instances=50, runs=4, infra_rate=0.02), 1
    )
    assert len(frame) > 90_000
    start = time.process_time()
    inference_tables(frame, [REGISTRATION], seed=1, resamples=10_000)
    assert time.process_time() - start < 25
