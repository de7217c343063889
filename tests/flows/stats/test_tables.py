"""What holds for every table: documented columns, invariance, reasons for what is undefined."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from flows.results import results_frame
from flows.stats.tables import TABLE_COLUMNS, core_tables
from tests.flows.stats.frames import Cell, cell, episodes
from tests.flows.stats.synthetic import Plan, synthetic_results

UNDEFINED = {
    "pass_rates": [("pass_rate", "reason"), ("ci_low", "reason")],
    "deltas": [("delta", "reason"), ("ci_low", "reason")],
    "paraphrase_spread": [
        ("range", "reason"),
        ("p", "reason"),
        ("level_sd", "level_sd_reason"),
        ("worst_delta_naive", "worst_reason"),
        ("worst_delta_crossfit", "worst_reason"),
        ("cochran_q", "cochran_reason"),
    ],
    "rank_stability": [("tau_b", "tau_reason"), ("concordance", "reason"), ("p", "reason")],
    "pair_gaps": [("gap_change", "reason"), ("gap_change_low", "reason")],
    "negative_controls": [("delta", "reason"), ("ci_low", "reason")],
    "consistency": [("value", "reason"), ("ci_low", "reason")],
    "trajectory_stability": [("same_trajectory", "reason"), ("same_outcome", "reason")],
    "costs": [("cost_per_solved_usd", "reason"), ("ci_low", "reason")],
    "infra_errors": [("pass_rate", "reason")],
    "partial_scores": [("partial_score", "reason")],
}
"""Table -> (column that may be undefined, column that says why)."""

LABELS = ("scope", "model", "family", "difficulty", "axis", "level", "measure", "k", "comparison")

AXES = [
    ("none", "baseline"),
    ("paraphrase", "p1"),
    ("paraphrase", "p2"),
    ("order", "shuffled"),
    ("resample", "s1"),
    ("resample", "s2"),
]


def check_tables(tables: dict[str, pd.DataFrame]) -> None:
    assert list(tables) == list(TABLE_COLUMNS)
    for name, table in tables.items():
        assert list(table.columns) == list(TABLE_COLUMNS[name])
        for column, reason in UNDEFINED[name]:
            unexplained = table[table[column].isna() & table[reason].isna()]
            assert unexplained.empty, f"{name}.{column} is null without a reason:\n{unexplained}"
        numbers = table.select_dtypes("float").to_numpy()
        assert not np.isinf(numbers).any(), name


@st.composite
def studies(draw: st.DrawFn) -> pd.DataFrame:
    """Partial studies of one to three models and one or two strata, with any cell missing or failing."""
    cells: dict[Cell, list[str]] = {}
    size = draw(st.integers(1, 5))
    for model in draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]])):
        for family in draw(st.sampled_from([["tabular"], ["query", "tabular"]])):
            for axis, level in AXES:
                runs = st.text("110x", max_size=3)
                cells[cell(model, axis, level, family)] = draw(
                    st.one_of(st.lists(runs, min_size=size, max_size=size), st.just(["x"] * size), st.just([]))
                )
    return episodes(cells)


few = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@few
@given(studies())
def test_a_partial_study_never_crashes_and_says_why_values_are_missing(frame: pd.DataFrame) -> None:
    check_tables(core_tables(frame, seed=1, resamples=30))


@pytest.mark.slow
@settings(few, max_examples=25)
@given(studies())
def test_many_partial_studies_never_crash_and_do_not_depend_on_row_order(frame: pd.DataFrame) -> None:
    tables = core_tables(frame, seed=1, resamples=30)
    check_tables(tables)
    for name, reversed_rows in core_tables(frame.iloc[::-1], seed=1, resamples=30).items():
        assert_frame_equal(tables[name], reversed_rows, check_exact=True, obj=name)


@few
@given(studies(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(frame: pd.DataFrame, random) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(frame)))
    random.shuffle(order)
    tables = core_tables(frame, seed=1, resamples=30)
    for name, shuffled in core_tables(frame.iloc[order], seed=1, resamples=30).items():
        assert_frame_equal(tables[name], shuffled, check_exact=True, obj=name)


@few
@given(studies())
def test_renaming_models_renames_rows_and_nothing_else(frame: pd.DataFrame) -> None:
    """The new names sort the other way round."""
    names = {"a": "z", "b": "y", "c": "x", "all": "all"}
    renamed = frame.assign(model=frame["model"].map(names).astype("str"))
    before, after = (core_tables(f, seed=1, resamples=30) for f in (frame, renamed))
    for name in TABLE_COLUMNS:
        if name == "pair_gaps":  # a gap changes sign with the order of its pair: tested with the gaps
            continue
        one, two = before[name], after[name]
        keys = [key for key in LABELS if key in one.columns]
        if "model" in one.columns:
            one = one.assign(model=one["model"].map(names).astype("str"))
        naming = [c for c in ("models", "missing_strata") if c in one.columns]
        assert_frame_equal(
            one.drop(columns=naming).sort_values(keys, ignore_index=True),
            two.drop(columns=naming).sort_values(keys, ignore_index=True),
            check_exact=False,
            rtol=0,
            atol=2e-5,
            obj=name,
        )


@few
@given(studies(), st.data())
def test_one_more_infrastructure_error_changes_only_its_counts(frame: pd.DataFrame, data: st.DataObject) -> None:
    if frame.empty:
        return
    row = frame.iloc[data.draw(st.integers(0, len(frame) - 1))].to_dict()
    row |= {
        "episode_id": "one more",
        "run_seed": 99,
        "passed": None,
        "partial_score": None,
        "outcome": "infra_error",
        "failure_class": "timeout",
        "infra_error": True,
    }
    more = results_frame([*frame.to_dict("records"), row])
    before, after = (core_tables(f, seed=1, resamples=30) for f in (frame, more))
    counting = {
        "pass_rates": ["infra_errors", "if_infra_failed", "if_infra_passed"],
        "partial_scores": ["without_score"],
        "costs": ["cost_infra_usd"],
        "infra_errors": list(TABLE_COLUMNS["infra_errors"]),
    }
    for name in TABLE_COLUMNS:
        left, right = (tables[name].drop(columns=counting.get(name, [])) for tables in (before, after))
        assert_frame_equal(left, right, check_exact=True, obj=name)


EDGE_CASES: dict[str, dict[Cell, list[str]]] = {
    "all pass": {cell(m, *c): ["11"] * 12 for m in "ab" for c in AXES},
    "all fail": {cell(m, *c): ["00"] * 12 for m in "ab" for c in AXES},
    "one instance": {cell(m, *c): ["1"] for m in "ab" for c in AXES},
    "one model": {cell("a", *c): ["10", "11", "00"] for c in AXES},
    "no baseline": {cell("a", *c): ["10", "11", "00"] for c in AXES[1:]},
    "baseline only": {cell("a"): ["10", "11", "00"]},
    "nothing but errors": {cell(m, *c): ["xx", "x"] for m in "ab" for c in AXES},
    "one model with errors only": {cell(m, *c): ["xx", "x"] if m == "b" else ["10", "01"] for m in "ab" for c in AXES},
    "constant difference": {
        **{cell(m): ["1"] * 15 for m in "ab"},
        **{cell(m, *c): ["0"] * 15 for m in "ab" for c in AXES[1:]},
    },
    "strata of one instance": {cell("a", *c, family=f"f{k}"): ["10"[k % 2]] for k in range(12) for c in AXES},
    "disjoint instances": {cell("a"): ["1", "", "0", ""], cell("a", "order", "shuffled"): ["", "1", "", "0"]},
}


@pytest.mark.parametrize("name", EDGE_CASES)
def test_edge_cases_come_out_whole(name: str) -> None:
    check_tables(core_tables(episodes(EDGE_CASES[name]), seed=1, resamples=100))


def test_nothing_but_errors_is_never_a_rate_of_zero() -> None:
    tables = core_tables(episodes(EDGE_CASES["nothing but errors"]), seed=1, resamples=100)
    assert tables["pass_rates"]["pass_rate"].isna().all()
    assert (tables["pass_rates"]["n"] == 0).all()
    assert tables["infra_errors"]["nothing_scored"].all()
    assert tables["deltas"]["delta"].isna().all()


def test_no_interval_has_zero_width_when_nothing_differs() -> None:
    deltas = core_tables(episodes(EDGE_CASES["all pass"]), seed=1, resamples=100)["deltas"]
    assert (deltas["delta"] == 0).all()
    assert (deltas["ci_high"] - deltas["ci_low"] > 0.1).all()
    assert deltas["degenerate"].all()


def test_an_empty_table_gives_empty_tables() -> None:
    tables = core_tables(episodes({}), seed=1, resamples=100)
    assert all(table.empty for table in tables.values())
    check_tables(tables)


def test_every_column_has_a_meaning() -> None:
    for table, columns in TABLE_COLUMNS.items():
        for column, meaning in columns.items():
            assert len(meaning) > 5, f"{table}.{column}"


def test_more_than_one_benchmark_is_refused() -> None:
    frame = episodes({cell(): ["1", "0"]})
    frame.loc[0, "benchmark"] = "other"
    with pytest.raises(ValueError, match="one benchmark at a time"):
        core_tables(frame, seed=1, resamples=10)


def test_seed_decides_every_number() -> None:
    strata = [("tabular", "easy"), ("query", "hard")]
    frame = synthetic_results(Plan(models=("a", "b"), strata=strata, instances=12, infra_rate=0.05), seed=2)
    one, again, other = (core_tables(frame, seed=seed, resamples=300) for seed in (1, 1, 2))
    for name in TABLE_COLUMNS:
        assert_frame_equal(one[name], again[name], check_exact=True)
    assert not one["deltas"].equals(other["deltas"])
