from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from tasks_env.canonical import content_hash
from tasks_env.errors import UnknownName
from tasks_env.families import FAMILIES
from tasks_env.perturbations import PERTURBATIONS, VERSION, perturbation
from tasks_env.perturbations.distractors import POOL, draw
from tasks_env.perturbations.order import Order
from tasks_env.perturbations.synonyms import SYNONYMS
from tasks_env.perturbations.tool_names import rename
from tasks_env.tools import parameter, tool
from tests.tasks_env.perturbations.preservation import CELLS, instance_for, presented


def digest() -> str:
    """Of variants of every axis, level and family."""
    hashed = hashlib.sha256()
    for axis, levels in CELLS.items():
        for level in levels:
            for name in sorted(FAMILIES):
                for seed in (1, 2):
                    instance = instance_for(name, seed, perturbation(axis).sample(level))
                    hashed.update(presented(instance, axis, level, 11).model_dump_json().encode())
    return hashed.hexdigest()


def test_the_map_holds_every_axis_under_its_own_name() -> None:
    assert set(PERTURBATIONS) == set(CELLS)
    assert all(each.axis == name for name, each in PERTURBATIONS.items())
    assert all(perturbation(name) is each for name, each in PERTURBATIONS.items())


def test_an_unknown_axis_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"unknown perturbation axis 'paraphrases'.*did you mean 'paraphrase'"):
        perturbation("paraphrases")


@pytest.mark.parametrize(("axis", "level"), [(axis, level) for axis, levels in CELLS.items() for level in levels])
def test_a_set_is_presented_one_by_one_in_its_order(axis: str, level: str) -> None:
    chosen = perturbation(axis)
    chosen.check_level(level)
    instances = [instance_for(name, 1, chosen.sample(level)) for name in sorted(FAMILIES)]
    before = [instance.model_dump_json() for instance in instances]
    shown = chosen.present(instances, level, 3)
    assert len(shown) == len(instances)
    assert shown == chosen.present(instances, level, 3)
    assert [instance.model_dump_json() for instance in instances] == before
    assert chosen.present([], level, 3) == []
    if axis != "order":
        assert [chosen.present([instance], level, 3)[0] for instance in instances] == shown


@pytest.mark.parametrize("axis", sorted(CELLS))
def test_only_resampling_redraws_the_instances(axis: str) -> None:
    samples = {perturbation(axis).sample(level) for level in CELLS[axis]}
    assert samples == ({"s1", "s2"} if axis == "resample" else {"base"})


def test_whoever_changes_what_is_shown_raises_the_version() -> None:
    instances = [instance_for("query", 1, "base").model_copy(update={"instance_id": f"fixed-{i}"}) for i in range(5)]
    specs = [tool(word, "Does it.", {f"{word}_zorp": parameter("string", "It.")}) for word in SYNONYMS]
    shown = [
        [rename(specs, level, 1).model_dump() for level in CELLS["tool_names"]],
        [list(draw(instance, len(POOL), 1)) for instance in instances],
        [each.model_dump() for each in Order().present(instances, "shuffled", 1)],
        [each.spec.model_dump() for each in POOL.values()],
    ]
    assert (VERSION, content_hash(shown, 16)) == (2, "720271c99b34ba94")


def test_variants_are_the_same_bytes_in_another_process() -> None:
    settings = {"PYTHONHASHSEED": "4242", "TZ": "Asia/Kolkata", "LC_ALL": "C.UTF-8"}
    other = subprocess.run(
        [sys.executable, "-c", "from tests.tasks_env.perturbations.test_axes import digest; print(digest())"],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == digest()
