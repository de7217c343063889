"""One request, one attempt: the only place that sends.

Nothing that is raised here carries a header, a key, or httpx's own exception, whose request holds both:
errors are raised outside the handlers that caught their causes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.request import getproxies

import httpx
from pydantic import JsonValue

from flows.manifest.schema import MalformedPattern
from flows.models.adapter import ModelCallError, RequestRejected, TransientError
from flows.models.failures import bad_answer, bounded, failure
from flows.models.keys import ApiKey
from flows.models.lanes import Lanes
from flows.models.reading import parse_body
from tasks_env.types import JsonObject

BODY_BYTES = 16 * 2**20
"""A longer answer is not read to its end."""

CONNECT_S = 10.0
"""Longest wait for a connection, and always less than the whole attempt may take: where none was made nothing can have
been billed, which a timeout of the attempt could not tell."""

KEEPALIVE_S = 3.0
"""An idle connection is not used again after this. Many servers (llama.cpp, uvicorn, Node) close theirs after 5 s; a
request that meets the closing is lost, and nobody knows whether it was billed."""


def open_client() -> httpx.AsyncClient:
    """A client without a limit of its own (that is the scaffold's); loopback never goes through a proxy.

    It keeps no cookies: nothing that a server hands to one episode comes back with another.
    """
    # At DEBUG these quote answer headers, in which a server may echo a key; at INFO they drown the progress.
    for name in ("httpcore", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)
    trust = _certificates()
    lanes = Lanes(
        lambda: httpx.AsyncHTTPTransport(
            verify=trust, limits=httpx.Limits(max_connections=None, keepalive_expiry=KEEPALIVE_S)
        )
    )
    places = ["all://127.0.0.1", "all://localhost", "all://[::1]"]
    if "all" not in getproxies():  # a proxy for one scheme stands before "all://", one for all would stand behind it
        places.append("all://")
    return httpx.AsyncClient(
        limits=httpx.Limits(max_connections=None, keepalive_expiry=KEEPALIVE_S),
        verify=trust,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        mounts=dict.fromkeys(places, lanes),
        headers={"user-agent": "agent-bench-stability"},
    )


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates that are trusted, read once: it takes longer than everything else about a client."""
    return httpx.create_ssl_context()


def body_bytes(body: JsonValue) -> bytes:
    """The body as it goes over the wire: ASCII JSON in the order of its keys, so that any text survives."""
    return json.dumps(body, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


async def post_json(
    client: httpx.AsyncClient,
    url: str,
    body: JsonValue,
    *,
    headers: Mapping[str, str],
    key: ApiKey | None,
    key_header: tuple[str, str],
    timeout_s: float,
    patterns: Sequence[MalformedPattern],
) -> tuple[JsonObject, int]:
    """The JSON object that the server answers to `body`, and the answer's status.

    Args:
        client: Where the connections live.
        url: The full address.
        body: The request.
        headers: Besides content type and key.
        key: Sent if there is one.
        key_header: Name of the key's header, and what stands before the key.
        timeout_s: For the whole attempt, from connecting to the answer's last byte.
        patterns: Server errors that are the model's own doing.

    Raises:
        ModelCallError: everything that can go wrong, classified. Without an answer, `kind` is `connection`
            (none was made: nothing can have been billed), `connection_lost` or `timeout` (it may have been).
    """
    auth = key.header(*key_header) if key else None
    scrub = key.scrub if key else str
    received = await _attempt(client, url, body, headers, auth, scrub, timeout_s)
    if isinstance(received, ModelCallError):
        raise received
    status, answer_headers, text = received
    if not 200 <= status < 300:
        raise failure(status, answer_headers, text, patterns, time.time(), scrub)
    problem = ""
    try:
        parsed = parse_body(text, scrub)
    except ValueError as error:
        problem = f"the answer is not JSON: {error}"
    if problem:
        raise bad_answer(problem, text[:2000], status)
    if not isinstance(parsed, dict):
        raise bad_answer(f"the answer is not a JSON object but {type(parsed).__name__}", parsed, status)
    if parsed.get("error"):
        raise failure(200, answer_headers, text, (), time.time(), scrub)
    return parsed, status


async def _attempt(
    client: httpx.AsyncClient,
    url: str,
    body: JsonValue,
    headers: Mapping[str, str],
    auth: httpx.Auth | None,
    scrub: Callable[[str], str],
    timeout_s: float,
) -> tuple[int, httpx.Headers, str] | ModelCallError:
    """Status, headers and scrubbed text of the answer; or the failure to get one, which the caller raises."""
    try:
        async with (
            asyncio.timeout(timeout_s),
            client.stream(
                "POST",
                url,
                content=body_bytes(body),
                headers={"content-type": "application/json", "accept": "application/json", **headers},
                auth=auth,
                timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_S, 0.8 * timeout_s)),
            ) as response,
        ):
            received = bytearray()
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > BODY_BYTES:
                    return bad_answer(f"the answer is longer than {BODY_BYTES} bytes", None, response.status_code)
            text = scrub(received.decode("utf-8", errors="replace"))
            return response.status_code, response.headers, text
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        return TransientError("connection", bounded(scrub(f"{type(error).__name__}: {error}")))
    except (TimeoutError, httpx.TimeoutException):
        return TransientError("timeout", f"no complete answer within {timeout_s:g} s")
    except httpx.DecodingError:
        return bad_answer("the answer's compression is broken", None)
    except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        return RequestRejected("bad_request", f"{type(error).__name__}: the request cannot be sent as it is")
    except httpx.TransportError as error:
        return TransientError("connection_lost", bounded(scrub(f"{type(error).__name__}: {error}")))
