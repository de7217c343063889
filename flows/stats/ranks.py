"""Do models keep their order when the benchmark is perturbed?

With two to five models Kendall's tau takes few values and noise alone moves it, so every figure stands beside its
noise floor: the same figure when condition labels are permuted within instances, in the same way for all models.
No bootstrap interval is given for tau: resampling doubles the noise, and such an interval misses the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from flows.stats.cells import BASELINE, MEAN_LEVEL, BoolArray, Condition, FloatArray, ScoreCube, score_cube
from flows.stats.columns import Field, build_table
from flows.stats.permutation import (
    DECIMALS,
    complete_blocks,
    equal_weight_means,
    permuted_means,
    usable_models,
)

FEW_MODELS = 3
"""Up to this many models, the permutation test of concordance is conservative."""

FIELDS: dict[str, Field] = {
    "axis": Field("str", "perturbation axis"),
    "level": Field("str", "level compared with the baseline, or `mean` for the mean over levels"),
    "n_models": Field("int64", "models with a score at the baseline and at every level compared"),
    "models": Field("str", "their names, `; ` between them"),
    "n": Field("int64", "instances scored for all of them (of the smallest sample if the axis is unpaired)"),
    "tau_b": Field("float64", "Kendall's tau-b between the model scores of level and baseline"),
    "tau_reason": Field("str", "why tau-b is undefined"),
    "concordance": Field("float64", "(concordant - discordant pairs) / pairs, ties 0"),
    "pair_agreement": Field("float64", "(concordance + 1) / 2"),
    "concordance_floor": Field("float64", "mean concordance when condition labels are permuted within instances"),
    "excess": Field("float64", "concordance_floor - concordance: instability beyond noise"),
    "p": Field("float64", "(1 + permutations with at most the observed concordance) / (1 + permutations)"),
    "conservative": Field("boolean", "two or three models: the test rejects less often than its level says"),
    "top1_flip": Field("float64", "1 if no top-scoring model of the baseline is one at the level; mean over levels"),
    "top1_flip_floor": Field("float64", "the same under permutation"),
    "missing_strata": Field("str", "strata without an instance scored for all models in all conditions"),
    "reason": Field("str", "why the row is undefined"),
}
"""Columns of `rank_stability`."""


@dataclass(frozen=True)
class RankComparison:
    """Concordance and top-1 flips of levels against the baseline. Arrays have the shape (..., levels)."""

    concordance: FloatArray
    top1_flip: FloatArray


def compare_ranks(scores: FloatArray) -> RankComparison:
    """Compare every condition with the first.

    Args:
        scores: Shape (..., conditions, models), at least two models; the first condition is the baseline.
    """
    scores = scores.round(DECIMALS)
    first, second = np.triu_indices(scores.shape[-1], k=1)
    signs = np.sign(scores[..., first] - scores[..., second])
    concordance: FloatArray = (signs[..., 1:, :] * signs[..., :1, :]).mean(axis=-1)
    top: BoolArray = scores == scores.max(axis=-1, keepdims=True)
    kept = (top[..., 1:, :] & top[..., :1, :]).any(axis=-1)
    flip: FloatArray = np.where(kept, 0.0, 1.0)
    return RankComparison(concordance, flip)


def tau_b(first: FloatArray, second: FloatArray) -> tuple[float | None, str | None]:
    """Kendall's tau-b of two score vectors, or null and the reason: it is undefined if either is constant."""
    first, second = np.round(first, DECIMALS), np.round(second, DECIMALS)
    if len(first) < 2:
        return None, "fewer than two models"
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        which = "baseline" if np.ptp(first) == 0 else "level"
        return None, f"all models tie at the {which}"
    return float(kendalltau(first, second, variant="b").statistic), None


def rank_stability(frame: pd.DataFrame, *, seed: int, permutations: int = 10_000) -> pd.DataFrame:
    """Rank agreement of each level with the baseline beside its noise floor, one row per axis x level.

    Scores have equal weight on strata, over the instances that all models have in all conditions compared.

    Args:
        frame: Results of one benchmark.
        permutations: Of condition labels within instances, for the floor.

    Returns:
        Columns as in `FIELDS`; each axis also at level `mean`, where concordance and floor are averaged over
        levels within each permutation, and tau is null if it is null at any level.
    """
    cube = score_cube(frame)
    rows = []
    for axis in cube.axes():
        found: dict[tuple[str, ...], dict[str, Any]] = {}
        for level in (MEAN_LEVEL, *cube.levels(axis)):
            levels = cube.levels(axis) if level == MEAN_LEVEL else (level,)
            if levels not in found:
                conditions = [BASELINE, *(Condition(axis, one) for one in levels)]
                found[levels] = _rank_columns(cube, conditions, seed=seed, permutations=permutations)
            rows.append({"axis": axis, "level": level, **found[levels]})
    return build_table(rows, FIELDS)


def _rank_columns(cube: ScoreCube, conditions: list[Condition], *, seed: int, permutations: int) -> dict[str, Any]:
    models = usable_models(cube, conditions)
    blocks = complete_blocks(cube, conditions, models)
    row: dict[str, Any] = {
        "n_models": len(models),
        "models": "; ".join(cube.models[model] for model in models),
        "n": sum(min(block.sizes()) for block in blocks.values()),
        "missing_strata": "; ".join(str(s) for s in cube.strata if s not in blocks),
    }
    if len(models) < 2:
        return row | {"reason": "fewer than two models", "tau_reason": "fewer than two models"}
    if not blocks:
        reason = "no instance scored for all models in all conditions"
        return row | {"reason": reason, "tau_reason": reason}
    scores = equal_weight_means(blocks)
    observed = compare_ranks(scores)
    concordance = float(observed.concordance.mean())
    floors, flips = [], []
    for chunk in permuted_means(blocks, seed=seed, permutations=permutations):
        null = compare_ranks(np.mean(list(chunk.values()), axis=0))
        floors.append(null.concordance.mean(axis=-1))
        flips.append(null.top1_flip.mean(axis=-1))
    floor = np.concatenate(floors)
    taus = [tau_b(scores[0], level) for level in scores[1:]]
    reasons = [reason for _, reason in taus if reason is not None]
    return row | {
        "tau_b": None if reasons else float(np.mean([tau for tau, _ in taus if tau is not None])),
        "tau_reason": _tau_reason(reasons, len(taus)),
        "concordance": concordance,
        "pair_agreement": (concordance + 1) / 2,
        "concordance_floor": float(floor.mean()),
        "excess": float(floor.mean()) - concordance,
        "p": (1 + int((floor <= concordance + 10.0**-DECIMALS).sum())) / (1 + len(floor)),
        "conservative": len(models) <= FEW_MODELS,
        "top1_flip": float(observed.top1_flip.mean()),
        "top1_flip_floor": float(np.concatenate(flips).mean()),
    }


def _tau_reason(reasons: list[str], levels: int) -> str | None:
    if not reasons:
        return None
    return reasons[0] if levels == 1 else f"undefined at {len(reasons)} of {levels} levels: {reasons[0]}"
