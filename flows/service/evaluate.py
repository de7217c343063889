"""`agent-bench service evaluate`: the verdict on one submission, as a table, a file and an exit code."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from flows.console import Console
from flows.errors import ConfigurationError
from flows.files import storage, write_atomically
from tasks_env.service.benchmark import Benchmark
from tasks_env.service.errors import EvidenceError
from tasks_env.service.evaluation import INFRASTRUCTURE, MEANINGS, Evaluation, evaluation_json
from tasks_env.service.evaluator import Evaluator, no_verdict

WIDEST_DETAIL = 300


def evaluate_submission(
    benchmark: Benchmark, submission: Path, out: Path, console: Console, *, run_id: str, draw: int | None
) -> int:
    """Judge `submission`, print the criteria, write evaluation.json to `out`. Returns the brief's exit code.

    A file that an earlier evaluation left at `out` is gone before this one begins.

    Raises:
        ConfigurationError: `out` is a folder, or lies in the submission, of which it would become a part.
        StoreError: `out` cannot be written.
    """
    if submission.resolve() in out.resolve().parents:
        raise ConfigurationError(f"--out: {out} lies in the submission and would change it; write it somewhere else")
    if out.is_dir():
        raise ConfigurationError(f"--out: {out} is a folder; name the file that evaluation.json shall be")
    with storage(out):
        out.unlink(missing_ok=True)
    try:
        with closing(Evaluator(benchmark)) as evaluator:
            evaluation = evaluator.evaluate(submission, run_id=run_id, draw=draw)
    except EvidenceError as error:
        evaluation = no_verdict(benchmark, str(error), run_id, draw or 0)
    write_atomically(out, evaluation_json(evaluation))
    for line in evaluation_lines(benchmark, evaluation):
        console.line(line)
    console.line(f"written to {out}")
    return evaluation.exit_code


def evaluation_lines(benchmark: Benchmark, evaluation: Evaluation) -> list[str]:
    """The verdict for people: one line a criterion."""
    contract = benchmark.contract
    meaning, failure = MEANINGS[evaluation.exit_code], evaluation.failure_class
    lines = [
        f"{contract.id} {contract.title}: exit {evaluation.exit_code}, {meaning}{f' ({failure})' if failure else ''}"
    ]
    for criterion in contract.criteria:
        result = evaluation.criterion(criterion.id)
        late = ", timed out" if result.timed_out else ""
        lines.append(
            f"  {result.id:<5} {result.status.replace('_', ' '):<12} {result.duration_s:6.1f} s{late}  {criterion.text}"
        )
        if result.detail:
            lines.append(f"        {result.detail[:WIDEST_DETAIL]}")
    if evaluation.exit_code == INFRASTRUCTURE:
        lines.append(f"  {evaluation.detail}")
    elif not evaluation.task_attempted:
        lines.append("  nothing was changed: the task was not attempted")
    environment = evaluation.environment
    kept = {
        "network": environment.network_isolated,
        "processes": environment.processes_isolated,
        "files": environment.files_isolated,
    }
    apart = [name for name, held in kept.items() if held]
    lines.append(
        f"  evaluator {evaluation.evaluator_version}, suite {evaluation.suite_hash[:12]}, draw seed "
        f"{evaluation.draw_seed}; kept apart: {', '.join(apart) or 'nothing'}"
    )
    return lines
