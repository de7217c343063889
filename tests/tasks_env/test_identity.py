"""What is remembered by identity belongs to one object, however equal another one is."""

from __future__ import annotations

import gc
from functools import lru_cache

from tasks_env.identity import Same


def test_equal_objects_are_not_the_same() -> None:
    first, second = {"rows": [1]}, {"rows": [1]}
    assert Same(first) == Same(first)
    assert hash(Same(first)) == hash(Same(first))
    assert Same(first) != Same(second)
    assert Same(first) != first


def test_a_remembered_object_is_kept_so_that_no_other_one_gets_its_identity() -> None:
    worked_out: list[int] = []

    @lru_cache(maxsize=2)
    def length(rows: Same[list[int]]) -> int:
        worked_out.append(len(rows.value))
        return len(rows.value)

    for size in range(200):
        assert length(Same([0] * size)) == size
        gc.collect(0)
    assert worked_out == list(range(200))
