"""The group `agent-bench service` of the command line: options in, exit code out; nothing heavy before it is needed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[[argparse.Namespace], int]

INFRASTRUCTURE = 30
"""Exit code where the evaluator's own files, or the machine, keep it from judging."""


def add_service_commands(groups: Any) -> None:
    """Add the group to the command line's."""
    group = groups.add_parser(
        "service",
        help="the service-change benchmark: evaluate, verify, run, rehearse, export, hashes",
        description="The service-change benchmark: tasks over a small web service, and an evaluator that is proven "
        "before it judges.",
        epilog="Exit codes of evaluate: 0 passed, 10 build, 11 existing tests, 12 acceptance, 13 error contract, "
        "20 new dependency, 21 unrelated files, 30 evaluator or infrastructure. Of the others: 0 done, 1 failed, "
        "2 refused, 3 halted by a provider, 30 the benchmark's own files.",
    )
    commands = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    text = "judge a submission: the criteria, evaluation.json, an exit code"
    sub = commands.add_parser("evaluate", help=text, description=f"Evaluate: {text}.")
    _add_task(sub, required=True)
    _add_library(sub)
    sub.add_argument("--submission", required=True, metavar="DIR", help="folder with the changed copy of the service")
    sub.add_argument("--out", default="evaluation.json", metavar="FILE", help="default: %(default)s")
    sub.add_argument("--run-id", type=_name, default="evaluation", help="recorded in evaluation.json")
    sub.add_argument("--draw-seed", type=_number, metavar="SEED", help="repeat an evaluation that recorded it")
    sub.set_defaults(command=_guarded(_evaluate))
    text = "prove the evaluator: every case gives its known exit code, each time"
    sub = commands.add_parser("verify", help=text, description=f"Verify: {text}.")
    _add_task(sub, required=False)
    _add_library(sub)
    sub.add_argument("--case", action="append", default=[], metavar="NAME", help="only this case; may be repeated")
    sub.add_argument("--rounds", type=_positive, default=3, help="verdicts on each case (default: %(default)s)")
    sub.add_argument("--seed", type=_number, default=0, help="of the order of the cases (default: %(default)s)")
    sub.add_argument("--workers", type=_positive, default=os.cpu_count() or 1, help="at a time (default: %(default)s)")
    sub.set_defaults(command=_guarded(_verify))
    text = "let a model of the manifest do a task, judge each result, write rows, report"
    sub = commands.add_parser("run", help=text, description=f"Run: {text}.")
    _add_task(sub, required=True)
    sub.add_argument("--model", required=True, metavar="ID", help="name of an entry of the manifest")
    sub.add_argument("--runs", type=_positive, default=5, help="run seeds of each cell (default: %(default)s)")
    sub.add_argument("--axis", help="also the cells of this perturbation axis; `all`: of every one that applies")
    sub.add_argument("--level", help="only this level of the axis")
    _add_manifest(sub)
    sub.set_defaults(command=_guarded(_run))
    text = "a scripted agent for every case, from its first call to its row, offline"
    sub = commands.add_parser("rehearse", help=text, description=f"Rehearse: {text}.")
    _add_task(sub, required=False)
    sub.add_argument("--case", action="append", default=[], metavar="NAME", help="only this case; may be repeated")
    _add_manifest(sub)
    sub.set_defaults(command=_guarded(_rehearse))
    text = "a copy of the service with the task beside it, to be changed by hand"
    sub = commands.add_parser("export", help=text, description=f"Export: {text}.")
    _add_task(sub, required=True)
    _add_library(sub)
    sub.add_argument("folder", metavar="DIR", help="a folder that does not exist yet")
    sub.set_defaults(command=_guarded(_export))
    text = "of the baseline and the suites, as benchmark.yaml registers them"
    sub = commands.add_parser("hashes", help=text, description=f"Hashes {text}.")
    _add_task(sub, required=False)
    _add_library(sub)
    sub.set_defaults(command=_guarded(_hashes))


def _guarded(command: Command) -> Command:
    """What the benchmark's own files keep from being done, as one paragraph and exit code 30."""

    def guarded(arguments: argparse.Namespace) -> int:
        from tasks_env.service.errors import EvidenceError

        try:
            return command(arguments)
        except EvidenceError as error:
            print(f"agent-bench service: {error}", file=sys.stderr)
            return INFRASTRUCTURE

    return guarded


def _add_task(parser: argparse.ArgumentParser, required: bool) -> None:
    text = "id of a benchmark, such as BE-002" + ("" if required else " (default: all)")
    parser.add_argument("--task", required=required, metavar="ID", help=text)


def _add_library(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--library", metavar="DIR", help="benchmarks of your own: sample-service/ and tasks/ (default: shipped)"
    )


def _add_manifest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--manifest", default="experiments.yaml", help="path of the manifest (default: %(default)s)")
    parser.add_argument("--profile", default="full", help="profile of the manifest (default: %(default)s)")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise argparse.ArgumentTypeError(f"a whole number, got {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if (number := _number(text)) < 1:
        raise argparse.ArgumentTypeError(f"at least 1, got {text}")
    return number


def _name(text: str) -> str:
    if not (text.isascii() and text.isprintable() and 0 < len(text) <= 100):
        raise argparse.ArgumentTypeError(f"1 to 100 printable characters, got {text!r}")
    return text


def _evaluate(arguments: argparse.Namespace) -> int:
    from flows.console import Console
    from flows.service.benchmarks import find_benchmark
    from flows.service.evaluate import evaluate_submission

    benchmark = find_benchmark(arguments.task, arguments.library)
    submission, out = Path(arguments.submission), Path(arguments.out)
    return evaluate_submission(benchmark, submission, out, Console(), run_id=arguments.run_id, draw=arguments.draw_seed)


def _verify(arguments: argparse.Namespace) -> int:
    from flows.console import Console
    from flows.service.benchmarks import find_benchmarks
    from flows.service.verify import verify_evaluator

    proven = verify_evaluator(
        find_benchmarks(arguments.task, arguments.library),
        Console(),
        rounds=arguments.rounds,
        seed=arguments.seed,
        workers=arguments.workers,
        names=arguments.case,
    )
    return 0 if proven else 1


def _run(arguments: argparse.Namespace) -> int:
    from flows.console import Console
    from flows.context import Options
    from flows.service.benchmarks import find_benchmark
    from flows.service.run import run_benchmark

    return run_benchmark(
        Options(manifest=arguments.manifest, profile=arguments.profile),
        find_benchmark(arguments.task, None),
        arguments.model,
        Console(),
        runs=arguments.runs,
        axis=arguments.axis,
        level=arguments.level,
    )


def _rehearse(arguments: argparse.Namespace) -> int:
    from flows.console import Console
    from flows.context import Options
    from flows.service.benchmarks import find_benchmarks
    from flows.service.rehearse import rehearse

    options = Options(manifest=arguments.manifest, profile=arguments.profile)
    held = [rehearse(options, each, Console(), arguments.case) for each in find_benchmarks(arguments.task, None)]
    return 0 if all(held) else 1


def _export(arguments: argparse.Namespace) -> int:
    from flows.console import Console
    from flows.service.benchmarks import find_benchmark
    from flows.service.export import export

    benchmark = find_benchmark(arguments.task, arguments.library)
    export(benchmark, Path(arguments.folder), Console())
    return 0


def _hashes(arguments: argparse.Namespace) -> int:
    from flows.service.benchmarks import find_benchmarks

    for benchmark in find_benchmarks(arguments.task, arguments.library):
        for name, value in benchmark.hashes().items():
            print(f"{benchmark.id} {name}: {value}")
    return 0
