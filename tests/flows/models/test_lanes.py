"""Connections side by side: each request in flight has its own, and what is free is used again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from flows.models import open_client
from flows.models.http import body_bytes
from flows.models.lanes import Lanes
from tests.flows.models.fault_server import FaultServer, Reply


class Echo(httpx.AsyncBaseTransport):
    """A lane that counts what it carries at the same time."""

    def __init__(self, fails: bool = False) -> None:
        self.carried = 0
        self.closed = False
        self._busy = False
        self._fails = fails

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert not self._busy, "a lane carries one request at a time"
        self._busy = True
        self.carried += 1
        try:
            await asyncio.sleep(0)
            if self._fails:
                raise httpx.ConnectError("down", request=request)
        finally:
            self._busy = False
        return httpx.Response(200, stream=_Parts())

    async def aclose(self) -> None:
        self.closed = True


class _Parts(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"


def lanes_of(made: list[Echo], fails: bool = False) -> Lanes:
    def another() -> Echo:
        made.append(Echo(fails))
        return made[-1]

    return Lanes(another)


def test_requests_one_after_another_take_one_lane() -> None:
    made: list[Echo] = []

    async def go() -> list[str]:
        async with httpx.AsyncClient(transport=lanes_of(made)) as client:
            return [(await client.get("http://some.where/")).text for _ in range(3)]

    assert asyncio.run(go()) == ["ab"] * 3
    assert [(lane.carried, lane.closed) for lane in made] == [(3, True)]


def test_a_lane_is_lent_until_its_answer_is_closed() -> None:
    made: list[Echo] = []

    async def go() -> None:
        async with httpx.AsyncClient(transport=lanes_of(made)) as client:
            async with client.stream("GET", "http://some.where/"), client.stream("GET", "http://some.where/"):
                assert len(made) == 2
            await client.get("http://some.where/")

    asyncio.run(go())
    assert sorted(lane.carried for lane in made) == [1, 2]


def test_a_request_that_fails_gives_its_lane_back() -> None:
    made: list[Echo] = []

    async def go() -> None:
        async with httpx.AsyncClient(transport=lanes_of(made, fails=True)) as client:
            for _ in range(3):
                with pytest.raises(httpx.ConnectError):
                    await client.get("http://some.where/")

    asyncio.run(go())
    assert [lane.carried for lane in made] == [3]


def test_a_cancelled_request_gives_its_lane_back() -> None:
    made: list[Echo] = []

    async def go() -> None:
        async with httpx.AsyncClient(transport=lanes_of(made)) as client:
            request = asyncio.create_task(client.get("http://some.where/"))
            await asyncio.sleep(0)
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
            await client.get("http://some.where/")

    asyncio.run(go())
    assert len(made) == 1


def test_the_clients_connections_are_kept_and_only_as_many_as_requests_in_flight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[int] = []
    connected = FaultServer._connected

    async def counted(self: FaultServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(1)
        await connected(self, reader, writer)

    monkeypatch.setattr(FaultServer, "_connected", counted)
    server = FaultServer()

    async def go() -> None:
        async with open_client() as client:
            for _ in range(2):
                await asyncio.gather(*(client.post(server.url, content=body_bytes({})) for _ in range(4)))

    with server.running():
        server.script(*[Reply(body={}, delay_s=0.02)] * 8)
        asyncio.run(go())
    assert len(server.requests) == 8
    assert len(opened) == 4
