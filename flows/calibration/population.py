"""What calibration studies are drawn from: the scripted agents' documented error model, without running an episode.

An episode passes with the chance that the manifest documents: the agent's pass rate at the difficulty, plus the
effects of cell and family, plus the instance's offset, uniform on ± the agent's spread and the same for all agents.
In the `correlated` population an episode takes, with chance `SHARED`, its instance's one draw instead of its own, so
that episodes of an instance depend on each other strongly while every chance of passing stays as documented.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from flows.errors import ConfigurationError
from flows.manifest import BASELINE_AXIS, BASELINE_LEVEL, Manifest, ScriptedModel
from flows.stats.cells import prepared

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

SHARED = 0.75
"""Two episodes of one instance take the same draw with the square of this chance."""
RESAMPLE = "resample"
"""The axis whose levels have instances of their own."""
COST_USD = 0.01
"""Of every episode."""
RUNS = 2
"""Run seeds drawn per cell and instance; the tables see as many as the manifest runs, the components all."""


@dataclass(frozen=True)
class Population:
    """Chances of passing, before the instance's offset, and how the episodes of an instance depend."""

    name: str
    models: tuple[str, ...]
    strata: tuple[tuple[str, str], ...]
    """(family, difficulty)."""
    conditions: tuple[tuple[str, str], ...]
    """(axis, level), the baseline first."""
    runs: tuple[int, ...]
    """Run seeds per condition, at most `RUNS`."""
    chances: FloatArray
    """Shape (strata, models, conditions)."""
    spreads: FloatArray
    """Half-width of the offset per model."""
    shared: float = 0.0
    """Chance that an episode takes its instance's draw."""


def populations(manifest: Manifest) -> tuple[Population, ...]:
    """`scripted`: the agents as documented; `correlated`: runs of an instance depend; `no effects`: nor does any
    perturbation matter.

    Raises:
        ConfigurationError: the profile's grid has no scripted agent.
    """
    agents = {name: entry for name in manifest.grid.models if isinstance(entry := manifest.models[name], ScriptedModel)}
    if not agents:
        raise ConfigurationError(
            f"profile {manifest.profile!r} has no scripted agent in its grid; calibration needs their known truth"
        )
    strata = tuple((family, level) for family, levels in manifest.grid.families.items() for level in levels)
    conditions = (
        (BASELINE_AXIS, BASELINE_LEVEL),
        *((axis, level) for axis, levels in manifest.grid.axes.items() for level in levels),
    )
    runs = manifest.grid.runs
    counts = {BASELINE_AXIS: runs.baseline, "order": runs.order}
    scripted = Population(
        name="scripted",
        models=tuple(agents),
        strata=strata,
        conditions=conditions,
        runs=tuple(min(RUNS, counts.get(axis, runs.others)) for axis, _ in conditions),
        chances=np.array(
            [
                [[_chance(agent, stratum, condition) for condition in conditions] for agent in agents.values()]
                for stratum in strata
            ]
        ),
        spreads=np.array([agent.instance_spread for agent in agents.values()]),
    )
    correlated = replace(scripted, name="correlated", shared=SHARED)
    unmoved = np.repeat(scripted.chances[:, :, :1], len(conditions), axis=2)
    return scripted, correlated, replace(correlated, name="no effects", chances=unmoved)


def _chance(agent: ScriptedModel, stratum: tuple[str, str], condition: tuple[str, str]) -> float:
    family, difficulty = stratum
    axis, level = condition
    effect = agent.effects.get(axis, {}).get(level, 0.0) + agent.family_effects.get(family, 0.0)
    return agent.pass_rate[difficulty] + effect


def draw(population: Population, instances: int, rng: np.random.Generator) -> BoolArray:
    """Outcomes of one study, shape (strata, models, conditions, instances, `RUNS`)."""
    shape = (*population.chances.shape, instances, RUNS)
    offsets = _per_instance(population, rng.uniform(-1, 1, (shape[0], shape[2], instances)))
    chances = population.chances[..., None] + offsets * population.spreads[None, :, None, None]
    draws = rng.random(shape)
    if population.shared:
        common = _per_instance(population, rng.random((shape[0], shape[2], instances)))
        draws = np.where(rng.random(shape) < population.shared, common[..., None], draws)
    return np.asarray(draws < chances[..., None])


def _per_instance(population: Population, values: FloatArray) -> FloatArray:
    """Values per (stratum, condition, instance) as (stratum, 1, condition, instance): those of the baseline wherever
    a condition shows the baseline's instances."""
    source = [k if axis == RESAMPLE else 0 for k, (axis, _) in enumerate(population.conditions)]
    return np.asarray(values[:, None, source])


class Frames:
    """Results tables of a population's studies; all that does not change from study to study is made once."""

    def __init__(self, population: Population, instances: int) -> None:
        shape = (*population.chances.shape, instances, RUNS)
        strata, models, conditions, numbers, runs = (index.ravel() for index in np.indices(shape))
        axes, levels = (_names([pair[k] for pair in population.conditions])[conditions] for k in (0, 1))
        families, difficulties = (_names([pair[k] for pair in population.strata])[strata] for k in (0, 1))
        samples = np.where(axes == RESAMPLE, levels, "")
        ids = _names([f"{number:05d}" for number in range(instances)])[numbers]
        frame = pd.DataFrame(
            {
                "benchmark": "calibration",
                "model": _names(population.models)[models],
                "family": families,
                "difficulty": difficulties,
                "axis": axes,
                "level": levels,
                "instance_id": families + "-" + difficulties + "-" + samples + "-" + ids,
                "run_seed": runs + 1,
                "infra_error": False,
                "cost_usd": COST_USD,
                "passed": pd.array([False] * len(runs), dtype="boolean"),
            }
        )
        self._frame = prepared(frame)
        self._run = np.asarray(runs < np.array(population.runs)[conditions])

    def full(self, passed: BoolArray) -> pd.DataFrame:
        """Every episode drawn: balanced."""
        return self._frame.assign(passed=pd.array(passed.ravel(), dtype="boolean"))

    def as_run(self, passed: BoolArray) -> pd.DataFrame:
        """The episodes that a study with the manifest's run seeds has."""
        return self.full(passed)[self._run].reset_index(drop=True)


def _names(values: Sequence[str]) -> npt.NDArray[np.object_]:
    return np.array(list(values), dtype=object)
