"""A scripted agent for every case: from the first call to the row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from flows.errors import ConfigurationError
from flows.service.rehearse import plan_for, playable, rehearse
from tasks_env.service.benchmark import benchmark_ids, load_benchmark
from tasks_env.service.evaluation import Evaluation
from tasks_env.service.family import case_tree
from tasks_env.service.verification.answers import ANSWERS
from tasks_env.service.verification.case import UNSOLVED
from tests.flows.service.support import console, options, verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "cases"), [("BE-001", ["framework_400"]), ("BE-002", ["known_good", "framework_400", "scratch_file"])]
)
def test_agents_go_the_whole_way_to_rows_that_the_evaluator_decides(
    tmp_path: Path, task: str, cases: list[str]
) -> None:
    line, out = console()
    assert rehearse(options(tmp_path), load_benchmark(task), line, cases), out.getvalue()
    assert f"REHEARSAL OK: {task}, {len(cases)} cases from agent to row" in out.getvalue()


@pytest.mark.parametrize("task", benchmark_ids())
def test_every_case_that_can_be_written_reaches_the_judge_as_the_case_has_it(tmp_path: Path, task: str) -> None:
    """The whole path for all of them (what the benchmarks share once), but for the evaluator, of which `verify` is the
    proof."""
    benchmark = load_benchmark(task)
    own = {case.name for case in ANSWERS[task]}
    names = [name for name, why in playable(benchmark).items() if not why and (task == "BE-002" or name in own)]
    trees = {name: case_tree(task, name) for name in names}
    met: list[str] = []

    def judge(identity: str, files: Mapping[str, str]) -> Evaluation:
        names = [name for name, tree in trees.items() if tree == files]
        met.extend(names)
        expected = benchmark.contract.verification[names[0]]
        return verdict(identity, 12 if expected == UNSOLVED else expected)

    line, out = console()
    assert rehearse(options(tmp_path), benchmark, line, names, judge), out.getvalue()
    assert set(met) == set(trees)
    assert len(trees) > (65 if task == "BE-002" else 15)


def test_a_row_that_is_not_the_known_one_fails_the_rehearsal(tmp_path: Path) -> None:
    line, out = console()

    def too_kind(identity: str, _files: Mapping[str, str]) -> Evaluation:
        return verdict(identity, 0)

    cases = ["known_good", "untouched", "framework_400"]
    assert not rehearse(options(tmp_path), load_benchmark("BE-002"), line, cases, judge=too_kind)
    assert "REHEARSAL FAILED: untouched: expected F03, got passed" in out.getvalue()
    assert "REHEARSAL FAILED: framework_400: expected F02, got passed" in out.getvalue()


def test_what_no_agent_can_bring_about_is_said_with_the_reason() -> None:
    reasons = {name: reason for name, reason in playable(load_benchmark("BE-001")).items() if reason}
    assert reasons["suite_hash_edited"] == "it is about the evaluator's own evidence"
    assert reasons["symbolic_link"] == "holds what tools that write text cannot make"
    assert reasons["many_files"] == "more than 300 files"
    assert set(reasons) == {
        "attack_linked_answer",
        "attack_planted_bytecode",
        "attack_planted_module",
        "baseline_manifest_missing",
        "baseline_missing",
        "control_broken",
        "huge_file",
        "many_files",
        "named_pipe",
        "suite_edited",
        "suite_hash_edited",
        "symbolic_link",
    }


def test_such_a_case_and_an_unknown_one_are_refused(tmp_path: Path) -> None:
    line, _ = console()
    for case, said in (("huge_file", "no agent can bring about"), ("huge_fire", "did you mean 'huge_file'")):
        with pytest.raises(ConfigurationError, match=said):
            rehearse(options(tmp_path), load_benchmark("BE-001"), line, [case])
    with pytest.raises(ValueError, match="more than 300 files"):
        plan_for(load_benchmark("BE-001"), "many_files")
