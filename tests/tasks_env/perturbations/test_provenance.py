"""A variant says where it comes from: axis, level, seed, and the hash of its source."""

from __future__ import annotations

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from tasks_env.families import family
from tasks_env.perturbations import perturbation
from tasks_env.session import render
from tasks_env.types import Instance, Presentation, Variant
from tests.tasks_env.perturbations.preservation import CELLS, instance_for, instances, search, seeds

cells = st.sampled_from([(axis, level) for axis, levels in CELLS.items() for level in levels])


def sha256_of(instance: Instance) -> str:
    """The hash of canonical JSON, made with the standard library alone."""
    data = json.loads(instance.model_dump_json())
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@search
@given(instances(), cells, seeds)
def test_a_variant_records_its_axis_level_seed_and_source(instance: Instance, cell: tuple[str, str], seed: int) -> None:
    axis, level = cell
    source = instance.model_copy(update={"sample": perturbation(axis).sample(level)})
    [presentation] = perturbation(axis).present([source], level, seed)
    stored = render(source, presentation, axis=axis, level=level, seed=seed).model_dump_json()
    variant = Variant.model_validate_json(stored)
    assert (variant.axis, variant.level, variant.seed) == (axis, level, seed)
    assert variant.source_hash == sha256_of(source)
    assert variant.instance_id == source.instance_id
    assert variant.instance_seed == source.seed
    assert (variant.family, variant.difficulty) == (source.family, source.difficulty)
    assert variant.presentation == presentation


def test_each_part_of_its_origin_makes_another_variant() -> None:
    instance = instance_for("query", 1)
    other = instance.model_copy(update={"truth": {"answer": "another"}})
    variants = [
        render(instance),
        render(instance, axis="order"),
        render(instance, level="shuffled"),
        render(instance, seed=1),
        render(instance, Presentation(position=3)),
        render(instance, Presentation(temperature=0.7)),
        render(other),
    ]
    assert len({variant.variant_id for variant in variants}) == len(variants)
    assert len({variant.source_hash for variant in variants}) == 2


@search
@given(instances())
def test_the_identity_shows_the_family_s_own_bytes(instance: Instance) -> None:
    chosen, variant = family(instance.family), render(instance, Presentation())
    plain = chosen.prompt(instance, "base")
    specs = [spec.model_dump_json() for spec in chosen.tools()]
    names = {spec.name for spec in chosen.tools()} | {
        name for spec in chosen.tools() for name in spec.parameters["properties"]
    }
    for name in names:
        for mention in (f"{{tool:{name}}}", f"{{arg:{name}}}"):
            plain = plain.replace(mention, name)
            specs = [text.replace(mention, name) for text in specs]
    assert variant.prompt.encode() == plain.encode()
    assert [spec.model_dump_json() for spec in variant.tools] == specs
    assert variant.model_dump_json() == render(instance).model_dump_json()
