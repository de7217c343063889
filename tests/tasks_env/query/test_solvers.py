"""Both solvers against answers computed by hand, and what counts as unanswerable."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from tasks_env import Instance
from tasks_env.families.query import second_solver
from tasks_env.families.query.answers import canonical_number, parse_answer, written
from tasks_env.families.query.database import connect
from tasks_env.families.query.question import AnswerFormat
from tasks_env.families.query.solver import solve
from tests.tasks_env.query.handmade import ABSENT, COUNT, EARLIEST, EXTREME, LIST, LOOKUP, TOP, handmade
from tests.tasks_env.query.levels import a_mix, question_of


def _first(instance: Instance) -> Any:
    with closing(connect(instance.world)) as connection:
        return solve(connection, question_of(instance))


@pytest.mark.parametrize("instance", [COUNT, LIST, LOOKUP, ABSENT, EARLIEST])
def test_both_solvers_find_what_is_computed_by_hand(instance: Instance) -> None:
    assert _first(instance) == instance.truth["answer"]
    assert second_solver.solve(instance.spec, instance.world) == instance.truth["answer"]


def test_ranking_needs_three_entries_to_be_asked_about() -> None:
    for instance in (TOP, EXTREME):
        assert _first(instance) is None
        assert second_solver.solve(instance.spec, instance.world) == instance.truth["answer"]


def test_a_tied_rank_has_no_answer() -> None:
    tied = handmade(
        None,
        kind="extreme",
        column={"column": "name", "path": ["member_id"]},
        measure={"column": "duration"},
        direction="highest",
        predicates=[{"ref": {"column": "duration"}, "operator": "le", "value": 9}],
        answer={"kind": "text"},
        states_nulls=False,
    )
    assert _first(tied) is None
    assert second_solver.solve(tied.spec, tied.world) is None


def test_a_lookup_with_two_rows_has_no_answer() -> None:
    double = handmade(
        None,
        kind="lookup",
        column={"column": "status"},
        predicates=[{"ref": {"column": "duration"}, "operator": "eq", "value": 9}],
        answer={"kind": "text"},
        states_nulls=False,
    )
    assert _first(double) is None
    assert second_solver.solve(double.spec, double.world) is None


def test_a_rounding_tie_has_no_answer() -> None:
    tie = handmade(
        None,
        kind="average",
        column={"column": "fee"},
        predicates=[{"ref": {"column": "status"}, "operator": "eq", "value": "overdue"}],
        answer={"kind": "number", "decimals": 2},
        states_nulls=True,
    )
    assert _first(tie) is None
    assert second_solver.solve(tie.spec, tie.world) is None


def test_a_missing_value_meets_no_condition() -> None:
    unequal = handmade(
        "1",
        kind="count",
        predicates=[
            {"ref": {"column": "level", "path": ["member_id"]}, "operator": "ne", "value": "adult"},
            {"ref": {"column": "fee"}, "operator": "gt", "value": 3.0},
        ],
        answer={"kind": "number"},
        states_nulls=True,
    )
    assert second_solver.solve(unequal.spec, unequal.world) == "1"


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [(2, 0, "2"), (2.5, 2, "2.50"), (2.005, 2, "2.01"), (-0.001, 2, "0.00"), (-1.5, 0, "-2"), (1e6, 2, "1000000.00")],
)
def test_numbers_are_written_with_the_decimals_asked_for(value: float, decimals: int, text: str) -> None:
    assert canonical_number(value, decimals) == text


def test_a_written_truth_is_read_back_unchanged() -> None:
    for instance in a_mix(15):
        form = AnswerFormat.model_validate(instance.spec["answer"])
        truth: Any = instance.truth["answer"]
        assert parse_answer(written(truth), form) == truth
