"""The verifier against episodes written by hand, and against arbitrary final states."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_env import FinalState, Instance, Session, VerifierInput, render
from tests.tasks_env.query.handmade import ABSENT, AVERAGE, COUNT, EARLIEST, EXTREME, LIST, LOOKUP, TOP
from tests.tasks_env.query.levels import FAMILY, a_mix

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def _passes(instance: Instance, answer: Any) -> bool:
    state = FinalState(submitted=True, data={"answer": answer})
    return FAMILY.verify(VerifierInput(instance=instance, calls=(), final_state=state)).passed


@pytest.mark.parametrize(
    ("instance", "answer"),
    [
        (COUNT, "3"),
        (COUNT, " 3\n"),
        (COUNT, "3.0"),
        (COUNT, "+3"),
        (AVERAGE, "3.13"),
        (AVERAGE, "3.125"),
        (AVERAGE, "3.1300000"),
        (LIST, "Emden; Celle"),
        (LIST, "Emden;Celle"),
        (LIST, " Emden ;  Celle "),
        (LOOKUP, "2022-01-06"),
        (EXTREME, "Clara Novak"),
        (TOP, "Celle; 6.25"),
        (TOP, "Celle;6.250"),
        (ABSENT, "2"),
        (EARLIEST, "2022-03-02"),
    ],
)
def test_right_answers_pass(instance: Instance, answer: str) -> None:
    assert _passes(instance, answer)


@pytest.mark.parametrize(
    ("instance", "answer"),
    [
        (COUNT, "4"),
        (COUNT, "3.2"),
        (COUNT, "three"),
        (COUNT, "3 loans"),
        (COUNT, "the answer is 3"),
        (COUNT, "\u0663"),
        (COUNT, ""),
        (AVERAGE, "3.12"),
        (AVERAGE, "3.1"),
        (AVERAGE, "3,13"),
        (AVERAGE, "2.08"),
        (LIST, "Celle; Emden"),
        (LIST, "Emden"),
        (LIST, "Emden; Celle; Celle"),
        (LIST, "Emden; Celle;"),
        (LIST, "emden; celle"),
        (LIST, "Emden, Celle"),
        (LOOKUP, "2022-01-07"),
        (LOOKUP, "06.01.2022"),
        (LOOKUP, "2022-1-6"),
        (EXTREME, "Ada Abbott"),
        (EXTREME, "'Clara Novak'"),
        (TOP, "Celle"),
        (TOP, "6.25; Celle"),
        (TOP, "Emden; 6.25"),
        (TOP, "Celle; 6.24"),
        (TOP, "Celle; 6.25; Emden"),
        (ABSENT, "1"),
        (EARLIEST, "2022-03-01"),
    ],
)
def test_wrong_answers_fail(instance: Instance, answer: str) -> None:
    assert not _passes(instance, answer)


def test_episode_written_by_hand_passes() -> None:
    session = Session(COUNT, render(COUNT))
    assert session.call("list_tables", {}).content == "loans: 5 rows\nmembers: 4 rows"
    shown = session.call("run_query", {"query": "SELECT COUNT(*) AS n FROM loans WHERE status = 'overdue'"})
    assert shown.content == "n\n3\n(1 row)"
    assert session.call("submit", {"answer": "3"}).ends_episode
    assert session.verdict().passed


def test_episode_written_by_hand_that_misreads_the_question_fails() -> None:
    session = Session(COUNT, render(COUNT))
    session.call("run_query", {"query": "SELECT COUNT(*) FROM loans"})
    session.call("submit", {"answer": "5"})
    verdict = session.verdict()
    assert [condition.name for condition in verdict.conditions if not condition.holds] == ["answer_value"]
    assert verdict.partial_score == 0.0


def test_conditions_say_what_is_wrong() -> None:
    verdict = FAMILY.verify(
        VerifierInput(instance=LIST, calls=(), final_state=FinalState(submitted=True, data={"answer": "Emden; Aurich"}))
    )
    assert verdict.conditions[-1].detail == "value 2: got 'Aurich', expected 'Celle'"
    unsubmitted = FAMILY.verify(
        VerifierInput(instance=COUNT, calls=(), final_state=FinalState(submitted=False, data={"answer": "3"}))
    )
    assert not unsubmitted.passed
    assert unsubmitted.conditions[0].detail == "no answer was submitted"


@settings(max_examples=80, deadline=None)
@given(data=st.dictionaries(st.sampled_from(["answer", "other"]), _JSON), submitted=st.booleans())
def test_any_final_state_gets_a_verdict(data: dict[str, Any], submitted: bool) -> None:
    for instance in (COUNT, AVERAGE, LIST, LOOKUP, EXTREME, TOP):
        state = FinalState(submitted=submitted, data=data)
        verdict = FAMILY.verify(VerifierInput(instance=instance, calls=(), final_state=state))
        assert verdict.passed == all(condition.holds for condition in verdict.conditions)
        assert verdict.partial_score == float(verdict.passed)
        assert all(len(condition.detail) < 300 for condition in verdict.conditions)


@settings(max_examples=80, deadline=None)
@given(answer=st.text(max_size=40) | st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{0,35}", fullmatch=True))
def test_any_text_gets_a_verdict_and_only_the_truth_passes(answer: str) -> None:
    assert _passes(EXTREME, answer) == (answer.strip() == "Clara Novak")
    assert _passes(LOOKUP, answer) == (answer.strip() == "2022-01-06")
    for instance in (COUNT, AVERAGE, LIST, TOP):
        _passes(instance, answer)


def test_deeply_nested_and_very_long_answers_get_a_verdict() -> None:
    nested: Any = []
    for _ in range(100):
        nested = [nested]
    for answer in (nested, "9" * 100_000, "x;" * 50_000, "-" * 1000, "0." + "9" * 5000):
        for instance in (COUNT, AVERAGE, LIST, TOP):
            assert not _passes(instance, answer)


def test_verdict_reads_the_final_state_alone() -> None:
    for instance in a_mix(2):
        state = FinalState(submitted=True, data={"answer": "12"})
        plan = FAMILY.reference(instance)
        with_calls = FAMILY.verify(VerifierInput(instance=instance, calls=plan, final_state=state))
        assert with_calls == FAMILY.verify(VerifierInput(instance=instance, calls=(), final_state=state))
