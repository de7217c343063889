"""The proof: every case judged several times, in shuffled order; each verdict the known one, each time the same."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks_env.errors import UnknownName
from tasks_env.seeding import derive, derive_seed
from tasks_env.service.benchmark import BASELINE, CACHES, Benchmark, load_benchmark
from tasks_env.service.errors import EvidenceError
from tasks_env.service.evaluation import INFRASTRUCTURE, Environment, Evaluation, evaluation_json
from tasks_env.service.evaluator import Evaluator, no_verdict, working_folder
from tasks_env.service.verification.case import UNSOLVED, UNSOLVED_CODES, Case
from tasks_env.service.verification.cases import cases_of, find_case

Told = Callable[["Trial"], None]


@dataclass(frozen=True)
class Trial:
    """One verdict on one case."""

    benchmark: str
    case: str
    round: int
    expected: int
    evaluation: Evaluation | None
    """Null: left out here."""
    problem: str | None
    """Why the verdict is not the known one; null if it is."""
    left_out: str | None = None
    """Which part of the isolation is missing that the case needs."""


@dataclass
class Proof:
    """What came of all trials."""

    trials: list[Trial] = field(default_factory=list)

    def problems(self) -> list[str]:
        """What keeps the evaluator from being believed; empty if nothing does."""
        found = [
            f"{each.benchmark} {each.case}, round {each.round}: {each.problem}" for each in self.trials if each.problem
        ]
        outcomes: dict[tuple[str, str], set[str]] = defaultdict(set)
        for each in self.trials:
            if each.evaluation is not None:
                outcomes[each.benchmark, each.case].add(_outcome(each.evaluation))
        found += [
            f"{benchmark} {case}: verdicts differ from round to round: {' / '.join(sorted(seen))}"
            for (benchmark, case), seen in outcomes.items()
            if len(seen) > 1
        ]
        return found

    @property
    def left_out(self) -> dict[str, str]:
        """Case → what it needs that is not there."""
        return {each.case: each.left_out for each in self.trials if each.left_out}


def prove(
    benchmarks: Sequence[Benchmark],
    *,
    rounds: int,
    seed: int,
    workers: int,
    names: Sequence[str] = (),
    told: Told = lambda _trial: None,
) -> Proof:
    """Judge every case (or those of `names`) of every benchmark `rounds` times, in an order of each round's own.

    Args:
        seed: Of the orders; what the suites draw is new each time, as in any evaluation.
        workers: Evaluations at a time.
        told: Called with each trial as it ends.

    Raises:
        UnknownName: a name that no benchmark has; or cases and expectations that do not match.
        EvidenceError: a benchmark's own files do not fit together.
    """
    for benchmark in benchmarks:
        check_registered(benchmark)
    known = {name for benchmark in benchmarks for name in cases_of(benchmark)}
    for name in names:
        if name not in known:
            raise UnknownName("verification case", name, known)
    evaluators = {benchmark.id: Evaluator(benchmark) for benchmark in benchmarks}
    plan = [
        (benchmark, case, number)
        for number in range(1, rounds + 1)
        for benchmark, case in _shuffled(benchmarks, names, derive_seed(seed, "round", number))
    ]
    proof = Proof()
    with ExitStack() as closing_all, ThreadPoolExecutor(workers) as pool:
        for evaluator in evaluators.values():
            closing_all.enter_context(closing(evaluator))
        for trial in pool.map(lambda each: _trial(evaluators[each[0].id], *each), plan):
            proof.trials.append(trial)
            told(trial)
    for benchmark in benchmarks:  # whatever the submissions did, the evaluator is still what it was
        load_benchmark(benchmark.id, benchmark.library).check_evidence()
    return proof


def check_registered(benchmark: Benchmark) -> None:
    """Refuse cases without an expectation, and expectations without a case. Raises `UnknownName`."""
    cases = cases_of(benchmark)
    for name in benchmark.contract.verification:
        find_case(benchmark, name)
    for name in cases:
        if name not in benchmark.contract.verification:
            raise UnknownName(
                f"{benchmark.folder.name}/benchmark.yaml, verification", name, benchmark.contract.verification
            )


def _shuffled(benchmarks: Iterable[Benchmark], names: Sequence[str], seed: int) -> list[tuple[Benchmark, Case]]:
    chosen = [
        (benchmark, case)
        for benchmark in benchmarks
        for case in cases_of(benchmark).values()
        if not names or case.name in names
    ]
    derive(seed, "order of cases").shuffle(chosen)
    return chosen


def _trial(evaluator: Evaluator, benchmark: Benchmark, case: Case, number: int) -> Trial:
    expected = benchmark.contract.verification[case.name]
    missing = [need for need in case.needs if not getattr(_machine(evaluator), need)]
    if missing:
        return Trial(benchmark.id, case.name, number, expected, None, None, ", ".join(missing))
    evaluation = judged(evaluator, benchmark, case)
    return Trial(benchmark.id, case.name, number, expected, evaluation, problem_of(case, expected, evaluation))


def judged(evaluator: Evaluator, benchmark: Benchmark, case: Case) -> Evaluation:
    """The evaluator's verdict on a case, by the schema."""
    with working_folder() as work:
        folder = work / "submission"
        case.build(benchmark).write(folder)
        if case.breakage is not None:
            evaluation = _judged_by_broken(benchmark, case, work, folder)
        else:
            for _ in range(case.evaluations):
                evaluation = evaluator.evaluate(folder, run_id=f"verify-{case.name}")
    evaluation_json(evaluation)
    return evaluation


def problem_of(case: Case, expected: int, evaluation: Evaluation) -> str | None:
    """Why a verdict is not the known one; null if it is."""
    code = evaluation.exit_code
    if code == INFRASTRUCTURE != expected:
        return f"expected a verdict, got {INFRASTRUCTURE}: {evaluation.detail}"
    known = UNSOLVED_CODES if expected == UNSOLVED else (expected,)
    if code not in known:
        failed = next((each for each in evaluation.criteria if each.status == "fail"), None)
        why = f" ({failed.id}: {failed.detail[:200]})" if failed else ""
        return f"expected {' or '.join(map(str, known))}, got {code}{why}"
    if case.timed_out and not any(each.timed_out for each in evaluation.criteria):
        return "expected a failure of time, got another one"
    if case.own_tests is not None and evaluation.agent_tests_passed is not case.own_tests:
        return f"expected agent_tests_passed {case.own_tests}, got {evaluation.agent_tests_passed}"
    return None


def _judged_by_broken(benchmark: Benchmark, case: Case, work: Path, folder: Path) -> Evaluation:
    library = work / "library"
    for name in (BASELINE, f"tasks/{benchmark.folder.name}"):
        shutil.copytree(benchmark.library / name, library / name, ignore=shutil.ignore_patterns(*CACHES))
    assert case.breakage is not None
    case.breakage(library, benchmark)
    try:
        with closing(Evaluator(load_benchmark(benchmark.id, library))) as evaluator:
            return evaluator.evaluate(folder)
    except EvidenceError as error:
        return no_verdict(benchmark, str(error), "verify", 0)


def _machine(evaluator: Evaluator) -> Environment:
    """What this machine isolates, as the control found it."""
    return evaluator.machine()


def _outcome(evaluation: Evaluation) -> str:
    criteria: list[Any] = [f"{each.id} {each.status}" for each in evaluation.criteria]
    return f"exit {evaluation.exit_code}, {', '.join(criteria)}"
