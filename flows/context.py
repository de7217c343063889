"""What every stage of one study shares, opened from a few plain options."""

from __future__ import annotations

import hashlib
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from flows.grid import (
    Cell,
    Episode,
    InstanceSetKey,
    conversations_of,
    episodes_of,
    find_cells,
    find_models,
    supported_cells,
)
from flows.manifest import DEFAULT_PROFILE, Manifest, load_manifest
from flows.provenance import Provenance, provenance
from flows.sets import cell_instances, load_instances, load_variants, variant_folder
from flows.store import Store
from tasks_env import Instance, Variant


class Options(BaseModel):
    """Which study, and which part of it: the parameters of every flow."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    manifest: str = Field(default="experiments.yaml", description="Path of the manifest")
    profile: str = Field(default=DEFAULT_PROFILE, description="Profile of the manifest")
    seed: int | None = Field(default=None, ge=0, description="Master seed in place of the manifest's")
    model: str | None = Field(default=None, description="Only this model of the grid")
    cell: str | None = Field(default=None, description="Only this cell of the grid")
    only: Literal["infra_error"] | None = Field(
        default=None, description="Run only episodes whose latest attempt ended so"
    )


class Study:
    """One study: its manifest, its tree, and the chosen part of its grid. Sets are read once."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.manifest_path = Path(options.manifest)
        self.manifest: Manifest = load_manifest(self.manifest_path, options.profile, options.seed)
        self.store = Store(self.manifest_path.resolve().parent / self.manifest.root)
        self.cells: list[Cell] = find_cells(self.manifest, options.cell)
        self.models: list[str] = find_models(self.manifest, options.model)
        self._instances: dict[InstanceSetKey, dict[str, Instance]] = {}
        self._variants: dict[Cell, list[Variant]] = {}
        self._episodes: dict[tuple[str, Cell], list[Episode]] = {}

    @cached_property
    def provenance(self) -> Provenance:
        """Commit and hashes, as of the first look."""
        return provenance(self.manifest, self.manifest_path)

    @property
    def work(self) -> list[tuple[str, Cell]]:
        """The chosen (model, cell) pairs that can be run."""
        return supported_cells(self.manifest, self.models, self.cells)

    def instances(self, cell: Cell) -> dict[str, Instance]:
        """The cell's instances by id. Raises `StoreError` if the set is missing or was edited."""
        key = cell_instances(self.manifest, cell)
        if key not in self._instances:
            found = load_instances(self.store, key)
            self._instances[key] = {instance.instance_id: instance for instance in found}
        return self._instances[key]

    def has_variants(self, cell: Cell) -> bool:
        """Whether the cell has been perturbed."""
        return self.store.has_set(variant_folder(self.store, self.manifest, cell))

    def variants(self, cell: Cell) -> list[Variant]:
        """The cell's variants. Raises `StoreError` if they are missing or were edited."""
        if cell not in self._variants:
            self._variants[cell] = load_variants(self.store, self.manifest, cell)
        return self._variants[cell]

    def episodes(self, model: str, cell: Cell) -> list[Episode]:
        """The episodes of one model in one cell."""
        key = (model, cell)
        if key not in self._episodes:
            self._episodes[key] = episodes_of(self.manifest, model, cell, self.variants(cell))
        return self._episodes[key]

    def finished(self, model: str, cell: Cell) -> dict[str, dict[str, Any]]:
        """The markers of the cell's finished episodes by id, in the order of the cell.

        Those of a conversation vouch only all together: if one is missing, it was interrupted, and is met again from
        its first task.
        """
        found: dict[str, dict[str, Any]] = {}
        touched = self.store.touched(model, cell.id)
        for conversation in conversations_of(self.episodes(model, cell)):
            if any(episode.episode_id not in touched for episode in conversation):
                continue
            markers = {episode.episode_id: self.store.marker(self.transcript(episode)) for episode in conversation}
            whole = {episode_id: marker for episode_id, marker in markers.items() if marker is not None}
            if len(whole) == len(markers):
                found |= whole
        return found

    def whole(self) -> Study:
        """The same study with every model and cell of its grid."""
        return open_study(self.options.model_copy(update={"model": None, "cell": None, "only": None}))

    def transcript(self, episode: Episode) -> Path:
        """Where the episode's transcript is, or will be."""
        return self.store.transcript(episode.model, episode.cell.id, episode.episode_id)


def open_study(options: Options) -> Study:
    """The study of `options`; the same one for all stages of a process, as long as the manifest stays what it is.

    Raises:
        ConfigurationError: the manifest or an option does not fit.
    """
    path = Path(options.manifest)
    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return _opened(options, str(path.resolve()), content)


@lru_cache(maxsize=4)
def _opened(options: Options, _path: str, _content: str) -> Study:
    return Study(options)
