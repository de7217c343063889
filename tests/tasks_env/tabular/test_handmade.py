"""Episodes written by hand on a task worked out by hand: what passes, what fails, and by how much."""

from __future__ import annotations

import pytest

from tasks_env import Session, family, play, render
from tasks_env.families.tabular.second_solver import solve
from tasks_env.types import ToolCall, Verdict

from .handmade import RESULT, handmade


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall.model_validate({"name": name, "arguments": arguments})


def judged(*plan: ToolCall) -> Verdict:
    chosen = handmade()
    session = Session(chosen, render(chosen))
    results = play(session, plan)
    assert not [result.content for result in results if result.is_error]
    return session.verdict()


def typed(text: str) -> Verdict:
    return judged(call("write_table", text=text, output="mine"), call("submit", table="mine"))


JOIN = call("join_tables", table="orders", other_table="customers", column="customer_id", kind="inner", output="both")
TOTAL = call(
    "add_column",
    table="both",
    column="line_total",
    left="quantity",
    operator="times",
    right="unit_price",
    decimals=2,
    output="both",
)
KEEP = call("filter_rows", table="both", column="region", condition="in", values=["north", "south"], output="kept")
GROUP = call(
    "group_rows",
    table="kept",
    by=["segment"],
    functions=["mean", "count"],
    columns=["line_total", ""],
    names=["mean_line_total", "row_count"],
    decimals=1,
    output="groups",
)
SORT = call("sort_rows", table="groups", columns=["mean_line_total"], output="answer")
SUBMIT = call("submit", table="answer")


def test_both_solvers_give_the_result_worked_out_by_hand() -> None:
    chosen = handmade()
    assert solve(chosen.spec, chosen.world) == RESULT
    session = Session(chosen, render(chosen))
    play(session, family("tabular").reference(chosen))
    assert session.final_state().data == {"table": "sorted", "csv": RESULT}


def test_planned_steps_pass() -> None:
    verdict = judged(JOIN, TOTAL, KEEP, GROUP, SORT, SUBMIT)
    assert verdict.passed
    assert verdict.partial_score == 1.0


def test_steps_in_another_order_with_a_detour_pass() -> None:
    early = call("filter_rows", table="orders", column="region", condition="not_equals", values=["west"], output="few")
    join = JOIN.model_copy(update={"arguments": {**JOIN.arguments, "table": "few"}})
    group = GROUP.model_copy(update={"arguments": {**GROUP.arguments, "table": "both"}})
    verdict = judged(call("preview_table", table="orders"), early, join, TOTAL, group, SORT, SUBMIT)
    assert verdict.passed


@pytest.mark.parametrize(
    "text",
    [
        RESULT,
        RESULT.replace("\n", "\r\n"),
        RESULT.rstrip("\n"),
        "\ufeff" + RESULT,
        RESULT.replace("3.0", "3").replace("6.9", "6.900"),
        RESULT.replace("retail", '"retail"').replace("3.0", '"03.0"'),
        RESULT.replace("\n", "\n\n"),
    ],
    ids=["exact", "crlf", "no_last_line_end", "byte_order_mark", "zeros", "quotes", "blank_lines"],
)
def test_formatting_alone_decides_nothing_but_is_recorded(text: str) -> None:
    verdict = typed(text)
    assert verdict.passed
    assert verdict.conditions[-1].detail == f"exact_bytes={str(text == RESULT).lower()}"


@pytest.mark.parametrize(
    ("text", "failing", "score"),
    [
        (RESULT.replace("6.9", "6.8"), {"rows", "canonical_bytes"}, 1 / 2),
        (RESULT.replace("6.9", "6.875"), {"rows", "canonical_bytes"}, 1 / 2),
        ("segment,mean_line_total,row_count\nschool,6.9,2\nretail,3.0,2\n", {"canonical_bytes"}, 1 / 2),
        (RESULT + "retail,3.0,2\n", {"rows", "canonical_bytes"}, 2 / 3),
        (RESULT + "other,1.0,1\n", {"rows", "canonical_bytes"}, 2 / 3),
        ("segment,mean_line_total,row_count\nretail,3.0,2\n", {"rows", "canonical_bytes"}, 1 / 2),
        (RESULT.replace("row_count", "rows"), {"columns", "rows", "canonical_bytes"}, 2 / 3),
        (
            "segment,row_count,mean_line_total\nretail,2,3.0\nschool,2,6.9\n",
            {"columns", "rows", "canonical_bytes"},
            0.0,
        ),
        (RESULT.replace("retail", "Retail"), {"rows", "canonical_bytes"}, 1 / 2),
        (RESULT.replace("retail", "retail "), {"rows", "canonical_bytes"}, 1 / 2),
    ],
    ids=[
        "rounded_down",
        "not_rounded",
        "wrong_order",
        "row_repeated",
        "extra_row",
        "missing_row",
        "wrong_name",
        "columns_swapped",
        "letter_case",
        "trailing_space",
    ],
)
def test_near_misses_fail_on_the_right_condition(text: str, failing: set[str], score: float) -> None:
    verdict = typed(text)
    assert not verdict.passed
    assert {condition.name for condition in verdict.conditions if not condition.holds} == failing
    assert verdict.partial_score == pytest.approx(score)


def test_a_left_join_fails_since_an_unknown_customer_gets_a_group() -> None:
    join = JOIN.model_copy(update={"arguments": {**JOIN.arguments, "kind": "left"}})
    verdict = judged(join, TOTAL, KEEP, GROUP, SORT, SUBMIT)
    assert not verdict.passed
    assert verdict.partial_score == pytest.approx(2 / 3)


def test_the_details_never_show_a_row_of_the_truth() -> None:
    verdict = typed("segment,mean_line_total,row_count\nretail,1.0,2\nschool,2.0,2\n")
    shown = " ".join(condition.detail for condition in verdict.conditions)
    assert "3.0" not in shown
    assert "6.9" not in shown
    assert "2 missing, 2 extra" in shown
