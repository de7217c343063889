"""Group commit: whoever waits is covered by a flush that began after it came, and many share one."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from flows.episodes.commits import GroupCommit


def test_those_who_come_while_a_flush_runs_share_the_next_one() -> None:
    written, flushes, running = 0, list[int](), threading.Lock()

    def flush() -> None:
        assert running.acquire(blocking=False), "one at a time"
        flushes.append(written)
        time.sleep(0.02)
        running.release()

    async def everybody() -> None:
        commit = GroupCommit(flush)

        async def one(delay: float) -> None:
            nonlocal written
            await asyncio.sleep(delay)
            written += 1
            mine = written
            await commit()
            assert any(covered >= mine for covered in flushes)

        await asyncio.gather(*(one(0.001 * number) for number in range(40)))

    asyncio.run(everybody())
    assert 2 <= len(flushes) <= 12, "forty came within forty milliseconds"


def test_a_flush_that_fails_fails_for_all_who_waited_for_it_and_for_nobody_else() -> None:
    troubles = [OSError("full"), None]

    def flush() -> None:
        trouble = troubles.pop(0)
        if trouble:
            raise trouble

    async def three() -> list[object]:
        commit = GroupCommit(flush)
        first = await asyncio.gather(commit(), commit(), return_exceptions=True)
        return [*first, await commit()]

    results = asyncio.run(three())
    assert [str(result) for result in results] == ["full", "full", "None"]


def test_one_who_is_cancelled_takes_the_flush_from_nobody() -> None:
    done = []

    def flush() -> None:
        time.sleep(0.02)
        done.append(1)

    async def two() -> None:
        commit = GroupCommit(flush)
        impatient, patient = asyncio.create_task(commit()), asyncio.create_task(commit())
        await asyncio.sleep(0.005)
        impatient.cancel()
        await patient
        with pytest.raises(asyncio.CancelledError):
            await impatient

    asyncio.run(two())
    assert done == [1]
