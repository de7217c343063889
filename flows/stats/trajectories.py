"""Does an agent take the same path again? Equality of tool sequences beside equality of outcomes.

Both are shares of pairs of episodes of one instance, so that they can be compared: two runs of one condition, or
a baseline run and a perturbed run. The first pair is the noise that the second is read against.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from flows.stats.cells import ALL, BASELINE, UNPAIRED_AXES, Condition, FloatArray, prepared
from flows.stats.clusters import carries_context, cluster_ids
from flows.stats.columns import SCOPE_FIELDS, Field, build_table
from flows.stats.contrasts import rate_estimates
from flows.stats.pooling import Part, Term, pool

BETWEEN_RUNS = "between_runs"
AGAINST_BASELINE = "against_baseline"

FIELDS: dict[str, Field] = {
    **SCOPE_FIELDS,
    "axis": Field("str", "perturbation axis; `none` for the baseline"),
    "level": Field("str", "level of the axis"),
    "comparison": Field(
        "str",
        f"`{BETWEEN_RUNS}`: two runs of this condition; `{AGAINST_BASELINE}`: a run of this level and one of the "
        "baseline, same instance",
    ),
    "n": Field("int64", "instances with such a pair; conversations, where they carry context"),
    "same_trajectory": Field("float64", "chance that both took the same sequence of tools"),
    "same_trajectory_low": Field("float64", "lower end of its 95% interval"),
    "same_trajectory_high": Field("float64", "upper end of its 95% interval"),
    "same_outcome": Field("float64", "chance that both passed or both failed, on the same pairs"),
    "same_outcome_low": Field("float64", "lower end of its 95% interval"),
    "same_outcome_high": Field("float64", "upper end of its 95% interval"),
    "reason": Field("str", "why the row is undefined"),
}
"""Columns of `trajectory_stability`."""

_CELL = ["model", "family", "difficulty", "axis", "level"]
_EPISODES = [*_CELL, "instance_id"]
_SAME_INSTANCE = ["model", "family", "difficulty", "instance_id"]
_CellKey = tuple[str, str, str, str, str]


def trajectory_stability(frame: pd.DataFrame, *, seed: int, resamples: int = 10_000) -> pd.DataFrame:
    """Stability of tool sequences and outcomes, per model (equal weight on strata) and per cell.

    Episodes that are not scored or whose trajectory is unknown enter no pair. Where context is carried, conversations
    are resampled, each the mean of its instances.

    Args:
        frame: Results of one benchmark, with the column `trajectory_hash`.

    Returns:
        Columns as in `FIELDS`: each condition between runs, and each level of a paired axis also against the
        baseline.
    """
    frame = prepared(frame)
    known = frame[frame["passed"].notna() & frame["trajectory_hash"].notna()]
    known = known.assign(**{name: known[name].astype("category") for name in (*_EPISODES, "trajectory_hash")})
    pairs = {BETWEEN_RUNS: between_runs(known), AGAINST_BASELINE: against_baseline(known)}
    if carries_context(frame):
        clusters = dict(zip(frame["instance_id"], cluster_ids(frame), strict=True))
        pairs = {name: _over_clusters(table, clusters) for name, table in pairs.items()}
    values = {name: _by_cell(table) for name, table in pairs.items()}
    cells: list[_CellKey] = sorted(set(frame[_CELL].itertuples(index=False, name=None)))
    keys: list[tuple[str, _CellKey, str]] = []
    problems: list[tuple[Part, ...]] = []
    for scope, key, members in _rows(cells):
        paired = key[3] not in UNPAIRED_AXES and Condition(key[3], key[4]) != BASELINE
        for comparison in (BETWEEN_RUNS, AGAINST_BASELINE) if paired else (BETWEEN_RUNS,):
            present = [(cell[1:3], values[comparison][cell]) for cell in members if cell in values[comparison]]
            keys.append((scope, key, comparison))
            for column in (0, 1):
                problems.append(pool(Term(1 / len(present), stratum, table[:, column]) for stratum, table in present))
    estimates = rate_estimates(problems, seed=seed, resamples=resamples)
    rows = []
    for position, (scope, key, comparison) in enumerate(keys):
        trajectory, outcome = estimates[2 * position : 2 * position + 2]
        row: dict[str, Any] = {"scope": scope, **dict(zip(_CELL, key, strict=True)), "comparison": comparison}
        row["n"] = trajectory.n
        for name, estimate in (("same_trajectory", trajectory), ("same_outcome", outcome)):
            row[name] = estimate.value
            row[f"{name}_low"], row[f"{name}_high"] = estimate.interval()
        if trajectory.value is None:
            row["reason"] = "no pair of scored episodes with known trajectories"
        rows.append(row)
    return build_table(rows, FIELDS)


def _rows(cells: list[_CellKey]) -> Iterator[tuple[str, _CellKey, list[_CellKey]]]:
    """(scope, labels, cells averaged) of every model x condition, then of every cell."""
    models: dict[_CellKey, list[_CellKey]] = {}
    for cell in cells:
        models.setdefault((cell[0], ALL, ALL, cell[3], cell[4]), []).append(cell)
    for key in sorted(models):
        yield "model", key, models[key]
    for cell in cells:
        yield "cell", cell, [cell]


def _over_clusters(pairs: pd.DataFrame, clusters: Mapping[str, str]) -> pd.DataFrame:
    """Means over the instances of each cluster, which takes their place."""
    grouped = pairs.assign(instance_id=pairs["instance_id"].astype("str").map(clusters))
    return grouped.groupby(_EPISODES, sort=True, observed=True).mean().reset_index()


def _by_cell(pairs: pd.DataFrame) -> dict[_CellKey, FloatArray]:
    """Per cell an array of the shape (instances, 2): chance of the same trajectory, of the same outcome."""
    ordered = pairs.sort_values(_EPISODES, kind="stable")
    table = ordered[["same_trajectory", "same_outcome"]].to_numpy(dtype=np.float64)
    cells: list[_CellKey] = list(ordered[_CELL].itertuples(index=False, name=None))
    starts = [k for k, cell in enumerate(cells) if k == 0 or cell != cells[k - 1]]
    return {cells[start]: table[start:stop] for start, stop in pairwise([*starts, len(cells)])}


def _counts(known: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Episodes per instance, condition and trajectory; episodes and passes per instance and condition."""
    table = known[[*_EPISODES, "trajectory_hash"]].assign(passes=known["passed"].astype("int64"))
    by_hash = (
        table.groupby([*_EPISODES, "trajectory_hash"], sort=True, observed=True).size().rename("same").reset_index()
    )
    totals = table.groupby(_EPISODES, sort=True, observed=True)["passes"].agg(runs="size", passes="sum").reset_index()
    return by_hash, totals


def between_runs(known: pd.DataFrame) -> pd.DataFrame:
    """Per instance and condition with two runs: share of pairs of runs with the same trajectory, and outcome.

    Args:
        known: Scored episodes with known trajectories.

    Returns:
        Columns model, family, difficulty, axis, level, instance_id, same_trajectory, same_outcome.
    """
    by_hash, totals = _counts(known)
    by_hash["same"] = by_hash["same"] * (by_hash["same"] - 1)
    totals = totals.merge(
        by_hash.groupby(_EPISODES, sort=True, observed=True)["same"].sum().reset_index(), on=_EPISODES
    )
    totals = totals[totals["runs"] >= 2]
    pairs = totals["runs"] * (totals["runs"] - 1)
    fails = totals["runs"] - totals["passes"]
    agreeing = totals["passes"] * (totals["passes"] - 1) + fails * (fails - 1)
    return totals[_EPISODES].assign(same_trajectory=totals["same"] / pairs, same_outcome=agreeing / pairs)


def against_baseline(known: pd.DataFrame) -> pd.DataFrame:
    """Per instance and perturbed condition: share of (baseline run, perturbed run) pairs that are the same.

    Args:
        known: Scored episodes with known trajectories.

    Returns:
        Columns as of `between_runs`; instances without a baseline run are left out.
    """
    by_hash, totals = _counts(known)
    at_home = by_hash["axis"] == BASELINE.axis
    shared = by_hash[~at_home].merge(
        by_hash.loc[at_home, [*_SAME_INSTANCE, "trajectory_hash", "same"]],
        on=[*_SAME_INSTANCE, "trajectory_hash"],
        suffixes=("", "_baseline"),
    )
    shared["same"] = shared["same"] * shared["same_baseline"]
    home = totals["axis"] == BASELINE.axis
    both = totals[~home].merge(
        totals.loc[home, [*_SAME_INSTANCE, "runs", "passes"]], on=_SAME_INSTANCE, suffixes=("", "_baseline")
    )
    both = both.merge(
        shared.groupby(_EPISODES, sort=True, observed=True)["same"].sum().reset_index(), on=_EPISODES, how="left"
    ).fillna({"same": 0})
    pairs = both["runs"] * both["runs_baseline"]
    fails = (both["runs"] - both["passes"]) * (both["runs_baseline"] - both["passes_baseline"])
    agreeing = both["passes"] * both["passes_baseline"] + fails
    return both[_EPISODES].assign(same_trajectory=both["same"] / pairs, same_outcome=agreeing / pairs)
