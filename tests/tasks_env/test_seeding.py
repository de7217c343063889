from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.seeding import derive, derive_seed

labels = st.lists(st.one_of(st.integers(), st.text("abc", max_size=3)), max_size=4)


def test_a_seed_is_the_first_63_bits_of_a_sha256() -> None:
    digest = hashlib.sha256(b"7\x1ftabular\x1frows\x1f3").hexdigest()
    assert derive_seed(7, "tabular", "rows", 3) == int(digest[:16], 16) // 2


def test_published_seeds_do_not_move() -> None:
    assert derive_seed(0) == 3456079177858693020
    assert derive_seed(2024, "instance", "query", "easy", "base", 0) == 785025305160322563


@given(st.integers(), labels)
def test_a_seed_fits_a_signed_64_bit_integer(seed: int, names: list[str | int]) -> None:
    assert 0 <= derive_seed(seed, *names) < 2**63


def test_every_part_and_its_order_matter() -> None:
    seeds = [
        derive_seed(1, "a", "b"),
        derive_seed(2, "a", "b"),
        derive_seed(1, "b", "a"),
        derive_seed(1, "ab"),
        derive_seed(1, "a", "b", ""),
        derive_seed(1, "a"),
        derive_seed(1),
    ]
    assert len(set(seeds)) == len(seeds)


def test_generators_are_private() -> None:
    first = derive(1, "x")
    random.seed(0)
    expected = [derive(1, "x").random() for _ in range(3)]
    assert [first.random(), derive(1, "x").random()] == [expected[0], expected[0]]


def test_the_global_generator_is_left_alone() -> None:
    random.seed(42)
    state = random.getstate()
    derive(1, "x").random()
    assert random.getstate() == state


@pytest.mark.parametrize("name", ["tabular", "ünïcode", "日本"])
def test_any_text_is_a_label(name: str) -> None:
    assert derive_seed(0, name) == derive_seed(0, name)
