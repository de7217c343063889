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
from flows.stats.planning import MODELS, Moments
from flows.stats.power_general import difference_variance_left
from flows.stats.power_tables import plan_moments, study_rho
from flows.stats.prompts import PROMPTS
from flows.stats.variance import variance_components

BASE, RHO, RUNS, LEVELS = 0.7, 0.5, 1.0, 5
ASSUMED_SD = (0.0, 0.01, 0.02, 0.05)
"""Standard deviations of model x prompt that are tabulated when none is given or estimated."""
RUN_CHOICES = (1, 2, 3, 5, 10)
_LARGEST_SD = 0.5
"""Of anything between 0 and 1."""
_MOST_LEVELS = 500
_MEANING = (
    "  (prompts favour one model or another by themselves; the larger their spread, as a standard deviation,",
    "  the more prompts a claim about models needs)",
)


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
    _check(question)
    known = _assumed(question) if question.results is None else _estimated(question, question.results)
    lines = ["assumptions", *(f"  {source}" for source in known.sources), ""]
    try:
        if question.delta is not None:
            lines += [*_sizes(question.delta, known), ""]
        if question.n is not None:
            lines += [*_detectable(question.n, known), ""]
        if question.delta is not None and question.n is not None:
            lines += [*_verdict(question.delta, question.n, known), ""]
    except ValueError as error:
        raise ConfigurationError(f"power: {error}") from None
    return "\n".join(lines[:-1])


def _check(question: Question) -> None:
    """Refuse what no study can be. Raises `ConfigurationError`."""
    if question.delta is not None and question.delta <= 0:
        raise ConfigurationError("power: --delta 0: a difference of nothing is never found; give one above 0")
    if question.n is not None and question.n < 2:
        raise ConfigurationError("power: --n 1: one task says nothing of others; give two or more")
    if question.sigma_ml is not None and question.sigma_ml > _LARGEST_SD:
        raise ConfigurationError(
            f"power: --sigma-ml {question.sigma_ml:g}: pass rates cannot vary by more than {_LARGEST_SD:g} "
            "(50 points); give it as a fraction, 0.02 for 2 points"
        )
    if not 0 < question.alpha < 1 or not 0 < question.power < 1:
        raise ConfigurationError("power: --alpha and --power must lie between 0 and 1, both ends excluded")
    if question.power <= question.alpha:
        raise ConfigurationError(
            f"power: --power {question.power:g} is not above --alpha {question.alpha:g}: mere chance would find as much"
        )
    if question.results is not None and not question.results.exists():
        raise ConfigurationError(f"power: --from {question.results}: there is no such file or folder")


def _assumed(question: Question) -> _Known:
    base, rho, runs, levels = (
        _or(question.base, BASE),
        _or(question.rho, RHO),
        _or(question.runs, RUNS),
        _or(question.levels, LEVELS),
    )
    spreads = ASSUMED_SD if question.sigma_ml is None else (question.sigma_ml,)
    prompts = [(f"spread {100 * sd:g} points", Prompts(sd**2, int(levels))) for sd in spreads]
    sources = [
        f"pass rate of the first model: {base:g}" + _assumption(question.base),
        f"correlation of both models' outcomes on one task: {rho:g}" + _assumption(question.rho),
        f"runs of each task by each model: {runs:g}" + _assumption(question.runs),
        f"prompts that each task is asked in, where any equivalent prompt is meant: {levels:g}"
        + _assumption(question.levels),
        *_test(question),
    ]
    return _Known(Assumptions(base, rho, runs, question.alpha, question.power), prompts, sources)


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _given(value: float | None) -> str:
    return "" if value is None else " (option)"


def _assumption(value: float | None) -> str:
    return " (assumed)" if value is None else ""


def _test(question: Question) -> list[str]:
    return [
        f"chance of finding the difference if it is there (power): {question.power:g}",
        f"chance of finding one if there is none (alpha, two-sided): {question.alpha:g}",
    ]


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
    mean_runs = _mean([found.runs for found in pairs])
    runs = None if mean_runs is None else round(mean_runs, 6)  # a harmonic mean of whole numbers may miss its own
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
        _run_correlation(pairs),
    )
    row = next(row for row in terms.to_dict("records") if row["term"] == PROMPTS)
    prompts, notes = _study_prompts(question, row, terms, given.runs)
    sources = [
        f"from {file}, where no option says otherwise",
        f"pass rate of the first model of a pair: {given.base:.3f}" + _given(question.base),
        f"correlation of both models' outcomes on one task: {given.rho:.3f}" + _given(question.rho),
        "correlation of two runs of one model on one task: "
        + ("unknown, taken as halfway to 1" if given.icc is None else f"{given.icc:.3f}"),
        f"runs of each task by each model: {given.runs:.2f}" + _given(question.runs),
        *notes,
        *_test(question),
    ]
    return _Known(given, prompts, sources)


def _run_correlation(pairs: Sequence[Moments]) -> float | None:
    """Share of an outcome's variance that run seeds cannot average out; null without repeated runs."""
    shares = []
    for pair in pairs:
        single = sum(rate * (1 - rate) for rate in (pair.first_rate, pair.second_rate))
        if pair.run_noise is not None and single > 0:
            shares.append(min(1.0, max(0.0, 1 - pair.run_noise / single)))
    return _mean(shares)


def _study_prompts(
    question: Question, row: Mapping[Hashable, Any], terms: pd.DataFrame, runs: float
) -> tuple[list[tuple[str, Prompts]], list[str]]:
    levels = int(_first(question.levels, None if pd.isna(row["n_levels"]) else float(row["n_levels"]), LEVELS))
    left = difference_variance_left(terms, float(levels), runs)
    notes: list[str] = []
    if question.sigma_ml is not None:
        chosen = [(f"spread {100 * question.sigma_ml:g} points (option)", question.sigma_ml**2)]
    elif pd.isna(row["variance"]):
        reason = f"model x prompt variance: {row['reason']}; tabulated at assumed values"
        return [(f"spread {100 * sd:g} points", Prompts(sd**2, levels, left)) for sd in ASSUMED_SD], [reason]
    else:
        chosen = [(_named("estimate of the spread", float(row["variance"])), float(row["variance"]))]
        if row["variance"] <= 0:
            notes.append(
                "the estimate of the model x prompt variance is not positive, its spread taken as 0: see the limit"
            )
        if not pd.isna(row["hi"]):
            chosen.append((_named("upper limit of its 95% interval", float(row["hi"])), float(row["hi"])))
    return [(name, Prompts(value, levels, left)) for name, value in chosen], [f"{levels} prompts and tool sets", *notes]


def _named(what: str, variance: float) -> str:
    return f"{what}, {100 * math.sqrt(max(0.0, variance)):.1f} points"


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)


def _sizes(delta: float, known: _Known) -> list[str]:
    given = known.given
    lines = [
        f"tasks that find a difference of {100 * delta:g} points, for this exact prompt",
        "    runs  same tasks for both models  other tasks for each  episodes, same tasks",
    ]
    for runs in sorted({*RUN_CHOICES, given.runs}):
        size = exact_instances(delta, replace(given, runs=runs))
        lines.append(
            f"  {runs:6g}  {size.paired:26,}  {size.unpaired:20,}  {math.ceil(2 * size.paired * runs):20,}"
            + ("  <- as above" if runs == given.runs else "")
        )
    levels = known.prompts[0][1].levels
    heading = f"tasks that find it for any equivalent prompt, each under {_prompts(levels)}, same tasks for both models"
    lines += ["", heading, *_MEANING]
    return lines + [f"  {name}: {_claim(delta, given, prompts)}" for name, prompts in known.prompts]


def _claim(delta: float, given: Assumptions, prompts: Prompts) -> str:
    claim = general_claim(delta, given, prompts)
    if claim.n is not None:
        episodes = math.ceil(2 * claim.n * prompts.levels * given.runs)
        floor = f"; no number of tasks finds less than {100 * claim.floor:.1f} points" if claim.floor > 0 else ""
        return f"{claim.n:,} tasks, {episodes:,} episodes{floor}"
    if math.isinf(claim.floor):
        why = "unreachable: one prompt says nothing of others"
    elif delta <= claim.floor:
        seen = f"less than {100 * claim.floor:.1f} points" if claim.floor < 1 else "any difference at all"
        why = f"unreachable: under {_prompts(prompts.levels)} no number of tasks finds {seen}"
    else:
        return str(claim.reason)
    enough = _levels_enough(delta, given, prompts)
    return f"{why}; it takes {enough:,} prompts or more" if enough else why


def _levels_enough(delta: float, given: Assumptions, prompts: Prompts) -> int | None:
    """The fewest prompts under which some number of tasks finds the difference; null if a great many do not."""
    for levels in range(2, _MOST_LEVELS + 1):
        if general_claim(delta, given, replace(prompts, levels=levels)).n is not None:
            return levels
    return None


def _prompts(levels: int) -> str:
    return "one prompt" if levels == 1 else f"{levels} prompts"


def _detectable(n: int, known: _Known) -> list[str]:
    given = known.given
    unpaired, paired = exact_detectable(n, given)
    lines = [
        f"smallest difference that {n:,} tasks find, runs of each: {given.runs:g}",
        f"  this exact prompt, same tasks for both models: {_points(paired)}",
        f"  this exact prompt, {n:,} other tasks for each: {_points(unpaired)}",
    ]
    for name, prompts in known.prompts:
        found = general_detectable(n, given, prompts)
        lines.append(f"  any equivalent prompt, under {_prompts(prompts.levels)}, {name}: {_points(found)}")
    return lines


def _verdict(delta: float, n: int, known: _Known) -> list[str]:
    """Whether `n` tasks carry the claim."""
    needed = exact_instances(delta, known.given).paired
    lines = [
        f"{n:,} tasks are {'enough' if n >= needed else 'too few'} for a difference of {100 * delta:g} points",
        f"  this exact prompt: {'yes' if n >= needed else 'no'}, {needed:,} are needed",
    ]
    for name, prompts in known.prompts:
        size = general_claim(delta, known.given, prompts).n
        answer = "no, unreachable" if size is None else f"{'yes' if n >= size else 'no'}, {size:,} are needed"
        lines.append(f"  any equivalent prompt, {name}: {answer}")
    return lines


def _points(value: float | None) -> str:
    return "none, however large" if value is None else f"{100 * value:.1f} points"
