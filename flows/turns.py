"""Taking turns at what one process at a time may write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager

from flows.console import Console
from flows.errors import CellLocked

PATIENCE_S = 3600.0
"""Scoring or analyzing a million episodes takes some ten minutes."""
LOOK_AGAIN_S = 0.2


@asynccontextmanager
async def in_turn(
    lock: Callable[[], AbstractContextManager[None]],
    told: Callable[[str], None] = lambda _holder: None,
    within_s: float = PATIENCE_S,
) -> AsyncIterator[None]:
    """Hold `lock` while the block runs, from when whoever holds it lets go, or has ended.

    Args:
        lock: Refuses with `CellLocked` while another one holds it.
        told: Called with the pid of each process that is waited for.
        within_s: How long is waited in all.

    Raises:
        CellLocked: somebody still held it then.
    """
    deadline, holder = time.monotonic() + within_s, None
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(lock())
                break
            except CellLocked as error:
                if time.monotonic() >= deadline:
                    raise
                if error.pid != holder:
                    holder = error.pid
                    told(holder)
            await asyncio.sleep(LOOK_AGAIN_S)  # not `time.sleep`: a Ctrl-C ends it at once
        yield


def waiting_line(console: Console, stage: str) -> Callable[[str], None]:
    """For a stage that waits for the results: says for whom."""
    return lambda holder: console.line(f"{stage}: waiting for process {holder}, which works on the same results")
