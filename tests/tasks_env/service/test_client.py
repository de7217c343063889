"""The client that speaks to services of any kind: bounded in time and bytes, and never fooled about what HTTP is."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasks_env.service.harness.client import Client, NoAnswer, TooSlow

Speak = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextmanager
def listening(socket: Path, speak: Speak) -> Iterator[None]:
    """A server that reads a request's head and then does what `speak` does."""
    loop = asyncio.new_event_loop()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            await speak(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = loop.run_until_complete(asyncio.start_unix_server(handle, str(socket)))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(_shut(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _shut(server: asyncio.Server) -> None:
    server.close()
    speaking = asyncio.all_tasks() - {asyncio.current_task()}
    for task in speaking:
        task.cancel()
    await asyncio.gather(*speaking, return_exceptions=True)


def saying(data: bytes) -> Speak:
    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return speak


@pytest.fixture
def socket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s") / "s"


def test_an_answer_is_read_with_status_headers_and_body(socket: Path) -> None:
    with listening(socket, saying(b'HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n\r\n{"a": [1]}')):
        answer = Client(str(socket), 5).post("/orders", json={"x": 1})
    assert (answer.status_code, answer.headers["content-type"], answer.json()) == (409, "application/json", {"a": [1]})


def test_what_is_sent_is_one_plain_request(socket: Path) -> None:
    seen = bytearray()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.extend(await reader.read(1000))
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n")

    with listening(socket, speak):
        assert Client(str(socket), 5).post("/x", json={"name": "Ærø"}).content == b""
    assert bytes(seen) == b'{"name": "\\u00c6r\\u00f8"}'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
        b"\xff\r\n\r\n",
        b"HTTP/1.1 \xb200 OK\r\n\r\n",  # a digit, and no number
        b"HTTP/1.1 " + b"4" * 5000 + b" OK\r\n\r\n",
        b"HTTP/1.1 4000 OK\r\n\r\n",
    ],
)
def test_what_is_no_http_is_no_answer(socket: Path, data: bytes) -> None:
    with listening(socket, saying(data)), pytest.raises(NoAnswer, match="GET /x: not HTTP"):
        Client(str(socket), 5).get("/x")


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff"])
def test_a_body_that_is_no_json_is_no_answer(socket: Path, body: bytes) -> None:
    with listening(socket, saying(b"HTTP/1.1 200 OK\r\n\r\n" + body)):
        answer = Client(str(socket), 5).get("/x")
    with pytest.raises(NoAnswer, match="no JSON"):
        answer.json()


def test_an_endless_answer_is_given_up(socket: Path) -> None:
    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    with listening(socket, speak), pytest.raises(NoAnswer, match="more than 1000000 bytes"):
        Client(str(socket), 30).get("/x")


def test_a_dripping_answer_does_not_outlast_the_limit(socket: Path) -> None:
    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    started = time.monotonic()
    with listening(socket, speak), pytest.raises(TooSlow, match=r"no answer within 0\.5 s"):
        Client(str(socket), 0.5).get("/x")
    assert time.monotonic() - started < 10


def test_another_servers_socket_is_not_asked(socket: Path) -> None:
    """A submission may put a link where its own socket should be."""
    with listening(socket, saying(b"HTTP/1.1 200 OK\r\n\r\n")):
        (socket.parent / "link").symlink_to(socket)
        (socket.parent / "folder").symlink_to(socket.parent)
        for place in (socket.parent / "link", socket.parent / "folder" / "s"):
            with pytest.raises(NoAnswer, match="no socket of its own"):
                Client(str(place), 5).get("/")


def test_nobody_there_is_no_answer(socket: Path) -> None:
    with pytest.raises(NoAnswer, match="GET /x: "):
        Client(str(socket), 1).get("/x")
