"""The verification of the verifiers, for every family, difficulty, axis and level of a manifest's grid: printed."""

from __future__ import annotations

import difflib
import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console as RichConsole
from rich.table import Table
from rich.text import Text

from flows.console import Console
from flows.errors import ConfigurationError, StudyError
from flows.grid import cells_of
from flows.manifest import Manifest
from tasks_env.errors import TaskEnvError
from tasks_env.proofs import KINDS, Proof, Trial, run_trial

INSTANCES = 12
"""Variants per cell: enough for every operator of the shipped grid, in a minute or two on two cores."""
LISTED_EQUIVALENTS = 20
PIPED_COLUMNS = 80
_LABELS = {"no_op": "no-op", "near_miss": "near miss"}


@dataclass(frozen=True)
class Selection:
    """Which part of the grid; null takes all."""

    family: str | None = None
    difficulty: str | None = None
    axis: str | None = None


def trials_of(manifest: Manifest, selection: Selection, instances: int) -> list[Trial]:
    """A trial per cell of the grid that the selection takes.

    Raises:
        ConfigurationError: a name that the grid does not have.
    """
    cells = cells_of(manifest)
    for noun in ("family", "difficulty", "axis"):
        wanted = getattr(selection, noun)
        known = list(dict.fromkeys(getattr(cell, noun) for cell in cells))
        if wanted is not None and wanted not in known:
            near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigurationError(
                f"--{noun}: the grid of profile {manifest.profile!r} has no {noun} {wanted!r}; "
                f"known: {', '.join(known)}{hint}"
            )
    chosen = [
        cell
        for cell in cells
        if all(getattr(selection, noun) in (None, getattr(cell, noun)) for noun in ("family", "difficulty", "axis"))
    ]
    if not chosen:
        raise ConfigurationError(
            f"--difficulty: family {selection.family!r} has no {selection.difficulty!r} in the grid"
        )
    return [
        Trial(
            family=cell.family,
            difficulty=cell.difficulty,
            params=manifest.families[cell.family][cell.difficulty],
            axis=cell.axis,
            level=cell.level,
            seed=manifest.seed,
            instances=instances,
        )
        for cell in chosen
    ]


def verify(manifest: Manifest, trials: Sequence[Trial], workers: int | None = None, out: TextIO | None = None) -> bool:
    """Carry out the trials, print what they show. Returns whether everything is proven.

    Args:
        workers: Processes; by default as many as the machine has cores. One works in this process.

    Raises:
        StudyError: instances cannot be drawn or shown; names the cell.
    """
    console, started = Console(out), time.monotonic()
    proof = Proof(dict.fromkeys(trial.family for trial in trials))
    console.line(
        f"verify: study {manifest.study}, profile {manifest.profile}, seed {manifest.seed}: {len(trials)} cells, "
        f"{trials[0].instances} instances each"
    )
    with console.progress("verify", len(trials), "cells") as progress:
        for part in _proofs(trials, workers or os.cpu_count() or 1):
            proof.merge(part)
            progress.advance()
    print_table(proof, out)
    for line in report_lines(proof, time.monotonic() - started):
        console.line(line)
    return not proof.problems()


def report_lines(proof: Proof, seconds: float) -> list[str]:
    """What follows the table: equivalents, what broke, what is missing, and one last line that sums it up."""
    equivalents, broken, missing = proof.equivalents(), proof.broken(), proof.missing()
    lines = []
    if equivalents:
        lines.append(f"equivalent to the right answer, and so no evidence ({len(equivalents)}):")
        lines += [f"  {line}" for line in equivalents[:LISTED_EQUIVALENTS]]
        if len(equivalents) > LISTED_EQUIVALENTS:
            lines.append(f"  … and {len(equivalents) - LISTED_EQUIVALENTS} more")
    if broken:
        lines += [f"judged wrongly ({len(broken)}):", *(f"  {line}" for line in broken)]
    if missing:
        lines += [f"not proven ({len(missing)}):", *(f"  {line}" for line in missing)]
    tried = sum(tally.tried for tally in proof.tallies.values())
    seen = f"{len(proof.variants)} cells, {proof.variants.total()} variants, {tried} proposals in {seconds:.1f} s"
    if broken or missing:
        return [*lines, f"VERIFY FAILED: {len(broken)} judged wrongly, {len(missing)} not proven; {seen}"]
    return [*lines, f"VERIFY OK: every verifier judged as it must; {seen}"]


def print_table(proof: Proof, out: TextIO | None = None) -> None:
    """Every operator of every family: tried, held, equivalent, and the rate at which it held.

    References and restatements hold when they pass, everything else when it fails (is killed).
    """
    stream = out or sys.stdout
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("family", no_wrap=True)
    table.add_column("proposal", no_wrap=True)
    table.add_column("operator", overflow="fold")
    for name in ("tried", "held", "equiv.", "rate"):
        table.add_column(name, justify="right", no_wrap=True)
    for family in dict.fromkeys(name for name, _, _ in proof.tallies):
        table.add_section()
        tallies = [tally for (name, _, _), tally in proof.tallies.items() if name == family]
        for tally in sorted(tallies, key=lambda each: KINDS.index(each.kind)):
            table.add_row(
                family,
                _LABELS.get(tally.kind, tally.kind),
                Text(tally.operator),
                str(tally.tried),
                str(tally.held),
                str(len(tally.equivalent)),
                _percent(tally.rate),
                style="red" if tally.broken or tally.rate is None else None,
            )
    RichConsole(file=stream, width=None if stream.isatty() else PIPED_COLUMNS).print(table)
    print("held: what must pass passed, all else failed, and the second opinion agreed", file=stream)


def _percent(rate: float | None) -> str:
    """Rounded down, so that only a whole rate reads 100%."""
    return "none" if rate is None else f"{math.floor(rate * 1000) / 10:g}%"


def _proofs(trials: Sequence[Trial], workers: int) -> Iterator[Proof]:
    """The trials' proofs in their order."""
    workers = min(workers, len(trials))
    if workers == 1:
        for trial in trials:
            yield _told(trial, _attempted(trial))
        return
    # Spawned, not forked: a progress bar's thread may hold a lock at any moment.
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawning) as pool:
        try:
            with _interrupts_held_back():
                results = pool.map(_attempted, trials)
            for trial, result in zip(trials, results, strict=True):
                yield _told(trial, result)
        finally:
            pool.shutdown(cancel_futures=True)


def _attempted(trial: Trial) -> Proof | str:
    """The proof, or what kept it from being tried: as text, which passes between processes whatever the error."""
    try:
        return run_trial(trial)
    except (TaskEnvError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def _told(trial: Trial, result: Proof | str) -> Proof:
    if isinstance(result, str):
        raise StudyError(f"verify: cell {trial.name} cannot be shown: {result}")
    return result


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes started within never see an interrupt, not even while they import; this one gets it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
