"""The evaluator on whole submissions: who is to blame for what, and what is recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tasks_env.service.benchmark import Benchmark, load_benchmark
from tasks_env.service.errors import EvidenceError
from tasks_env.service.evaluation import Evaluation
from tasks_env.service.evaluator import Evaluator, Findings
from tasks_env.service.trees import Tree, write_tree
from tasks_env.service.verification.case import good

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with closing(Evaluator(load_benchmark("BE-002"))) as made:
        yield made


def submitted(folder: Path, files: dict[str, bytes]) -> Path:
    write_tree(folder / "submission", files)
    return folder / "submission"


def statuses(evaluation: Evaluation) -> dict[str, str]:
    return {each.id: each.status for each in evaluation.criteria}


def test_a_correct_submission_passes_and_everything_about_it_is_recorded(evaluator: Evaluator, tmp_path: Path) -> None:
    benchmark = evaluator.benchmark
    folder = submitted(tmp_path, dict(benchmark.known_good))
    evaluation = evaluator.evaluate(folder, run_id="run-7", draw=11)
    assert (evaluation.exit_code, evaluation.passed, evaluation.failure_class) == (0, True, None)
    assert set(statuses(evaluation).values()) == {"pass"}
    assert (evaluation.run_id, evaluation.draw_seed, evaluation.task_attempted) == ("run-7", 11, True)
    assert evaluation.quality.changed_files == ["app/orders/service.py"]
    assert evaluation.agent_tests_passed is None
    assert (evaluation.evaluator_version, evaluation.suite_hash) == (
        benchmark.contract.evaluator_version,
        benchmark.contract.suite_hash,
    )
    assert not list(folder.rglob("__pycache__")), "an evaluation leaves nothing in the submission"


def test_the_same_folder_gives_the_same_verdict_again_also_through_a_link_to_its_parent(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    submitted(tmp_path / "real", dict(evaluator.benchmark.known_good))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    first, second = (evaluator.evaluate(tmp_path / way / "submission", draw=3) for way in ("real", "link"))
    assert first.exit_code == second.exit_code == 0
    assert first.submission_hash == second.submission_hash


def test_doing_nothing_fails_the_functional_suite_and_the_contract_is_not_reached(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    evaluation = evaluator.evaluate(submitted(tmp_path, dict(evaluator.benchmark.baseline)))
    assert (evaluation.exit_code, evaluation.failure_class, evaluation.task_attempted) == (12, "F03", False)
    assert statuses(evaluation) == {
        "AC1": "pass",
        "AC2": "pass",
        "AC3": "fail",
        "AC4": "not_reached",
        "AC5": "pass",
        "AC6": "pass",
        "AC7": "pass",
    }


def test_every_check_that_makes_sense_is_made_and_the_first_failure_decides(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    files = {**evaluator.benchmark.known_good, "app/main.py": b"import nothing_at_all\n", "scratch.sh": b""}
    evaluation = evaluator.evaluate(submitted(tmp_path, files))
    assert evaluation.exit_code == 10
    assert statuses(evaluation) == {
        "AC1": "fail",
        "AC2": "not_reached",
        "AC3": "not_reached",
        "AC4": "not_reached",
        "AC5": "not_reached",
        "AC6": "fail",
        "AC7": "fail",
    }
    assert "No module named 'nothing_at_all'" in evaluation.criterion("AC1").detail
    assert evaluation.quality.unrelated_files == ["app/main.py", "scratch.sh"]


def test_the_tests_that_are_run_are_the_baselines_whatever_became_of_them(evaluator: Evaluator, tmp_path: Path) -> None:
    files = {
        path: content for path, content in evaluator.benchmark.known_good.items() if path != "tests/test_orders.py"
    }
    evaluation = evaluator.evaluate(submitted(tmp_path, files))
    assert evaluation.criterion("AC2").status == "pass"
    assert (evaluation.exit_code, evaluation.quality.baseline_tests_removed) == (21, ["tests/test_orders.py"])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _path: None, "does not exist"),
        (lambda path: path.write_text("x"), "is not a folder"),
        (lambda path: path.symlink_to("/etc"), "is a symbolic link"),
    ],
)
def test_no_submission_is_no_verdict(evaluator: Evaluator, tmp_path: Path, make: object, said: str) -> None:
    assert callable(make)
    make(tmp_path / "submission")
    evaluation = evaluator.evaluate(tmp_path / "submission")
    assert (evaluation.exit_code, evaluation.failure_class, evaluation.submission_hash) == (30, "F15", None)
    assert said in evaluation.detail


def test_a_folder_that_is_no_copy_of_the_service_fails_to_build(evaluator: Evaluator, tmp_path: Path) -> None:
    """An agent could have deleted everything, so it must not come out as infrastructure."""
    (tmp_path / "submission").mkdir()
    evaluation = evaluator.evaluate(tmp_path / "submission")
    assert evaluation.exit_code == 10
    assert len(evaluation.quality.unrelated_files) > 10


def test_an_unreadable_file_is_the_submissions_failure(evaluator: Evaluator, tmp_path: Path) -> None:
    folder = submitted(tmp_path, dict(evaluator.benchmark.known_good))
    (folder / "tests" / "secret").symlink_to("/etc/shadow")
    os.mkfifo(folder / "app" / "orders" / "pipe")
    evaluation = evaluator.evaluate(folder)
    assert evaluation.exit_code == 21
    assert evaluation.quality.unrelated_files == ["app/orders/pipe", "tests/secret"]


def test_own_tests_with_long_names_cannot_break_the_evaluator(evaluator: Evaluator, tmp_path: Path) -> None:
    """Once their names were arguments, of which the kernel takes no more than 128 kB."""
    own = {f"tests/test_{'é' * 90}{number}.py": b"" for number in range(250)}
    own["tests/test_all.py"] = b"import os\nos._exit(0)\n"
    evaluation = evaluator.evaluate(submitted(tmp_path, {**evaluator.benchmark.known_good, **own}))
    assert (evaluation.exit_code, evaluation.agent_tests_passed) == (0, True)


def test_a_folder_without_permission_is_the_submissions_failure(
    evaluator: Evaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> Tree:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tasks_env.service.evaluator.read_tree", refuse)
    evaluation = evaluator.evaluate(submitted(tmp_path, dict(evaluator.benchmark.known_good)))
    assert evaluation.exit_code == 10
    assert "submission" in evaluation.quality.unrelated_files


@pytest.mark.parametrize("error", [ValueError("never thought of"), OSError(7, "Argument list too long")])
def test_what_breaks_the_evaluator_but_not_on_the_control_is_the_submissions_failure(
    evaluator: Evaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    findings = evaluator._findings

    def broken(tree: Tree, draw: int, order: int) -> Findings:
        if tree.files != evaluator.benchmark.known_good:
            raise error
        return findings(tree, draw, order)

    monkeypatch.setattr(evaluator, "_findings", broken)
    evaluation = evaluator.evaluate(submitted(tmp_path, dict(evaluator.benchmark.baseline)))
    assert (evaluation.exit_code, evaluation.failure_class) == (10, "F04")
    assert str(error) in evaluation.criterion("AC1").detail
    monkeypatch.setattr(evaluator, "_control", _too_slow_by_now)
    assert evaluator.evaluate(tmp_path / "submission").exit_code == 30


def test_a_machine_that_is_too_slow_for_the_control_gives_no_verdict(tmp_path: Path) -> None:
    benchmark = load_benchmark("BE-002")
    hurried = _with_limits(benchmark, start_s=0.001)
    with closing(Evaluator(hurried)) as evaluator:
        evaluation = evaluator.evaluate(submitted(tmp_path, dict(benchmark.baseline)))
    assert evaluation.exit_code == 30
    assert "the known-good control of BE-002 fails here (AC1: the service did not answer within" in evaluation.detail


def test_a_timeout_is_the_submissions_failure_only_while_the_control_still_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = _with_limits(load_benchmark("BE-002"), request_s=3.0, start_s=20.0)
    hanging = good(benchmark).edited(
        "app/orders/service.py", "if new.amount <= 0:", "if new.amount <= 0:\n            __import__('time').sleep(99)"
    )
    evaluator = Evaluator(benchmark)
    hanging.write(tmp_path / "submission")
    evaluation = evaluator.evaluate(tmp_path / "submission")
    assert (evaluation.exit_code, evaluation.criterion("AC3").timed_out) == (12, True)
    monkeypatch.setattr(evaluator, "_control", _too_slow_by_now)
    evaluation = evaluator.evaluate(tmp_path / "submission")
    assert (evaluation.exit_code, evaluation.detail) == (30, "the machine has become too slow")
    evaluator.close()


def _too_slow_by_now(_draw: int, again: bool = False) -> None:
    if again:
        raise EvidenceError("the machine has become too slow")


def _with_limits(benchmark: Benchmark, **limits: float) -> Benchmark:
    contract = benchmark.contract
    changed = contract.model_copy(update={"limits": contract.limits.model_copy(update=limits)})
    return Benchmark(changed, benchmark.folder, benchmark.library)
