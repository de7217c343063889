"""The benchmarks as a family of tasks, so that the one scaffold, its transcripts and every perturbation apply to them.

It is not among the shipped families, so no study's grid has it by default: its verdicts start processes and take
seconds. Where it is wanted, it is lent (`tasks_env.registered(ServiceChange())`). A difficulty names a benchmark, an
instance is its task, whatever the seed; the final state is the whole tree, and the verdict the evaluator's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import ClassVar, cast

from pydantic import Field, field_validator

from tasks_env.errors import GenerationError
from tasks_env.families.base import Family, Proposal, SecondOpinion, World
from tasks_env.service.benchmark import Benchmark, benchmark_ids, load_benchmark
from tasks_env.service.errors import EvidenceError
from tasks_env.service.evaluation import INFRASTRUCTURE, Evaluation
from tasks_env.service.evaluator import Evaluator, working_folder
from tasks_env.service.scope import lies_in
from tasks_env.service.trees import tree_hash, write_tree
from tasks_env.service.verification.cases import cases_of
from tasks_env.service.workspace import SUBMIT, Workspace, plan_of, workspace_tools
from tasks_env.types import (
    Condition,
    Content,
    FinalState,
    Frozen,
    Instance,
    ToolCall,
    ToolSpec,
    Verdict,
    VerifierInput,
)

Judge = Callable[[str, Mapping[str, str]], Evaluation]
"""Benchmark id and tree → verdict."""

EXPORTED = ("app/", "tests/", "pyproject.toml", "README.md", ".gitignore")
"""What an agent's copy of the service consists of; anything else would be a leak."""
RESTATED = ("alternative_good", "good_with_own_test")
MISTAKEN = {
    "BE-001": ("only_spaces", "only_not_empty", "framework_validation"),
    "BE-002": ("framework_400", "only_negative"),
}
"""Plausible wrong answers, by benchmark."""


class ServiceTask(Frozen):
    """Which benchmark."""

    benchmark: str = Field(description="id of the benchmark: " + ", ".join(benchmark_ids()))

    @field_validator("benchmark")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in benchmark_ids():
            raise ValueError(f"one of {', '.join(benchmark_ids())}")
        return value


class ServiceChange(Family[ServiceTask]):
    """Tasks over the sample service.

    Args:
        judge: Gives the verdicts; null: an evaluator for each benchmark, kept as long as the process.
    """

    name: ClassVar[str] = "service"
    version: ClassVar[int] = 1
    params = ServiceTask
    demonstration = ServiceTask(benchmark="BE-001")
    closing_tool: ClassVar[str] = SUBMIT
    restatement_operators: ClassVar[tuple[str, ...]] = RESTATED
    near_miss_operators: ClassVar[tuple[str, ...]] = tuple(
        sorted({name for each in MISTAKEN.values() for name in each})
    )

    def __init__(self, judge: Judge | None = None) -> None:
        self._judge = judge or judged_here

    def generate(self, params: ServiceTask, seed: int) -> Content:  # noqa: ARG002 - a benchmark is one task
        """The benchmark's task, the same for every seed. Raises `GenerationError` where its files are edited."""
        try:
            benchmark = load_benchmark(params.benchmark)
            benchmark.check_evidence()
            wordings = {"base": benchmark.prompt, **benchmark.paraphrases}
        except EvidenceError as error:
            raise GenerationError(str(error)) from None
        return Content(
            spec={"benchmark": benchmark.id, "wordings": dict(wordings)},
            world={"files": dict(exported(benchmark))},
            truth={"baseline_hash": benchmark.contract.baseline_hash},
        )

    def tools(self) -> tuple[ToolSpec, ...]:
        """File tools; nothing can be run."""
        return workspace_tools()

    def prompt(self, instance: Instance, phrasing: str) -> str:
        """task.md, or one of its paraphrases, as it is."""
        return cast(dict[str, str], instance.spec["wordings"])[phrasing]

    def open(self, instance: Instance) -> World:
        """A copy of the service, which is nothing but the registered baseline.

        Raises:
            EvidenceError: it holds something else: the answer, its history, or an edited baseline.
        """
        files = cast(dict[str, str], instance.world["files"])
        check_export(files, str(instance.truth["baseline_hash"]))
        return Workspace(files)

    def verify(self, evidence: VerifierInput) -> Verdict:
        """The evaluator's verdict on the tree that was handed in; where none was, there is none to pass.

        Raises:
            EvidenceError: there can be no verdict here (exit code 30).
        """
        if not evidence.final_state.submitted:
            return Verdict(passed=False, partial_score=0.0, conditions=(Condition(name="handed_in", holds=False),))
        evaluation = self._judge(benchmark_of(evidence.instance), tree_of(evidence.final_state))
        if evaluation.exit_code == INFRASTRUCTURE:
            raise EvidenceError(evaluation.detail)
        criteria = [
            Condition(name=each.id, holds=each.status == "pass", detail=each.detail or each.status.replace("_", " "))
            for each in evaluation.criteria
        ]
        conditions = (*criteria, Condition(name="handed_in", holds=True))
        passed = all(condition.holds for condition in conditions)
        share = sum(condition.holds for condition in conditions) / len(conditions)
        return Verdict(passed=passed, partial_score=share, conditions=conditions)

    def reference(self, instance: Instance) -> tuple[ToolCall, ...]:
        """Write the known-good submission, and hand it in."""
        return self.plan(instance, "known_good")

    def mistake(self, instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:
        """Write one of the plausible wrong answers, and hand it in."""
        return self.plan(instance, rng.choice(MISTAKEN[benchmark_of(instance)]))

    def plan(self, instance: Instance, case: str) -> tuple[ToolCall, ...]:
        """Calls that hand in a verification case. Raises `ValueError` if text tools cannot make it."""
        return plan_of(cast(dict[str, str], instance.world["files"]), case_tree(benchmark_of(instance), case))

    def second_opinion(self, instance: Instance) -> SecondOpinion:
        """What the table of the verification says of a tree that one of its cases hands in."""
        benchmark = load_benchmark(benchmark_of(instance))
        codes = {
            _tree_hash(case_tree(benchmark.id, name)): benchmark.contract.verification[name]
            for name, case in cases_of(benchmark).items()
            if case.breakage is None and case.build(benchmark).is_text
        }
        return lambda state: state.submitted and codes[_tree_hash(tree_of(state))] == 0

    def untouched(self, instance: Instance) -> Iterator[tuple[ToolCall, ...]]:  # noqa: ARG002 - the same for all
        """Hand in what is there."""
        yield (ToolCall(name=SUBMIT, arguments={}),)

    def restatements(self, instance: Instance, right: FinalState) -> Iterator[Proposal]:  # noqa: ARG002
        """Other good answers."""
        for name in RESTATED:
            yield _proposal(instance, name)

    def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:  # noqa: ARG002
        """The plausible wrong answers."""
        for name in MISTAKEN[benchmark_of(instance)]:
            yield _proposal(instance, name)


def benchmark_of(instance: Instance) -> str:
    """The id of an instance's benchmark."""
    return str(instance.spec["benchmark"])


def tree_of(state: FinalState) -> dict[str, str]:
    """The tree that an episode ended with."""
    return cast(dict[str, str], state.data["files"])


def exported(benchmark: Benchmark) -> dict[str, str]:
    """The agent's copy of the service: what is on the list, as text, and no history."""
    files = {path: content.decode() for path, content in benchmark.baseline.items() if lies_in(path, EXPORTED)}
    check_export(files, benchmark.contract.baseline_hash)
    return files


def check_export(files: Mapping[str, str], baseline_hash: str) -> None:
    """Refuse a copy of the service that is not, file by file, the baseline. Raises `EvidenceError`."""
    foreign = sorted(path for path in files if not lies_in(path, EXPORTED))
    if foreign or _tree_hash(files) != baseline_hash:
        what = f"holds {', '.join(foreign[:3])}" if foreign else "differs from the registered baseline"
        raise EvidenceError(
            f"the agent's copy of the service {what}; no agent may see it: restore the baseline's files"
        )


@lru_cache(maxsize=256)
def _case_tree(identity: str, name: str) -> tuple[tuple[str, str], ...]:
    benchmark = load_benchmark(identity)
    submission = cases_of(benchmark)[name].build(benchmark)
    if not submission.is_text:
        raise ValueError(f"case {name!r}: holds what tools that write text cannot make")
    return tuple((path, content.decode()) for path, content in submission.files.items())


def case_tree(identity: str, name: str) -> dict[str, str]:
    """The tree of a verification case as text. Raises `ValueError` if it is none."""
    return dict(_case_tree(identity, name))


@lru_cache(maxsize=8)
def _evaluator(identity: str) -> Evaluator:
    return Evaluator(load_benchmark(identity))


def judged_here(identity: str, files: Mapping[str, str]) -> Evaluation:
    """The evaluator's verdict on a tree. Raises `EvidenceError` if the benchmark's own files do not fit together."""
    with working_folder() as folder:
        write_tree(folder / "submission", {path: text.encode("utf-8", "surrogatepass") for path, text in files.items()})
        return _evaluator(identity).evaluate(folder / "submission")


def _proposal(instance: Instance, case: str) -> Proposal:
    files = case_tree(benchmark_of(instance), case)
    return Proposal(operator=case, state=FinalState(submitted=True, data={"files": dict(sorted(files.items()))}))


def _tree_hash(files: Mapping[str, str]) -> str:
    return tree_hash({path: text.encode("utf-8", "surrogatepass") for path, text in files.items()})
