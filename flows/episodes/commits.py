"""One flush to the disk for all who wait for one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class GroupCommit:
    """Runs `flush` in a thread, one at a time, on behalf of many.

    A flush that has begun may miss what was written since; those who come while it runs share the next one.
    """

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush
        self._running: asyncio.Future[None] | None = None
        self._next: asyncio.Future[None] | None = None

    async def __call__(self) -> None:
        """Return once a flush that began after this call has ended. Raises what it raised."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._after(self._running))
        await asyncio.shield(self._next)

    async def _after(self, earlier: asyncio.Future[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        self._running, self._next = self._next, None
        await asyncio.to_thread(self._flush)
