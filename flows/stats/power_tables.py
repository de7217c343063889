"""Sample sizes "for this exact prompt": what the study's own estimates and a reference grid say.

Here instances are the only sample; `flows.stats.power_general` generalises over prompts and tool sets. `detectable`
turns the question round: what the study can see at its own size, and what more run seeds instead of more
instances would buy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import pandas as pd

from flows.stats.cells import ALL, ScoreCube, score_cube
from flows.stats.columns import Field, build_table
from flows.stats.planning import MODELS, PERTURBATION, Comparison, Moments, comparisons, moments
from flows.stats.power import (
    ALPHA,
    detectable_difference,
    difference_variance,
    instances_needed,
    second_rate,
)

REFERENCE_BASES = (0.3, 0.5, 0.7, 0.9)
REFERENCE_DELTAS = (0.03, 0.05, 0.10)
REFERENCE_POWERS = (0.8, 0.9)
REFERENCE_RHO = 0.5
PLANNED_RUNS = (1, 2, 3, 5, 10)

REFERENCE, STUDY = "reference", "study"

NO_SPREAD = "no two instances differ: there is no variance to plan with"
ONE_RUN = "run noise unknown: no instance has two runs of a cell"
SHARED = "tasks shared conversations: what one more task or run adds depends on the company it is met in"
NOTHING = "nothing to compare: no instance scored in both arms"

Planned = list[tuple[Comparison, Moments | None]]


def plan_moments(frame: pd.DataFrame) -> Planned:
    """Every comparison of a results table of one benchmark with its moments (see `flows.stats.planning`)."""
    cube: ScoreCube = score_cube(frame, unit="instance")
    return [(comparison, moments(cube, comparison)) for comparison in comparisons(cube)]


def study_rho(planned: Planned, kind: str) -> float | None:
    """Mean correlation over the study's comparisons of a kind (single models only); null if none has one."""
    found = [m.rho for c, m in planned if c.kind == kind and c.model != ALL and m is not None and m.rho is not None]
    return math.fsum(found) / len(found) if found else None


def _missing(comparison: Comparison, found: Moments | None) -> str | None:
    if not comparison.pairs:
        return NOTHING
    if found is None:
        return "no stratum has two instances"
    return NO_SPREAD if found.variance <= 1e-12 else None


_COMPARISON_FIELDS: dict[str, Field] = {
    "comparison": Field("str", "`models`: two models on the baseline; `perturbation`: perturbed minus baseline"),
    "model": Field("str", "the model, or `all`"),
    "versus": Field("str", "the second model of a pair; null for a perturbation"),
    "axis": Field("str", "perturbation axis; `none` for two models on the baseline"),
    "level": Field("str", "level of the axis, or `mean` for the mean over its levels"),
}

POWER_EXACT_FIELDS: dict[str, Field] = {
    "source": Field("str", "`reference`: fixed grid; `study`: the study's own rates and variances"),
    **_COMPARISON_FIELDS,
    "design": Field("str", "`paired`: both arms on the same instances; `unpaired`: on different ones"),
    "base_rate": Field("Float64", "pass rate of the first arm"),
    "delta": Field("Float64", "difference to find, as a fraction"),
    "power": Field("Float64", "chance of finding it"),
    "alpha": Field("Float64", "two-sided level of the test"),
    "rho": Field("Float64", "correlation of single episodes of the two arms on one instance; null if unpaired"),
    "rho_source": Field("str", "where rho comes from"),
    "runs": Field("Float64", "runs per instance and cell"),
    "variance": Field("Float64", "variance of one instance's difference"),
    "n_instances": Field("Int64", "instances needed, per arm if unpaired"),
    "n_episodes": Field("Int64", "episodes that takes for one model pair, or one model and level, in both arms"),
    "reason": Field("str", "why the number is null"),
}
"""Columns of `power_exact`."""


def power_exact(planned: Planned) -> pd.DataFrame:
    """Instances needed "for this exact prompt": the reference grid, then the study's own comparisons."""
    return build_table([*_reference_rows(planned), *_study_rows(planned)], POWER_EXACT_FIELDS)


def _reference_rows(planned: Planned) -> Iterator[dict[str, object]]:
    correlations: list[tuple[str, str, float | None, str | None]] = [
        ("unpaired", "none: other instances", None, None),
        ("paired", "reference", REFERENCE_RHO, None),
    ]
    for kind, name in ((MODELS, "study, pairs of models"), (PERTURBATION, "study, perturbations")):
        rho = study_rho(planned, kind)
        reason = None if rho is not None else "the study has no such pair of varying outcomes"
        correlations.append(("paired", name, rho, reason))
    for design, source, rho, reason in correlations:
        for base, delta, power in product(REFERENCE_BASES, REFERENCE_DELTAS, REFERENCE_POWERS):
            row: dict[str, object] = {
                "source": REFERENCE,
                "design": design,
                "base_rate": base,
                "delta": delta,
                "power": power,
                "alpha": ALPHA,
                "rho": rho,
                "rho_source": source,
                "runs": 1.0,
                "reason": reason,
            }
            if reason is None:
                variance = difference_variance(base, second_rate(base, delta), rho or 0.0)
                row |= _size(delta, variance, 1.0, power)
            yield row


def _study_rows(planned: Planned) -> Iterator[dict[str, object]]:
    for comparison, found in planned:
        reason = _missing(comparison, found)
        for delta, power in product(REFERENCE_DELTAS, REFERENCE_POWERS):
            row: dict[str, object] = {
                "source": STUDY,
                **_names(comparison),
                "design": "paired" if comparison.paired else "unpaired",
                "delta": delta,
                "power": power,
                "alpha": ALPHA,
                "reason": reason,
            }
            if found is not None:
                row |= {"base_rate": found.first_rate, "rho": found.rho, "runs": found.runs}
                row["rho_source"] = None if found.rho is None else "this comparison"
                if reason is None:
                    row |= _size(delta, found.variance, found.runs, power)
            yield row


def _names(comparison: Comparison) -> dict[str, object]:
    return {
        "comparison": comparison.kind,
        "model": comparison.model,
        "versus": comparison.versus,
        "axis": comparison.axis,
        "level": comparison.level,
    }


def _size(delta: float, variance: float, runs: float, power: float) -> dict[str, object]:
    n = max(2, math.ceil(instances_needed(delta, variance, power=power)))
    return {"variance": variance, "n_instances": n, "n_episodes": math.ceil(2 * n * runs)}


DETECTABLE_FIELDS: dict[str, Field] = {
    **_COMPARISON_FIELDS,
    "design": Field("str", "`paired`: both arms on the same instances; `unpaired`: on different ones"),
    "runs": Field("Float64", "runs per instance and cell; null in the limit of many"),
    "as_run": Field("bool", "whether this row has the study's own number of runs"),
    "power": Field("Float64", "chance of finding the difference"),
    "alpha": Field("Float64", "two-sided level of the test"),
    "detectable": Field("Float64", "smallest difference found with that chance in the study's own instances"),
    "equivalent_n": Field("Int64", "instances that would see as much at the study's own number of runs"),
    "n": Field("Int64", "the study's instances"),
    "n0": Field("Float64", "1/sum(w_h²/n_h): instances of an equally precise study with strata of one size"),
    "base_rate": Field("Float64", "pass rate of the first arm"),
    "other_rate": Field("Float64", "pass rate of the second arm"),
    "variance": Field("Float64", "variance of one instance's difference at these runs"),
    "omega2": Field("Float64", "part of it that run seeds cannot average out, raw: may be negative"),
    "run_noise": Field("Float64", "part due to runs with a single run per cell"),
    "rho": Field("Float64", "correlation of single episodes of the two arms on one instance"),
    "reason": Field("str", "why a number is null"),
}
"""Columns of `detectable`."""


def detectable(planned: Planned) -> pd.DataFrame:
    """The smallest detectable difference at the study's own instances, as run and with other numbers of runs.

    One row per comparison x power x runs. More run seeds lower the variance by the run noise alone; `equivalent_n`
    says how many instances, at the runs the study has, would do the same.
    """
    rows: list[dict[str, object]] = []
    for (comparison, found), power in product(planned, REFERENCE_POWERS):
        reason = _missing(comparison, found)
        design = "paired" if comparison.paired else "unpaired"
        shared = {**_names(comparison), "design": design, "power": power, "alpha": ALPHA}
        if found is None:
            rows.append({**shared, "as_run": True, "reason": reason})
            continue
        shared |= {
            "n": found.n,
            "n0": found.n0,
            "base_rate": found.first_rate,
            "other_rate": found.second_rate,
            "omega2": found.omega2,
            "run_noise": found.run_noise,
            "rho": found.rho,
        }
        rows.append({**shared, "as_run": True, "runs": found.runs, **_seen(found, found.variance, power, reason)})
        for runs in (*PLANNED_RUNS, math.inf):
            unknown = SHARED if found.shared else ONE_RUN
            why = reason or (unknown if found.omega2 is None else None)
            row = {**shared, "as_run": False, "runs": None if math.isinf(runs) else runs}
            rows.append(row | _seen(found, found.variance_at(runs), power, why))
    return build_table(rows, DETECTABLE_FIELDS)


def _seen(found: Moments, variance: float | None, power: float, reason: str | None) -> dict[str, object]:
    if variance is None or reason is not None:
        return {"variance": variance, "reason": reason}
    if variance <= 0:
        return {"variance": variance, "reason": "all of the variance is run noise: no limit to what runs would buy"}
    return {
        "variance": variance,
        "detectable": detectable_difference(found.n0, variance, power=power),
        "equivalent_n": math.ceil(found.n * found.variance / variance - 1e-9),
        "reason": None,
    }
