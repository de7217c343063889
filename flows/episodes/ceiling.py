"""How many requests a model takes at a time: found by asking, never above what the manifest allows.

Additive increase, multiplicative decrease, as in TCP, counted in requests rather than in seconds, so that the same
answers in the same order always give the same ceiling:

- A refusal (too many requests) halves the ceiling, down to one. Requests that were sent before the ceiling last fell
  say nothing new when they are refused as well: one burst of refusals is one decrease.
- A round of answers (as many as the ceiling) without a refusal raises it by one.
- The size that was refused last is remembered: just below it a rise takes `PROBE_ROUNDS` rounds, and a refusal within
  the first round after such a rise takes back that one step alone. So a server that takes N at a time is kept at N,
  and asked for more about once in `PROBE_ROUNDS` rounds. One round at the remembered size without a refusal forgets it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

PROBE_ROUNDS = 16
"""Rounds of answers just below the size that was refused before it is tried again."""


class Ceiling:
    """The number of requests that may be in flight.

    Args:
        most: The manifest's ceiling, at which this one starts and which it never exceeds.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.now = most
        self._answers = 0
        """Since the ceiling last changed."""
        self._rose = False
        """Whether that change was a rise."""
        self._refused_at: int | None = None
        self._sent = 0
        self._fell_after = 0
        """Requests sent when the ceiling last fell."""

    def send(self) -> int:
        """The number of a request that is being sent, to be given back with its answer."""
        self._sent += 1
        return self._sent

    def answered(self, number: int) -> None:
        """The request was taken by the server."""
        if number <= self._fell_after:
            return
        self._answers += 1
        careful = self._refused_at is not None and self.now + 1 == self._refused_at
        if self._answers < self.now * (PROBE_ROUNDS if careful else 1):
            return
        if self._refused_at is not None and self.now >= self._refused_at:
            self._refused_at = None
        if self.now < self.most:
            self._become(self.now + 1, rose=True)

    def refused(self, number: int) -> None:
        """The server says that this request was one too many."""
        if number <= self._fell_after:
            return
        probing = self._rose and self._answers < self.now
        self._refused_at = self.now
        self._fell_after = self._sent
        self._become(max(1, self.now - 1 if probing else self.now // 2), rose=False)

    def _become(self, size: int, *, rose: bool) -> None:
        self.now, self._rose, self._answers = size, rose, 0


class Places:
    """Places below a ceiling: first come, first served. An async context manager; entering waits for a place.

    Those who hold a place when the ceiling falls keep it; nobody else gets one until enough of them have left.
    """

    def __init__(self, ceiling: Ceiling) -> None:
        self._ceiling = ceiling
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def taken(self) -> int:
        """How many places are held."""
        return self._taken

    def locked(self) -> bool:
        """Whether the next one would have to wait."""
        return self._taken >= self._ceiling.now or bool(self._waiting)

    async def __aenter__(self) -> None:
        if not self.locked():
            self._taken += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # it came together with the cancellation
                self._taken -= 1
            elif place in self._waiting:
                self._waiting.remove(place)
            self.admit()
            raise

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._taken -= 1
        self.admit()

    def admit(self) -> None:
        """Give free places to those who wait; to be called when the ceiling has risen."""
        while self._waiting and self._taken < self._ceiling.now:
            place = self._waiting.popleft()
            if not place.cancelled():
                self._taken += 1
                place.set_result(None)
