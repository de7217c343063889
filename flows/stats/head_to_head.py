"""Two models on the same episodes: the difference of their pass rates, and what so small a run could have shown."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from flows.stats.cells import score_cube
from flows.stats.contrasts import paired_estimates
from flows.stats.estimate import Estimate
from flows.stats.pooling import Term, pool, pooled_variance
from flows.stats.power import k_factor


@dataclass(frozen=True)
class HeadToHead:
    """The second model minus the first, over every cell that both were run in, all cells weighing the same."""

    first_rate: float | None
    second_rate: float | None
    difference: Estimate
    detectable: float | None
    """Smallest difference found with 80% power at 5%, from the observed spread between instances; null without one."""


def head_to_head(frame: pd.DataFrame, first: str, second: str, *, seed: int, resamples: int) -> HeadToHead:
    """Compare two models of a results table; the instance is the unit, its cells and run seeds are averaged.

    Raises:
        ValueError: the table lacks columns or holds several benchmarks.
    """
    cube = score_cube(frame[frame["model"].isin([first, second])])
    if first not in cube.models or second not in cube.models:
        return HeadToHead(None, None, paired_estimates([()], seed=seed, resamples=resamples)[0], None)
    i, j = cube.models.index(first), cube.models.index(second)
    rows = []
    for stratum in cube.strata:
        for condition in cube.conditions:
            a, b = cube.values(stratum, i, condition), cube.values(stratum, j, condition)
            if not np.isnan(b - a).all():
                rows.append(((stratum.family, stratum.difficulty), a, b))
    parts = pool([Term(1 / len(rows), key, b - a) for key, a, b in rows])
    [difference] = paired_estimates([parts], seed=seed, resamples=resamples)
    variance = pooled_variance(parts) if parts else None
    return HeadToHead(
        first_rate=_mean([a for _, a, b in rows]),
        second_rate=_mean([b for _, a, b in rows]),
        difference=difference,
        detectable=k_factor() * math.sqrt(variance) if variance else None,
    )


def _mean(columns: list[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> float | None:
    return float(np.mean([np.nanmean(column) for column in columns])) if columns else None
