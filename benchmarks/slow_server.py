"""A model behind HTTP that answers every request after the same wait: `python benchmarks/slow_server.py LATENCY_S`.

OpenAI-compatible. It plays one short episode: three looks at the tables, then an answer. Prints its port; ends with its
standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys

LOOKS = 3


def _answer(number: int) -> bytes:
    name, arguments = ("list_tables", {}) if number < LOOKS else ("submit", {"answer": "1"})
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 20},
    }
    data = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data)


ANSWERS = [_answer(number) for number in range(LOOKS + 1)]


class Connection(asyncio.Protocol):
    """Answers by the number of tool results in the request."""

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), None
        )
        if length is None or len(body) < length:
            return
        self._received = b""
        answer = ANSWERS[min(LOOKS, body.count(b'"role":"tool"'))]
        asyncio.get_running_loop().call_later(self._latency_s, self._write, answer)

    def _write(self, answer: bytes) -> None:
        if isinstance(self._transport, asyncio.WriteTransport):
            self._transport.write(answer)


async def main(latency_s: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(latency_s), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
