"""The cells and episodes that a manifest spells out, and their identities."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from flows.errors import ConfigurationError
from flows.manifest import (
    BASELINE_AXIS,
    BASELINE_LEVEL,
    SCAFFOLD_VERSION,
    HttpModel,
    Manifest,
    scientific_model,
)
from tasks_env import Variant, perturbation
from tasks_env.canonical import content_hash
from tasks_env.families import family
from tasks_env.types import BASE_SAMPLE


@dataclass(frozen=True, order=True)
class Cell:
    """One family and difficulty under one level of one axis. Crossed with every model of the grid."""

    family: str
    difficulty: str
    axis: str
    level: str

    @property
    def id(self) -> str:
        """`<family>-<difficulty>-<axis>-<level>`: also the folder's name."""
        return f"{self.family}-{self.difficulty}-{self.axis}-{self.level}"

    @property
    def sample(self) -> str:
        """The draw of instances that the cell is shown on."""
        if self.axis == BASELINE_AXIS:
            return BASE_SAMPLE
        return perturbation(self.axis).sample(self.level)


@dataclass(frozen=True)
class Episode:
    """One run of one model on one variant."""

    episode_id: str
    model: str
    cell: Cell
    instance_id: str
    variant_id: str
    run_seed: int
    temperature: float | None
    """Null: none is sent."""
    conversation_id: str | None = None
    """Shared by the episodes whose tasks are met in one conversation; null where each is a conversation of its own."""
    conversation_position: int | None = None
    """Its place there, from 1; null likewise."""


@dataclass(frozen=True)
class InstanceSetKey:
    """What identifies a set of instances; a folder of its own per digest."""

    family: str
    difficulty: str
    sample: str
    count: int
    digest: str

    @property
    def name(self) -> str:
        """The folder's name."""
        return f"{self.family}-{self.difficulty}-{self.sample}-{self.digest}"


def cells_of(manifest: Manifest) -> list[Cell]:
    """Every cell of the grid, baseline first within family and difficulty."""
    levels = [(BASELINE_AXIS, BASELINE_LEVEL)]
    levels += [(axis, level) for axis, names in manifest.grid.axes.items() for level in names]
    return [
        Cell(name, difficulty, axis, level)
        for name, difficulties in manifest.grid.families.items()
        for difficulty in difficulties
        for axis, level in levels
    ]


def find_cells(manifest: Manifest, cell_id: str | None) -> list[Cell]:
    """All cells, or the one called `cell_id`.

    Raises:
        ConfigurationError: there is no such cell; the message suggests the nearest ids.
    """
    cells = cells_of(manifest)
    if cell_id is None:
        return cells
    chosen = [cell for cell in cells if cell.id == cell_id]
    if not chosen:
        ids = [cell.id for cell in cells]
        near = difflib.get_close_matches(cell_id, ids, n=3, cutoff=0.4) or ids[:3]
        raise ConfigurationError(
            f"--cell: profile {manifest.profile!r} has no cell {cell_id!r}; nearest: {', '.join(near)} "
            f"({len(ids)} cells in all, `agent-bench plan --cells` lists them)"
        )
    return chosen


def find_models(manifest: Manifest, name: str | None) -> list[str]:
    """All models of the grid, or the one called `name`.

    Raises:
        ConfigurationError: there is no such model in the grid.
    """
    names = manifest.grid.models
    if name is None:
        return list(names)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigurationError(
            f"--model: profile {manifest.profile!r} has no model {name!r}; its models: {', '.join(names)}{hint}"
        )
    return [name]


def runs_of(manifest: Manifest, cell: Cell) -> int:
    """Run seeds per instance in the cell."""
    runs = manifest.grid.runs
    return {BASELINE_AXIS: runs.baseline, "order": runs.order}.get(cell.axis, runs.others)


def unsupported(manifest: Manifest, model: str, cell: Cell) -> str | None:
    """Why the model cannot be asked for this cell; null if it can."""
    entry = manifest.models[model]
    if cell.axis == "temperature" and isinstance(entry, HttpModel):
        return entry.refusal_of(float(cell.level))
    return None


def supported_cells(manifest: Manifest, models: Sequence[str], cells: Sequence[Cell]) -> list[tuple[str, Cell]]:
    """The (model, cell) pairs that can be run, in the order of the grid."""
    return [(model, cell) for model in models for cell in cells if unsupported(manifest, model, cell) is None]


def instance_set_key(manifest: Manifest, name: str, difficulty: str, sample: str) -> InstanceSetKey:
    """The identity of the set that a cell draws from."""
    count = manifest.grid.instances
    digest = content_hash(
        {
            "family": name,
            "version": family(name).version,
            "params": manifest.families[name][difficulty],
            "difficulty": difficulty,
            "sample": sample,
            "seed": manifest.seed,
            "count": count,
        },
        12,
    )
    return InstanceSetKey(name, difficulty, sample, count, digest)


def instance_set_keys(manifest: Manifest, cells: Sequence[Cell]) -> list[InstanceSetKey]:
    """The sets that `cells` need, each once."""
    keys = {(cell.family, cell.difficulty, cell.sample): None for cell in cells}
    return [instance_set_key(manifest, *key) for key in keys]


def temperature_of(manifest: Manifest, model: str, variant: Variant) -> float | None:
    """The temperature that is sent; null where the model decides."""
    entry = manifest.models[model]
    if isinstance(entry, HttpModel) and not entry.capabilities.temperature:
        return None
    if variant.presentation.temperature is not None:
        return variant.presentation.temperature
    baseline = manifest.decoding.baseline_temperature
    return None if isinstance(baseline, str) else baseline


def companies(variants: Sequence[Variant], size: int) -> list[tuple[Variant, ...]]:
    """The variants that share a conversation, in the order in which it meets them.

    Who shares one is fixed by the order of the set: its first `size`, the next `size`, and what is left. So every
    cell of a sample has the same companies, and what a growing set adds leaves the full ones as they are. The
    presentation's `position` decides about the order within a company, and about nothing else: a comparison of
    orders is not one of companies.
    """
    together = [variants[start : start + size] for start in range(0, len(variants), size)]
    return [tuple(sorted(company, key=_place)) for company in together]


def _place(variant: Variant) -> int:
    """Its position; all alike, which keeps the order of the set, where it has none."""
    position = variant.presentation.position
    return 0 if position is None else position


def conversations_of(episodes: Sequence[Episode]) -> list[tuple[Episode, ...]]:
    """The episodes of a cell by their conversations, each in its order; an independent episode is one of its own."""
    keyed: dict[str, list[Episode]] = {}
    for episode in episodes:
        keyed.setdefault(episode.conversation_id or episode.episode_id, []).append(episode)
    return [tuple(together) for together in keyed.values()]


def episodes_of(manifest: Manifest, model: str, cell: Cell, variants: Sequence[Variant]) -> list[Episode]:
    """The episodes of one model in one cell: every variant, every run seed; those of a conversation in their order.

    With several tasks in a conversation an episode's id covers the tasks that were met before it, as they can change
    its outcome, and not those that come after it.
    """
    entry = scientific_model(manifest.models[model])
    shared = {
        "cell": cell.id,
        "model": model,
        "entry": entry,
        "scaffold": manifest.scaffold.model_dump(mode="json"),
        "scaffold_version": SCAFFOLD_VERSION,
    }
    size = manifest.scaffold.tasks_per_conversation
    episodes = []
    for company in companies(variants, size):
        for run_seed in range(1, runs_of(manifest, cell) + 1):
            conversation_id: str | None = None
            for position, variant in enumerate(company, start=1):
                temperature = temperature_of(manifest, model, variant)
                identity = {**shared, "variant": variant.variant_id, "run_seed": run_seed, "temperature": temperature}
                if size > 1:
                    identity["tasks_before"] = [earlier.variant_id for earlier in company[: position - 1]]
                episode_id = content_hash(identity, 20)
                if size > 1 and conversation_id is None:
                    # By its first episode alone, so that it stays what it is when the last conversation grows.
                    conversation_id = content_hash(["conversation", episode_id], 20)
                episodes.append(
                    Episode(
                        episode_id=episode_id,
                        model=model,
                        cell=cell,
                        instance_id=variant.instance_id,
                        variant_id=variant.variant_id,
                        run_seed=run_seed,
                        temperature=temperature,
                        conversation_id=conversation_id,
                        conversation_position=None if conversation_id is None else position,
                    )
                )
    return episodes


def episode_count(manifest: Manifest, models: Sequence[str], cells: Sequence[Cell]) -> int:
    """How many episodes the pairs hold, without generating anything."""
    return sum(
        manifest.grid.instances * runs_of(manifest, cell) for _, cell in supported_cells(manifest, models, cells)
    )
