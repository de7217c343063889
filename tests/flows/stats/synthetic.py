"""Synthetic results with a known truth: pure numpy, seeded, valid in the results schema.

Every episode passes with probability

    base + model + level + model:level + instance + model:instance + level:instance + model:level:instance

(the linear probability scale), clipped to [floor, ceiling]. Random terms are uniform with the standard
deviations given in `Spread`, fixed ones are given per model, level, or both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from flows.results import COLUMNS, SORT_KEY

STUDY_LEVELS: dict[str, tuple[str, ...]] = {
    "none": ("baseline",),
    "paraphrase": ("p1", "p2", "p3", "p4", "p5"),
    "tool_names": ("synonyms", "opaque"),
    "distractors": ("2", "5"),
    "temperature": ("0.7",),
    "order": ("shuffled",),
    "resample": ("s1",),
}
"""Axis -> levels, as in the full study."""


@dataclass(frozen=True)
class Spread:
    """Standard deviations of the random terms, on the linear probability scale."""

    model: float = 0.0
    level: float = 0.0
    model_level: float = 0.0
    instance: float = 0.15
    model_instance: float = 0.08
    level_instance: float = 0.0
    model_level_instance: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What to simulate. `effects` maps `(model or None, axis, level)` to a shift of the pass probability."""

    models: Sequence[str] = ("alpha", "beta", "gamma")
    strata: Sequence[tuple[str, str]] = (("tabular", "easy"), ("filesys", "easy"), ("query", "hard"))
    levels: Mapping[str, Sequence[str]] = field(default_factory=lambda: dict(STUDY_LEVELS))
    instances: int = 20
    runs: int = 2
    base: float = 0.6
    skill: Mapping[str, float] = field(default_factory=dict)
    effects: Mapping[tuple[str | None, str, str], float] = field(default_factory=dict)
    spread: Spread = field(default_factory=Spread)
    infra_rate: float = 0.0
    floor: float = 0.0
    ceiling: float = 1.0
    started_at: str = "2026-01-01T00:00:00Z"


def _uniform(rng: np.random.Generator, sd: float, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(-1, 1, shape) * sd * np.sqrt(3)


def probabilities(plan: Plan, seed: int) -> tuple[list[tuple[str, str]], np.ndarray]:
    """The (axis, level) pairs and the pass probabilities, shape (strata, models, levels, instances)."""
    rng = np.random.default_rng(seed)
    pairs = [(axis, level) for axis, levels in plan.levels.items() for level in levels]
    h, m, c, n = len(plan.strata), len(plan.models), len(pairs), plan.instances
    s = plan.spread
    # instances of the resampled arm are others than those of the baseline
    fresh = np.array([axis == "resample" for axis, _ in pairs])[None, None, :, None]

    def per_instance(sd: float, models: int) -> np.ndarray:
        return np.where(fresh, _uniform(rng, sd, (h, models, 1, n)), _uniform(rng, sd, (h, models, 1, n)))

    def per_condition(sd: float, models: int) -> np.ndarray:
        # temperature, order and resample share the baseline's prompt and tools
        own = np.array([axis not in ("temperature", "order", "resample") for axis, _ in pairs])
        draws = _uniform(rng, sd, (h, models, c, n))
        baseline = next((k for k, (axis, _) in enumerate(pairs) if axis == "none"), 0)
        return np.where(own[None, None, :, None], draws, draws[:, :, [baseline], :])

    p = np.full((h, m, c, n), plan.base)
    p = p + np.array([plan.skill.get(name, 0.0) for name in plan.models])[None, :, None, None]
    p = p + _uniform(rng, s.model, (1, m, 1, 1)) + _uniform(rng, s.level, (1, 1, c, 1))
    p = p + _uniform(rng, s.model_level, (1, m, c, 1))
    p = p + per_instance(s.instance, 1) + per_instance(s.model_instance, m)
    p = p + per_condition(s.level_instance, 1) + per_condition(s.model_level_instance, m)
    for (model, axis, level), shift in plan.effects.items():
        where = pairs.index((axis, level))
        rows = slice(None) if model is None else slice(plan.models.index(model), plan.models.index(model) + 1)
        p[:, rows, where, :] += shift
    return pairs, np.clip(p, plan.floor, plan.ceiling)


def synthetic_results(plan: Plan, seed: int) -> pd.DataFrame:
    """One row per episode, sorted by the schema's key, dtypes as in `flows.results.COLUMNS`."""
    pairs, p = probabilities(plan, seed)
    rng = np.random.default_rng([seed, 1])
    h, m, c, n = p.shape
    shape = (h, m, c, n, plan.runs)
    passed = rng.random(shape) < p[..., None]
    infra = rng.random(shape) < plan.infra_rate
    hs, ms, cs, ns, rs = (index.ravel() for index in np.indices(shape))
    family = np.array([f for f, _ in plan.strata], dtype=object)[hs]
    difficulty = np.array([d for _, d in plan.strata], dtype=object)[hs]
    axis = np.array([a for a, _ in pairs], dtype=object)[cs]
    level = np.array([lv for _, lv in pairs], dtype=object)[cs]
    cell = family + "-" + difficulty + "-" + axis + "-" + level
    number = np.where(axis == "resample", ns + 1000 * (1 + cs), ns)
    instance = family + "-" + difficulty + "-" + np.char.zfill(number.astype(str), 6).astype(object)
    model = np.array(list(plan.models), dtype=object)[ms]
    ok, failed_infra = passed.ravel(), infra.ravel()
    keys = cell + "/" + model + "/" + instance + "/" + (rs + 1).astype(str).astype(object)
    outcome = np.where(failed_infra, "infra_error", "completed")
    steps = rng.integers(2, 9, ok.size)
    start = pd.Timestamp(plan.started_at) + pd.to_timedelta(np.arange(ok.size), unit="s")
    frame = pd.DataFrame(
        {
            "benchmark": "stability",
            "episode_id": [hashlib.sha256(key.encode()).hexdigest()[:16] for key in keys],
            "model": model,
            "family": family,
            "difficulty": difficulty,
            "axis": axis,
            "level": level,
            "cell_id": cell,
            "instance_id": instance,
            "variant_id": instance + "-" + axis + "-" + level,
            "instance_seed": number,
            "run_seed": rs + 1,
            "conversation_id": None,
            "conversation_position": None,
            "passed": pd.array(ok, dtype="boolean"),
            "partial_score": pd.array(np.where(ok, 1.0, 0.5), dtype="Float64"),
            "steps_used": steps,
            "outcome": outcome,
            "failure_class": np.where(failed_infra, "server_error", np.where(ok, None, "wrong_answer")),
            "infra_error": failed_infra,
            "attempts": 1,
            "tokens_in": 100 * steps,
            "tokens_cached": 0,
            "tokens_out": 20 * steps,
            "tokens_reasoning": 0,
            "usage_known": True,
            "cost_usd": 0.001 * steps,
            "trajectory_hash": np.array(["t1", "t2", "t3"], dtype=object)[rng.integers(0, 3, ok.size)],
            "trajectory_length": steps - 1,
            "malformed_calls": 0,
            "git_sha": "0" * 40,
            "manifest_hash": "m" * 16,
            "scientific_hash": "s" * 16,
            "adapter_version": "synthetic/1",
            "scaffold_version": "1",
            "started_at": start,
            "wall_clock_s": 1.0,
        }
    )
    frame.loc[failed_infra, ["passed", "partial_score"]] = pd.NA
    frame = frame.astype({name: column.dtype for name, column in COLUMNS.items()})
    return frame.sort_values(SORT_KEY, kind="stable", ignore_index=True)
