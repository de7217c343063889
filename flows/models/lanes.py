"""Connections side by side: a transport that gives every request in flight a small pool of its own.

httpcore's pool looks at every connection, and for each at every other, whenever a request begins or ends: with 32
requests in flight that is more work than everything else that is done for them. A lane is a pool that carries one
request at a time, so it holds about one connection per server, and looking at them costs nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx


class Lanes(httpx.AsyncBaseTransport):
    """Sends each request through a lane that is free, the one used last first; a new one where none is.

    Args:
        open_lane: Makes another lane.
    """

    def __init__(self, open_lane: Callable[[], httpx.AsyncBaseTransport]) -> None:
        self._open_lane = open_lane
        self._all: list[httpx.AsyncBaseTransport] = []
        self._free: list[httpx.AsyncBaseTransport] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The lane's answer; the lane is free again when the answer has been closed."""
        lane = self._free.pop() if self._free else self._another()
        try:
            response = await lane.handle_async_request(request)
        except BaseException:
            self._free.append(lane)
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Lent(response.stream, lambda: self._free.append(lane))
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        for lane in self._all:
            await lane.aclose()

    def _another(self) -> httpx.AsyncBaseTransport:
        lane = self._open_lane()
        self._all.append(lane)
        return lane


class _Lent(httpx.AsyncByteStream):
    """An answer's bytes; gives its lane back once, when it is closed."""

    def __init__(self, stream: httpx.AsyncByteStream, give_back: Callable[[], None]) -> None:
        self._stream = stream
        self._give_back: Callable[[], None] | None = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        give_back, self._give_back = self._give_back, None
        try:
            await self._stream.aclose()
        finally:
            if give_back is not None:
                give_back()
