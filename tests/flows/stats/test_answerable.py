"""What a table is said to allow, against what the tables of its analysis hold."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from flows.stats.answerable import analyses, refusals
from flows.stats.tables import core_tables
from tests.flows.stats.synthetic import Plan, Spread, synthetic_results

PLAN = Plan(
    models=("alpha", "beta"),
    strata=(("query", "easy"), ("tabular", "hard")),
    levels={
        "none": ("baseline",),
        "paraphrase": ("p1", "p2"),
        "order": ("shuffled",),
        "resample": ("s1",),
    },
    instances=6,
    skill={"alpha": 0.2},
    spread=Spread(instance=0.1),
)
FULL = synthetic_results(PLAN, 3)
NUMBER = {
    "noise floor": ("negative_controls", "noise_floor"),
    "pass rates": ("pass_rates", "pass_rate"),
    "changes by axis": ("deltas", "delta"),
    "spread over paraphrases": ("paraphrase_spread", "p"),
    "ranking": ("pair_gaps", "gap_change"),
    "costs": ("costs", "cost_usd"),
}
"""Analysis → a table of it and the column that it is about."""
FRAMES: dict[str, Callable[[], pd.DataFrame]] = {
    "whole": lambda: FULL,
    "no cost": lambda: FULL.assign(cost_usd=pd.NA),
    "one model": lambda: FULL[FULL["model"] == "alpha"],
    "no baseline": lambda: FULL[FULL["axis"] != "none"],
    "baseline alone": lambda: FULL[FULL["axis"] == "none"],
    "one paraphrase": lambda: FULL[FULL["level"] != "p2"],
    "no control": lambda: FULL[~FULL["axis"].isin(["order", "resample"])],
    "all broken": lambda: FULL.assign(infra_error=True, passed=pd.NA),
    "no common task": lambda: FULL[(FULL["axis"] == "none") ^ FULL["instance_id"].isin(_half())],
}


def _half() -> list[str]:
    return sorted(set(FULL["instance_id"]))[::2]


@pytest.mark.parametrize("name", FRAMES)
def test_an_analysis_is_refused_exactly_where_its_table_holds_no_number(name: str) -> None:
    frame = FRAMES[name]()
    tables = core_tables(frame, seed=1, resamples=200)
    said = {answer.analysis: answer.allowed for answer in analyses(frame)}
    for analysis, (table, column) in NUMBER.items():
        assert said[analysis] == bool(tables[table][column].notna().any()), (name, analysis)


def test_each_reason_is_told_once_behind_all_that_it_holds_for() -> None:
    assert refusals(FULL) == []
    [(names, reason)] = refusals(FRAMES["all broken"]())
    assert names.split(", ")[:2] == ["noise floor", "pass rates"]
    assert reason == "no episode has a verdict: every one ended in an infrastructure error"
