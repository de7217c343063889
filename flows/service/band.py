"""Whether a benchmark discriminates: its share of failures against the band, and which criteria ever fire.

The brief asks that 30 to 70% of runs fail: a task that everything passes, or nothing, cannot show whether a change of
the agent helped. What can be said of it is what the exact interval of the share says, and no more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.files import storage
from flows.service.scoring import COMPLETED, evaluation_path
from flows.service.study import ServiceStudy
from flows.stats.intervals import clopper_pearson

LOW, HIGH = 0.30, 0.70
"""The band."""


@dataclass(frozen=True)
class Band:
    """The share of failures among the runs that have a verdict."""

    runs: int
    failures: int
    low: float
    high: float
    """The exact 95% interval (Clopper and Pearson)."""

    @property
    def word(self) -> str:
        """What the interval says about the band."""
        if self.high < LOW:
            return "does not discriminate: too few runs fail"
        if self.low > HIGH:
            return "does not discriminate: too few runs pass"
        if self.low >= LOW and self.high <= HIGH:
            return "discriminates: the share of failures lies in the band"
        return "undecided: the interval reaches beyond the band and does not leave it"


def band_of(runs: int, failures: int) -> Band:
    """The band's judgement on a count. Raises `ValueError` for no runs."""
    low, high = clopper_pearson(failures, runs)
    return Band(runs, failures, low, high)


def runs_to_decide() -> int:
    """The fewest runs whose interval can lie in the band at all, with half of them failing."""
    runs = 2
    while not (band_of(runs, runs // 2).low >= LOW and band_of(runs, runs // 2).high <= HIGH):
        runs += 1
    return runs


def firing(evaluations: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Criterion → how often it failed, and how often it was reached."""
    counts: dict[str, tuple[int, int]] = {}
    for evaluation in evaluations:
        for criterion in evaluation["criteria"]:
            failed, reached = counts.get(criterion["id"], (0, 0))
            fails = criterion["status"] == "fail"
            counts[criterion["id"]] = (failed + fails, reached + (criterion["status"] != "not_reached"))
    return counts


def band_lines(study: ServiceStudy, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The report: cell by cell share of failures, interval and the word on it, and each criterion's firing rate."""
    lines = []
    for model, cell in study.work:
        own = [row for row in rows if (row["model"], row["cell_id"]) == (model, cell.id)]
        judged = [row for row in own if not row["infra_error"]]
        lost = len(own) - len(judged)
        head = f"{study.benchmark.id} {model} {cell.axis}-{cell.level}"
        if not judged:
            lines.append(f"{head}: no run has a verdict" + (f", {lost} infra_error" if lost else ""))
            continue
        band = band_of(len(judged), sum(not row["passed"] for row in judged))
        lines.append(
            f"{head}: {band.failures} of {band.runs} runs fail ({100 * band.failures / band.runs:.0f}%, 95% interval "
            f"{100 * band.low:.0f} to {100 * band.high:.0f}%), band {100 * LOW:.0f} to {100 * HIGH:.0f}%: {band.word}"
            + (f"; {lost} infra_error left out" if lost else "")
        )
        if band.runs < runs_to_decide():
            lines.append(
                f"  {band.runs} runs cannot show that the share lies in the band: that takes at least "
                f"{runs_to_decide()}, half of them failing"
            )
        lines += _firing_lines(study, judged)
    return lines


def _firing_lines(study: ServiceStudy, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    handed_in = [row for row in rows if row["outcome"] == COMPLETED]
    counts = firing([_evaluation(study, row["episode_id"]) for row in handed_in])
    lines = []
    if len(handed_in) < len(rows):
        lines.append(f"  runs that handed nothing in, which fail and reach no criterion: {len(rows) - len(handed_in)}")
    for criterion in study.benchmark.contract.criteria:
        failed, reached = counts.get(criterion.id, (0, 0))
        never = ", never fired" if reached and not failed else ""
        lines.append(
            f"  {criterion.id:<5} fails in {failed} of {reached} runs that reached it{never}  ({criterion.text})"
        )
    return lines


def _evaluation(study: ServiceStudy, episode_id: str) -> Mapping[str, Any]:
    path = evaluation_path(study, episode_id)
    with storage(path):
        document: Mapping[str, Any] = json.loads(path.read_bytes())
    return document
