"""An HTTP server on loopback that answers as scripted, faults included, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One scripted answer.

    Attributes:
        body: Text as it is, anything else as JSON.
        delay_s: Wait before the answer.
        drip_s: Wait between its single bytes.
        close: Close the connection instead of answering.
        cut: Announce the whole body, send this many bytes of it, then close.
        until_close: Announce no length; the body ends with the connection. With chunks: close without the last one.
        chunks: Send these, chunk by chunk, in place of the body.
        stall_s: Wait after each chunk but the last.
        raw: Send this in place of any HTTP answer, then close.
    """

    status: int = 200
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    drip_s: float = 0.0
    close: bool = False
    cut: int | None = None
    until_close: bool = False
    chunks: Sequence[bytes] = ()
    stall_s: float = 0.0
    raw: bytes | None = None

    def payload(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode("utf-8")


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content)


class FaultServer:
    """Answers the n-th request with the n-th reply, and every further one with a 599."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.url = ""
        self.delayed = 0
        """Requests that wait for their answer just now."""
        self._replies: list[Reply] = []
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def script(self, *replies: Reply) -> None:
        """Forget everything and answer with `replies` from now on."""
        self.requests = []
        self._replies = list(replies)

    @contextlib.contextmanager
    def running(self) -> Iterator[FaultServer]:
        """Serve on a free port while the block runs."""
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._shut_down(server), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)
            self._loop.close()

    async def _shut_down(self, server: asyncio.Server) -> None:
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._answer(reader, writer):
                pass
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read one request and answer it. Returns whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        pairs = (line.split(":", 1) for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(Received(method, path, headers, content))
        number = len(self.requests) - 1
        reply = self._replies[number] if number < len(self._replies) else Reply(599, "not scripted")
        self.delayed += 1
        try:
            await asyncio.sleep(reply.delay_s)
        finally:
            self.delayed -= 1
        if reply.close:
            return False
        if reply.raw is not None:
            writer.write(reply.raw)
            await writer.drain()
            return False
        payload = reply.payload()
        length = {"content-length": str(len(payload))}
        if reply.chunks:
            length = {"transfer-encoding": "chunked"}
        elif reply.until_close:
            length = {}
        fields = {"content-type": "application/json", **length, **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in fields.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        if reply.cut is not None:
            writer.write(payload[: reply.cut])
            await writer.drain()
            return False
        if reply.chunks:
            return await self._send_chunks(writer, reply)
        if reply.drip_s:
            for byte in payload:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(reply.drip_s)
            return True
        writer.write(payload)
        await writer.drain()
        return not reply.until_close

    async def _send_chunks(self, writer: asyncio.StreamWriter, reply: Reply) -> bool:
        for number, chunk in enumerate(reply.chunks):
            if number:
                await asyncio.sleep(reply.stall_s)
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
        if reply.until_close:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
