"""HTTP over a Unix socket, for talking to a service that may do anything: bounded in time and in bytes.

A request of HTTP/1.0 is answered whole and then the connection ends, so nothing has to be believed about lengths.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
from typing import Any

ANSWER_BYTES = 1_000_000


class NoAnswer(Exception):
    """The service did not answer with HTTP: refused, hung up, said too much, or said nonsense."""


class TooSlow(NoAnswer):
    """No whole answer within the limit."""


class Answer:
    """Status, headers (by lower-case name) and body of one answer."""

    def __init__(self, status_code: int, headers: dict[str, str], content: bytes) -> None:
        self.status_code = status_code
        self.headers = headers
        self.content = content

    def json(self) -> Any:
        """The body as JSON. Raises `NoAnswer` if it is none."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise NoAnswer(f"the body is no JSON: {self.content[:80]!r}") from error


class Client:
    """Requests to one service.

    Args:
        socket: Path of its Unix socket.
        seconds: Limit of one request, from connecting to the end of the answer.
    """

    def __init__(self, socket: str, seconds: float) -> None:
        self._socket = socket
        self._seconds = seconds

    def get(self, path: str) -> Answer:
        """The answer to a GET. Raises `NoAnswer`."""
        return self._ask("GET", path, b"")

    def post(self, path: str, json: Any) -> Answer:
        """The answer to a POST of `json`. Raises `NoAnswer`."""
        return self._ask("POST", path, _dumped(json))

    def _ask(self, method: str, path: str, body: bytes) -> Answer:
        head = (
            f"{method} {path} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            return _parsed(asyncio.run(self._exchange(head.encode("ascii") + body)))
        except TimeoutError:
            raise TooSlow(f"{method} {path}: no answer within {self._seconds:g} s") from None
        except (OSError, UnicodeError) as error:
            raise NoAnswer(f"{method} {path}: {error}") from None
        except NoAnswer as error:
            raise NoAnswer(f"{method} {path}: {error}") from None

    async def _exchange(self, request: bytes) -> bytes:
        folder = os.path.dirname(self._socket)  # noqa: PTH120 - no import for one look
        if not stat.S_ISSOCK(os.lstat(self._socket).st_mode) or os.path.realpath(folder) != folder:
            raise NoAnswer("what lies at the service's place is no socket of its own")
        async with asyncio.timeout(self._seconds):
            reader, writer = await asyncio.open_unix_connection(self._socket)
            try:
                writer.write(request)
                await writer.drain()
                received = bytearray()
                while chunk := await reader.read(65536):
                    received += chunk
                    if len(received) > ANSWER_BYTES:
                        raise NoAnswer(f"an answer of more than {ANSWER_BYTES} bytes")
                return bytes(received)
            finally:
                writer.close()


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")


def _parsed(data: bytes) -> Answer:
    head, separator, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = re.match(r"HTTP/1\.[01] ([1-5][0-9][0-9])(?: |$)", lines[0], re.ASCII)
    if not separator or status is None:
        raise NoAnswer(f"not HTTP: {data[:80]!r}")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return Answer(int(status[1]), headers, body)
