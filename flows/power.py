"""The `power` command: how many tasks a claimed difference needs, or what a given number of tasks can show."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from flows.errors import ConfigurationError, StoreError
from flows.results_file import read_results
from flows.stats.claims import (
    Assumptions,
    Prompts,
    exact_detectable,
    exact_instances,
    general_claim,
    general_detectable,
)
from flows.stats.planning import MODELS
from flows.stats.power_general import difference_variance_left
from flows.stats.power_tables import plan_moments, study_rho
from flows.stats.variance import variance_components

BASE, RHO, RUNS, LEVELS = 0.7, 0.5, 1.0, 5
ASSUMED_SD = (0.0, 0.01, 0.02, 0.05)
"""Standard deviations of model x prompt that are tabulated when none is given or estimated."""
RUN_CHOICES = (1, 2, 3, 5, 10)


@dataclass(frozen=True)
class Question:
    """The command's options; null: from the results if there are any, else the assumed value."""

    delta: float | None
    n: int | None
    base: float | None = None
    rho: float | None = None
    runs: float | None = None
    levels: int | None = None
    sigma_ml: float | None = None
    alpha: float = 0.05
    power: float = 0.8
    results: Path | None = None


@dataclass(frozen=True)
class _Known:
    """Everything that the answer needs, each with where it comes from."""

    given: Assumptions
    prompts: Sequence[tuple[str, Prompts]]
    sources: Sequence[str]


def power_text(question: Question) -> str:
    """Both tables, for this exact prompt and for any equivalent one.

    Raises:
        ConfigurationError: neither a difference nor a number of tasks, or values that cannot be.
        StoreError: the results cannot be read.
    """
    if question.delta is None and question.n is None:
        raise ConfigurationError("power: give a difference (--delta), a number of tasks (--n), or both")
    known = _assumed(question) if question.results is None else _estimated(question, question.results)
    lines = ["assumptions", *(f"  {source}" for source in known.sources), ""]
    try:
        if question.delta is not None:
            lines += [*_sizes(question.delta, known), ""]
        if question.n is not None:
            lines += [*_detectable(question.n, known), ""]
    except ValueError as error:
        raise ConfigurationError(f"power: {error}") from None
    return "\n".join(lines[:-1])


def _assumed(question: Question) -> _Known:
    base, rho, runs, levels = (
        _or(question.base, BASE),
        _or(question.rho, RHO),
        _or(question.runs, RUNS),
        _or(question.levels, LEVELS),
    )
    spreads = ASSUMED_SD if question.sigma_ml is None else (question.sigma_ml,)
    prompts = [(f"model x prompt SD {100 * sd:g} points", Prompts(sd**2, int(levels))) for sd in spreads]
    sources = [
        f"pass rate {base:g}" + _assumption(question.base),
        f"correlation of two models' episodes on one task {rho:g}" + _assumption(question.rho),
        f"runs per task and model {runs:g}" + _assumption(question.runs),
        f"prompts per task, for any equivalent prompt {levels:g}" + _assumption(question.levels),
        _test(question),
    ]
    return _Known(Assumptions(base, rho, runs, question.alpha, question.power), prompts, sources)


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _assumption(value: float | None) -> str:
    return " (assumed)" if value is None else ""


def _test(question: Question) -> str:
    return f"power {question.power:g}, two-sided test at {question.alpha:g}"


def _estimated(question: Question, path: Path) -> _Known:
    """The study's own rates, correlation and variances, wherever no option says otherwise."""
    file = path / "results.parquet" if path.is_dir() else path
    frame, _ = read_results(file)
    try:
        planned, terms = plan_moments(frame), variance_components(frame)
    except ValueError as error:
        raise StoreError(file, str(error)) from None
    pairs = [found for comparison, found in planned if comparison.kind == MODELS and found is not None]
    rho, base = study_rho(planned, MODELS), _mean([found.first_rate for found in pairs])
    runs = _mean([found.runs for found in pairs])
    lacking = [
        f"{option} ({why})"
        for option, given, found, why in (
            ("--base", question.base, base, "no two models share two tasks"),
            ("--rho", question.rho, rho, "no pair of models with outcomes that vary"),
        )
        if given is None and found is None
    ]
    if lacking:
        raise StoreError(file, f"does not tell {' or '.join(lacking)}; give it as an option")
    given = Assumptions(
        _first(question.base, base, BASE),
        _first(question.rho, rho, RHO),
        _first(question.runs, runs, RUNS),
        question.alpha,
        question.power,
    )
    row = next(row for row in terms.to_dict("records") if row["term"] == "model x level")
    prompts, notes = _study_prompts(question, row, terms, given.runs)
    sources = [
        f"from {file}, options take precedence",
        f"pass rate {given.base:.3f}, correlation {given.rho:.3f}, runs {given.runs:.2f}",
        *notes,
        _test(question),
    ]
    return _Known(given, prompts, sources)


def _study_prompts(
    question: Question, row: Mapping[Hashable, Any], terms: pd.DataFrame, runs: float
) -> tuple[list[tuple[str, Prompts]], list[str]]:
    levels = int(_first(question.levels, None if pd.isna(row["n_levels"]) else float(row["n_levels"]), LEVELS))
    left = difference_variance_left(terms, float(levels), runs)
    notes: list[str] = []
    if question.sigma_ml is not None:
        chosen = [(f"model x prompt SD {100 * question.sigma_ml:g} points (given)", question.sigma_ml**2)]
    elif pd.isna(row["variance"]):
        reason = f"model x prompt variance: {row['reason']}; tabulated at assumed values"
        return [(f"model x prompt SD {100 * sd:g} points", Prompts(sd**2, levels, left)) for sd in ASSUMED_SD], [reason]
    else:
        chosen = [(f"estimate of the model x prompt variance, {row['variance']:.6f}", float(row["variance"]))]
        if row["variance"] <= 0:
            notes.append("the estimate of the model x prompt variance is not positive: used as 0, see the upper limit")
        if not pd.isna(row["hi"]):
            chosen.append((f"upper limit of its 95% interval, {row['hi']:.6f}", float(row["hi"])))
    return [(name, Prompts(value, levels, left)) for name, value in chosen], [f"{levels} prompts and tool sets", *notes]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)


def _sizes(delta: float, known: _Known) -> list[str]:
    given = known.given
    lines = [
        f"tasks that find a difference of {100 * delta:g} points, for this exact prompt",
        f"  {'runs':>5} {'same tasks (paired)':>20} {'other tasks, per model':>23} {'episodes, paired':>17}",
    ]
    for runs in sorted({*RUN_CHOICES, given.runs}):
        size = exact_instances(delta, replace(given, runs=runs))
        lines.append(
            f"  {runs:5g} {size.paired:20,} {size.unpaired:23,} {math.ceil(2 * size.paired * runs):17,}"
            + ("  <- as assumed" if runs == given.runs else "")
        )
    lines += ["", f"tasks that find it for any equivalent prompt, each under {known.prompts[0][1].levels} prompts"]
    for name, prompts in known.prompts:
        claim = general_claim(delta, given, prompts)
        lines.append(f"  {name}: " + (f"{claim.n:,}" if claim.n is not None else str(claim.reason)))
        if claim.n is not None and claim.floor > 0:
            lines[-1] += f" (no number of tasks finds less than {100 * claim.floor:.1f} points)"
    return lines


def _detectable(n: int, known: _Known) -> list[str]:
    given = known.given
    unpaired, paired = exact_detectable(n, given)
    lines = [
        f"smallest difference that {n:,} tasks find at {given.runs:g} runs, in points",
        f"  this exact prompt: {_points(paired)} with the same tasks, {_points(unpaired)} with other tasks per model",
    ]
    for name, prompts in known.prompts:
        found = general_detectable(n, given, prompts)
        lines.append(f"  any equivalent prompt, {prompts.levels} prompts per task, {name}: {_points(found)}")
    return lines


def _points(value: float | None) -> str:
    return "none, however large" if value is None else f"{100 * value:.1f}"
