"""One calibration study: drawn, analyzed by the code that analyzes real results, compared with the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from flows.calibration.measures import Found, Tables, measure
from flows.calibration.population import Frames, Population, draw
from flows.calibration.truth import MEAN, Truth
from flows.stats.consistency import consistency
from flows.stats.controls import negative_controls
from flows.stats.costs import costs
from flows.stats.deltas import axis_deltas
from flows.stats.gaps import pair_gaps
from flows.stats.hypotheses import Hypothesis, Registration
from flows.stats.ranks import rank_stability
from flows.stats.rates import pass_rates
from flows.stats.spread import level_spread
from flows.stats.variance import variance_components
from flows.stats.verdicts import verdict_table
from tasks_env.seeding import derive_seed

SPREAD_AXES = ("none", "paraphrase")
"""The spread over levels is measured on the axis with the most of them."""
SPLITS = 20
"""Halvings for the cross-fitted worst level: its mean over studies does not depend on their number."""

Analysis = Callable[[pd.DataFrame, pd.DataFrame, Sequence[Registration], int, int], Tables]
"""(episodes as run, all episodes, registrations, seed, resamples) → tables."""


def analyze(
    frame: pd.DataFrame, balanced: pd.DataFrame, registrations: Sequence[Registration], seed: int, resamples: int
) -> Tables:
    """The tables that are measured, by the functions that make them for real results. Each registration is a family.

    Args:
        frame: Episodes as the manifest runs them.
        balanced: All episodes drawn, for the variance components, whose truth is exact in balanced data.
    """
    return {
        "pass_rates": pass_rates(frame, seed=seed, resamples=resamples),
        "deltas": axis_deltas(frame, seed=seed, resamples=resamples),
        "negative_controls": negative_controls(frame, seed=seed, resamples=resamples),
        "pair_gaps": pair_gaps(frame, seed=seed, resamples=resamples),
        "rank_stability": rank_stability(frame, seed=seed, permutations=resamples),
        "paraphrase_spread": level_spread(
            frame[frame["axis"].isin(SPREAD_AXES)], seed=seed, permutations=resamples, splits=SPLITS, omnibus=False
        ),
        "consistency": consistency(frame, seed=seed, resamples=resamples),
        "costs": costs(frame, seed=seed, resamples=resamples),
        "variance_components": variance_components(balanced),
        "verdicts": pd.concat(
            [verdict_table(frame, [one], seed=seed, resamples=resamples) for one in registrations], ignore_index=True
        ),
    }


def boundary_hypotheses(truth: Truth, axes: Sequence[str]) -> tuple[Hypothesis, ...]:
    """The hypotheses that are hardest to judge rightly: each just not true, so that any support is a mistake made at
    the largest rate there is, or just not to be refuted.

    Per axis, at the mean of its levels with true difference d: equivalence within |d| is not true; a directional one
    with smallest effect |d| is not to be refuted; where d is 0, neither direction is to be supported.
    """
    found = []
    for axis in axes:
        value = truth.delta(axis, MEAN)
        name = f"BOUNDARY-{axis}"
        if value == 0:
            found.append(Hypothesis(id=name, axis=axis, level=MEAN, kind="directional", sign=-1))
            continue
        size = abs(value)
        found += [
            Hypothesis(id=f"{name}-equivalence", axis=axis, level=MEAN, kind="equivalence", smallest_effect=size),
            Hypothesis(
                id=f"{name}-direction",
                axis=axis,
                level=MEAN,
                kind="directional",
                sign=1 if value > 0 else -1,
                smallest_effect=size,
            ),
        ]
    return tuple(found)


@dataclass(frozen=True)
class Series:
    """Studies of one population."""

    population: Population
    instances: int
    """Per stratum."""
    hypotheses: tuple[Hypothesis, ...]
    """The registered ones; those on the boundary are added as a registration of their own."""
    seed: int
    resamples: int


def run_studies(series: Series, first: int, count: int, analysis: Analysis = analyze) -> list[list[Found]]:
    """The measurements of studies `first` to `first + count - 1`, each the same whichever process runs it."""
    truth, frames = Truth(series.population), Frames(series.population, series.instances)
    axes = sorted({axis for axis, _ in series.population.conditions[1:]})
    known = {axis for axis, _ in series.population.conditions}
    registered = tuple(one for one in series.hypotheses if one.axis in known)
    boundary = boundary_hypotheses(truth, axes)
    registrations = [Registration(registered, "HYPOTHESES.md"), Registration(boundary, "the boundary")]
    models = len(series.population.models)
    found = []
    for number in range(first, first + count):
        seed = derive_seed(series.seed, "calibration", series.population.name, series.instances, number)
        passed = draw(series.population, series.instances, np.random.default_rng(seed))
        tables = dict(analysis(frames.as_run(passed), frames.full(passed), registrations, seed, series.resamples))
        tables["pass_rates"] = tables["pass_rates"].assign(models=models)
        found.append(list(measure(tables, truth, (*registered, *boundary))))
    return found
