"""Every command with its options and its help."""

from __future__ import annotations

import argparse
from typing import Any

from flows.cli import commands as run
from flows.cli.arguments import address, count, fraction, port, seed
from flows.cli.commands import FULL, SMOKE
from flows.service.command import add_service_commands

STAGES = {
    "generate": "write the instance sets of the manifest's grid, each with its truth",
    "perturb": "derive every cell's variants; the instance sets are only read",
    "run": "run the unfinished episodes through the one scaffold, under the cost cap",
    "score": "judge the finished episodes and write results.parquet",
    "analyze": "tables, figures and verdicts from results.parquet alone",
}


def build_parser() -> argparse.ArgumentParser:
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
        sub.set_defaults(command=run.stage, stage=stage, strict=False)
    sub = commands.add_parser("study", help="all five stages in order", description="All five stages in order.")
    _add_study_options(sub)
    _add_grid_options(sub)
    _add_strict(sub)
    sub.set_defaults(command=run.study)
    sub = commands.add_parser(
        "plan",
        help="cells, episodes, cost, duration and what could be detected, before any spend",
        description="What a study would take and could show. Spends nothing, writes nothing.",
    )
    _add_study_options(sub)
    _add_grid_options(sub)
    sub.add_argument("--cells", action="store_true", help="list every cell")
    sub.set_defaults(command=run.plan)
    sub = commands.add_parser(
        "status",
        help="where a study stands: planned, done, running, spend, time left",
        description="Where a study stands right now, also while another process works on it: episodes planned, done, "
        "in infra_error and running, money spent, reserved and unknown, time left. Reads files alone, writes nothing.",
    )
    _add_study_options(sub)
    _add_grid_options(sub)
    sub.add_argument("--cells", action="store_true", help="list every cell")
    sub.set_defaults(command=run.status)
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
    sub.set_defaults(command=run.ledger, model=None, cell=None, refuse=sub.error)
    sub = commands.add_parser(
        "view",
        help="episodes to read: one as markdown or HTML, or a sample for an audit",
        description="One episode's transcript as markdown, with its verdict and what differs between expected and "
        "produced state. Without an id: a list of finished episodes to choose from. With --audit: a seeded sample over "
        "outcomes and verdicts, each transcript beside its verdict.",
    )
    sub.add_argument("episode", nargs="?", help="episode id, or the beginning of one")
    sub.add_argument("--html", action="store_true", help="one self-contained HTML page; without an id the first one")
    sub.add_argument("--audit", type=count, metavar="N", help="a sample of N finished episodes")
    sub.add_argument("--audit-seed", type=seed, metavar="SEED", help="of the sample (default: the study's)")
    sub.add_argument("--out", metavar="FILE", help="write to FILE instead of standard output")
    _add_study_options(sub)
    _add_grid_options(sub)
    sub.set_defaults(command=run.view, refuse=sub.error)
    sub = commands.add_parser(
        "replay",
        help="carry out transcripts again: results, final states and verdicts must come out as recorded",
        description="Carries out the tool calls of finished episodes on fresh instances. A difference names the first "
        "diverging call, and is exit code 1. Asks no model, spends nothing, writes nothing.",
    )
    sub.add_argument("episodes", nargs="*", metavar="EPISODE_ID", help="or the beginning of one; none: all finished")
    _add_study_options(sub)
    _add_grid_options(sub)
    sub.set_defaults(command=run.replay)
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
    sub.add_argument("--instances", type=count, help="variants per difficulty and level")
    sub.set_defaults(command=run.verify)
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
    _add_manifest(sub)
    sub.add_argument("--port", type=port, default=4200, help="0: a free one (default: %(default)s)")
    sub.set_defaults(command=run.server)
    sub = commands.add_parser(
        "deploy",
        help="put the deployments of deployments/prefect.yaml on the server of PREFECT_API_URL",
        description="Makes the work pool and all deployments of deployments/prefect.yaml beside the manifest on the "
        "server of PREFECT_API_URL, or brings them up to date. Runs work in the manifest's folder.",
    )
    _add_manifest(sub)
    sub.add_argument("--notify", metavar="URL", type=address, help="post there whenever a study fails or crashes")
    sub.set_defaults(command=run.deploy)
    sub = commands.add_parser(
        "worker",
        help="carry out scheduled runs of the server of PREFECT_API_URL, until Ctrl-C",
        description="A process worker of the work pool that `agent-bench deploy` makes. Keys of models are read from "
        "its environment. Its state lies in .prefect/worker under the root of the manifest's default profile.",
    )
    _add_manifest(sub)
    sub.add_argument("--limit", type=count, default=1, metavar="N", help="runs at once (default: %(default)s)")
    sub.set_defaults(command=run.worker)
    sub = commands.add_parser(
        "local",
        help="a real language model on this machine: start its server, run the local profile, stop it",
        description="Starts a small language model (optional extra `local`) behind a server on a free loopback port, "
        "runs the manifest's local profile against it through both adapters, compares them, stops the server.",
    )
    _add_manifest(sub)
    sub.set_defaults(command=run.local)
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
    _add_manifest(sub)
    sub.add_argument(
        "--profile", default=SMOKE, help="profile whose scripted agents are the known truth (default: %(default)s)"
    )
    sub.add_argument("--studies", type=count, default=25, help="studies per population (default: %(default)s)")
    sub.add_argument("--instances", type=count, default=20, help="instances per stratum (default: %(default)s)")
    sub.add_argument("--resamples", type=count, default=1000, help="resamples of each interval (default: %(default)s)")
    sub.add_argument("--seed", type=seed, default=1, help="seed of all draws (default: %(default)s)")
    sub.add_argument("--processes", type=count, default=2, help="processes at once (default: %(default)s)")
    sub.add_argument("--out", help="Parquet file, a CSV is put beside it (default: results/calibration.parquet)")
    sub.set_defaults(command=run.calibration)


def _add_power(commands: Any) -> None:
    sub = commands.add_parser(
        "power",
        help="how many tasks a claimed difference needs, for this exact prompt and for any equivalent one",
        description="How many tasks a difference between two models needs, or what a number of tasks can show: for the "
        "exact prompt, and for any equivalent one, where the model x prompt variance sets a floor. From assumptions, "
        "or from a study's results.",
    )
    sub.add_argument("--delta", type=fraction, help="difference of pass rates to find, as a fraction (0.03: 3 points)")
    sub.add_argument("--n", type=count, help="number of tasks: print the smallest difference that it finds")
    sub.add_argument("--base", type=fraction, help="pass rate of the first model (default: 0.7)")
    sub.add_argument("--rho", type=fraction, help="correlation of both models' episodes on a task (default: 0.5)")
    sub.add_argument("--runs", type=count, help="run seeds per task and model (default: 1)")
    sub.add_argument("--levels", type=count, help="equivalent prompts that each task is run under (default: 5)")
    sub.add_argument(
        "--sigma-ml", type=fraction, help="standard deviation of pass rates by model x prompt (default: a few values)"
    )
    sub.add_argument("--power", type=fraction, default=0.8, help="chance of finding it (default: %(default)s)")
    sub.add_argument("--alpha", type=fraction, default=0.05, help="two-sided level (default: %(default)s)")
    sub.add_argument("--from", dest="results", metavar="RESULTS", help="take what is not given from these results")
    sub.set_defaults(command=run.power)


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
    sub.set_defaults(command=run.import_results)


def _add_manifest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--manifest", default="experiments.yaml", help="path of the manifest (default: %(default)s)")


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    _add_manifest(parser)
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
    parser.add_argument("--seed", type=seed, help="master seed in place of the manifest's")


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
