"""How fast the models may be asked: episodes and requests at a time per model, requests and tokens per minute per
endpoint.

Requests and tokens per minute are a limit of the account at an endpoint: all entries with the same address and the
same key share one bucket of each kind, of the smallest size that any of them names.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from flows.episodes.ceiling import Ceiling, Places
from flows.manifest import HttpModel, Manifest, Model

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
        """Take (or, if negative, give back) the difference between an estimate and the truth.

        At most a full bucket is taken, as by `take`: whatever a server says it has read, the next request waits
        no longer for it than two minutes.
        """
        self._level -= min(amount, self._size)


@dataclass
class Buckets:
    """An endpoint's allowances per minute; null: no limit."""

    requests: Bucket | None = None
    tokens: Bucket | None = None


class Sending:
    """One request on its way; tells the pace how it went. Without a word, it was neither taken nor one too many."""

    def __init__(self, pace: Pace, expected_tokens: int) -> None:
        self._pace = pace
        self._expected = expected_tokens
        self._number = pace.ceiling.send()

    def answered(self, tokens: int | None) -> None:
        """The model answered; null `tokens`: nobody said how many, the estimate stays."""
        self._pace.ceiling.answered(self._number)
        bucket = self._pace.buckets.tokens
        if bucket and tokens is not None:
            bucket.adjust(tokens - self._expected)

    def refused(self) -> None:
        """The server takes no more at a time."""
        self._pace.ceiling.refused(self._number)


class Pace:
    """The limits of one model entry.

    The ceiling of episodes at a time adapts to the server (see `flows.episodes.ceiling`). Episodes that had begun
    when it fell go on, but only as many requests as the ceiling allows are in flight; the rest wait for their turn
    before they are sent, which takes none of their attempts.
    """

    def __init__(self, entry: Model, buckets: Buckets | None = None) -> None:
        self.ceiling = Ceiling(entry.limits.concurrent_episodes)
        self.episodes = Places(self.ceiling)
        self.buckets = buckets or _buckets([entry])
        self._requests = Places(self.ceiling)

    @asynccontextmanager
    async def request(self, expected_tokens: int) -> AsyncIterator[Sending]:
        """Wait for a place among the requests in flight and those of this minute, and hold the former."""
        async with self._requests:
            if self.buckets.requests:
                await self.buckets.requests.take(1)
            if self.buckets.tokens:
                await self.buckets.tokens.take(expected_tokens)
            try:
                yield Sending(self, expected_tokens)
            finally:
                self.episodes.admit()


def paces(manifest: Manifest, models: list[str]) -> dict[str, Pace]:
    """One `Pace` per model; models at one endpoint share its allowances per minute."""
    endpoints: dict[object, list[str]] = {}
    for name in models:
        entry = manifest.models[name]
        endpoints.setdefault(_endpoint(entry) if isinstance(entry, HttpModel) else name, []).append(name)
    result = {}
    for names in endpoints.values():
        shared = _buckets(manifest.models[name] for name in names)
        result.update({name: Pace(manifest.models[name], shared) for name in names})
    return {name: result[name] for name in models}


def _endpoint(entry: HttpModel) -> tuple[str | None, ...]:
    address = entry.base_url and entry.base_url.rstrip("/")
    return address, entry.base_url_env, entry.api_key_env


def _buckets(entries: Iterable[Model]) -> Buckets:
    limits = [entry.limits for entry in entries]
    requests = [one.requests_per_minute for one in limits if one.requests_per_minute]
    tokens = [one.tokens_per_minute for one in limits if one.tokens_per_minute]
    return Buckets(Bucket(min(requests)) if requests else None, Bucket(min(tokens)) if tokens else None)
