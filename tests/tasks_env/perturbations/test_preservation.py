"""Every axis on thousands of generated tasks: whatever is shown, each stays the task that it was."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tasks_env.families import FAMILIES
from tasks_env.perturbations import perturbation
from tasks_env.seeding import derive_seed
from tasks_env.session import render
from tasks_env.types import Presentation
from tests.tasks_env.perturbations.draws import drawn_instance
from tests.tasks_env.perturbations.preservation import CELLS, Unperturbed, assert_same_bytes

INSTANCES = int(os.environ.get("PERTURBATION_INSTANCES", "1000"))
"""Of each family: three families make thousands for each axis."""
SHOWN_AS_BASELINE = ("resample", "temperature", "order")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_axis_preserves_each_of_a_thousand_tasks_of_the_family(name: str) -> None:
    cells: Counter[tuple[str, str]] = Counter()
    ids: set[str] = set()
    for number in range(INSTANCES):
        instance = drawn_instance(name, number)
        ids.add(instance.instance_id)
        base = Unperturbed(instance, number)
        for axis, levels in CELLS.items():
            level, seed = levels[number % len(levels)], derive_seed(number, axis)
            # For the resampling axis: as if the instance had been drawn for the level.
            source = instance.model_copy(update={"sample": perturbation(axis).sample(level)})
            [presentation] = perturbation(axis).present([source], level, seed)
            cells[axis, level] += 1
            if axis not in SHOWN_AS_BASELINE:
                base.assert_same_task(render(source, presentation, axis=axis, level=level, seed=seed))
                continue
            # What is shown decides what can be done, so the baseline's bytes need no playing; what decides the bytes
            # is looked at each time, and the bytes in turn.
            assert presentation.model_copy(update={"temperature": None, "position": None}) == Presentation()
            if axis == SHOWN_AS_BASELINE[number % 3]:
                assert_same_bytes(render(source, presentation, axis=axis, level=level, seed=seed), base.variant)
        assert instance.model_dump_json() == base.bytes
    assert len(ids) == INSTANCES
    assert all(cells[axis, level] >= INSTANCES // len(levels) for axis, levels in CELLS.items() for level in levels)
