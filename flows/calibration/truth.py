"""The true value of every quantity that a table estimates, by enumeration over the cells of a population.

Nothing here comes from `flows.stats`, so that a mistake there cannot hide in the truth. All cells of a population
exist, so that every equal-weight average is a plain mean over cells.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from flows.calibration.population import FloatArray, Population

ALL, MEAN = "all", "mean"
LEVEL_AXES = ("none", "paraphrase", "tool_names", "distractors")
"""Axes whose conditions are levels of the variance decomposition."""
_OFFSETS = 400
"""Points at which the offset's distribution is integrated (midpoints; the integrands are piecewise quadratic)."""


class Truth:
    """True rates, differences and variance components of a population."""

    def __init__(self, population: Population) -> None:
        self._population = population
        self._axes: dict[str, list[int]] = {}
        for position, (axis, _) in enumerate(population.conditions):
            self._axes.setdefault(axis, []).append(position)
        self._known: dict[tuple[str, ...], float] = {}

    def rate(self, model: str, family: str, difficulty: str, axis: str, level: str) -> float:
        """True pass rate; `all` averages over models or strata, `mean` over the levels of an axis."""
        key = (model, family, difficulty, axis, level)
        if key not in self._known:
            p = self._population
            models = [k for k, name in enumerate(p.models) if model in (ALL, name)]
            strata = [k for k, (f, d) in enumerate(p.strata) if family in (ALL, f) and difficulty in (ALL, d)]
            conditions = [k for k in self._axes[axis] if level in (MEAN, p.conditions[k][1])]
            self._known[key] = float(p.chances[np.ix_(strata, models, conditions)].mean())
        return self._known[key]

    def rate_of(self, row: Mapping[Hashable, Any]) -> float:
        """True pass rate of a row with scope columns and a condition."""
        return self.rate(row["model"], row["family"], row["difficulty"], row["axis"], row["level"])

    def delta(self, axis: str, level: str, model: str = ALL, family: str = ALL, difficulty: str = ALL) -> float:
        """True rate of the level minus that of the baseline, 0 where only rounding is left."""
        base = self.rate(model, family, difficulty, "none", "baseline")
        return round(self.rate(model, family, difficulty, axis, level) - base, 12)

    def delta_of(self, row: Mapping[Hashable, Any], level: str | None = None) -> float:
        """True delta of a row with scope columns and an axis; at `level` if the row has none."""
        chosen = row["level"] if level is None else level
        return self.delta(row["axis"], chosen, row["model"], row["family"], row["difficulty"])

    def gap(self, first: str, second: str, axis: str, level: str) -> float:
        """True rate of one model minus that of another."""
        return round(self.rate(first, ALL, ALL, axis, level) - self.rate(second, ALL, ALL, axis, level), 12)

    def passes_twice(self, row: Mapping[Hashable, Any]) -> float:
        """Chance that two runs of an instance both pass, for a row with scope columns and a condition."""
        p = self._population
        condition = p.conditions.index((row["axis"], row["level"]))
        models = [k for k, name in enumerate(p.models) if row["model"] in (ALL, name)]
        strata = [k for k, (f, d) in enumerate(p.strata) if row["family"] in (ALL, f) and row["difficulty"] in (ALL, d)]
        offsets = (np.arange(_OFFSETS) + 0.5) / _OFFSETS * 2 - 1
        chance = p.chances[np.ix_(strata, models, [condition])] + offsets * p.spreads[models, None]
        same_draw = p.shared**2
        return float(((1 - same_draw) * chance**2 + same_draw * chance).mean())

    def levels(self, axis: str) -> list[str]:
        """Levels of an axis."""
        return [self._population.conditions[k][1] for k in self._axes[axis]]

    def moves(self, axis: str, level: str) -> bool:
        """Whether the level (or any level, for `mean`) changes the chance of any model in any stratum."""
        chosen = [k for k in self._axes[axis] if level in (MEAN, self._population.conditions[k][1])]
        chances = self._population.chances
        return bool(np.abs(chances[:, :, chosen] - chances[:, :, :1]).max() > 1e-9)

    def components(self) -> dict[str, float]:
        """Variance component → true value, models and levels as they are (fixed), instances and runs at random.

        Components of instances and runs follow from the covariance of two episodes of one instance, averaged over
        pairs with the same or another model and the same or another level; those of models and levels from the
        mean squares of the table of true rates. `model x prompt`, the spread of a model's score over levels, follows
        from those; its interval takes levels for a sample, and so covers these more often than it says. Empty with a
        single stratum, model or level.
        """
        chosen = [k for axis in LEVEL_AXES for k in self._axes.get(axis, ())]
        rates = self._population.chances[:, :, chosen]
        if min(rates.shape) < 2:
            return {}
        fixed = self._fixed(rates)
        over_prompts = fixed["model x level"] + fixed["model x level x stratum"] / len(rates)
        return {**fixed, **self._random(rates), "model x prompt": over_prompts}

    def _fixed(self, rates: FloatArray) -> dict[str, float]:
        strata, models, levels = rates.shape
        grand = rates.mean()
        s, m, v = (rates.mean(axis=axes, keepdims=True) for axes in ((1, 2), (0, 2), (0, 1)))
        sm, sv, mv = (rates.mean(axis=axis, keepdims=True) for axis in (2, 1, 0))
        square_m = ((m - grand) ** 2).sum() / (models - 1)
        square_v = ((v - grand) ** 2).sum() / (levels - 1)
        square_mv = ((mv - m - v + grand) ** 2).sum() / ((models - 1) * (levels - 1))
        square_sm = ((sm - s - m + grand) ** 2).sum() / ((strata - 1) * (models - 1))
        square_sv = ((sv - s - v + grand) ** 2).sum() / ((strata - 1) * (levels - 1))
        rest = rates - sm - sv - mv + s + m + v - grand
        square_smv = (rest**2).sum() / ((strata - 1) * (models - 1) * (levels - 1))
        return {
            "model": square_m - square_mv / levels - square_sm / strata + square_smv / (levels * strata),
            "level": square_v - square_mv / models - square_sv / strata + square_smv / (models * strata),
            "model x level": square_mv - square_smv / strata,
            "model x stratum": square_sm - square_smv / levels,
            "level x stratum": square_sv - square_smv / models,
            "model x level x stratum": square_smv,
        }

    def _random(self, rates: FloatArray) -> dict[str, float]:
        _, models, levels = rates.shape
        same_model, same_level = np.eye(models, dtype=bool), np.eye(levels, dtype=bool)
        covariance = self._covariance(rates)

        def mean(of_models: np.ndarray, of_levels: np.ndarray) -> float:
            pairs = of_models[:, None, :, None] & of_levels[None, :, None, :]
            return float(covariance[pairs].mean())

        both, model, level, neither = (
            mean(one, other)
            for one, other in (
                (same_model, same_level),
                (same_model, ~same_level),
                (~same_model, same_level),
                (~same_model, ~same_level),
            )
        )
        return {
            "run": float((rates * (1 - rates)).mean()) - both,
            "instance": neither,
            "model x instance": model - neither,
            "level x instance": level - neither,
            "model x level x instance": both - model - level + neither,
        }

    def _covariance(self, rates: FloatArray) -> FloatArray:
        """Of two episodes of one instance, mean over strata: shape (models, levels, models, levels)."""
        p = self._population
        same_draw = p.shared**2
        offsets = (np.arange(_OFFSETS) + 0.5) / _OFFSETS * 2 - 1
        total = np.zeros((*rates.shape[1:], *rates.shape[1:]))
        for of_stratum in rates:
            for offset in offsets:
                chance = of_stratum + offset * p.spreads[:, None]
                one, other = chance[:, :, None, None], chance[None, None]
                total += (1 - same_draw) * one * other + same_draw * np.minimum(one, other)
            total -= _OFFSETS * of_stratum[:, :, None, None] * of_stratum[None, None]
        return np.asarray(total / (len(rates) * _OFFSETS))
