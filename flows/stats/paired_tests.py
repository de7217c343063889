"""Exact tests for paired 0/1 outcomes: McNemar for two conditions, Cochran's Q for several."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import bdtr

from flows.stats.cells import FloatArray


class McNemar(NamedTuple):
    """Two-sided p values of McNemar's test."""

    exact: float
    mid_p: float


def mcnemar(gained: int, lost: int) -> McNemar:
    """McNemar's test on discordant pairs, conditional on their number; both p values are 1 if there is none.

    The exact p value is the two-sided binomial one, at most 1; the mid-p value is it less the chance of the
    observed count (Fagerland, Lydersen and Laake 2013).

    Args:
        gained: Pairs that only the second condition passes.
        lost: Pairs that only the first condition passes.

    Raises:
        ValueError: a count is negative.
    """
    if gained < 0 or lost < 0:
        raise ValueError(f"counts of discordant pairs cannot be negative, got {gained} and {lost}")
    total, smaller = gained + lost, min(gained, lost)
    if total == 0:
        return McNemar(1.0, 1.0)
    at_most = float(bdtr(smaller, total, 0.5))
    exactly = at_most - (float(bdtr(smaller - 1, total, 0.5)) if smaller else 0.0)
    exact = min(1.0, 2 * at_most)
    return McNemar(exact, exact - exactly)


class Cochran(NamedTuple):
    """Cochran's Q and its p value by the chi-squared approximation."""

    q: float
    p: float


def cochran(table: FloatArray) -> Cochran:
    """Cochran's Q for 0/1 outcomes of the shape (instances, conditions); Q = 0, p = 1 where nothing varies.

    Raises:
        ValueError: fewer than two instances or conditions, or outcomes other than 0 and 1.
    """
    if table.ndim != 2 or min(table.shape) < 2 or not bool(np.isin(table, (0.0, 1.0)).all()):
        raise ValueError(f"need 0/1 outcomes of at least two instances and two conditions, got shape {table.shape}")
    if bool((table == table[:, :1]).all()):
        return Cochran(0.0, 1.0)
    import pingouin  # type: ignore[import-untyped]  # here, because it takes seconds

    instances, conditions = table.shape
    long = pd.DataFrame(
        {
            "instance": np.repeat(np.arange(instances), conditions),
            "condition": np.tile(np.arange(conditions), instances),
            "passed": table.ravel().astype(float),
        }
    )
    result = pingouin.cochran(data=long, dv="passed", within="condition", subject="instance")
    return Cochran(float(result["Q"].iloc[0]), float(result["p_unc"].iloc[0]))
