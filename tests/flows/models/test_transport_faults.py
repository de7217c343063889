"""Answers that break on their way, over real HTTP, through both adapters.

Facts covered, from the ways in which servers and what stands before them are known to fail:

- connection and read timeouts, stalls between chunks, answers that drip, bodies cut at every kind of place (announced
  length, chunks, a body that ends with its connection): transient, and possibly billed wherever the request arrived;
- what is not HTTP at all, an early hint before the answer, redirects (never followed: the key stays here);
- gateways that answer in HTML with their own statuses, 529, empty bodies, wrong content types, event streams;
- compressed bodies, sound and broken and far larger than they look; bodies of the greatest length and beyond;
- connections that the server closes while they idle, cookies that it sets.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import zlib
from typing import Any

import pytest

from flows.episodes.calling import possibly_billed
from flows.models import ApiKey, Endpoint, open_adapter, open_client
from flows.models.adapter import AccessDenied, ModelCallError, RequestRejected, TransientError, request_of
from flows.models.http import BODY_BYTES, KEEPALIVE_S
from tests.flows.models.fault_server import FaultServer, Reply
from tests.flows.models.support import ADAPTERS, KEY, complete, conversation, entry, plain_answer

pytestmark = pytest.mark.parametrize("adapter", ADAPTERS)

HTML = "<!DOCTYPE html><html><head><title>502</title></head><body>cloudflare</body></html>"
IN_HTML = {"content-type": "text/html; charset=utf-8"}


def failure(server: FaultServer, adapter: str, reply: Reply, timeout_s: float = 5.0) -> ModelCallError:
    server.script(reply)
    with pytest.raises(ModelCallError) as caught:
        complete(entry(adapter, server.url, limits={"timeout_s": timeout_s}))
    assert len(server.requests) == 1, "one attempt, one request"
    return caught.value


def answered(server: FaultServer, adapter: str, reply: Reply) -> str:
    server.script(reply)
    return complete(entry(adapter, server.url)).message.text


def sound(adapter: str) -> bytes:
    return json.dumps(plain_answer(adapter)).encode()


def halves(adapter: str) -> tuple[bytes, bytes]:
    body = sound(adapter)
    return body[: len(body) // 2], body[len(body) // 2 :]


def test_an_answer_in_chunks_is_put_together(server: FaultServer, adapter: str) -> None:
    assert answered(server, adapter, Reply(chunks=halves(adapter), stall_s=0.02)) == "Ochre."


def test_an_answer_that_ends_with_its_connection_is_read(server: FaultServer, adapter: str) -> None:
    assert answered(server, adapter, Reply(body=sound(adapter), until_close=True)) == "Ochre."


def test_blanks_that_keep_the_connection_alive_are_no_harm(server: FaultServer, adapter: str) -> None:
    """Some gateways send white space until the model is done."""
    assert answered(server, adapter, Reply(chunks=(b"\n", b" \n", sound(adapter)), stall_s=0.01)) == "Ochre."


def test_a_server_that_takes_no_connection_has_billed_nothing(server: FaultServer, adapter: str) -> None:  # noqa: ARG001
    with socket.socket() as full, contextlib.ExitStack() as held:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(8):
            filling = held.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(full.getsockname())
        try:
            held.enter_context(socket.create_connection(full.getsockname(), timeout=0.1))
        except TimeoutError:
            pass
        else:
            pytest.skip("this system keeps no connection waiting")
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        with pytest.raises(ModelCallError) as caught:
            complete(entry(adapter, url, limits={"timeout_s": 0.4}))
    assert caught.value.kind == "connection"
    assert not possibly_billed(caught.value)


def test_a_stall_between_chunks_is_a_timeout_that_may_be_billed(server: FaultServer, adapter: str) -> None:
    error = failure(server, adapter, Reply(chunks=halves(adapter), stall_s=3.0), timeout_s=0.2)
    assert (type(error), error.kind, possibly_billed(error)) == (TransientError, "timeout", True)


@pytest.mark.parametrize("place", ["length", "chunks", "headers", "connection"])
def test_a_connection_cut_in_the_middle_is_lost_or_bad_and_may_be_billed(
    server: FaultServer, adapter: str, place: str
) -> None:
    body = sound(adapter)
    reply = {
        "length": Reply(body=body, cut=len(body) - 1),
        "chunks": Reply(chunks=halves(adapter)[:1], until_close=True),
        "headers": Reply(raw=b"HTTP/1.1 200 OK\r\ncontent-ty"),
        "connection": Reply(body=halves(adapter)[0], until_close=True),
    }[place]
    error = failure(server, adapter, reply)
    assert type(error) is TransientError
    assert error.kind == ("bad_answer" if place == "connection" else "connection_lost")
    assert possibly_billed(error), "a model may have worked for the half that arrived"


@pytest.mark.parametrize(
    "raw", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\x15\x03\x01\x00\x02\x02\x50", b"HTTP/1.1 2x0 OK\r\n\r\n", b"\r\n"]
)
def test_what_is_not_http_is_a_lost_connection(server: FaultServer, adapter: str, raw: bytes) -> None:
    error = failure(server, adapter, Reply(raw=raw))
    assert (type(error), error.kind) == (TransientError, "connection_lost")


def test_an_early_hint_is_not_the_answer(server: FaultServer, adapter: str) -> None:
    body = sound(adapter)
    raw = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )
    assert answered(server, adapter, Reply(raw=raw)) == "Ochre."


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_takes_the_key_nowhere(server: FaultServer, adapter: str, status: int) -> None:
    error = failure(server, adapter, Reply(status, "", {"location": f"{server.url}/elsewhere"}))
    assert (type(error), error.kind) == (RequestRejected, f"http_{status}")


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520, 522, 524, 529])
def test_a_gateways_page_is_infrastructure_and_its_status_decides(
    server: FaultServer, adapter: str, status: int
) -> None:
    error = failure(server, adapter, Reply(status, HTML, IN_HTML))
    assert (type(error), error.kind) == (TransientError, f"http_{status}")
    assert error.raw == HTML
    assert possibly_billed(error) is (status in (502, 504, 524)), "the gateway gave up on a model that may have worked"


@pytest.mark.parametrize(("status", "kind"), [(403, AccessDenied), (404, RequestRejected), (413, RequestRejected)])
def test_a_gateways_refusal_in_html_is_read_by_its_status(
    server: FaultServer, adapter: str, status: int, kind: type[ModelCallError]
) -> None:
    assert type(failure(server, adapter, Reply(status, HTML, IN_HTML))) is kind


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_an_empty_error_body_is_read_by_its_status(server: FaultServer, adapter: str, status: int) -> None:
    error = failure(server, adapter, Reply(status, ""))
    assert (error.kind, error.detail) == (f"http_{status}", "")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, HTML, IN_HTML),
        Reply(204, ""),
        Reply(202, {"status": "queued"}),
        Reply(200, "data: {}\n\ndata: [DONE]\n\n", {"content-type": "text/event-stream"}),
        Reply(200, b"\x00\x01\xff\xfe"),
        Reply(200, b"\xff\xfe{\x00}\x00"),
    ],
    ids=["html", "no content", "queued", "event stream", "binary", "utf-16"],
)
def test_a_success_without_an_answer_is_asked_again(server: FaultServer, adapter: str, reply: Reply) -> None:
    error = failure(server, adapter, reply)
    assert (type(error), error.kind) == (TransientError, "bad_answer")
    assert possibly_billed(error)


@pytest.mark.parametrize("content_type", ["text/plain", "text/html", "application/octet-stream", ""])
def test_the_body_decides_and_not_the_content_type(server: FaultServer, adapter: str, content_type: str) -> None:
    assert answered(server, adapter, Reply(body=sound(adapter), headers={"content-type": content_type})) == "Ochre."


def test_a_byte_order_mark_is_not_json(server: FaultServer, adapter: str) -> None:
    error = failure(server, adapter, Reply(body=b"\xef\xbb\xbf" + sound(adapter)))
    assert error.kind == "bad_answer"


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_answers_are_read(server: FaultServer, adapter: str, encoding: str, pack: Any) -> None:
    assert (
        answered(server, adapter, Reply(body=pack(sound(adapter)), headers={"content-encoding": encoding})) == "Ochre."
    )
    assert encoding in server.requests[0].headers["accept-encoding"]


@pytest.mark.parametrize("broken", [b"not gzip", gzip.compress(b'{"a": 1}')[:-12]], ids=["no gzip", "torn gzip"])
def test_broken_compression_is_a_bad_answer(server: FaultServer, adapter: str, broken: bytes) -> None:
    error = failure(server, adapter, Reply(body=broken, headers={"content-encoding": "gzip"}))
    assert (type(error), error.kind) == (TransientError, "bad_answer")


def test_an_answer_that_swells_is_not_unpacked_to_its_end(server: FaultServer, adapter: str) -> None:
    bomb = gzip.compress(b"[" + b" " * (3 * BODY_BYTES), compresslevel=1)
    assert len(bomb) < BODY_BYTES
    error = failure(server, adapter, Reply(body=bomb, headers={"content-encoding": "gzip"}))
    assert (error.kind, error.raw) == ("bad_answer", None)


def test_a_long_answer_is_read_whole_and_one_beyond_the_limit_is_not(server: FaultServer, adapter: str) -> None:
    long = "x" * (2 * 2**20)
    server.script(Reply(body=plain_answer(adapter, long)))
    assert complete(entry(adapter, server.url)).message.text == long
    error = failure(server, adapter, Reply(body=b"[" + b" " * BODY_BYTES + b"]"))
    assert (type(error), error.kind) == (TransientError, "bad_answer")


def test_an_error_page_of_megabytes_is_kept_in_part(server: FaultServer, adapter: str) -> None:
    error = failure(server, adapter, Reply(500, HTML + "x" * (3 * 2**20), IN_HTML))
    assert (error.kind, len(json.dumps(error.raw)) < 30_000) == ("http_500", True)


def test_an_idle_connection_is_given_up_before_servers_close_it(server: FaultServer, adapter: str) -> None:
    """A request on a connection that the server is closing is lost, and nobody knows whether it was billed."""
    assert KEEPALIVE_S < 5

    async def two() -> list[str]:
        async with open_client() as client:
            model = open_adapter(entry(adapter, server.url), Endpoint(server.url, ApiKey(KEY)), 64, client)
            first = await model.complete(request_of(model, conversation(), (), None))
            await asyncio.sleep(0.05)
            second = await model.complete(request_of(model, conversation(), (), None))
            return [first.message.text, second.message.text]

    closing = Reply(body=sound(adapter), until_close=True)
    server.script(closing, Reply(body=sound(adapter)))
    assert asyncio.run(two()) == ["Ochre.", "Ochre."], "a connection known to be closed is not used again"


def test_cookies_do_not_come_back(server: FaultServer, adapter: str) -> None:
    async def two() -> None:
        async with open_client() as client:
            model = open_adapter(entry(adapter, server.url), Endpoint(server.url, None), 64, client)
            for _ in range(2):
                await model.complete(request_of(model, conversation(), (), None))

    reply = Reply(body=sound(adapter), headers={"set-cookie": "session=1; Path=/"})
    server.script(reply, reply)
    asyncio.run(two())
    assert len(server.requests) == 2
    assert not any("cookie" in request.headers for request in server.requests)


def test_the_answers_status_is_kept(server: FaultServer, adapter: str) -> None:
    server.script(Reply(201, plain_answer(adapter)))
    assert complete(entry(adapter, server.url)).status == 201
