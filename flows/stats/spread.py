"""How far apart the levels of an axis lie, beside what noise alone would give.

A range over levels is large by noise alone, so it is never given without its permutation null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from flows.stats.cells import BASELINE, UNPAIRED_AXES, Condition, FloatArray, ScoreCube, Stratum, score_cube
from flows.stats.columns import SCOPE_FIELDS, Field, build_table
from flows.stats.paired_tests import cochran
from flows.stats.permutation import (
    DECIMALS,
    Block,
    PairedBlock,
    complete_blocks,
    equal_weight_means,
    permuted_means,
    usable_models,
)
from flows.stats.scopes import Scope, all_scopes
from tasks_env.seeding import derive_seed

FIELDS: dict[str, Field] = {
    **SCOPE_FIELDS,
    "axis": Field("str", "perturbation axis with at least two levels"),
    "levels": Field("int64", "levels compared; the baseline is not one of them"),
    "n": Field("int64", "instances scored at every level (of the smallest sample if the axis is unpaired)"),
    "range": Field("float64", "largest minus smallest pass rate over levels"),
    "null_mean": Field("float64", "mean range when level labels are permuted within instances"),
    "null_q95": Field("float64", "95% quantile of the range under permutation"),
    "p": Field("float64", "share of permutations with at least the observed range, (1 + k)/(1 + permutations)"),
    "level_sd": Field("float64", "standard deviation of true level means, noise removed, 0 if noise explains all"),
    "level_sd_reason": Field("str", "why level_sd is undefined"),
    "worst_level": Field("str", "level with the lowest pass rate"),
    "worst_delta_naive": Field("float64", "its delta against the baseline: too extreme, being picked for it"),
    "worst_delta_crossfit": Field(
        "float64",
        "delta of the level that is worst in one half of the instances, scored on the other half, averaged over "
        "splits: too mild where levels truly differ",
    ),
    "worst_reason": Field("str", "why a worst-level delta is undefined"),
    "cochran_q": Field("float64", "Cochran's Q over levels"),
    "cochran_p": Field("float64", "its p value"),
    "cochran_reason": Field("str", "why Q is undefined, or `no variation`"),
    "missing_strata": Field("str", "strata without an instance scored at every level"),
    "reason": Field("str", "why the range is undefined"),
}
"""Columns of `level_spread`."""


@dataclass(frozen=True)
class RangeNull:
    """An observed range over levels and its permutation null."""

    observed: float
    mean: float
    q95: float
    p: float


def level_spread(
    frame: pd.DataFrame, *, seed: int, permutations: int = 10_000, splits: int = 200, omnibus: bool = True
) -> pd.DataFrame:
    """Range, its null, level SD, worst level and Cochran's Q, one row per scope x axis with several levels.

    In scopes over models an instance's value is its mean over the models that have every level.

    Args:
        frame: Results of one benchmark.
        permutations: Of level labels within instances (of instances among samples on an unpaired axis).
        splits: Random halvings for the cross-fitted worst level.
        omnibus: Whether Cochran's Q is wanted, which takes longer than all the rest of a small table.

    Returns:
        Columns as in `FIELDS`.
    """
    cube = score_cube(frame)
    rows = []
    for axis in cube.axes():
        levels = [Condition(axis, level) for level in cube.levels(axis)]
        if len(levels) < 2:
            continue
        groups: dict[tuple[int, ...], list[Scope]] = {}
        for scope in all_scopes(cube):
            models = scope.models if scope.one_model else usable_models(cube, levels)
            groups.setdefault(models, []).append(scope)
        for models, scopes in groups.items():
            blocks = _averaged(complete_blocks(cube, levels, models))
            wanted = [tuple(s for s in scope.strata if s in blocks) for scope in scopes]
            nulls = range_nulls(blocks, wanted, seed=seed, permutations=permutations)
            with_baseline = _averaged(complete_blocks(cube, [BASELINE, *levels], models))
            for scope, strata, null in zip(scopes, wanted, nulls, strict=True):
                row: dict[str, Any] = {**scope.labels(cube), "axis": axis, "levels": len(levels)}
                chosen = {stratum: blocks[stratum] for stratum in strata}
                row["n"] = sum(min(block.sizes()) for block in chosen.values())
                row["missing_strata"] = "; ".join(str(s) for s in scope.strata if s not in blocks)
                if null is None:
                    row["reason"] = "no instance scored at every level"
                else:
                    row |= {"range": null.observed, "null_mean": null.mean, "null_q95": null.q95, "p": null.p}
                row |= _level_sd_columns(chosen)
                base = {s: with_baseline[s] for s in scope.strata if s in with_baseline}
                row |= _worst_columns(base, levels, seed=seed, splits=splits)
                row |= _cochran_columns(chosen, cube, models, levels) if omnibus else _NOT_ASKED
                rows.append((scope, row))
    order = {scope: position for position, scope in enumerate(all_scopes(cube))}
    rows.sort(key=lambda item: order[item[0]])
    return build_table([row for _, row in rows], FIELDS)


def _averaged(blocks: Mapping[Stratum, Block]) -> dict[Stratum, Block]:
    """The same blocks with the models averaged to one."""
    return {
        stratum: PairedBlock(block.values.mean(axis=2, keepdims=True))
        if isinstance(block, PairedBlock)
        else type(block)(tuple(sample.mean(axis=1, keepdims=True) for sample in block.samples))
        for stratum, block in blocks.items()
    }


def range_nulls(
    blocks: Mapping[Stratum, Block], groups: Sequence[Sequence[Stratum]], *, seed: int, permutations: int
) -> list[RangeNull | None]:
    """Observed range and null for equal-weight means over each group of strata; null for an empty group.

    Blocks must have one model. All groups share the permutations.
    """
    nulls: list[list[FloatArray]] = [[] for _ in groups]
    for chunk in permuted_means(blocks, seed=seed, permutations=permutations):
        for found, strata in zip(nulls, groups, strict=True):
            if strata:
                mean: FloatArray = np.mean([chunk[stratum][:, :, 0] for stratum in strata], axis=0)
                found.append(np.ptp(mean, axis=1).round(DECIMALS))
    results: list[RangeNull | None] = []
    for found, strata in zip(nulls, groups, strict=True):
        if not strata:
            results.append(None)
            continue
        means = np.mean([blocks[stratum].means()[:, 0] for stratum in strata], axis=0)
        observed = round(float(np.ptp(means)), DECIMALS)
        null = np.concatenate(found)
        p = (1 + int((null >= observed).sum())) / (1 + len(null))
        results.append(RangeNull(observed, float(null.mean()), float(np.quantile(null, 0.95)), p))
    return results


def level_sd(strata: Sequence[FloatArray]) -> float | None:
    """Standard deviation of true level means with equal weight on strata.

    For one stratum sqrt(max(0, (MS_level - MS_residual)/n)) of the instance x level table; for several, the
    variance of the averaged level means less the noise expected in it.

    Args:
        strata: One array per stratum, shape (instances, levels).

    Returns:
        Null if a stratum has fewer than two instances, or there is none.
    """
    if not strata or any(len(table) < 2 for table in strata):
        return None
    weight = 1 / len(strata)
    averaged = np.mean([table.mean(axis=0) for table in strata], axis=0)
    noise = math.fsum(weight**2 * residual_mean_square(table) / len(table) for table in strata)
    return math.sqrt(max(0.0, float(np.var(averaged, ddof=1)) - noise))


def residual_mean_square(table: FloatArray) -> float:
    """Mean square of the instance x level interaction (one value per cell)."""
    n, levels = table.shape
    residual = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    return float((residual**2).sum() / ((n - 1) * (levels - 1)))


def _tables(blocks: Mapping[Stratum, Block]) -> list[FloatArray] | None:
    """Instance x condition tables of one-model blocks; null if the axis is unpaired."""
    tables = []
    for block in blocks.values():
        if not isinstance(block, PairedBlock):
            return None
        tables.append(block.values[:, :, 0])
    return tables


def _level_sd_columns(blocks: Mapping[Stratum, Block]) -> dict[str, Any]:
    tables = _tables(blocks)
    if tables is None:
        return {"level_sd_reason": "unpaired axis"}
    value = level_sd(tables)
    return {
        "level_sd": value,
        "level_sd_reason": None if value is not None else "a stratum has fewer than two instances",
    }


def crossfit_worst(strata: Sequence[FloatArray], *, seed: int, splits: int) -> float | None:
    """Delta of the worst level, chosen on one half of each stratum's instances and scored on the other.

    Both halves choose in turn; the mean over splits.

    Args:
        strata: One array of deltas per stratum, shape (instances, levels).

    Returns:
        Null if there is no stratum, or one has fewer than two instances.
    """
    if not strata or any(len(table) < 2 for table in strata):
        return None
    halves = np.zeros((2, splits, strata[0].shape[1]))
    for position, table in enumerate(strata):
        n = len(table)
        rng = np.random.default_rng(derive_seed(seed, "halves", position, n))
        first = rng.permuted(np.broadcast_to(np.arange(n) < n // 2, (splits, n)), axis=1)
        halves[0] += first.astype(np.float64) @ table / (n // 2) / len(strata)
        halves[1] += (~first).astype(np.float64) @ table / (n - n // 2) / len(strata)
    halves = np.round(halves, DECIMALS)
    rows = np.arange(splits)
    scored = [halves[1 - side][rows, halves[side].argmin(axis=1)] for side in (0, 1)]
    return float(np.mean(scored))


def _worst_columns(
    blocks: Mapping[Stratum, Block], levels: Sequence[Condition], *, seed: int, splits: int
) -> dict[str, Any]:
    if not blocks:
        return {"worst_reason": "no instance scored in the baseline and at every level"}
    tables = _tables(blocks)
    if tables is None:
        means = equal_weight_means(blocks)[:, 0]
        deltas = (means[1:] - means[0]).round(DECIMALS)
        crossfit = None
        reason: str | None = "unpaired axis"
    else:
        differences = [table[:, 1:] - table[:, :1] for table in tables]
        deltas = np.mean([table.mean(axis=0) for table in differences], axis=0).round(DECIMALS)
        crossfit = crossfit_worst(differences, seed=seed, splits=splits)
        reason = None if crossfit is not None else "a stratum has fewer than two instances"
    worst = int(np.argmin(deltas))
    return {
        "worst_level": levels[worst].level,
        "worst_delta_naive": float(deltas[worst]),
        "worst_delta_crossfit": crossfit,
        "worst_reason": reason,
    }


_NOT_ASKED = {"cochran_reason": "not asked for"}


def _cochran_columns(
    blocks: Mapping[Stratum, Block], cube: ScoreCube, models: Sequence[int], levels: Sequence[Condition]
) -> dict[str, Any]:
    tables = _tables(blocks)
    if tables is None or levels[0].axis in UNPAIRED_AXES:
        return {"cochran_reason": "unpaired axis"}
    if not tables:
        return {"cochran_reason": "no instance scored at every level"}
    if len(models) != 1:
        return {"cochran_reason": "average over models"}
    positions = [cube.conditions.index(level) for level in levels]
    if any(int(cube.runs[s][:, models[0]][:, positions].max()) > 1 for s in blocks):
        return {"cochran_reason": "several runs per instance"}
    table = np.concatenate(tables)
    if len(table) < 2:
        return {"cochran_reason": "fewer than two instances"}
    result = cochran(table)
    varies = bool((table != table[:, :1]).any())
    return {
        "cochran_q": result.q,
        "cochran_p": result.p,
        "cochran_reason": None if varies else "no variation",
    }
