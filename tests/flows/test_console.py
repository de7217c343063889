"""Progress on a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest

from flows import console
from flows.console import Console


class Terminal(io.StringIO):
    """Output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(console.time, "monotonic", made)
    return made


def test_lines_are_printed_as_they_are_on_both() -> None:
    text = "skip [bold]steady[/bold] :smile: " + "x" * 200
    for out in (io.StringIO(), Terminal()):
        Console(out).line(text)
        assert text in out.getvalue()
        assert out.getvalue().endswith("\n")


def test_elsewhere_a_line_now_and_then(clock: Clock) -> None:
    out = io.StringIO()
    with Console(out).progress("run", 10, "episodes") as progress:
        for second in range(1, 26):
            clock.now = 100.0 + second
            if second % 5 == 0:
                progress.advance(2, spend=0.01)
    assert out.getvalue().splitlines() == [
        "run: 4/10 episodes, 0.4/s, 0.0200 USD",
        "run: 8/10 episodes, 0.4/s, 0.0400 USD",
    ]
    assert progress.done == 10
    assert progress.spent_usd == pytest.approx(0.05)


def test_stages_that_cost_nothing_show_no_spend(clock: Clock) -> None:
    out = io.StringIO()
    with Console(out).progress("score", 3, "episodes") as progress:
        clock.now += 20
        progress.advance()
    assert out.getvalue() == "score: 1/3 episodes, 0.1/s\n"


def test_quick_stages_are_silent_elsewhere(clock: Clock) -> None:
    out = io.StringIO()
    with Console(out).progress("perturb", 3, "cells") as progress:
        clock.now += 1
        progress.advance(3)
    assert out.getvalue() == ""


def test_terminal_gets_a_bar_with_count_and_pace() -> None:
    out = Terminal()
    with Console(out).progress("run", 4, "episodes") as progress:
        progress.advance(3, spend=0.5)
    assert "run" in out.getvalue()
    assert "3/4" in out.getvalue()
    assert "0.5000 USD" in out.getvalue()


def test_nothing_to_do_draws_no_bar() -> None:
    out = Terminal()
    with Console(out).progress("run", 0, "episodes") as progress:
        assert progress.total == 0
    assert out.getvalue() == ""
