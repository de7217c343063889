"""The descriptive tables of an analysis, by name, with the meaning of every column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from flows.stats import (
    consistency,
    controls,
    costs,
    deltas,
    gaps,
    infra,
    partial_scores,
    ranks,
    rates,
    spread,
    trajectories,
)
from flows.stats.cells import prepared
from flows.stats.columns import Fields, meanings

_FIELDS: dict[str, Fields] = {
    "pass_rates": rates.FIELDS,
    "partial_scores": partial_scores.FIELDS,
    "deltas": deltas.FIELDS,
    "paraphrase_spread": spread.FIELDS,
    "rank_stability": ranks.FIELDS,
    "pair_gaps": gaps.FIELDS,
    "negative_controls": controls.FIELDS,
    "consistency": consistency.FIELDS,
    "trajectory_stability": trajectories.FIELDS,
    "costs": costs.FIELDS,
    "infra_errors": infra.FIELDS,
}

TABLE_COLUMNS: dict[str, dict[str, str]] = {table: meanings(fields) for table, fields in _FIELDS.items()}
"""Table -> column -> meaning."""


def core_tables(
    frame: pd.DataFrame,
    *,
    seed: int,
    resamples: int = 10_000,
    controls_axes: Sequence[str] | None = None,
) -> dict[str, pd.DataFrame]:
    """Every descriptive table of a study, finished or partial.

    Args:
        frame: Results of one benchmark, in the schema of `flows.results`.
        seed: Master seed of all resampling.
        resamples: Bootstrap resamples and permutations.
        controls_axes: Axes that cannot move a score in this study; null: as the rows say.

    Returns:
        The tables named in `TABLE_COLUMNS`, in that order. The order of the rows of `frame` changes nothing.

    Raises:
        ValueError: see `flows.stats.cells.prepared`.
    """
    frame = prepared(frame)
    makers: dict[str, Callable[[], pd.DataFrame]] = {
        "pass_rates": lambda: rates.pass_rates(frame, seed=seed, resamples=resamples),
        "partial_scores": lambda: partial_scores.partial_scores(frame, seed=seed, resamples=resamples),
        "deltas": lambda: deltas.axis_deltas(frame, seed=seed, resamples=resamples),
        "paraphrase_spread": lambda: spread.level_spread(frame, seed=seed, permutations=resamples),
        "rank_stability": lambda: ranks.rank_stability(frame, seed=seed, permutations=resamples),
        "pair_gaps": lambda: gaps.pair_gaps(frame, seed=seed, resamples=resamples),
        "negative_controls": lambda: controls.negative_controls(
            frame, seed=seed, resamples=resamples, controls=controls_axes
        ),
        "consistency": lambda: consistency.consistency(frame, seed=seed, resamples=resamples),
        "trajectory_stability": lambda: trajectories.trajectory_stability(frame, seed=seed, resamples=resamples),
        "costs": lambda: costs.costs(frame, seed=seed, resamples=resamples),
        "infra_errors": lambda: infra.infra_errors(frame),
    }
    return {name: makers[name]() for name in TABLE_COLUMNS}
