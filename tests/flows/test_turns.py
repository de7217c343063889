"""Taking turns: whoever waits is told for whom, gets the lock when it is free, and can be stopped at any moment."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from flows.errors import CellLocked
from flows.files import exclusive
from flows.turns import in_turn
from tests.flows.test_store import another_process_holding


@pytest.fixture
def lock(tmp_path: Path) -> Callable[[], AbstractContextManager[None]]:
    return lambda: exclusive(tmp_path / ".lock", "it")


async def taken(lock: Callable[[], AbstractContextManager[None]], told: list[str], within_s: float = 60) -> None:
    async with in_turn(lock, told.append, within_s):
        with pytest.raises(CellLocked, match=f"process {os.getpid()};"), lock():
            raise AssertionError("not held")


def test_a_free_lock_is_held_at_once_and_nobody_is_told(lock: Callable[[], AbstractContextManager[None]]) -> None:
    told: list[str] = []
    asyncio.run(taken(lock, told, within_s=0))
    assert told == []
    with lock():
        pass


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_lock_of_a_process_that_ends_in_whatever_way_is_passed_on(
    lock: Callable[[], AbstractContextManager[None]], tmp_path: Path, end: signal.Signals
) -> None:
    told: list[str] = []

    async def go() -> None:
        waiting = asyncio.create_task(taken(lock, told))
        await asyncio.sleep(0.5)
        assert (told, waiting.done()) == ([str(holder.pid)], False)
        holder.send_signal(end)
        await waiting

    with another_process_holding(tmp_path / ".lock") as holder:
        asyncio.run(go())
    assert told == [str(holder.pid)], "once, however often it was looked at"


def test_waiting_has_an_end(lock: Callable[[], AbstractContextManager[None]], tmp_path: Path) -> None:
    with another_process_holding(tmp_path / ".lock") as holder:
        with pytest.raises(CellLocked, match=f"process {holder.pid}; wait for it, or stop it, and run again"):
            asyncio.run(taken(lock, [], within_s=0.3))
        assert holder.poll() is None


def test_a_ctrl_c_ends_the_waiting_at_once_and_leaves_the_holder_alone(
    lock: Callable[[], AbstractContextManager[None]], tmp_path: Path
) -> None:
    began = time.monotonic()

    async def go() -> None:
        asyncio.get_running_loop().call_later(0.3, signal.raise_signal, signal.SIGINT)
        await taken(lock, [])

    with another_process_holding(tmp_path / ".lock") as holder:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(go())
        assert holder.poll() is None
        with pytest.raises(CellLocked), lock():
            raise AssertionError("entered")
    assert time.monotonic() - began < 30


def test_those_who_wait_hold_it_one_after_the_other(lock: Callable[[], AbstractContextManager[None]]) -> None:
    told: list[str] = []
    inside, most = 0, 0

    async def one() -> None:
        nonlocal inside, most
        async with in_turn(lock, told.append):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1

    async def go() -> None:
        await asyncio.gather(*(one() for _ in range(3)))

    asyncio.run(go())
    assert (most, told) == (1, [str(os.getpid())] * 2)
