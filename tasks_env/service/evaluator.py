"""The evaluator: from a folder with a submission to a verdict, by executable checks alone.

    evidence   the task, its suites and the baseline are the registered ones, and a known-good control passes   else
    30 starts     every module compiles and the service answers
    else 10 baseline   the baseline's own tests, as the baseline has them
    else 11 functional the acceptance suite
    else 12 contract   the suite about the shape of the answers
    else 13 dependencies, scope
    else 20, 21

Every check that still makes sense is made; the first that failed, in this order, decides. The submission runs in
processes of its own and is asked over HTTP; the process that holds the suites never imports it. Exit code 30 follows
from the evaluator's own files and from the control, neither of which a submission can touch: what is slow, broken or
missing because of the submission is the submission's failure.
"""

from __future__ import annotations

import json
import platform
import secrets
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks_env.seeding import derive_seed
from tasks_env.service.benchmark import BASELINE_TESTS, Benchmark, Criterion
from tasks_env.service.dependencies import new_dependencies
from tasks_env.service.errors import EvidenceError
from tasks_env.service.evaluation import (
    EXITS,
    INFRASTRUCTURE,
    INFRASTRUCTURE_CLASS,
    CriterionResult,
    Environment,
    Evaluation,
    Quality,
)
from tasks_env.service.nursery import Nursery
from tasks_env.service.processes import HARNESS, Confined, Reach, executing, installed
from tasks_env.service.scope import lies_in, unrelated
from tasks_env.service.serving import Host, Started, hosting
from tasks_env.service.suites import SuiteResult, SuiteRunner
from tasks_env.service.trees import Changes, Tree, changes, read_tree, remove_tree, tree_hash, write_tree

DETAIL_CHARS = 500
LISTED = 3


@dataclass
class Findings:
    """What the checks of one submission found so far."""

    results: dict[str, CriterionResult] = field(default_factory=dict)
    reaches: list[Reach] = field(default_factory=list)
    own_tests: bool | None = None
    dependencies: list[str] = field(default_factory=list)
    unrelated: Mapping[str, str] = field(default_factory=dict)

    def settle(
        self, criterion: Criterion, problems: Sequence[str], seconds: float = 0.0, timed_out: bool = False
    ) -> None:
        """Record how a criterion came out: it holds where there are no problems."""
        listed = "; ".join(problems[:LISTED]) + (f"; and {len(problems) - LISTED} more" if problems[LISTED:] else "")
        self.results[criterion.id] = CriterionResult(
            id=criterion.id,
            status="fail" if problems else "pass",
            detail=listed[:DETAIL_CHARS],
            duration_s=round(seconds, 3),
            timed_out=bool(problems) and timed_out,
        )

    @property
    def timed_out(self) -> bool:
        """Whether any failure was one of time."""
        return any(result.timed_out for result in self.results.values())

    def failed(self, criteria: Iterable[Criterion]) -> bool:
        """Whether any of `criteria` does not hold."""
        return any(self.results[each.id].status != "pass" for each in criteria if each.id in self.results)


class Evaluator:
    """Judges submissions to one benchmark. The known-good control is made once, and again after whatever ran out of
    time.

    Raises on construction:
        EvidenceError: the benchmark's own files do not fit together.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        benchmark.check_evidence()
        self.benchmark = benchmark
        self._limits = benchmark.contract.limits
        self._control_passed = False
        self._machine = _environment([])
        self._control_lock = threading.Lock()
        self._idle_runners: list[SuiteRunner] = []
        self._nursery = Nursery()

    def evaluate(
        self, folder: Path, *, run_id: str = "evaluation", draw: int | None = None, order: int | None = None
    ) -> Evaluation:
        """The verdict on the submission in `folder`; exit code 30 where there can be none.

        Args:
            draw: Seed of the values that the suites draw; null: a fresh one, so that no submission knows them.
            order: Seed of the order of the tests; null: follows from `draw`.
        """
        draw = secrets.randbits(48) if draw is None else draw
        order = derive_seed(draw, "order of tests") if order is None else order
        try:
            tree = self._read(folder)
            self._control(draw)
            findings = self._judged(tree, draw, order)
        except EvidenceError as error:
            return no_verdict(self.benchmark, str(error), run_id, draw)
        except OSError as error:  # also with the control, so this is the machine
            why = (
                f"the evaluator cannot work here: {error.strerror or error} ({error.filename or 'no file'}); make room"
            )
            return no_verdict(self.benchmark, f"{why} and evaluate again", run_id, draw)
        return self._verdict(tree, findings, run_id, draw)

    def close(self) -> None:
        """End the processes that it keeps; it can be used again all the same."""
        while self._idle_runners:
            self._idle_runners.pop().end()
        self._nursery.end()

    def machine(self) -> Environment:
        """What submissions are kept from here, as the control was. Raises `EvidenceError`."""
        self._control(0)
        return self._machine

    def _read(self, folder: Path) -> Tree:
        if folder.is_symlink() or not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            what = "is a symbolic link" if folder.is_symlink() else what
            raise EvidenceError(
                f"{folder}: {what}: no submission to judge; give the folder with the changed copy of the service"
            )
        try:
            return read_tree(folder, self.benchmark.contract.ignored_paths, self._limits.bounds)
        except PermissionError as error:  # modes come with a submission
            return Tree(refused={folder.name: f"a folder that cannot be read: {error.strerror}"})
        except OSError as error:
            raise EvidenceError(f"{folder}: the submission cannot be read: {error.strerror}") from None

    def _judged(self, tree: Tree, draw: int, order: int) -> Findings:
        """What the checks find. Whatever breaks them, or takes too long, is the submission's doing if the control still
        passes. Raises `EvidenceError` if it does not."""
        try:
            findings = self._findings(tree, draw, order)
        except Exception as error:  # noqa: BLE001 - nobody leaves the count of failures by breaking the evaluator
            self._control(draw, again=True)
            findings = Findings()
            [starts] = self._criteria("starts")
            what = f"{type(error).__name__}: {error}"
            findings.settle(starts, [f"the evaluator cannot take this tree ({what}), but the known-good one"])
        else:
            if findings.timed_out:
                self._control(draw, again=True)
        return findings

    def _control(self, draw: int, again: bool = False) -> None:
        """Judge the known-good submission the same way. Raises `EvidenceError` unless it passes.

        A machine that is too slow, too full or broken for it is no place to judge any submission.
        """
        with self._control_lock:
            if self._control_passed and not again:
                return
            findings = self._findings(Tree(files=dict(self.benchmark.known_good)), draw, draw)
            failed = [result for result in findings.results.values() if result.status != "pass"]
            self._control_passed = not failed
            self._machine = _environment(findings.reaches)
        if failed:
            first = failed[0]
            raise EvidenceError(
                f"the known-good control of {self.benchmark.id} fails here ({first.id}: {first.detail}), so nothing "
                "can be said of any submission; look at the machine (load, memory, packages) and evaluate again"
            )

    def _findings(self, tree: Tree, draw: int, order: int) -> Findings:
        findings = Findings()
        difference = changes(self.benchmark.baseline, tree)
        with working_folder() as work:
            staged = work / "tree"
            write_tree(staged, tree.files)
            self._ask(findings, staged, work, draw, order)
            findings.own_tests = self._own_tests(findings, staged, work, tree, difference)
        self._look(findings, tree, difference)
        return findings

    def _ask(self, findings: Findings, staged: Path, work: Path, draw: int, order: int) -> None:
        """The checks that need the service to run: a fresh one for each suite."""
        [starts] = self._criteria("starts")
        with hosting(staged, work / "services", self._limits, self._nursery) as host, self._suite_runner() as suites:
            findings.reaches.append(host.reach)
            with host.service("baseline") as started:
                problems = [started.problem] if started.problem else []
                findings.settle(starts, problems, started.seconds, started.timed_out)
                if not problems:
                    self._put(findings, "baseline", host, started, suites, draw, order)
            for suite in ("functional", "contract"):
                if problems or not self._criteria(suite) or (suite == "contract" and self._nothing_refused(findings)):
                    continue
                with host.service(suite) as started:
                    self._put(findings, suite, host, started, suites, draw, order)

    @contextmanager
    def _suite_runner(self) -> Iterator[SuiteRunner]:
        """A suite runner that nobody else has for a while; they are kept, since starting one takes half a second."""
        try:
            runner = self._idle_runners.pop()
        except IndexError:
            runner = SuiteRunner(self._limits)
        try:
            yield runner
        finally:
            self._idle_runners.append(runner)

    def _nothing_refused(self, findings: Findings) -> bool:
        """Whether the submission fails the criterion that there is a refusal at all, whose shape could be seen."""
        return findings.failed(self._criteria("functional")[:1])

    def _put(
        self, findings: Findings, suite: str, host: Host, started: Started, suites: SuiteRunner, draw: int, order: int
    ) -> None:
        """Put a suite to a service that may have failed to start."""
        tests = self.benchmark.tests_of(suite)
        if started.problem:
            result = SuiteResult(timed_out=started.timed_out, problem=started.problem)
        else:
            tested = (
                self.benchmark.baseline_folder / BASELINE_TESTS if suite == "baseline" else self.benchmark.acceptance
            )
            result = suites.run(tested, tests, host.socket(suite), order=order, draw=draw)
        trouble = host.trouble(suite) if result.failed or result.problem else None
        for criterion in self._criteria(suite):
            own = {test for test in tests if tests[test] == criterion.id}
            holds = not result.problem and own <= result.passed
            problems = [each for each in (trouble, result.problem) if each]
            problems += [f"{test}: {why}" for test, why in result.failed.items() if test in own]
            findings.settle(criterion, [] if holds else problems, result.seconds, result.timed_out)

    def _look(self, findings: Findings, tree: Tree, difference: Changes) -> None:
        """The checks that only look at the files."""
        [dependencies], [scope] = self._criteria("dependencies"), self._criteria("scope")
        findings.dependencies = self._dependencies(tree)
        findings.settle(dependencies, findings.dependencies)
        findings.unrelated = self._unrelated(tree, difference)
        findings.settle(scope, [f"{path}: {why}" for path, why in findings.unrelated.items()])

    def _dependencies(self, tree: Tree) -> list[str]:
        contract = self.benchmark.contract
        return new_dependencies(
            self.benchmark.baseline,
            tree,
            manifests=contract.dependency_manifests,
            importable=contract.importable,
            own=contract.own_modules,
        )

    def _unrelated(self, tree: Tree, difference: Changes) -> Mapping[str, str]:
        contract = self.benchmark.contract
        return unrelated(
            difference,
            tree,
            production=contract.allowed_production_paths,
            tests=contract.test_paths,
            scratch_counts=contract.scratch_files_count_as_unrelated,
        )

    def _own_tests(self, findings: Findings, staged: Path, work: Path, tree: Tree, difference: Changes) -> bool | None:
        """Whether the tests that the submission added or edited pass, by their own word; null if there are none."""
        places = self.benchmark.contract.test_paths
        files = [
            path
            for path in [*difference.added, *difference.edited]
            if path in tree.files and lies_in(path, places) and Path(path).name.startswith("test_")
        ]
        if not files or findings.failed(self._criteria("starts")):
            return False if files else None
        private = work / "own-tests"
        private.mkdir(mode=0o700)
        script, cache, listed = str(HARNESS / "own_tests.py"), str(private / "cache"), private / "tests.json"
        listed.write_text(json.dumps(files), encoding="ascii")  # no argument could hold them all
        command = [sys.executable, "-I", "-S", script, str(staged), cache, str(listed), *installed()]
        process = Confined(executing(command), staged, private, self._limits)
        try:
            return process.wait(self._limits.suite_s) == 0
        finally:
            process.end()

    def _criteria(self, check: str) -> list[Criterion]:
        return [criterion for criterion in self.benchmark.contract.criteria if criterion.check == check]

    def _verdict(self, tree: Tree, findings: Findings, run_id: str, draw: int) -> Evaluation:
        difference = changes(self.benchmark.baseline, tree)
        criteria = [findings.results.get(each.id) or _not_reached(each) for each in self.benchmark.contract.criteria]
        failed = {each.check for each in self.benchmark.contract.criteria if findings.failed([each])}
        code, failure_class = next(
            ((code, name) for check, (code, name) in EXITS.items() if check in failed), (0, None)
        )
        tests = self.benchmark.contract.test_paths
        return Evaluation(
            **_origin(self.benchmark, run_id, draw),
            submission_hash=tree_hash({**tree.files, **dict.fromkeys(tree.refused, b"refused")}),
            exit_code=code,
            passed=code == 0,
            failure_class=failure_class,
            detail="",
            criteria=criteria,
            task_attempted=bool(difference.all),
            agent_tests_passed=findings.own_tests,
            quality=Quality(
                changed_files=difference.all,
                unrelated_files=list(findings.unrelated),
                new_dependencies=findings.dependencies,
                baseline_tests_removed=[path for path in difference.removed if lies_in(path, tests)],
            ),
            environment=_environment(findings.reaches),
        )


def no_verdict(benchmark: Benchmark, why: str, run_id: str, draw: int) -> Evaluation:
    """Exit code 30: nothing is said of the submission."""
    return Evaluation(
        **_origin(benchmark, run_id, draw),
        submission_hash=None,
        exit_code=INFRASTRUCTURE,
        passed=False,
        failure_class=INFRASTRUCTURE_CLASS,
        detail=why,
        criteria=[_not_reached(each) for each in benchmark.contract.criteria],
        task_attempted=False,
        agent_tests_passed=None,
        quality=Quality(changed_files=[], unrelated_files=[], new_dependencies=[], baseline_tests_removed=[]),
        environment=_environment([]),
    )


@contextmanager
def working_folder() -> Iterator[Path]:
    """A folder that is gone afterwards. Its name is resolved once and short, for the sockets in it."""
    folder = Path(tempfile.mkdtemp(prefix="abs-")).resolve()
    try:
        yield folder
    finally:
        remove_tree(folder)


def _origin(benchmark: Benchmark, run_id: str, draw: int) -> dict[str, Any]:
    contract = benchmark.contract
    return {
        "benchmark_id": contract.id,
        "run_id": run_id,
        "evaluator_version": contract.evaluator_version,
        "baseline_hash": contract.baseline_hash,
        "suite_hash": contract.suite_hash,
        "draw_seed": draw,
    }


def _not_reached(criterion: Criterion) -> CriterionResult:
    return CriterionResult(id=criterion.id, status="not_reached", detail="", duration_s=0.0, timed_out=False)


def _environment(reaches: Sequence[Reach]) -> Environment:
    return Environment(
        python=platform.python_version(),
        network_isolated=bool(reaches) and all(each.network_isolated for each in reaches),
        processes_isolated=bool(reaches) and all(each.processes_isolated for each in reaches),
        files_isolated=bool(reaches) and all(each.files_isolated for each in reaches),
    )
