"""What is believed of a suite's report: only registered tests that passed, and only of a suite that came to its end."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_env.service.suites import believed

TESTS = {"t.py::a": "AC3", "t.py::b": "AC4"}


def report(*outcomes: tuple[str, str], collected: list[str] | None = None, ended: bool = True) -> list[dict[str, Any]]:
    names = [name for name, _ in outcomes] if collected is None else collected
    lines: list[dict[str, Any]] = [{"event": "collected", "tests": names}]
    lines += [{"event": "test", "id": name, "outcome": outcome, "detail": ""} for name, outcome in outcomes]
    return [*lines, *([{"event": "end", "timed_out": False}] if ended else [])]


def test_a_suite_of_which_every_test_passed_has_no_problem() -> None:
    result = believed(TESTS, report(("t.py::b", "passed"), ("t.py::a", "passed")))
    assert (result.failed, result.problem, result.passed) == ({}, "", set(TESTS))


@pytest.mark.parametrize("outcome", ["failed", "skipped", "error", "missing", "xpassed"])
def test_whatever_is_not_a_pass_is_a_failure(outcome: str) -> None:
    result = believed(TESTS, report(("t.py::a", outcome), ("t.py::b", "passed")))
    assert result.failed == {"t.py::a": outcome}


def test_a_suite_without_any_test_fails_whole() -> None:
    result = believed(TESTS, report())
    assert set(result.failed) == set(TESTS)
    assert "t.py::a is missing" in result.problem


def test_a_missing_test_a_foreign_one_and_a_double_are_noticed() -> None:
    assert "t.py::b is missing" in believed(TESTS, report(("t.py::a", "passed"))).problem
    foreign = believed(TESTS, report(("t.py::a", "passed"), ("t.py::b", "passed"), ("t.py::c", "passed")))
    assert "t.py::c is not registered" in foreign.problem
    passed = [("t.py::a", "passed"), ("t.py::b", "passed")]
    double = believed(TESTS, report(*passed, collected=["t.py::a", "t.py::a", "t.py::b"]))
    assert "not the registered one" in double.problem


def test_a_suite_that_broke_off_has_not_passed() -> None:
    result = believed(TESTS, report(("t.py::a", "passed"), ("t.py::b", "passed"), ended=False))
    assert result.problem == "the suite did not come to its end"
    assert believed(TESTS, []).problem
