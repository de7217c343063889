"""Partial scores: how much of a task was done, where a verdict knows only all or nothing.

An episode without a partial score drops out of this metric alone, and n says how many instances remain.
"""

from __future__ import annotations

import pandas as pd

from flows.stats.cells import score_cube
from flows.stats.columns import SCOPE_FIELDS, Field, build_table
from flows.stats.contrasts import rate_estimates
from flows.stats.rates import episode_count, rate_parts
from flows.stats.scopes import all_scopes

FIELDS: dict[str, Field] = {
    **SCOPE_FIELDS,
    "axis": Field("str", "perturbation axis; `none` for the baseline"),
    "level": Field("str", "level of the axis"),
    "n": Field("int64", "instances with a partial score; conversations, where they carry context"),
    "episodes": Field("int64", "episodes with a partial score"),
    "without_score": Field("int64", "episodes without one, infrastructure errors included: in no mean"),
    "partial_score": Field(
        "float64", "mean over instances of the mean over run seeds, then equal weights; null if n = 0"
    ),
    "ci_low": Field("float64", "lower end of the 95% interval"),
    "ci_high": Field("float64", "upper end of the 95% interval"),
    "method": Field("str", "method of the interval, as for a pass rate: of any score from 0 to 1"),
    "reason": Field("str", "why the mean is undefined"),
}
"""Columns of `partial_scores`."""


def partial_scores(frame: pd.DataFrame, *, seed: int, resamples: int = 10_000) -> pd.DataFrame:
    """Mean partial scores with intervals, one row per scope x axis x level that has an episode.

    Args:
        frame: Results of one benchmark (`flows.results`); a table without the column has no partial score.

    Returns:
        Columns as in `FIELDS`, in the order of `pass_rates`.
    """
    known = frame if "partial_score" in frame.columns else frame.assign(partial_score=None)
    cube = score_cube(known, value="partial_score")
    grid = [
        (scope, condition)
        for scope in all_scopes(cube)
        for condition in cube.conditions
        if episode_count(cube, scope, condition)
    ]
    problems = [rate_parts(cube, scope, [condition]) for scope, condition in grid]
    estimates = rate_estimates(problems, seed=seed, resamples=resamples)
    rows = []
    for (scope, condition), parts, estimate in zip(grid, problems, estimates, strict=True):
        low, high = estimate.interval()
        scored = sum(part.episodes for part in parts)
        rows.append(
            {
                **scope.labels(cube),
                "axis": condition.axis,
                "level": condition.level,
                "n": estimate.n,
                "episodes": scored,
                "without_score": episode_count(cube, scope, condition) - scored,
                "partial_score": estimate.value,
                "ci_low": low,
                "ci_high": high,
                "method": estimate.method,
                "reason": None if estimate.value is not None else "no episode has a partial score",
            }
        )
    return build_table(rows, FIELDS)
