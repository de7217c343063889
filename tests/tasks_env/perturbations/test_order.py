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
    instance_for,
    instances,
    search,
    seeds,
)


def positions(tasks: list[Instance], seed: int) -> list[int]:
    places = [shown.position for shown in Order().present(tasks, "shuffled", seed)]
    return [place for place in places if place is not None]


@pytest.fixture(scope="module")
def a_set() -> list[Instance]:
    return [instance_for("query", seed, "base") for seed in range(20)]


@search
@given(instances(), seeds)
def test_a_shuffled_task_is_the_baseline_s_to_the_byte(instance: Instance, own_seed: int) -> None:
    variant = assert_preserved(instance, "order", "shuffled", own_seed)
    assert_shown_as_baseline(instance, variant)
    assert variant.variant_id != render(instance).variant_id


@search
@given(st.integers(0, 20), seeds)
def test_positions_are_a_permutation_of_the_set(a_set: list[Instance], size: int, seed: int) -> None:
    assert sorted(positions(a_set[:size], seed)) == list(range(size))


def test_the_seed_decides_and_the_set_is_really_shuffled(a_set: list[Instance]) -> None:
    orders = {tuple(positions(a_set, seed)) for seed in range(5)}
    assert len(orders) == 5
    assert tuple(range(20)) not in orders
    assert positions(a_set, 3) == positions(a_set, 3)


def test_every_place_is_reached_about_equally_often(a_set: list[Instance]) -> None:
    first = [positions(a_set[:4], seed)[0] for seed in range(400)]
    assert all(70 <= first.count(place) <= 130 for place in range(4))


def test_places_follow_the_instances_and_not_the_order_of_the_list(a_set: list[Instance]) -> None:
    forward, backward = positions(a_set, 3), positions(a_set[::-1], 3)
    assert backward[::-1] == forward


@search
@given(st.integers(0, 20), seeds)
def test_a_set_that_grows_keeps_the_relative_order(a_set: list[Instance], size: int, seed: int) -> None:
    few, many = positions(a_set[:size], seed), positions(a_set, seed)
    assert sorted(range(size), key=lambda i: few[i]) == sorted(range(size), key=lambda i: many[i])


def test_the_same_instance_twice_has_two_places(a_set: list[Instance]) -> None:
    assert sorted(positions([a_set[0]] * 3, 1)) == [0, 1, 2]


@pytest.mark.parametrize("level", ["", "sorted", "Shuffled"])
def test_another_level_is_refused(level: str) -> None:
    with pytest.raises(UnknownName, match="unknown order level"):
        Order().check_level(level)
