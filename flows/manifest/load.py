"""Reading experiments.yaml: one profile, resolved and validated whole, or one paragraph that says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flows.errors import ConfigurationError
from flows.manifest.problems import hint, listing, problem_of
from flows.manifest.references import filled_families, reference_problems
from flows.manifest.schema import SCHEMA_VERSION, Manifest

DEFAULT_PROFILE = "full"


def load_manifest(path: Path, profile: str = DEFAULT_PROFILE, seed: int | None = None) -> Manifest:
    """The manifest's profile, with `seed` in place of the master seed if given.

    A profile overrides sections key by key, one level deep: `grid: {axes: …}` replaces all axes and leaves the
    rest of the grid. Family parameters come back as the family reads them, defaults filled in, so that both hashes
    are of what is meant and not of how it was written.

    Raises:
        ConfigurationError: unreadable file, bad YAML (duplicate keys too), unknown profile, or any value that
            does not fit: the message has every failing field's path and what was expected there.
    """
    document = _read(path)
    version = document.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        found = "it is missing" if version is None else f"got {version!r}"
        raise ConfigurationError(
            f"{path}: schema_version: expected {SCHEMA_VERSION}, {found}; this version of agent-bench reads no other"
        )
    manifest = _validate(path, _resolve(path, document, profile, seed))
    families, problems = filled_families(manifest)
    problems += reference_problems(manifest)
    if problems:
        raise ConfigurationError(listing(path, problems))
    return manifest.model_copy(update={"families": families})


def _read(path: Path) -> dict[Any, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such manifest; give its path with --manifest") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from None
    try:
        document = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError) as error:  # a scalar that looks like a date and is none raises ValueError
        raise ConfigurationError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: not a manifest: nested too deeply") from None
    if not isinstance(document, dict):
        raise ConfigurationError(f"{path}: expected a mapping of sections, got {type(document).__name__}")
    return document


def _resolve(path: Path, document: dict[Any, Any], profile: str, seed: int | None) -> dict[Any, Any]:
    profiles = document.get("profiles")
    if not isinstance(profiles, dict) or not profiles:
        raise ConfigurationError(f"{path}: profiles: expected a mapping with at least one profile")
    if profile not in profiles:
        known = sorted(map(str, profiles))
        raise ConfigurationError(
            f"{path}: profiles: no profile {profile!r}; known: {', '.join(known)}{hint(profile, known)}"
        )
    overrides = {} if profiles[profile] is None else profiles[profile]
    if not isinstance(overrides, dict):
        raise ConfigurationError(f"{path}: profiles.{profile}: expected a mapping, got {overrides!r}")
    resolved = {key: value for key, value in document.items() if key != "profiles"}
    for key, value in overrides.items():
        shared = resolved.get(key)
        resolved[key] = {**shared, **value} if isinstance(shared, dict) and isinstance(value, dict) else value
    if "profile" in resolved:
        raise ConfigurationError(f"{path}: profile: unknown key; a profile is chosen with --profile")
    resolved["profile"] = profile
    if seed is not None:
        resolved["seed"] = seed
    return resolved


def _validate(path: Path, resolved: dict[Any, Any]) -> Manifest:
    try:
        return Manifest.model_validate(resolved)
    except ValidationError as error:
        raise ConfigurationError(listing(path, [problem_of(detail) for detail in error.errors()])) from None
    except UnicodeError as error:
        raise ConfigurationError(f"{path}: a text holds half a character: {error}") from None
