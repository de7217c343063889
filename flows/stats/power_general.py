"""Sample sizes "for any equivalent prompt": prompts and tool sets are a sample too.

Their share of a model's score, `model x prompt` of the variance components (sigma_ML² + sigma_MLS²/S over S strata, see
`flows.stats.prompts`), then sets a floor that no number of instances gets below.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import product

import pandas as pd

from flows.stats.columns import Field, build_table
from flows.stats.planning import MODELS
from flows.stats.power import (
    ALPHA,
    difference_variance,
    general_instances,
    second_rate,
    smallest_general_difference,
)
from flows.stats.power_tables import (
    REFERENCE,
    REFERENCE_BASES,
    REFERENCE_DELTAS,
    REFERENCE_POWERS,
    SHARED,
    STUDY,
    Planned,
    study_rho,
)
from flows.stats.prompts import PROMPTS

POWER_GENERAL_FIELDS: dict[str, Field] = {
    "source": Field("str", "`reference`: fixed grid of base rates; `study`: the study's own variances"),
    "base_rate": Field("Float64", "pass rate of the first model; null for the study's own"),
    "delta": Field("Float64", "difference between two models to find, as a fraction"),
    "power": Field("Float64", "chance of finding it"),
    "alpha": Field("Float64", "two-sided level of the test"),
    "levels": Field("Int64", "L: prompts and tool sets that each instance is run under, baseline included"),
    "runs": Field("Float64", "runs per instance and cell"),
    "sigma_ml2_source": Field("str", "`estimate`, or `upper limit` of its interval"),
    "sigma_ml2": Field(
        "Float64",
        "variance of a model's score over prompts, `model x prompt` of the components (model x level + model x level x "
        "stratum / strata), raw: used as 0 if negative",
    ),
    "not_positive": Field("boolean", "whether that value was 0 or less, so that generalising seems to cost nothing"),
    "variance": Field("Float64", "variance of one instance's difference after averaging over the levels"),
    "smallest_reachable": Field("Float64", "k sqrt(2 sigma_ml2 / levels): what no number of instances gets below"),
    "n_instances": Field("Int64", "instances needed; null if unreachable"),
    "n_episodes": Field("Int64", "episodes that takes for both models over all levels and runs"),
    "n_exact": Field("Int64", "instances needed for these exact prompts: the same with sigma_ML² = 0"),
    "reachable": Field("boolean", "whether any number of instances suffices"),
    "reason": Field("str", "why a number is null"),
}
"""Columns of `power_general`."""


def power_general(variance_components: pd.DataFrame, planned: Planned) -> pd.DataFrame:
    """Instances needed "for any equivalent prompt", at the estimate of sigma_ML² and at its upper limit.

    The variance of one instance's difference between two models, averaged over L levels, is
    2 (model x instance + model x level x instance / L + run / (L runs)). On the reference grid it is that share
    of p1q1 + p2q2 - 2 rho sqrt(p1q1p2q2) that averaging over the study's levels and runs left.

    Args:
        variance_components: The table of `flows.stats.variance`.
        planned: From `plan_moments`.
    """
    terms = {str(row["term"]): row for row in variance_components.to_dict("records")}
    level_term = terms[PROMPTS]
    levels = _number(level_term["n_levels"])
    runs = _study_runs(planned)
    averaged = None if levels is None or runs is None else _averaged_variance(terms, levels, runs)
    single = _averaged_variance(terms, 1.0, 1.0)
    rho = study_rho(planned, MODELS)
    shared = any(found is not None and found.shared for _, found in planned)
    rows: list[dict[str, object]] = []
    bases: Sequence[float | None] = (None, *REFERENCE_BASES)
    sources = (("estimate", "variance"), ("upper limit", "hi"))
    grid = product(sources, bases, REFERENCE_DELTAS, REFERENCE_POWERS)
    for (name, column), base, delta, power in grid:
        sigma = _number(level_term[column])
        row: dict[str, object] = {
            "source": STUDY if base is None else REFERENCE,
            "base_rate": base,
            "delta": delta,
            "power": power,
            "alpha": ALPHA,
            "levels": None if levels is None else int(levels),
            "runs": runs,
            "sigma_ml2_source": name,
        }
        if sigma is None or levels is None or runs is None or averaged is None or single is None:
            own = level_term["reason"]
            reason = own if isinstance(own, str) else "model x instance variance is not estimable"
            rows.append({**row, "reason": reason})
            continue
        if shared:
            rows.append({**row, "sigma_ml2": sigma, "not_positive": sigma <= 0, "reason": SHARED})
            continue
        variance = averaged
        if base is not None:
            left = averaged / single if single > 0 else 1.0
            variance = left * difference_variance(base, second_rate(base, delta), rho or 0.0)
        size = general_instances(delta, variance, sigma, int(levels), power=power)
        exact = general_instances(delta, variance, 0.0, int(levels), power=power)
        rows.append(
            {
                **row,
                "sigma_ml2": sigma,
                "not_positive": sigma <= 0,
                "variance": variance,
                "smallest_reachable": smallest_general_difference(sigma, int(levels), power=power),
                "n_instances": size.n,
                "n_exact": exact.n,
                "n_episodes": None if size.n is None else math.ceil(2 * size.n * levels * runs),
                "reachable": size.n is not None,
                "reason": size.reason,
            }
        )
    return build_table(rows, POWER_GENERAL_FIELDS)


def difference_variance_left(variance_components: pd.DataFrame, levels: float, runs: float) -> float | None:
    """Share of the variance of one instance's difference, at one level and run, that averaging over levels and runs
    leaves; null if the components do not tell."""
    terms = {str(row["term"]): row for row in variance_components.to_dict("records")}
    averaged, single = _averaged_variance(terms, levels, runs), _averaged_variance(terms, 1.0, 1.0)
    return averaged / single if averaged is not None and single is not None and single > 0 else None


def _number(value: object) -> float | None:
    """A cell of a nullable column as a float; null stays null."""
    return float(value) if isinstance(value, int | float) and not math.isnan(value) else None


def _study_runs(planned: Planned) -> float | None:
    found = [m.runs for c, m in planned if c.kind == MODELS and m is not None]
    return math.fsum(found) / len(found) if found else None


def _averaged_variance(terms: Mapping[str, Mapping[Hashable, object]], levels: float, runs: float) -> float | None:
    """2 (mi + mli/L + run/(L runs)) with negatives as 0; a folded term is part of the one that includes it."""
    if _number(terms["model x instance"]["variance"]) is None:
        return None

    def component(term: str) -> float:
        return max(0.0, _number(terms[term]["variance"]) or 0.0)

    spread = component("model x instance") + component("model x level x instance") / levels
    return 2 * (spread + component("run") / (levels * runs))
