from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.families import FAMILIES
from tasks_env.generation import instance_seeds
from tasks_env.perturbations.resample import Resample
from tasks_env.types import Presentation
from tests.tasks_env.perturbations.preservation import (
    assert_preserved,
    assert_shown_as_baseline,
    instance_for,
    instances,
    search,
    seeds,
)


@search
@given(st.sampled_from(["s1", "s2", "s17"]), seeds, st.data())
def test_a_redrawn_instance_is_a_task_like_any_other(level: str, own_seed: int, data: st.DataObject) -> None:
    instance = data.draw(instances(Resample().sample(level)))
    variant = assert_preserved(instance, "resample", level, own_seed)
    assert variant.presentation == Presentation()
    assert_shown_as_baseline(instance, variant)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_levels_draw_instances_of_their_own(name: str) -> None:
    drawn = [
        instance_seeds(7, name, "easy", sample, 200)
        for sample in ("base", Resample().sample("s1"), Resample().sample("s2"))
    ]
    assert len({seed for draw in drawn for seed in draw}) == 600


def test_the_baseline_s_instances_are_refused() -> None:
    instance = instance_for("query", 3, "base")
    with pytest.raises(ValueError, match=f"{instance.instance_id} is of sample 'base'; generate .* sample='s1'"):
        Resample().present([instance], "s1", 0)


@pytest.mark.parametrize("level", ["base", "s0", "s01", "s", "1", "s1 ", "s-1", "s\u0661", "S1", "s1\n", "s1/.."])
def test_another_level_is_refused(level: str) -> None:
    with pytest.raises(ValueError, match="expected s1, s2, s3"):
        Resample().sample(level)
