"""A sample for an audit: of every kind of ending something, the rest by size, the same for the same seed."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from flows.grid import Cell, Episode
from flows.pages.audit import allocate, sample

SIZES = st.dictionaries(
    st.tuples(st.sampled_from(["completed", "step_cap", "refused", "infra_error"]), st.sampled_from(["passed", "x"])),
    st.integers(1, 60),
    min_size=1,
)
CELL = Cell("query", "easy", "none", "baseline")


def episodes(name: str, count: int) -> list[Episode]:
    return [Episode(f"{name}{n:03}", "m", CELL, "i", "v", 1, 0.0) for n in range(count)]


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 100))
def test_as_many_as_wanted_none_twice_and_of_each_kind_one(sizes: dict[tuple[str, str], int], wanted: int) -> None:
    counts = allocate(sizes, wanted)
    assert sum(counts.values()) == min(wanted, sum(sizes.values()))
    assert all(0 < counts[stratum] <= sizes[stratum] for stratum in counts)
    assert len(counts) == min(len(sizes), wanted)


def test_beyond_one_of_each_sizes_decide() -> None:
    sizes = {("completed", "passed"): 600, ("completed", "failed"): 300, ("refused", "failed"): 3}
    counts = allocate(sizes, 20)
    assert counts == {("completed", "passed"): 13, ("completed", "failed"): 6, ("refused", "failed"): 1}
    assert allocate(sizes, 2) == {("completed", "passed"): 1, ("completed", "failed"): 1}


def test_the_seed_decides_which_and_the_order_of_what_is_there_does_not() -> None:
    strata = {("completed", "passed"): episodes("p", 40), ("step_cap", "failed"): episodes("f", 20)}
    drawn = [episode.episode_id for episode in sample(strata, 9, seed=3)]
    reverse = {stratum: list(reversed(strata[stratum])) for stratum in reversed(list(strata))}
    assert [episode.episode_id for episode in sample(reverse, 9, seed=3)] == drawn
    assert [episode.episode_id for episode in sample(strata, 9, seed=4)] != drawn
    assert Counter(name[0] for name in drawn) == {"p": 6, "f": 3}
    assert len(set(drawn)) == 9
