"""What a person sees while a study works: progress bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console as RichConsole
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

PLAIN_INTERVAL_S = 10.0
"""Seconds between two plain progress lines."""


class StageProgress:
    """Counts one stage's work. `advance` per finished item; `spend` in USD where it costs money."""

    def __init__(self, stage: str, total: int, unit: str, out: TextIO, bar: tuple[Progress, TaskID] | None) -> None:
        self.stage = stage
        self.total = total
        self.done = 0
        self.spent_usd = 0.0
        self._unit = unit
        self._out = out
        self._bar = bar
        self._started = time.monotonic()
        self._last_line = self._started

    def percent(self) -> float:
        """How much of the work is done, from 0 to 100."""
        return 100 * self.done / self.total if self.total else 100.0

    def advance(self, count: int = 1, spend: float = 0.0) -> None:
        """Count finished work and what it cost."""
        self.done += count
        self.spent_usd += spend
        if self._bar:
            progress, task = self._bar
            progress.update(task, completed=self.done, pace=self._pace())
        elif time.monotonic() - self._last_line >= PLAIN_INTERVAL_S:
            self._last_line = time.monotonic()
            print(
                f"{self.stage}: {self.done}/{self.total} {self._unit}, {self._pace()}",
                file=self._out,
                flush=True,
            )

    def _pace(self) -> str:
        elapsed = max(time.monotonic() - self._started, 1e-6)
        pace = f"{self.done / elapsed:.1f}/s"
        return f"{pace}, {self.spent_usd:.4f} USD" if self.spent_usd else pace


class Console:
    """Standard output as a person reads it."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._rich = RichConsole(file=self._out) if self._out.isatty() else None

    def line(self, text: str) -> None:
        """One plain line; above the bars where there are any."""
        if self._rich:
            self._rich.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=self._out, flush=True)

    @contextmanager
    def progress(self, stage: str, total: int, unit: str) -> Iterator[StageProgress]:
        """A bar with count, rate and spend; on no terminal, a line now and then."""
        if self._rich is None or total == 0:
            yield StageProgress(stage, total, unit, self._out, None)
            return
        columns = (
            TextColumn("{task.description:>8}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TextColumn("{task.fields[pace]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._rich) as bars:
            task = bars.add_task(stage, total=total, pace="")
            yield StageProgress(stage, total, unit, self._out, (bars, task))
