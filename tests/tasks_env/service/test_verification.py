"""The proof of the evaluator: the table of cases is whole, each case is what it says and gives its known verdict."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from tasks_env.errors import UnknownName
from tasks_env.service.benchmark import Benchmark, benchmark_ids, load_benchmark
from tasks_env.service.evaluation import EXITS, Environment, Evaluation, Quality
from tasks_env.service.evaluator import Evaluator
from tasks_env.service.processes import HARNESS
from tasks_env.service.trees import tree_hash
from tasks_env.service.verification.answers import ANSWERS
from tasks_env.service.verification.case import UNSOLVED, Case, good
from tasks_env.service.verification.cases import cases_of, find_case
from tasks_env.service.verification.proof import Proof, Trial, check_registered, judged, problem_of, prove

EVERY_CASE_ONCE = [
    *(("BE-001", name) for name in ("untouched", "known_good", *(case.name for case in ANSWERS["BE-001"]))),
    *(("BE-002", name) for name in cases_of(load_benchmark("BE-002"))),
]
"""Shared cases and attacks for one of the benchmarks; `agent-bench service verify` has all of them for each, thrice."""
NEVER_ANSWERS = ("hangs_at_start", "attack_nonsense_instead_of_http")
START_S = 10.0
"""What these are given in place of the contract's half minute. The control, whose start takes less than a second, is
given no more: it still says whose fault it was that the time ran out."""


@lru_cache(maxsize=4)
def evaluator_of(identity: str, start_s: float | None = None) -> Evaluator:
    benchmark = load_benchmark(identity)
    if start_s is not None:
        limits = benchmark.contract.limits.model_copy(update={"start_s": start_s})
        contract = benchmark.contract.model_copy(update={"limits": limits})
        benchmark = Benchmark(contract, benchmark.folder, benchmark.library)
    return Evaluator(benchmark)


@pytest.fixture(params=benchmark_ids())
def benchmark(request: pytest.FixtureRequest) -> Benchmark:
    return load_benchmark(request.param)


@pytest.mark.slow
@pytest.mark.parametrize(("identity", "name"), EVERY_CASE_ONCE)
def test_a_case_gives_its_known_verdict(identity: str, name: str) -> None:
    evaluator = evaluator_of(identity, START_S if name in NEVER_ANSWERS else None)
    case, expected = find_case(evaluator.benchmark, name), evaluator.benchmark.contract.verification[name]
    missing = [need for need in case.needs if not getattr(evaluator.machine(), need)]
    if missing:
        pytest.skip(f"this machine lacks {', '.join(missing)}")
    assert problem_of(case, expected, judged(evaluator, evaluator.benchmark, case)) is None


def test_every_case_is_registered_and_every_registration_has_a_case(benchmark: Benchmark) -> None:
    check_registered(benchmark)
    verification = dict(benchmark.contract.verification)
    verification.pop("untouched")
    broken = Benchmark(
        benchmark.contract.model_copy(update={"verification": verification}), benchmark.folder, benchmark.library
    )
    with pytest.raises(UnknownName, match="'untouched'"):
        check_registered(broken)
    foreign = {**benchmark.contract.verification, "invented": 0}
    broken = Benchmark(
        benchmark.contract.model_copy(update={"verification": foreign}), benchmark.folder, benchmark.library
    )
    with pytest.raises(UnknownName, match="'invented'"):
        check_registered(broken)


def test_every_exit_code_of_the_benchmark_has_cases(benchmark: Benchmark) -> None:
    checks = {criterion.check for criterion in benchmark.contract.criteria}
    codes = {EXITS[check][0] for check in checks}
    expected = set(benchmark.contract.verification.values())
    assert codes | {0, 30, UNSOLVED} <= expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attack_changes_files", "attack_signals_processes", "attack_opens_connections"])
def test_an_attack_on_isolation_succeeds_where_there_is_none(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the case would notice; what it does to get there changes nothing."""
    script = tmp_path / "nursery.py"
    script.write_text(
        "import os, sys\n"
        f"sys.path.insert(0, {str(HARNESS)!r})\n"
        "import confined\n"
        "def unconfined(config, then):\n"
        "    os.write(config['status'], b'{}')\n"
        "    os.close(config['status'])\n"
        "    return then()\n"
        "confined.main = unconfined\n"
        "import nursery\n"
        "nursery.main(*sys.argv[1:])\n"
    )
    monkeypatch.setattr("tasks_env.service.nursery.SCRIPT", script)
    evaluator = Evaluator(load_benchmark("BE-002"))
    evaluation = judged(evaluator, evaluator.benchmark, find_case(evaluator.benchmark, name))
    assert evaluation.criterion("AC3").status == "pass"
    assert evaluation.environment.model_dump(exclude={"python"}) == dict.fromkeys(
        ["network_isolated", "processes_isolated", "files_isolated"], False
    )


def test_every_case_is_judged_once_by_these_tests() -> None:
    judged_here = {name for _, name in EVERY_CASE_ONCE}
    assert judged_here == {name for identity in benchmark_ids() for name in cases_of(load_benchmark(identity))}


def test_all_cases_differ_and_each_can_be_built(benchmark: Benchmark) -> None:
    built = {name: case.build(benchmark) for name, case in cases_of(benchmark).items() if case.breakage is None}
    trees: dict[object, str] = {}
    for name, tree in built.items():
        key = (tree_hash(tree.files), tuple(tree.links), tuple(tree.holes), tuple(tree.pipes))
        assert key not in trees or {name, trees[key]} == {"known_good", "good_twice"}, f"{name} is {trees[key]} again"
        trees[key] = name


def test_a_case_whose_edit_no_longer_fits_the_file_says_so(benchmark: Benchmark) -> None:
    with pytest.raises(ValueError, match="0 times, expected once; the case must follow the file"):
        good(benchmark).edited("app/main.py", "no such line", "")
    with pytest.raises(ValueError, match="nothing to remove"):
        good(benchmark).without("app/none.py")


def test_an_unknown_case_is_named_with_its_nearest(benchmark: Benchmark) -> None:
    with pytest.raises(UnknownName, match="did you mean 'known_good'"):
        find_case(benchmark, "known_god")
    with pytest.raises(UnknownName):
        prove([benchmark], rounds=1, seed=0, workers=1, names=["none"])


def verdict(code: int, status: str | None = None, timed_out: bool = False, **fields: object) -> Evaluation:
    made = {
        "benchmark_id": "BE-001",
        "run_id": "r",
        "evaluator_version": "1.0.0",
        "baseline_hash": "0" * 64,
        "suite_hash": "0" * 64,
        "submission_hash": None,
        "draw_seed": 0,
        "exit_code": code,
        "passed": code == 0,
        "failure_class": None if code == 0 else "F03",
        "detail": "why",
        "criteria": [
            {
                "id": "AC1",
                "status": status or ("fail" if code else "pass"),
                "detail": "",
                "duration_s": 0,
                "timed_out": timed_out,
            }
        ],
        "task_attempted": True,
        "agent_tests_passed": None,
        "quality": Quality(changed_files=[], unrelated_files=[], new_dependencies=[], baseline_tests_removed=[]),
        "environment": Environment(python="3", network_isolated=True, processes_isolated=True, files_isolated=True),
    }
    return Evaluation.model_validate({**made, **fields})


@pytest.mark.parametrize(
    ("case", "expected", "evaluation", "said"),
    [
        (Case("c", good), 0, verdict(0), None),
        (Case("c", good), 12, verdict(12), None),
        (Case("c", good), 12, verdict(0), "expected 12, got 0"),
        (Case("c", good), 0, verdict(13), "expected 0, got 13 (AC1: )"),
        (Case("c", good), 12, verdict(30), "expected a verdict, got 30: why"),
        (Case("c", good), UNSOLVED, verdict(11), None),
        (Case("c", good), UNSOLVED, verdict(21), "expected 10 or 11 or 12, got 21 (AC1: )"),
        (Case("c", good), UNSOLVED, verdict(0), "expected 10 or 11 or 12, got 0"),
        (Case("c", good), UNSOLVED, verdict(30), "expected a verdict, got 30: why"),
        (Case("c", good, timed_out=True), 12, verdict(12), "expected a failure of time, got another one"),
        (Case("c", good, timed_out=True), 12, verdict(12, timed_out=True), None),
        (Case("c", good, own_tests=True), 0, verdict(0, agent_tests_passed=True), None),
        (Case("c", good, own_tests=True), 0, verdict(0), "expected agent_tests_passed True, got None"),
    ],
)
def test_a_verdict_is_compared_with_the_known_one(
    case: Case, expected: int, evaluation: Evaluation, said: str | None
) -> None:
    assert problem_of(case, expected, evaluation) == said


def test_verdicts_that_differ_from_round_to_round_fail_the_proof() -> None:
    same = [Trial("BE-001", "c", number, UNSOLVED, verdict(12), None) for number in (1, 2)]
    assert Proof(list(same)).problems() == []
    other = Trial("BE-001", "c", 3, UNSOLVED, verdict(12, status="not_reached"), None)
    [problem] = Proof([*same, other]).problems()
    assert problem == ("BE-001 c: verdicts differ from round to round: exit 12, AC1 fail / exit 12, AC1 not_reached")


def test_a_case_that_needs_what_is_missing_is_left_out_and_named() -> None:
    proof = Proof([Trial("BE-001", "c", 1, 1, None, None, "files_isolated")])
    assert (proof.problems(), proof.left_out) == ([], {"c": "files_isolated"})
