"""agent-bench: the command line. Thin: options in, exit code out; nothing heavy is imported before it is needed."""

from __future__ import annotations

import argparse
import errno
import io
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flows.errors import StudyError
from flows.service.command import add_service_commands

if TYPE_CHECKING:
    from pathlib import Path

    from flows.context import Options
    from flows.store import Store
    from flows.study import Stage

SMOKE = "smoke"
FULL = "full"
STAGES = {
    "generate": "write the instance sets of the manifest's grid, each with its truth",
    "perturb": "derive every cell's variants; the instance sets are only read",
    "run": "run the unfinished episodes through the one scaffold, under the cost cap",
    "score": "judge the finished episodes and write results.parquet",
    "analyze": "tables, figures and verdicts from results.parquet alone",
}
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code.

    0 done, 1 failed, 2 refused before any work, 3 halted, 130 interrupted; argparse itself exits with 0 or 2.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a locale without … or ✓ must not end a study
    # All matrices here are small: threads of the matrix library wait for each other, and take half the analysis's time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        code = command(arguments)
        sys.stdout.flush()
        return code
    except StudyError as error:
        print(f"agent-bench: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        on = "finished work is kept, the same command goes on from there"
        over = "the same command starts over"
        print(f"agent-bench: interrupted; {over if command in (_verify, _replay) else on}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"agent-bench: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agent-bench",
        description="How reliable is an agent benchmark? Verified tasks, perturbations that must not matter, "
        "and the statistics of what moves.",
        epilog="Exit codes: 0 done (a partial run at the cost cap included), 1 failed, 2 refused before any work "
        "(manifest, options, keys), 3 halted by a provider, 130 interrupted.",
    )
    # The metavar is as long as the longest command, which argparse would give a line of its own otherwise.
    commands = parser.add_subparsers(title="commands", metavar="COMMAND [OPTION]", required=True)
    for stage, text in STAGES.items():
        sub = commands.add_parser(stage, help=text, description=f"Stage {stage!r}: {text}.")
        _add_study_options(sub)
        _add_grid_options(sub)
        if stage == "score":
            _add_strict(sub)
        if stage == "run":
            _add_only(sub)
        if stage == "analyze":
            sub.add_argument("--results", help="analyze this results file, without a manifest; needs --out")
            sub.add_argument("--out", help="folder for the analysis of --results")
        sub.set_defaults(command=_stage, stage=stage, strict=False)
    sub = commands.add_parser("study", help="all five stages in order", description="All five stages in order.")
    _add_study_options(sub)
    _add_grid_options(sub)
    _add_strict(sub)
    sub.set_defaults(command=_study)
    sub = commands.add_parser(
        "plan",
        help="cells, episodes, cost, duration and what could be detected, before any spend",
        description="What a study would take and could show. Spends nothing, writes nothing.",
    )
    _add_study_options(sub)
    _add_grid_options(sub)
    sub.add_argument("--cells", action="store_true", help="list every cell")
    sub.set_defaults(command=_plan)
    sub = commands.add_parser(
        "status",
        help="where a study stands: planned, done, running, spend, time left",
        description="Where a study stands right now, also while another process works on it: episodes planned, done, "
        "in infra_error and running, money spent, reserved and unknown, time left. Reads files alone, writes nothing.",
    )
    _add_study_options(sub)
    _add_grid_options(sub)
    sub.add_argument("--cells", action="store_true", help="list every cell")
    sub.set_defaults(command=_status)
    sub = commands.add_parser(
        "ledger",
        help="what was spent, by model, cell and attempt; `reconcile` frees what dead processes hold",
        description="What the study's root has spent, may have spent and holds: by model, cell, attempt and what "
        "became of it, discarded and failed attempts included. `ledger reconcile` lists what processes that died "
        "still hold, asks, and frees it with a line in the ledger for each.",
    )
    sub.add_argument("action", nargs="?", choices=["reconcile"], help="free what dead processes hold")
    sub.add_argument("--yes", action="store_true", help="with reconcile: free it without asking")
    sub.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="with reconcile: free also what the machine NAME holds; you vouch that nothing there works on this root "
        "any more (repeatable)",
    )
    _add_study_options(sub)
    sub.set_defaults(command=_ledger, model=None, cell=None, refuse=sub.error)
    sub = commands.add_parser(
        "view",
        help="episodes to read: one as markdown or HTML, or a sample for an audit",
        description="One episode's transcript as markdown, with its verdict and what differs between expected and "
        "produced state. Without an id: a list of finished episodes to choose from. With --audit: a seeded sample over "
        "outcomes and verdicts, each transcript beside its verdict.",
    )
    sub.add_argument("episode", nargs="?", help="episode id, or the beginning of one")
    sub.add_argument("--html", action="store_true", help="one self-contained HTML page; without an id the first one")
    sub.add_argument("--audit", type=_count, metavar="N", help="a sample of N finished episodes")
    sub.add_argument("--audit-seed", type=_seed, metavar="SEED", help="of the sample (default: the study's)")
    sub.add_argument("--out", metavar="FILE", help="write to FILE instead of standard output")
    _add_study_options(sub)
    _add_grid_options(sub)
    sub.set_defaults(command=_view, refuse=sub.error)
    sub = commands.add_parser(
        "replay",
        help="carry out transcripts again: results, final states and verdicts must come out as recorded",
        description="Carries out the tool calls of finished episodes on fresh instances. A difference names the first "
        "diverging call, and is exit code 1. Asks no model, spends nothing, writes nothing.",
    )
    sub.add_argument("episodes", nargs="*", metavar="EPISODE_ID", help="or the beginning of one; none: all finished")
    _add_study_options(sub)
    _add_grid_options(sub)
    sub.set_defaults(command=_replay)
    sub = commands.add_parser(
        "verify",
        help="prove that the verifiers judge rightly, for every family, difficulty, axis and level of the grid",
        description="References pass, idle agents, untouched inputs and near misses fail, restatements pass, and an "
        "independent judge agrees: a table of every operator, then VERIFY OK, or what is missing and exit code 1. "
        "Runs no model, writes nothing.",
    )
    _add_study_options(sub)
    sub.add_argument("--family", help="only this family of the grid")
    sub.add_argument("--difficulty", help="only this difficulty")
    sub.add_argument("--axis", help="only this axis; `none` is the baseline")
    sub.add_argument("--instances", type=_count, help="variants per difficulty and level")
    sub.set_defaults(command=_verify)
    _add_calibration(commands)
    _add_power(commands)
    _add_import(commands)
    sub = commands.add_parser(
        "server",
        help="the Prefect server to watch studies on and to schedule them with, until Ctrl-C",
        description="Starts a Prefect server with the settings that studies need, on the loopback interface alone, and "
        "says how to report to it. Its state lies in .prefect/server under the root of the manifest's default "
        "profile. Ctrl-C stops it.",
    )
    sub.add_argument("--manifest", default="experiments.yaml", help="path of the manifest (default: %(default)s)")
    sub.add_argument("--port", type=_port, default=4200, help="0: a free one (default: %(default)s)")
    sub.set_defaults(command=_server)
    sub = commands.add_parser(
        "deploy",
        help="put the deployments of deployments/prefect.yaml on the server of PREFECT_API_URL",
        description="Makes the work pool and all deployments of deployments/prefect.yaml beside the manifest on the "
        "server of PREFECT_API_URL, or brings them up to date. Runs work in the manifest's folder.",
    )
    sub.add_argument("--manifest", default="experiments.yaml", help="path of the manifest (default: %(default)s)")
    sub.add_argument("--notify", metavar="URL", type=_address, help="post there whenever a study fails or crashes")
    sub.set_defaults(command=_deploy)
    sub = commands.add_parser(
        "worker",
        help="carry out scheduled runs of the server of PREFECT_API_URL, until Ctrl-C",
        description="A process worker of the work pool that `agent-bench deploy` makes. Keys of models are read from "
        "its environment. Its state lies in .prefect/worker under the root of the manifest's default profile.",
    )
    sub.add_argument("--manifest", default="experiments.yaml", help="path of the manifest (default: %(default)s)")
    sub.add_argument("--limit", type=_count, default=1, metavar="N", help="runs at once (default: %(default)s)")
    sub.set_defaults(command=_worker)
    sub = commands.add_parser(
        "local",
        help="a real language model on this machine: start its server, run the local profile, stop it",
        description="Starts a small language model (optional extra `local`) behind a server on a free loopback port, "
        "runs the manifest's local profile against it through both adapters, compares them, stops the server.",
    )
    sub.add_argument("--manifest", default="experiments.yaml", help="path of the manifest (default: %(default)s)")
    sub.set_defaults(command=_local)
    add_service_commands(commands)
    return parser


def _add_calibration(commands: Any) -> None:
    sub = commands.add_parser(
        "calibration",
        help="measure coverage, size, power and bias of the analysis on simulated studies with known truth",
        description="Draws studies from the scripted agents' documented error model, without running an episode, "
        "analyzes each with the code that analyzes results, and compares with the truth: coverage of intervals, size "
        "and power of tests and verdicts, bias of variance components, each beside its nominal value with its "
        "Monte-Carlo error.",
    )
    sub.add_argument("--manifest", default="experiments.yaml", help="path of the manifest (default: %(default)s)")
    sub.add_argument(
        "--profile", default=SMOKE, help="profile whose scripted agents are the known truth (default: %(default)s)"
    )
    sub.add_argument("--studies", type=_count, default=25, help="studies per population (default: %(default)s)")
    sub.add_argument("--instances", type=_count, default=20, help="instances per stratum (default: %(default)s)")
    sub.add_argument("--resamples", type=_count, default=1000, help="resamples of each interval (default: %(default)s)")
    sub.add_argument("--seed", type=_seed, default=1, help="seed of all draws (default: %(default)s)")
    sub.add_argument("--processes", type=_count, default=2, help="processes at once (default: %(default)s)")
    sub.add_argument("--out", help="Parquet file, a CSV is put beside it (default: results/calibration.parquet)")
    sub.set_defaults(command=_calibration)


def _add_power(commands: Any) -> None:
    sub = commands.add_parser(
        "power",
        help="how many tasks a claimed difference needs, for this exact prompt and for any equivalent one",
        description="How many tasks a difference between two models needs, or what a number of tasks can show: for the "
        "exact prompt, and for any equivalent one, where the model x prompt variance sets a floor. From assumptions, "
        "or from a study's results.",
    )
    sub.add_argument("--delta", type=_fraction, help="difference of pass rates to find, as a fraction (0.03: 3 points)")
    sub.add_argument("--n", type=_count, help="number of tasks: print the smallest difference that it finds")
    sub.add_argument("--base", type=_fraction, help="pass rate of the first model (default: 0.7)")
    sub.add_argument("--rho", type=_fraction, help="correlation of both models' episodes on a task (default: 0.5)")
    sub.add_argument("--runs", type=_count, help="run seeds per task and model (default: 1)")
    sub.add_argument("--levels", type=_count, help="equivalent prompts that each task is run under (default: 5)")
    sub.add_argument(
        "--sigma-ml", type=_fraction, help="standard deviation of pass rates by model x prompt (default: a few values)"
    )
    sub.add_argument("--power", type=_fraction, default=0.8, help="chance of finding it (default: %(default)s)")
    sub.add_argument("--alpha", type=_fraction, default=0.05, help="two-sided level (default: %(default)s)")
    sub.add_argument("--from", dest="results", metavar="RESULTS", help="take what is not given from these results")
    sub.set_defaults(command=_power)


def _add_import(commands: Any) -> None:
    sub = commands.add_parser(
        "import",
        help="turn another harness's results into results.parquet",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Turns results of another harness into results.parquet, which `agent-bench analyze --results`\n"
        "analyzes as far as they allow. Formats:\n\n"
        "  table    CSV, TSV or JSON lines, a record per episode\n"
        "  inspect  inspect_ai's .eval and .json logs (extra `inspect`)\n"
        "  lm-eval  lm-evaluation-harness's samples_*.jsonl (--log_samples)\n\n"
        "and those that installed packages register (docs/importing.md).",
        epilog="A perturbed run of the same tasks is a level of an axis: import the plain run first, then\n"
        "  agent-bench import inspect logs/polite --set axis=paraphrase --set level=polite --out r.parquet --add\n"
        "or take the level from a field of the source, and say which one is the plain run:\n"
        "  agent-bench import table runs.csv --map level=prompt --set axis=paraphrase --baseline plain --out r.parquet",
    )
    sub.add_argument("format", metavar="FORMAT", help="table, inspect, lm-eval, or a registered one")
    sub.add_argument("sources", nargs="+", metavar="SOURCE", help="files, or folders to search")
    sub.add_argument("--out", required=True, help="results file to write (.parquet), or a folder for it")
    sub.add_argument("--add", action="store_true", help="add to what was imported into it before")
    sub.add_argument("--benchmark", default="imported", help="name of the benchmark (default: %(default)s)")
    sub.add_argument("--metric", help="scorer, scorer.key or metric that decides (default: the first)")
    sub.add_argument("--filter", help="which of lm-eval's filters counts (default: the first)")
    sub.add_argument("--range", metavar="WORST:BEST", help="range of the score (default: 0:1)")
    sub.add_argument("--pass-at", metavar="SCORE", help="score from which on an episode passes (default: the best)")
    sub.add_argument(
        "--map", action="append", default=[], metavar="COLUMN=FIELD", help="take a column from a field of the source"
    )
    sub.add_argument(
        "--set", action="append", default=[], metavar="COLUMN=VALUE", help="model, family, difficulty, axis or level"
    )
    sub.add_argument("--baseline", metavar="LEVEL", help="the level that is the unperturbed task")
    sub.add_argument(
        "--ignore", action="append", default=[], metavar="SETTING", help="setting in which runs of a cell may differ"
    )
    sub.set_defaults(command=_import)


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--manifest", default="experiments.yaml", help="path of the manifest (default: %(default)s)")
    profile = parser.add_mutually_exclusive_group()
    # No default of argparse's own: beside --smoke it would not notice a profile that equals its default.
    profile.add_argument("--profile", help=f"profile of the manifest (default: {FULL})")
    profile.add_argument(
        "--smoke",
        dest="profile",
        action="store_const",
        const=SMOKE,
        help="offline with the scripted agents, in a tree of its own; a stage runs those before it too",
    )
    parser.add_argument("--seed", type=_seed, help="master seed in place of the manifest's")


def _add_grid_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="only this model of the grid")
    parser.add_argument("--cell", help="only this cell of the grid: <family>-<difficulty>-<axis>-<level>")


def _add_strict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strict",
        action="store_true",
        help="score by replay alone: an episode whose recorded calls do not replay becomes an infra_error",
    )


def _add_only(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        choices=["infra_error"],
        help="attempt again those episodes alone whose latest attempt ended in infra_error; what was never finished "
        "is left for another run",
    )


def _seed(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"a seed is a whole number from 0 to 2^63 - 1, got {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to 999999, got {text!r}")
    return int(text)


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+\S*", text):
        raise argparse.ArgumentTypeError(f"an address begins with http:// or https://, got {text!r}")
    return text


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a whole number from 0 to 65535, got {text!r}")
    return int(text)


def _fraction(text: str) -> float:
    if not re.fullmatch(r"[0-9]*\.?[0-9]+", text, re.ASCII) or not 0 <= float(text) < 1:
        raise argparse.ArgumentTypeError(f"a fraction from 0 to below 1, such as 0.03 for 3 points, got {text!r}")
    return float(text)


def _options(arguments: argparse.Namespace) -> Options:
    from flows.context import Options

    return Options(
        manifest=arguments.manifest,
        profile=arguments.profile or FULL,
        seed=arguments.seed,
        model=arguments.model,
        cell=arguments.cell,
        only=getattr(arguments, "only", None),
    )


def _stage(arguments: argparse.Namespace) -> int:
    if getattr(arguments, "results", None) or getattr(arguments, "out", None):
        return _analyze_file(arguments.results, arguments.out)
    if arguments.profile == SMOKE:
        return _run_study(_options(arguments), until=arguments.stage, strict=arguments.strict)
    return _run_stage(_options(arguments), arguments.stage, arguments.strict)


def _analyze_file(results: str | None, out: str | None) -> int:
    from pathlib import Path

    from flows.errors import ConfigurationError
    from flows.orchestration import run_to_end, serving

    if not results or not out:
        raise ConfigurationError("analyze: --results and --out go together")
    if not Path(results).is_file():
        raise ConfigurationError(f"analyze: --results {results}: there is no such file")
    with serving(Path(out)) as server:
        from flows.analyze import analyze_results

        server.wait()
        run_to_end(analyze_results(results, out))
    return 0


def _study(arguments: argparse.Namespace) -> int:
    return _run_study(_options(arguments), until="analyze", strict=arguments.strict)


def _run_stage(options: Options, stage: str, strict: bool) -> int:
    from flows.orchestration import run_to_end, serving

    with serving(_checked_root(options, with_models=stage == "run")) as server:
        from flows.study import timed

        server.wait()
        run_to_end(timed(stage, options, strict))
    return 0


def _run_study(options: Options, until: Stage, strict: bool = False) -> int:
    started = time.monotonic()
    seconds = _study_until(options, until, strict)
    _print_timings(options, seconds, time.monotonic() - started)
    return 0


def _study_until(options: Options, until: Stage, strict: bool = False) -> dict[str, float]:
    from flows.orchestration import run_to_end, serving

    with serving(_checked_root(options, with_models=until not in ("generate", "perturb"))) as server:
        from flows.study import StageFailed, study

        server.wait()
        try:
            return run_to_end(study(options, until=until, strict=strict))
        except StageFailed as failure:
            if options.profile == SMOKE:
                print(f"SMOKE FAILED in stage {failure.stage!r}", file=sys.stderr)
            raise


def _print_timings(options: Options, seconds: Mapping[str, float], total: float) -> None:
    timings = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    label = "SMOKE OK" if options.profile == SMOKE else "done"
    print(f"{label}: {timings}; {total:.1f} s in all")


def _checked_root(options: Options, with_models: bool) -> Path:
    """The study's root, after everything that can be refused before any work has been checked."""
    from flows.context import open_study
    from flows.readiness import check_models

    study = open_study(options)
    if with_models:
        check_models(study)
    return study.store.root


def _plan(arguments: argparse.Namespace) -> int:
    from flows.context import Study
    from flows.plan import plan_text

    started, options = time.monotonic(), _options(arguments)
    print(plan_text(Study(options), list_cells=arguments.cells))
    seconds = time.monotonic() - started
    _print_timings(options, {"plan": seconds}, seconds)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from flows.context import Study
    from flows.status import read_status, status_text

    study = Study(_options(arguments))
    print(status_text(study, read_status(study), list_cells=arguments.cells))
    return 0


def _ledger(arguments: argparse.Namespace) -> int:
    if arguments.yes and arguments.action is None:
        arguments.refuse("--yes belongs to `ledger reconcile`")
    if arguments.host and arguments.action is None:
        arguments.refuse("--host belongs to `ledger reconcile`")
    from flows.bookkeeping import ledger_text, reconcile
    from flows.console import Console
    from flows.context import Study

    study = Study(_options(arguments))
    if arguments.action is None:
        print(ledger_text(study))
        return 0
    on_terminal = sys.stdin is not None and sys.stdin.isatty()
    reconcile(study, Console(), _asked if on_terminal else None, yes=arguments.yes, hosts=arguments.host)
    return 0


def _asked(question: str) -> str:
    try:
        return input(question)
    except EOFError:  # Ctrl-D is no answer
        return ""


def _view(arguments: argparse.Namespace) -> int:
    if arguments.audit is None and arguments.audit_seed is not None:
        arguments.refuse("--audit-seed belongs to --audit")
    if arguments.audit is not None and arguments.episode is not None:
        arguments.refuse("give an episode or --audit, not both")
    from pathlib import Path

    from flows.context import Study
    from flows.files import write_atomically
    from flows.view import any_finished, audit_text, view_html, view_text

    started, options = time.monotonic(), _options(arguments)
    seconds = {}
    if options.profile == SMOKE and not any_finished(Study(options)):
        seconds = _study_until(options, until="run")
    before, study = time.monotonic(), Study(options)
    if arguments.audit is not None:
        text = audit_text(study, arguments.audit, arguments.audit_seed, html=arguments.html)
    else:
        text = (view_html if arguments.html else view_text)(study, arguments.episode)
    if arguments.out is not None:
        write_atomically(Path(arguments.out), f"{text.rstrip()}\n".encode())
        print(f"written to {arguments.out}")
    elif arguments.html:
        print(text, end="")
        return 0  # nothing after the page's end
    else:
        print(text)
    seconds["view"] = time.monotonic() - before
    _print_timings(options, seconds, time.monotonic() - started)
    return 0


def _replay(arguments: argparse.Namespace) -> int:
    from flows.console import Console
    from flows.context import Study
    from flows.replay import replay

    return 0 if replay(Study(_options(arguments)), arguments.episodes, Console()) else 1


def _verify(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from flows.manifest import load_manifest
    from flows.verify import INSTANCES, Selection, trials_of, verify

    manifest = load_manifest(Path(arguments.manifest), arguments.profile or FULL, arguments.seed)
    selection = Selection(arguments.family, arguments.difficulty, arguments.axis)
    trials = trials_of(manifest, selection, arguments.instances or INSTANCES)
    return 0 if verify(manifest, trials) else 1


def _calibration(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from flows.calibration.command import Request, default_out, run
    from flows.manifest import load_manifest

    path = Path(arguments.manifest)
    manifest = load_manifest(path, arguments.profile)
    request = Request(
        studies=arguments.studies,
        instances=arguments.instances,
        resamples=arguments.resamples,
        seed=arguments.seed,
        processes=arguments.processes,
    )
    out = Path(arguments.out) if arguments.out else default_out(path, load_manifest(path).root)
    run(manifest, path.resolve().parent / "HYPOTHESES.md", request, out)
    return 0


def _power(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from flows.power import Question, power_text

    names = ("delta", "n", "base", "rho", "runs", "levels", "sigma_ml", "alpha", "power")
    results = Path(arguments.results) if arguments.results else None
    print(power_text(Question(**{name: getattr(arguments, name) for name in names}, results=results)))
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from flows.errors import ConfigurationError
    from flows.importers import Choices
    from flows.importers.command import SETTABLE, Request, import_results, pairs
    from flows.importers.fields import MAPPABLE
    from flows.importers.scale import scale

    mapping = pairs(arguments.map, "--map", MAPPABLE)
    if arguments.pass_at is not None and "passed" in mapping:
        raise ConfigurationError("--pass-at and --map passed=… both say what passes; give one of them")
    try:
        chosen = scale(arguments.range, arguments.pass_at)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    request = Request(
        format=arguments.format,
        sources=tuple(map(Path, arguments.sources)),
        out=Path(arguments.out),
        benchmark=arguments.benchmark,
        choices=Choices(arguments.metric, arguments.filter, chosen),
        mapping=mapping,
        constants=pairs(arguments.set, "--set", SETTABLE),
        baseline=arguments.baseline,
        ignored=frozenset(arguments.ignore),
        add=arguments.add,
    )
    print("\n".join(import_results(request)))
    return 0


def _server(arguments: argparse.Namespace) -> int:
    from flows.console import Console
    from flows.orchestration import serve

    serve(_project_store(arguments).server, arguments.port, Console())
    return 0


def _deploy(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from flows.console import Console
    from flows.manifest import load_manifest
    from flows.orchestration import deploy
    from flows.orchestration.settings import quiet

    path = Path(arguments.manifest)
    load_manifest(path)
    quiet(os.environ)
    deploy(path.resolve().parent, arguments.notify, Console())
    return 0


def _worker(arguments: argparse.Namespace) -> int:
    from flows.orchestration import work

    return work(_project_store(arguments).worker, arguments.limit)


def _project_store(arguments: argparse.Namespace) -> Store:
    """The tree of the manifest's default profile: that of the project, where profiles share something."""
    from pathlib import Path

    from flows.manifest import load_manifest
    from flows.store import Store

    path = Path(arguments.manifest)
    return Store(path.resolve().parent / load_manifest(path).root)


def _local(arguments: argparse.Namespace) -> int:
    from flows.context import Options, Study
    from flows.local_study import PROFILE, comparison_lines, local_endpoints

    options = Options(manifest=arguments.manifest, profile=PROFILE)
    study = Study(options)
    with local_endpoints(study) as address:
        print(f"local model server at {address}", flush=True)
        _run_study(options, until="analyze")
    print("\n".join(comparison_lines(study)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
