"""A case of the verification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tasks_env.service.benchmark import Benchmark
from tasks_env.service.verification.submission import Submission

Build = Callable[[Benchmark], Submission]
Breakage = Callable[[Path, Benchmark], None]

UNSOLVED = 1
"""Expected of an attack: not to be taken for a solution, whatever else is wrong with it. So what it gives is one of
`UNSOLVED_CODES`: dependencies and scope are looked at last, and a task that fails by them alone is solved."""
UNSOLVED_CODES = (10, 11, 12)


@dataclass(frozen=True)
class Case:
    """A submission, or a broken library, of which the right exit code is known."""

    name: str
    build: Build
    """The submission."""
    evaluations: int = 1
    """How often the same folder is judged; the last verdict counts."""
    timed_out: bool = False
    """Whether the failure must be one of time."""
    breakage: Breakage | None = None
    """What is done to a copy of the library before the evaluator is made: facts that no submission can touch."""
    needs: tuple[str, ...] = ()
    """Parts of the isolation (fields of `Environment`) without which the case says nothing, or does harm."""
    own_tests: bool | None = None
    """What must be recorded of the submission's own tests."""


def baseline(benchmark: Benchmark) -> Submission:
    """The agent did nothing."""
    return Submission(benchmark.baseline)


def good(benchmark: Benchmark) -> Submission:
    """The known-good submission."""
    return Submission(benchmark.known_good)
