from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.errors import UnknownName
from tasks_env.perturbations.order import Order
from tasks_env.session import render
from tasks_env.types import Instance
from tests.tasks_env.perturbations.preservation import (
    assert_preserved,
    assert_shown_as_baseline,
    family_names,
    instance_for,
    search,
    seeds,
    sizes,
)


def positions(instances: list[Instance], seed: int) -> list[int]:
    places = [shown.position for shown in Order().present(instances, "shuffled", seed)]
    return [place for place in places if place is not None]


@pytest.fixture(scope="module")
def instances() -> list[Instance]:
    return [instance_for("query", seed, "base") for seed in range(20)]


@search
@given(family_names, sizes, seeds, seeds)
def test_a_shuffled_task_is_the_baseline_s_to_the_byte(name: str, size: str, seed: int, own_seed: int) -> None:
    instance = instance_for(name, seed, Order().sample("shuffled"), size)
    variant = assert_preserved(instance, "order", "shuffled", own_seed)
    assert_shown_as_baseline(instance, variant)
    assert variant.variant_id != render(instance).variant_id


@search
@given(st.integers(0, 20), seeds)
def test_positions_are_a_permutation_of_the_set(instances: list[Instance], size: int, seed: int) -> None:
    assert sorted(positions(instances[:size], seed)) == list(range(size))


def test_the_seed_decides_and_the_set_is_really_shuffled(instances: list[Instance]) -> None:
    orders = {tuple(positions(instances, seed)) for seed in range(5)}
    assert len(orders) == 5
    assert tuple(range(20)) not in orders
    assert positions(instances, 3) == positions(instances, 3)


def test_every_place_is_reached_about_equally_often(instances: list[Instance]) -> None:
    first = [positions(instances[:4], seed)[0] for seed in range(400)]
    assert all(70 <= first.count(place) <= 130 for place in range(4))


def test_places_follow_the_instances_and_not_the_order_of_the_list(instances: list[Instance]) -> None:
    forward, backward = positions(instances, 3), positions(instances[::-1], 3)
    assert backward[::-1] == forward


def test_a_set_that_grows_keeps_the_relative_order(instances: list[Instance]) -> None:
    few, many = positions(instances[:8], 3), positions(instances, 3)
    by_place = sorted(range(8), key=lambda i: many[i])
    assert sorted(range(8), key=lambda i: few[i]) == by_place


def test_the_same_instance_twice_has_two_places(instances: list[Instance]) -> None:
    assert sorted(positions([instances[0]] * 3, 1)) == [0, 1, 2]


@pytest.mark.parametrize("level", ["", "sorted", "Shuffled"])
def test_another_level_is_refused(level: str) -> None:
    with pytest.raises(UnknownName, match="unknown order level"):
        Order().check_level(level)
