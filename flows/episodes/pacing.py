"""How fast the models may be asked: episodes and requests at a time per model, requests and tokens per minute per
endpoint.

Requests and tokens per minute are a limit of the account at an endpoint: all entries with the same address and the
same key share one bucket of each kind, of the smallest size that any of them names. Where processes share a server that
keeps such limits (`shared_limits`), a bucket also takes from there, a second's worth at a time.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from flows.episodes.ceiling import Ceiling, Places
from flows.manifest import HttpModel, Manifest, Model
from tasks_env.canonical import content_hash

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]
Acquire = Callable[[str, int], Awaitable[None]]
"""Takes so many units of the limit of that name, which processes share; returns once they are granted."""

_REQUEST_GRAIN = 1000
"""Units of a request in a shared limit."""

_ROUNDING = 1e-6
"""Far below one request or token: what rounding leaves open would be waited for in steps too short for any clock."""


@dataclass(frozen=True)
class SharedLimit:
    """An allowance per minute of one account at one endpoint, as all processes share it."""

    name: str
    """Says the kind, the endpoint as the manifest has it, and no value of the environment."""
    per_minute: int
    grain: int
    """Units of one request or token: the server of the limits forgets what is less than one unit."""


class Stock:
    """What this process has taken out of a shared limit and not yet used.

    To ask costs the server a transaction, so more than is needed at once is taken: up to what a second refills. Other
    processes do without that much, and none of it comes back. First come, first served.
    """

    def __init__(self, limit: SharedLimit, acquire: Acquire) -> None:
        self._limit = limit
        self._acquire = acquire
        self._level = 0.0
        self._turn = asyncio.Lock()

    async def take(self, amount: float) -> None:
        """Wait until `amount`, of at most a minute's worth, is there and take it. Raises what `acquire` raises."""
        amount = min(amount, self._limit.per_minute)
        async with self._turn:
            while self._level < amount:
                wanted = math.ceil(max(amount - self._level, self._limit.per_minute / 60))
                wanted = min(wanted, self._limit.per_minute)
                await self._acquire(self._limit.name, wanted * self._limit.grain)
                self._level += wanted
            self._level -= amount

    def adjust(self, amount: float) -> None:
        """As that of `Bucket`."""
        self._level -= min(amount, self._limit.per_minute)


class Bucket:
    """A token bucket that refills evenly over a minute. First come, first served.

    Args:
        per_minute: Its size and its refill per minute.
        clock, sleep: Replaced in tests.
        stock: Where other processes share the allowance.
    """

    def __init__(
        self,
        per_minute: float,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        stock: Stock | None = None,
    ) -> None:
        self._stock = stock
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
                    break
                await self._sleep((amount - self._level) / self._rate)
        if self._stock:
            await self._stock.take(amount)

    def adjust(self, amount: float) -> None:
        """Take (or, if negative, give back) the difference between an estimate and the truth.

        At most a full bucket is taken, as by `take`: whatever a server says it has read, the next request waits
        no longer for it than two minutes.
        """
        self._level -= min(amount, self._size)
        if self._stock:
            self._stock.adjust(amount)


@dataclass
class Buckets:
    """An endpoint's allowances per minute; null: no limit."""

    requests: Bucket | None = None
    tokens: Bucket | None = None


class Sending:
    """One request on its way, an async context manager: entering waits for a place in flight and in this minute.

    What it is told of the answer, the pace learns from. Without a word, it was neither taken nor one too many.
    """

    def __init__(self, pace: Pace, expected_tokens: int) -> None:
        self._pace = pace
        self._expected = expected_tokens
        self._number = 0

    async def __aenter__(self) -> Sending:
        pace = self._pace
        await pace.requests.__aenter__()
        try:
            if pace.buckets.requests:
                await pace.buckets.requests.take(1)
            if pace.buckets.tokens:
                await pace.buckets.tokens.take(self._expected)
        except BaseException as error:
            await pace.requests.__aexit__(type(error), error, error.__traceback__)
            raise
        self._number = pace.ceiling.send()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pace.episodes.admit()
        await self._pace.requests.__aexit__(kind, error, traceback)

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
        self.buckets = buckets or _buckets([entry], None)
        self.requests = Places(self.ceiling)

    def request(self, expected_tokens: int) -> Sending:
        """To be entered for each request."""
        return Sending(self, expected_tokens)


def paces(manifest: Manifest, models: Sequence[str], acquire: Acquire | None = None) -> dict[str, Pace]:
    """One `Pace` per model; models at one endpoint share its allowances per minute.

    Args:
        acquire: Takes from the `shared_limits`, which must exist; null: this process shares them with no other.
    """
    result = {}
    for names in by_endpoint(manifest, models):
        shared = _buckets([manifest.models[name] for name in names], acquire)
        result.update({name: Pace(manifest.models[name], shared) for name in names})
    return {name: result[name] for name in models}


def shared_limits(manifest: Manifest, models: Sequence[str]) -> list[SharedLimit]:
    """The allowances that the models' endpoints give to all processes together."""
    groups = by_endpoint(manifest, models)
    return [limit for names in groups for limit in _limits([manifest.models[name] for name in names]) if limit]


def by_endpoint(manifest: Manifest, models: Sequence[str]) -> list[list[str]]:
    """The models in groups that share the allowances of one account; an agent without an endpoint is its own."""
    endpoints: dict[object, list[str]] = {}
    for name in models:
        entry = manifest.models[name]
        endpoints.setdefault(_endpoint(entry) if isinstance(entry, HttpModel) else name, []).append(name)
    return list(endpoints.values())


def _endpoint(entry: HttpModel) -> tuple[str | None, ...]:
    address = entry.base_url and entry.base_url.rstrip("/")
    return address, entry.base_url_env, entry.api_key_env


def _limits(entries: Sequence[Model]) -> tuple[SharedLimit | None, SharedLimit | None]:
    """Of requests and of tokens; null where no entry names one, and for agents without an endpoint."""
    first = entries[0]
    if not isinstance(first, HttpModel):
        return None, None
    requests, tokens = per_minute(entries)
    place = first.base_url_env or re.sub(r"[^A-Za-z0-9.-]+", "-", (first.base_url or "").partition("://")[2])[:60]
    where = f"{place}-{content_hash(list(_endpoint(first)), 8)}"
    return (
        SharedLimit(f"agent-bench-requests-{where}", requests, _REQUEST_GRAIN) if requests else None,
        SharedLimit(f"agent-bench-tokens-{where}", tokens, 1) if tokens else None,
    )


def per_minute(entries: Sequence[Model]) -> tuple[int | None, int | None]:
    """Requests and tokens per minute of entries that share them, the smallest of each; null: no limit."""
    limits = [entry.limits for entry in entries]
    requests = [one.requests_per_minute for one in limits if one.requests_per_minute]
    tokens = [one.tokens_per_minute for one in limits if one.tokens_per_minute]
    return min(requests, default=None), min(tokens, default=None)


def _buckets(entries: Sequence[Model], acquire: Acquire | None) -> Buckets:
    requests, tokens = per_minute(entries)
    shared = [Stock(limit, acquire) if limit and acquire else None for limit in _limits(entries)]
    return Buckets(
        Bucket(requests, stock=shared[0]) if requests else None, Bucket(tokens, stock=shared[1]) if tokens else None
    )
