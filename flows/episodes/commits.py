"""One flush to the disk for all who wait for one, and with it what each of them has to do before and after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Work = Callable[[], None]

HANDS = 4
"""Threads that do the work of one go: a disk flushes several files in little more time than one."""


@dataclass
class _Commit:
    before: Work | None
    after: Work | None
    done: asyncio.Future[None]
    error: Exception | None = None

    @property
    def wanted(self) -> bool:
        """Whether nothing went wrong and somebody waits: who was cancelled may have given up the lock on its files."""
        return self.error is None and not self.done.done()


class GroupCommit:
    """Runs `flush` in a thread, one at a time, on behalf of many.

    A flush that has begun may miss what was written since; those who come while it runs share the next one. A thread
    that contends with the event loop for the interpreter costs both of them more than its work does, so what else an
    episode has the disk do is done in the same go, for all who are ready together.
    """

    def __init__(self, flush: Work) -> None:
        self._flush = flush
        self._waiting: list[_Commit] = []
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, before: Work | None = None, after: Work | None = None) -> None:
        """Have `before`, a flush that begins after it, and `after` carried out in threads, in this order.

        Raises what one of them raised; the later ones are then left out.
        """
        commit = _Commit(before, after, asyncio.get_running_loop().create_future())
        self._waiting.append(commit)
        if self._running is None:
            self._running = asyncio.create_task(self._carry_out())
        await commit.done

    async def _carry_out(self) -> None:
        commits: list[_Commit] = []
        try:
            while self._waiting:
                commits, self._waiting = self._waiting, []
                await _in_threads([(commit, commit.before) for commit in commits if commit.before and commit.wanted])
                broken = await asyncio.to_thread(_error_of, self._flush)
                for commit in commits:
                    commit.error = commit.error or broken
                await _in_threads([(commit, commit.after) for commit in commits if commit.after and commit.wanted])
                for commit in commits:
                    _tell(commit)
        except Exception as error:  # noqa: BLE001 - no thread can be had: nobody must wait for one for ever
            commits, self._waiting = [*commits, *self._waiting], []
            for commit in commits:
                commit.error = commit.error or error
                _tell(commit)
        finally:
            self._running = None


def _tell(commit: _Commit) -> None:
    if commit.done.done():  # who waited for it was cancelled
        return
    if commit.error is None:
        commit.done.set_result(None)
    else:
        commit.done.set_exception(commit.error)


async def _in_threads(works: Sequence[tuple[_Commit, Work]]) -> None:
    """Carry them out, several threads taking about as many each; a commit keeps the error of its work."""
    parts = [works[start::HANDS] for start in range(min(HANDS, len(works)))]
    await asyncio.gather(*(asyncio.to_thread(_one_by_one, part) for part in parts))


def _one_by_one(works: Sequence[tuple[_Commit, Work]]) -> None:
    for commit, work in works:
        commit.error = _error_of(work)


def _error_of(work: Work) -> Exception | None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - raised where it is waited for
        return error
    return None
