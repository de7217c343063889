"""How fast the models may be asked: episodes at a time per model, requests and tokens per minute per endpoint."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from flows.manifest import Manifest, Model

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]

_ROUNDING = 1e-6
"""Far below one request or token: what rounding leaves open would be waited for in steps too short for any clock."""


class Bucket:
    """A token bucket that refills evenly over a minute. First come, first served.

    Args:
        per_minute: Its size and its refill per minute.
        clock, sleep: Replaced in tests.
    """

    def __init__(self, per_minute: float, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._rate = per_minute / 60
        self._size = per_minute
        self._level = per_minute
        self._clock = clock
        self._sleep = sleep
        self._refilled = clock()
        self._turn = asyncio.Lock()

    async def take(self, amount: float) -> None:
        """Wait until `amount` is there and take it; more than the bucket holds waits for a full bucket."""
        amount = min(amount, self._size)
        async with self._turn:
            while True:
                now = self._clock()
                self._level = min(self._size, self._level + (now - self._refilled) * self._rate)
                self._refilled = now
                if self._level >= amount - _ROUNDING:
                    self._level -= amount
                    return
                await self._sleep((amount - self._level) / self._rate)

    def adjust(self, amount: float) -> None:
        """Take (or, if negative, give back) the difference between an estimate and the truth."""
        self._level -= amount


class Pace:
    """The limits of one model entry."""

    def __init__(self, entry: Model) -> None:
        limits = entry.limits
        self.episodes = asyncio.Semaphore(limits.concurrent_episodes)
        self._requests = Bucket(limits.requests_per_minute) if limits.requests_per_minute else None
        self._tokens = Bucket(limits.tokens_per_minute) if limits.tokens_per_minute else None

    async def before_request(self, expected_tokens: int) -> None:
        """Wait for a place among the minute's requests and tokens."""
        if self._requests:
            await self._requests.take(1)
        if self._tokens:
            await self._tokens.take(expected_tokens)

    def after_request(self, expected_tokens: int, actual_tokens: int | None) -> None:
        """Correct the estimate; an answer without usage leaves it as it was."""
        if self._tokens and actual_tokens is not None:
            self._tokens.adjust(actual_tokens - expected_tokens)


def paces(manifest: Manifest, models: list[str]) -> dict[str, Pace]:
    """One `Pace` per model."""
    return {name: Pace(manifest.models[name]) for name in models}
