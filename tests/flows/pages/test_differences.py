"""Expected and produced states side by side: what the verifier overlooks is no difference, everything else shows."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from flows.pages.differences import LINE_CHARS, SHOWN_LINES, Line, state_difference
from tasks_env import FinalState, Instance, family, generate_instance, verify
from tasks_env.replay import Session
from tasks_env.session import render

FAMILIES = ("tabular", "filesys", "query")


def instance_of(name: str, seed: int = 5) -> Instance:
    return generate_instance(name, family(name).demonstration, seed)


def solved(instance: Instance) -> FinalState:
    session = Session(instance, render(instance))
    for call in family(instance.family).reference(instance):
        session.call(call.name, call.arguments)
    return session.final_state()


def told(instance: Instance, data: dict[str, Any]) -> list[tuple[str, str]]:
    difference = state_difference(instance, FinalState(submitted=True, data=data))
    return [(line.sign, line.text) for line in difference.lines]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_the_right_state_and_its_restatements_differ_in_nothing(name: str, seed: int) -> None:
    instance = instance_of(name, seed)
    right = solved(instance)
    assert state_difference(instance, right).lines == ()
    for proposal in family(name).restatements(instance, right):
        assert state_difference(instance, proposal.state).lines == (), proposal.operator


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_fails_though_it_was_submitted_differs(name: str, seed: int) -> None:
    instance = instance_of(name, seed)
    missed = 0
    for proposal in family(name).near_misses(instance, solved(instance), random.Random(seed)):
        if proposal.state.submitted and not verify(instance, (), proposal.state).passed:
            missed += 1
            assert state_difference(instance, proposal.state).lines, proposal.operator
    assert missed


def test_a_missing_row_is_a_line_expected_alone() -> None:
    instance = instance_of("tabular")
    rows = str(instance.truth["csv"]).splitlines()
    lines = told(instance, {"table": "t", "csv": "\n".join(rows[:-1])})
    assert [text for sign, text in lines if sign == "-"] == [rows[-1]]
    assert "+" not in {sign for sign, _ in lines}


def test_csv_that_cannot_be_read_is_shown_as_it_is() -> None:
    lines = told(instance_of("tabular"), {"table": "t", "csv": 'a,"b\nc'})
    assert [text for sign, text in lines if sign == "+"] == ['a,"b', "c"]


def test_only_files_that_differ_are_shown_and_each_says_how() -> None:
    instance = instance_of("filesys")
    files = dict(solved(instance).data["files"])  # type: ignore[arg-type]
    gone = sorted(files)[0]
    del files[gone]
    lines = told(instance, {"files": {**files, "/new.txt": "one\ntwo"}})
    assert [text for sign, text in lines if sign == "@" and not text.startswith("-")] == [
        "/new.txt should not exist",
        f"{gone} is missing",
    ] or [text for sign, text in lines if sign == "@" and not text.startswith("-")] == [
        f"{gone} is missing",
        "/new.txt should not exist",
    ]
    assert [text for sign, text in lines if sign == "+"] == ["one", "two"]


def test_values_of_an_answer_are_lines() -> None:
    instance = instance_of("query")
    assert told(instance, {"answer": "17 crates"})[1:] == [("-", str(instance.truth["answer"])), ("+", "17 crates")]
    assert told(instance, {"answer": None})[1:] == [("-", str(instance.truth["answer"]))]


def test_states_of_other_families_are_compared_as_json() -> None:
    instance = instance_of("query").model_copy(update={"family": "other", "truth": {"a": [1, 2]}})
    difference = state_difference(instance, FinalState(submitted=True, data={"a": [1, 3]}))
    assert difference.what == "the state as JSON"
    assert Line("-", "  2") in difference.lines
    assert Line("+", "  3") in difference.lines


@pytest.mark.parametrize("name", FAMILIES)
def test_states_that_no_world_leaves_are_compared_or_refused_never_passed_over(name: str) -> None:
    instance = instance_of(name)
    for data in ({}, {"files": 3}, {"csv": 7}, {"answer": ["x"]}, {"files": {"a": "\ud800\x00"}}, {"answer": "\ud800"}):
        assert state_difference(instance, FinalState(submitted=True, data=data)).lines


@pytest.mark.parametrize("text", ["x" * 2_000_000, "y\n" * 500_000, "".join(f"{n}\n" for n in range(200_000))])
def test_huge_states_are_bounded_and_say_so(text: str) -> None:
    started = time.process_time()
    lines = told(instance_of("query"), {"answer": text})
    assert time.process_time() - started < 2
    assert len(lines) <= SHOWN_LINES + 1
    assert max(len(text) for _, text in lines) < LINE_CHARS + 40
    assert any("more" in text for _, text in lines)
