"""Two hashes of a resolved manifest: of all of it, and of what can change an outcome."""

from __future__ import annotations

from typing import Any

from flows.manifest.schema import HttpModel, Manifest, Model
from tasks_env.canonical import content_hash
from tasks_env.families import family
from tasks_env.perturbations import VERSION as PERTURBATIONS_VERSION

SCAFFOLD_VERSION = "1"
"""Raised with every change of the loop, the system prompt, the worked example or the reminder."""


def manifest_hash(manifest: Manifest) -> str:
    """16 hex digits over the whole resolved profile."""
    return content_hash(manifest.model_dump(mode="json"), 16)


def scientific_model(entry: Model) -> dict[str, Any]:
    """The part of a model entry that can change an outcome: not its price, pace or key."""
    dump = entry.model_dump(mode="json", exclude={"pricing", "limits", "api_key_env"})
    if isinstance(entry, HttpModel):
        dump["context_tokens"] = entry.limits.context_tokens
    return dump


def scientific_hash(manifest: Manifest) -> str:
    """16 hex digits over grid, tasks, models, scaffold and decoding.

    The cap, rate limits, prices, retries and the effort of the analysis are left out: changing them keeps every
    finished episode valid.
    """
    grid = manifest.grid
    return content_hash(
        {
            "schema_version": manifest.schema_version,
            "seed": manifest.seed,
            "grid": grid.model_dump(mode="json"),
            "families": {
                name: {
                    "version": family(name).version,
                    "difficulties": {level: manifest.families[name][level] for level in difficulties},
                }
                for name, difficulties in grid.families.items()
            },
            "perturbations_version": PERTURBATIONS_VERSION,
            "models": {name: scientific_model(manifest.models[name]) for name in grid.models},
            "scaffold": manifest.scaffold.model_dump(mode="json"),
            "scaffold_version": SCAFFOLD_VERSION,
            "decoding": manifest.decoding.model_dump(mode="json"),
        },
        16,
    )
