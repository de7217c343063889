"""Work side by side: in order, bounded, and what one raises is raised."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from flows.episodes.abreast import abreast


def test_every_item_is_worked_on_in_order_and_no_more_than_so_many_at_a_time() -> None:
    begun: list[int] = []
    busy: list[int] = []
    most = 0

    async def work(item: int) -> None:
        nonlocal most
        begun.append(item)
        busy.append(item)
        most = max(most, len(busy))
        await asyncio.sleep(0.001 * (item % 3))
        busy.remove(item)

    asyncio.run(abreast(range(20), work, 4))
    assert begun == list(range(20))
    assert most == 4


def test_items_are_taken_only_when_there_is_room() -> None:
    taken = 0

    async def work(item: int) -> None:
        await asyncio.sleep(0)
        assert taken <= item + 3

    def lazily() -> Iterator[int]:
        nonlocal taken
        for item in range(50):
            taken += 1
            yield item

    asyncio.run(abreast(lazily(), work, 3))
    assert taken == 50


def test_an_error_is_raised_as_it_is_and_what_waits_is_not_begun() -> None:
    begun: list[int] = []

    async def work(item: int) -> None:
        begun.append(item)
        await asyncio.sleep(0.001)
        if item == 2:
            raise ValueError("item 2")

    with pytest.raises(ValueError, match="item 2"):
        asyncio.run(abreast(range(100), work, 3))
    assert len(begun) < 10
