"""Reading experiments.yaml: one profile, resolved and validated whole, or one paragraph that says what is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flows.errors import ConfigurationError
from flows.manifest.schema import SCHEMA_VERSION, HttpModel, Manifest, ScriptedModel
from tasks_env.errors import TaskEnvError
from tasks_env.families import family
from tasks_env.generation import validated_params
from tasks_env.perturbations import perturbation

DEFAULT_PROFILE = "full"


def load_manifest(path: Path, profile: str = DEFAULT_PROFILE, seed: int | None = None) -> Manifest:
    """The manifest's profile, with `seed` in place of the master seed if given.

    A profile overrides sections key by key, one level deep: `grid: {axes: …}` replaces all axes and leaves the
    rest of the grid.

    Raises:
        ConfigurationError: unreadable file, bad YAML (duplicate keys too), unknown profile, or any value that
            does not fit: the message has every failing field's path and what was expected there.
    """
    document = _read(path)
    version = document.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise ConfigurationError(
            f"{path}: schema_version: expected {SCHEMA_VERSION}, got {version!r}; "
            "this version of agent-bench reads no other, see CHANGES in the README for how to convert"
        )
    manifest = _validate(path, _resolve(path, document, profile, seed))
    _check_references(path, manifest)
    return manifest


def profile_names(path: Path) -> list[str]:
    """The profiles that the manifest defines."""
    profiles = _read(path).get("profiles")
    return sorted(profiles) if isinstance(profiles, dict) else []


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such manifest; give its path with --manifest") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from None
    try:
        document = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise ConfigurationError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise ConfigurationError(f"{path}: expected a mapping of sections, got {type(document).__name__}")
    return document


def _resolve(path: Path, document: dict[str, Any], profile: str, seed: int | None) -> dict[str, Any]:
    profiles = document.get("profiles")
    if not isinstance(profiles, dict) or not profiles:
        raise ConfigurationError(f"{path}: profiles: expected a mapping with at least one profile")
    if profile not in profiles:
        raise ConfigurationError(f"{path}: profiles: no profile {profile!r}; known: {', '.join(sorted(profiles))}")
    overrides = profiles[profile] or {}
    if not isinstance(overrides, dict):
        raise ConfigurationError(f"{path}: profiles.{profile}: expected a mapping, got {overrides!r}")
    resolved: dict[str, Any] = {key: value for key, value in document.items() if key != "profiles"}
    for key, value in overrides.items():
        shared = resolved.get(key)
        resolved[key] = {**shared, **value} if isinstance(shared, dict) and isinstance(value, dict) else value
    resolved["profile"] = profile
    if seed is not None:
        resolved["seed"] = seed
    return resolved


def _validate(path: Path, resolved: dict[str, Any]) -> Manifest:
    try:
        return Manifest.model_validate(resolved)
    except ValidationError as error:
        problems = [_problem(detail) for detail in error.errors()]
        raise ConfigurationError(_listing(path, problems)) from None


def _problem(detail: ErrorDetails) -> str:
    parts = [str(part) for part in detail["loc"] if part not in ("openai", "anthropic", "scripted")]
    where = ".".join(parts)
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(parts[-1], _siblings(parts), n=1, cutoff=0.6)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{where}: unknown key{hint}"
    if detail["type"] == "missing":
        return f"{where}: missing"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{where}: {message}, got {_shortened(detail['input'])}"


def _siblings(parts: list[str]) -> list[str]:
    """The keys that the model at `parts[:-1]` knows."""
    models: list[type[BaseModel]] = [Manifest]
    for part in parts[:-1]:
        inner: list[type[BaseModel]] = []
        for model in models:
            if part in model.model_fields:
                inner += _models_in(model.model_fields[part].annotation)
        models = inner or models
    return [name for model in models for name in model.model_fields]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _listing(path: Path, problems: list[str]) -> str:
    if len(problems) == 1:
        return f"{path}: {problems[0]}"
    return f"{path}: {len(problems)} problems:\n" + "\n".join(f"  {problem}" for problem in problems)


def _check_references(path: Path, manifest: Manifest) -> None:
    problems = [
        *_unknown("grid.models", manifest.grid.models, manifest.models),
        *_family_problems(manifest),
        *_axis_problems(manifest),
        *_scripted_problems(manifest),
    ]
    if problems:
        raise ConfigurationError(_listing(path, problems))


def _unknown(where: str, names: Iterable[str], known: Iterable[str]) -> list[str]:
    known = sorted(known)
    problems = []
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
            problems.append(f"{where}: unknown name {name!r}{hint}")
    return problems


def _family_problems(manifest: Manifest) -> list[str]:
    problems: list[str] = []
    for name, difficulties in manifest.families.items():
        for difficulty, params in difficulties.items():
            try:
                family(name)
                validated_params(name, params)
            except TaskEnvError as error:
                problems.append(f"families.{name}.{difficulty}: {error}")
    for name, chosen in manifest.grid.families.items():
        problems += _unknown("grid.families", [name], manifest.families)
        problems += _unknown(f"grid.families.{name}", chosen, manifest.families.get(name, {}))
    return problems


def _axis_problems(manifest: Manifest) -> list[str]:
    problems: list[str] = []
    for axis, levels in manifest.grid.axes.items():
        for level in levels:
            try:
                perturbation(axis).check_level(level)
            except (TaskEnvError, ValueError) as error:
                problems.append(f"grid.axes.{axis}: {error}")
    return problems


def _scripted_problems(manifest: Manifest) -> list[str]:
    problems: list[str] = []
    difficulties = {name for chosen in manifest.grid.families.values() for name in chosen}
    for name in manifest.grid.models:
        model = manifest.models.get(name)
        if isinstance(model, ScriptedModel):
            problems += [
                f"models.{name}.pass_rate: missing for difficulty {difficulty!r}"
                for difficulty in sorted(difficulties - set(model.pass_rate))
            ]
            problems += _unknown(f"models.{name}.family_effects", model.family_effects, manifest.families)
            problems += _effect_problems(name, model.effects)
    return problems


def _effect_problems(name: str, effects: Mapping[str, Mapping[str, float]]) -> list[str]:
    problems = []
    for axis, levels in effects.items():
        for level in levels:
            try:
                perturbation(axis).check_level(level)
            except (TaskEnvError, ValueError) as error:
                problems.append(f"models.{name}.effects.{axis}: {error}")
    return problems


def unnamed_models(manifest: Manifest) -> list[str]:
    """Entries of the grid whose model id is still to be filled in."""
    return [
        name
        for name in manifest.grid.models
        if isinstance(entry := manifest.models[name], HttpModel) and entry.model is None
    ]
