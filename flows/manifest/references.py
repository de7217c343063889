"""What the sections of a manifest say about each other and about the families and axes that exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flows.manifest.problems import unknown_names
from flows.manifest.schema import HttpModel, Manifest, ScriptedModel
from tasks_env.errors import TaskEnvError
from tasks_env.generation import validated_params
from tasks_env.perturbations import perturbation

Families = dict[str, dict[str, dict[str, Any]]]


def filled_families(manifest: Manifest) -> tuple[Families, list[str]]:
    """The family parameters as the families themselves read them, defaults filled in, and what they refuse."""
    filled: Families = {}
    problems: list[str] = []
    for name, difficulties in manifest.families.items():
        filled[name] = {}
        for difficulty, given in difficulties.items():
            where = f"families.{name}.{difficulty}"
            try:
                params = validated_params(name, given).model_dump(mode="json")
            except TaskEnvError as error:
                problems.append(f"{where}: {error}")
                continue
            filled[name][difficulty] = params
            problems += [
                f"{where}: family {name!r}, parameter {parameter!r}: expected {type(params[parameter]).__name__}, "
                f"got {value!r}"
                for parameter, value in given.items()
                if not _same_type(value, params[parameter])
            ]
    return filled, problems


def reference_problems(manifest: Manifest) -> list[str]:
    """Names that refer to nothing, levels that an axis does not have, chances that an agent lacks, settings that a
    model of the grid does not take."""
    grid = manifest.grid
    problems = unknown_names("grid.models", grid.models, manifest.models)
    problems += unknown_names("grid.families", grid.families, manifest.families)
    for name, chosen in grid.families.items():
        problems += unknown_names(f"grid.families.{name}", chosen, manifest.families.get(name, chosen))
    for axis, levels in grid.axes.items():
        problems += _level_problems(f"grid.axes.{axis}", axis, levels)
    for name, entry in manifest.models.items():
        if isinstance(entry, ScriptedModel):
            problems += _scripted_problems(manifest, name, entry)
        elif name in grid.models:
            problems += _setting_problems(manifest, name, entry)
    return problems


def _same_type(given: object, read: object) -> bool:
    return type(given) is type(read) or (type(given) is int and type(read) is float)


def _level_problems(where: str, axis: str, levels: Mapping[str, float] | list[str]) -> list[str]:
    problems = []
    for level in levels:
        try:
            perturbation(axis).check_level(level)
        except (TaskEnvError, ValueError) as error:
            problems.append(f"{where}: {error}")
    return problems


def _setting_problems(manifest: Manifest, name: str, entry: HttpModel) -> list[str]:
    """Settings of the whole study that this model would refuse or pass over: refused before any spend.

    A model that accepts no temperature at all is left to its provider's default, as `Capabilities` says.
    """
    problems = []
    if not (manifest.scaffold.parallel_calls or entry.capabilities.parallel_tool_calls):
        problems.append(
            f"scaffold.parallel_calls: false, but models.{name} is not known to understand it; set "
            f"models.{name}.capabilities.parallel_tool_calls to true if it does"
        )
    baseline = manifest.decoding.baseline_temperature
    if entry.capabilities.temperature and not isinstance(baseline, str):
        reason = entry.refusal_of(baseline)
        if reason is not None:
            problems.append(f"decoding.baseline_temperature: {baseline:g}, but models.{name}: {reason}")
    return problems


def _scripted_problems(manifest: Manifest, name: str, entry: ScriptedModel) -> list[str]:
    known = {difficulty for difficulties in manifest.families.values() for difficulty in difficulties}
    problems = unknown_names(f"models.{name}.pass_rate", entry.pass_rate, known)
    problems += unknown_names(f"models.{name}.family_effects", entry.family_effects, manifest.families)
    for axis, levels in entry.effects.items():
        problems += _level_problems(f"models.{name}.effects.{axis}", axis, levels)
    if name in manifest.grid.models:
        used = {difficulty for chosen in manifest.grid.families.values() for difficulty in chosen}
        problems += [
            f"models.{name}.pass_rate: missing for difficulty {difficulty!r}"
            for difficulty in sorted(used - set(entry.pass_rate))
        ]
    return problems
