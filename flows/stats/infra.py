"""Infrastructure errors: how many, where, and how far they could have moved a pass rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from flows.stats.cells import BASELINE, Condition, ScoreCube, score_cube
from flows.stats.columns import SCOPE_FIELDS, Field, build_table
from flows.stats.intervals import wilson
from flows.stats.pooling import pooled_mean
from flows.stats.rates import episode_count, infra_bounds, infra_count, rate_parts
from flows.stats.scopes import Scope, all_scopes

FIELDS: dict[str, Field] = {
    **SCOPE_FIELDS,
    "axis": Field("str", "perturbation axis; `none` for the baseline"),
    "level": Field("str", "level of the axis"),
    "episodes": Field("int64", "episodes recorded, with and without an infrastructure error"),
    "infra_errors": Field("int64", "episodes that ended in an infrastructure error"),
    "infra_rate": Field("float64", "infra_errors / episodes"),
    "infra_rate_low": Field(
        "float64",
        "lower end of its 95% interval: Wilson's on the effective number of episodes, errors of one instance (or "
        "conversation) not being independent; an outage that hit many instances at once makes it too narrow",
    ),
    "infra_rate_high": Field("float64", "upper end of the same interval"),
    "minus_baseline": Field("float64", "infra_rate less that of the baseline; null if there is no baseline"),
    "pass_rate": Field("float64", "the reported rate, without infrastructure errors; null if nothing was scored"),
    "if_infra_failed": Field("float64", "the rate if every infrastructure error were a fail"),
    "if_infra_passed": Field("float64", "the rate if every infrastructure error were a pass"),
    "nothing_scored": Field("bool", "every episode ended in an infrastructure error"),
    "reason": Field("str", "why pass_rate is undefined"),
}
"""Columns of `infra_errors`."""


def infra_errors(frame: pd.DataFrame) -> pd.DataFrame:
    """Rates of infrastructure errors with bounds on the pass rate, one row per scope x condition with an episode.

    Args:
        frame: Results of one benchmark.

    Returns:
        Columns as in `FIELDS`.
    """
    cube = score_cube(frame)
    rows = []
    for scope in all_scopes(cube):
        home = episode_count(cube, scope, BASELINE)
        baseline = infra_count(cube, scope, BASELINE) / home if home else None
        for condition in cube.conditions:
            episodes = episode_count(cube, scope, condition)
            if not episodes:
                continue
            errors = infra_count(cube, scope, condition)
            parts = rate_parts(cube, scope, [condition])
            row: dict[str, Any] = {
                **scope.labels(cube),
                "axis": condition.axis,
                "level": condition.level,
                "episodes": episodes,
                "infra_errors": errors,
                "infra_rate": errors / episodes,
                "minus_baseline": None if baseline is None else errors / episodes - baseline,
                "pass_rate": pooled_mean(parts) if parts else None,
                "nothing_scored": errors == episodes,
                "reason": None if parts else "no scored episode",
            }
            n_eff = _effective_episodes(cube, scope, condition)
            row["infra_rate_low"], row["infra_rate_high"] = wilson(errors / episodes * n_eff, n_eff)
            row["if_infra_failed"], row["if_infra_passed"] = infra_bounds(cube, scope, condition)
            rows.append(row)
    return build_table(rows, FIELDS)


def _effective_episodes(cube: ScoreCube, scope: Scope, condition: Condition) -> float:
    """p(1 - p) over the cluster variance of the ratio errors / episodes, between instances and episodes.

    The variance is that of a ratio of sums over instances (linearised); instances if all or no episode had an error.
    """
    position = cube.index(condition)
    models = list(scope.models)
    errors, scored = (
        np.concatenate([counts[stratum][:, models, position].sum(axis=1) for stratum in scope.strata])
        for counts in (cube.infra, cube.runs)
    )
    total = (errors + scored).astype(np.float64)
    errors, total = errors[total > 0].astype(np.float64), total[total > 0]
    rate, instances, episodes = float(errors.sum() / total.sum()), float(len(total)), float(total.sum())
    if rate in (0.0, 1.0) or instances < 2:
        return instances
    residual = float(((errors - rate * total) ** 2).sum()) * instances / (instances - 1)
    if residual == 0:
        return episodes
    return min(max(rate * (1 - rate) * episodes**2 / residual, instances), episodes)
