"""Instance sets and variant sets: made from the manifest, written once, read back checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flows.errors import StudyError
from flows.grid import Cell, InstanceSetKey, instance_set_key
from flows.manifest import BASELINE_AXIS, Manifest
from flows.store import Store
from tasks_env import Instance, Presentation, Variant, generate_instance, perturbation, render
from tasks_env.canonical import content_hash
from tasks_env.errors import TaskEnvError
from tasks_env.generation import instance_seeds, validated_params
from tasks_env.perturbations import VERSION as PERTURBATIONS_VERSION
from tasks_env.seeding import derive_seed

INSTANCES = "instances.jsonl"
VARIANTS = "variants.jsonl"


def materialize_instances(store: Store, manifest: Manifest, key: InstanceSetKey) -> bool:
    """Generate and write a set unless it is there. Returns whether it was written.

    Raises:
        StudyError: generation failed; names family, difficulty and sample; nothing is marked complete.
    """
    folder = store.instance_set(key.name)
    if store.has_set(folder):
        return False
    params = validated_params(key.family, manifest.families[key.family][key.difficulty])
    seeds = instance_seeds(manifest.seed, key.family, key.difficulty, key.sample, key.count)
    try:
        instances = [
            generate_instance(key.family, params, seed, difficulty=key.difficulty, sample=key.sample) for seed in seeds
        ]
    except TaskEnvError as error:
        raise StudyError(
            f"generating family {key.family!r}, difficulty {key.difficulty!r}, sample {key.sample!r} failed: {error}"
        ) from error
    _refuse_repeats(key, instances)
    store.write_set(folder, INSTANCES, [instance.model_dump(mode="json") for instance in instances])
    return True


def _refuse_repeats(key: InstanceSetKey, instances: Sequence[Instance]) -> None:
    """Two seeds may lead to one task where a difficulty leaves little room; its episodes would be one episode."""
    first: dict[str, int] = {}
    for number, instance in enumerate(instances, start=1):
        if instance.instance_id in first:
            raise StudyError(
                f"generating family {key.family!r}, difficulty {key.difficulty!r}, sample {key.sample!r} failed: "
                f"instances {first[instance.instance_id]} and {number} of {key.count} are the same task; "
                "make the difficulty's parameters larger or lower grid.instances"
            )
        first[instance.instance_id] = number


def load_instances(store: Store, key: InstanceSetKey) -> list[Instance]:
    """A complete set, in its order. Raises `StoreError`."""
    records = store.read_set(store.instance_set(key.name), INSTANCES)
    return [Instance.model_validate(record) for record in records]


def materialize_variants(store: Store, manifest: Manifest, cell: Cell) -> bool:
    """Derive and write a cell's variants unless they are there. Returns whether they were written."""
    key = cell_instances(manifest, cell)
    folder = variant_folder(store, manifest, cell)
    if store.has_set(folder):
        return False
    variants = derive_variants(manifest, cell, load_instances(store, key))
    store.write_set(folder, VARIANTS, [variant.model_dump(mode="json") for variant in variants])
    return True


def derive_variants(manifest: Manifest, cell: Cell, instances: Sequence[Instance]) -> list[Variant]:
    """The instances as the cell shows them, in the order of `instances`."""
    seed = derive_seed(manifest.seed, "perturb", cell.id)
    if cell.axis == BASELINE_AXIS:
        presentations = [Presentation() for _ in instances]
    else:
        presentations = perturbation(cell.axis).present(instances, cell.level, seed)
    return [
        render(instance, presentation, axis=cell.axis, level=cell.level, seed=seed)
        for instance, presentation in zip(instances, presentations, strict=True)
    ]


def load_variants(store: Store, manifest: Manifest, cell: Cell) -> list[Variant]:
    """A cell's complete variants. Raises `StoreError`."""
    records = store.read_set(variant_folder(store, manifest, cell), VARIANTS)
    return [Variant.model_validate(record) for record in records]


def cell_instances(manifest: Manifest, cell: Cell) -> InstanceSetKey:
    """The set that the cell is shown on."""
    return instance_set_key(manifest, cell.family, cell.difficulty, cell.sample)


def variant_folder(store: Store, manifest: Manifest, cell: Cell) -> Path:
    """Where a cell's variants lie: a folder per source set, perturbation seed and perturbation version."""
    source = cell_instances(manifest, cell)
    seed = derive_seed(manifest.seed, "perturb", cell.id)
    return store.variant_set(cell.id, content_hash([source.digest, seed, PERTURBATIONS_VERSION], 12))
