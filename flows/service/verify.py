"""`agent-bench service verify`: the proof of the evaluator as a table."""

from __future__ import annotations

import time
from collections.abc import Sequence

from flows.console import Console
from flows.errors import ConfigurationError
from tasks_env.errors import UnknownName
from tasks_env.service.benchmark import Benchmark
from tasks_env.service.verification.case import UNSOLVED, UNSOLVED_CODES
from tasks_env.service.verification.cases import cases_of
from tasks_env.service.verification.proof import Proof, Trial, check_registered, prove


def verify_evaluator(
    benchmarks: Sequence[Benchmark],
    console: Console,
    *,
    rounds: int,
    seed: int,
    workers: int,
    names: Sequence[str] = (),
) -> bool:
    """Judge every case, print how each came out. Returns whether the proof holds.

    Raises:
        ConfigurationError: no such case; or cases and the contract's expectations do not match.
        tasks_env.service.errors.EvidenceError: a benchmark's files do not fit together, or its control fails.
    """
    try:
        for benchmark in benchmarks:
            check_registered(benchmark)
        total = rounds * sum(not names or name in names for each in benchmarks for name in cases_of(each))
        started = time.monotonic()
        with console.progress("verify", total, "verdicts") as progress:

            def told(trial: Trial) -> None:
                progress.advance()
                if trial.problem:
                    console.line(f"{trial.benchmark} {trial.case}, round {trial.round}: {trial.problem}")

            proof = prove(benchmarks, rounds=rounds, seed=seed, workers=workers, names=names, told=told)
    except UnknownName as error:
        raise ConfigurationError(str(error)) from None
    for line in proof_lines(benchmarks, proof, time.monotonic() - started):
        console.line(line)
    return not proof.problems()


def proof_lines(benchmarks: Sequence[Benchmark], proof: Proof, seconds: float) -> list[str]:
    """A line a case, then the word on the whole."""
    lines = []
    for benchmark in benchmarks:
        lines.append(f"{benchmark.id} (evaluator {benchmark.contract.evaluator_version}), case, expected, seen:")
        for name in cases_of(benchmark):
            trials = [each for each in proof.trials if (each.benchmark, each.case) == (benchmark.id, name)]
            if trials:
                lines.append(f"  {name:<32} {_expected(trials[0]):<10} {_seen(trials)}")
    problems = proof.problems()
    judged = sum(trial.evaluation is not None for trial in proof.trials)
    if problems:
        return [
            *lines,
            f"VERIFY FAILED: {len(problems)} problems in {judged} verdicts",
            *(f"  {each}" for each in problems),
        ]
    left_out = "".join(f"; left out: {case} (needs {need})" for case, need in sorted(proof.left_out.items()))
    return [
        *lines,
        f"VERIFY OK: {judged} verdicts, each the known one and each time the same, in {seconds:.0f} s{left_out}",
    ]


def _expected(trial: Trial) -> str:
    return "/".join(map(str, UNSOLVED_CODES)) if trial.expected == UNSOLVED else str(trial.expected)


def _seen(trials: Sequence[Trial]) -> str:
    return " ".join(
        str(each.evaluation.exit_code) if each.evaluation else f"left out ({each.left_out})" for each in trials
    )
