"""What each command does: options in, exit code out; nothing heavy is imported before it is needed."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from flows.context import Options
    from flows.store import Store
    from flows.study import Stage

SMOKE = "smoke"
FULL = "full"


def chosen_options(arguments: argparse.Namespace) -> Options:
    from flows.context import Options

    return Options(
        manifest=arguments.manifest,
        profile=arguments.profile or FULL,
        seed=arguments.seed,
        model=arguments.model,
        cell=arguments.cell,
        only=getattr(arguments, "only", None),
    )


def stage(arguments: argparse.Namespace) -> int:
    if getattr(arguments, "results", None) or getattr(arguments, "out", None):
        return _analyze_file(arguments.results, arguments.out)
    if arguments.profile == SMOKE:
        return _run_study(chosen_options(arguments), until=arguments.stage, strict=arguments.strict)
    return _run_stage(chosen_options(arguments), arguments.stage, arguments.strict)


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


def study(arguments: argparse.Namespace) -> int:
    return _run_study(chosen_options(arguments), until="analyze", strict=arguments.strict)


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


def plan(arguments: argparse.Namespace) -> int:
    from flows.context import Study
    from flows.plan import plan_text

    started, options = time.monotonic(), chosen_options(arguments)
    print(plan_text(Study(options), list_cells=arguments.cells))
    seconds = time.monotonic() - started
    _print_timings(options, {"plan": seconds}, seconds)
    return 0


def status(arguments: argparse.Namespace) -> int:
    from flows.context import Study
    from flows.status import read_status, status_text

    study = Study(chosen_options(arguments))
    print(status_text(study, read_status(study), list_cells=arguments.cells))
    return 0


def ledger(arguments: argparse.Namespace) -> int:
    if arguments.yes and arguments.action is None:
        arguments.refuse("--yes belongs to `ledger reconcile`")
    if arguments.host and arguments.action is None:
        arguments.refuse("--host belongs to `ledger reconcile`")
    from flows.bookkeeping import ledger_text, reconcile
    from flows.console import Console
    from flows.context import Study

    study = Study(chosen_options(arguments))
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


def view(arguments: argparse.Namespace) -> int:
    if arguments.audit is None and arguments.audit_seed is not None:
        arguments.refuse("--audit-seed belongs to --audit")
    if arguments.audit is not None and arguments.episode is not None:
        arguments.refuse("give an episode or --audit, not both")
    from pathlib import Path

    from flows.context import Study
    from flows.files import write_atomically
    from flows.view import any_finished, audit_text, view_html, view_text

    started, options = time.monotonic(), chosen_options(arguments)
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


def replay(arguments: argparse.Namespace) -> int:
    from flows.console import Console
    from flows.context import Study
    from flows.replay import replay

    return 0 if replay(Study(chosen_options(arguments)), arguments.episodes, Console()) else 1


def verify(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from flows.manifest import load_manifest
    from flows.verify import INSTANCES, Selection, trials_of, verify

    manifest = load_manifest(Path(arguments.manifest), arguments.profile or FULL, arguments.seed)
    selection = Selection(arguments.family, arguments.difficulty, arguments.axis)
    trials = trials_of(manifest, selection, arguments.instances or INSTANCES)
    return 0 if verify(manifest, trials) else 1


def calibration(arguments: argparse.Namespace) -> int:
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


def power(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from flows.power import Question, power_text

    names = ("delta", "n", "base", "rho", "runs", "levels", "sigma_ml", "alpha", "power")
    results = Path(arguments.results) if arguments.results else None
    print(power_text(Question(**{name: getattr(arguments, name) for name in names}, results=results)))
    return 0


def import_results(arguments: argparse.Namespace) -> int:
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


def server(arguments: argparse.Namespace) -> int:
    from flows.console import Console
    from flows.orchestration import serve

    serve(_project_store(arguments).server, arguments.port, Console())
    return 0


def deploy(arguments: argparse.Namespace) -> int:
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


def worker(arguments: argparse.Namespace) -> int:
    from flows.orchestration import work

    return work(_project_store(arguments).worker, arguments.limit)


def _project_store(arguments: argparse.Namespace) -> Store:
    """The tree of the manifest's default profile: that of the project, where profiles share something."""
    from pathlib import Path

    from flows.manifest import load_manifest
    from flows.store import Store

    path = Path(arguments.manifest)
    return Store(path.resolve().parent / load_manifest(path).root)


def local(arguments: argparse.Namespace) -> int:
    from flows.context import Options, Study
    from flows.local_study import PROFILE, comparison_lines, local_endpoints

    options = Options(manifest=arguments.manifest, profile=PROFILE)
    study = Study(options)
    with local_endpoints(study) as address:
        print(f"local model server at {address}", flush=True)
        _run_study(options, until="analyze")
    print("\n".join(comparison_lines(study)))
    return 0
