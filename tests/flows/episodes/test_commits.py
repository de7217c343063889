"""Group commit: whoever waits is covered by a flush that began after it came, and many share one."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial

import pytest

from flows.episodes.commits import HANDS, GroupCommit


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


def test_what_comes_before_and_after_is_done_around_one_flush_for_all() -> None:
    happened: list[str] = []

    async def everybody() -> None:
        commit = GroupCommit(lambda: happened.append("flush"))
        await asyncio.gather(
            *(
                commit(
                    before=partial(happened.append, f"before {name}"), after=partial(happened.append, f"after {name}")
                )
                for name in range(9)
            )
        )

    asyncio.run(everybody())
    assert sorted(happened[:9]) == [f"before {name}" for name in range(9)]
    assert happened[9] == "flush"
    assert sorted(happened[10:]) == [f"after {name}" for name in range(9)]


def test_work_of_one_go_is_done_side_by_side() -> None:
    meeting = threading.Barrier(HANDS, timeout=10)

    def meet() -> None:
        meeting.wait()

    async def everybody() -> None:
        commit = GroupCommit(lambda: None)
        await asyncio.gather(*(commit(before=meet) for _ in range(HANDS)))

    asyncio.run(everybody())


def fails() -> None:
    raise OSError("full")


@pytest.mark.parametrize("place", ["before", "after"])
def test_work_that_fails_fails_for_its_own_and_leaves_out_what_comes_after(place: str) -> None:
    happened: list[str] = []

    async def two() -> list[BaseException | None]:
        commit = GroupCommit(lambda: happened.append("flush"))
        mine = {"after": partial(happened.append, "mine"), place: fails}
        other = commit(before=partial(happened.append, "other before"), after=partial(happened.append, "other after"))
        return await asyncio.gather(commit(**mine), other, return_exceptions=True)

    assert [str(result) for result in asyncio.run(two())] == ["full", "None"]
    assert happened == ["other before", "flush", "other after"]


def test_after_a_flush_that_failed_nothing_is_done_for_anybody() -> None:
    happened: list[str] = []

    async def two() -> list[BaseException | None]:
        commit = GroupCommit(fails)
        return await asyncio.gather(
            *(commit(after=partial(happened.append, "after")) for _ in range(2)), return_exceptions=True
        )

    assert [str(result) for result in asyncio.run(two())] == ["full", "full"]
    assert happened == []


def test_where_no_thread_can_be_had_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none_left(*_work: object) -> None:
        raise RuntimeError("can't start new thread")

    async def two() -> list[BaseException | None]:
        commit = GroupCommit(lambda: None)
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "to_thread", none_left)
            refused = await asyncio.gather(commit(), commit(before=fails), return_exceptions=True)
        return [*refused, await commit()]

    assert [str(result) for result in asyncio.run(two())] == ["can't start new thread"] * 2 + ["None"]


def test_for_one_who_was_cancelled_nothing_more_is_done() -> None:
    begun, go_on, happened = threading.Event(), threading.Event(), list[str]()

    def flush() -> None:
        begun.set()
        assert go_on.wait(10)

    async def two() -> None:
        commit = GroupCommit(flush)
        impatient = asyncio.create_task(commit(after=partial(happened.append, "impatient")))
        patient = asyncio.create_task(commit(after=partial(happened.append, "patient")))
        await asyncio.to_thread(begun.wait, 10)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        go_on.set()
        await patient

    asyncio.run(two())
    assert happened == ["patient"], "its lock on what it would have marked may be gone"
