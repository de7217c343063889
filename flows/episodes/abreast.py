"""Work side by side, so many pieces at a time: what has not begun takes no memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def abreast(items: Iterable[T], work: Callable[[T], Awaitable[object]], at_once: int) -> None:
    """Do `work` on every item, in their order, at most `at_once` of them at a time.

    What `work` raises is raised at once, and the others are cancelled: the first of several, if they come together.
    """
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(at_once):
                workers.create_task(worker())
    except* Exception as errors:  # noqa: BLE001 - whatever it is, the caller gets it
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
