"""The inferential tables of a study in one call: variance components, power, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from flows.stats.cells import prepared
from flows.stats.columns import Fields, meanings
from flows.stats.hypotheses import Registration
from flows.stats.power_general import POWER_GENERAL_FIELDS, power_general
from flows.stats.power_tables import (
    DETECTABLE_FIELDS,
    POWER_EXACT_FIELDS,
    detectable,
    plan_moments,
    power_exact,
)
from flows.stats.variance import VARIANCE_FIELDS, variance_components
from flows.stats.verdicts import VERDICT_FIELDS, verdict_table

_FIELDS: dict[str, Fields] = {
    "variance_components": VARIANCE_FIELDS,
    "power_exact": POWER_EXACT_FIELDS,
    "power_general": POWER_GENERAL_FIELDS,
    "detectable": DETECTABLE_FIELDS,
    "verdicts": VERDICT_FIELDS,
}

TABLE_COLUMNS: dict[str, dict[str, str]] = {name: meanings(fields) for name, fields in _FIELDS.items()}
"""Table -> column -> meaning, of every table that `inference_tables` returns."""


def inference_tables(
    frame: pd.DataFrame, registrations: Sequence[Registration], *, seed: int, resamples: int = 10_000
) -> dict[str, pd.DataFrame]:
    """The tables of `TABLE_COLUMNS`; a partial study gives nulls with reasons.

    Args:
        frame: Results of one benchmark (`flows.results`).
        registrations: Which hypotheses judge which rows; none gives an empty table of verdicts.

    Raises:
        ValueError: the table lacks columns or holds several benchmarks.
    """
    frame = prepared(frame)
    components = variance_components(frame)
    planned = plan_moments(frame)
    return {
        "variance_components": components,
        "power_exact": power_exact(planned),
        "power_general": power_general(components, planned),
        "detectable": detectable(planned),
        "verdicts": verdict_table(frame, registrations, seed=seed, resamples=resamples),
    }
