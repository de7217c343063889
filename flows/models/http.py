"""One request, one attempt: the only place that sends.

Nothing that is raised here carries a header, a key, or the client's own exception, whose request holds both:
errors are raised outside the handlers that caught their causes.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi
from aiohttp.http_exceptions import ContentEncodingError
from pydantic import JsonValue

from flows.errors import ConfigurationError
from flows.manifest.schema import MalformedPattern
from flows.models.adapter import ModelCallError, RequestRejected, TransientError
from flows.models.failures import bad_answer, bounded, failure
from flows.models.keys import ApiKey
from flows.models.reading import parse_body
from tasks_env.types import JsonObject

Client = aiohttp.ClientSession
"""Holds the connections of one campaign."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that are never asked through a proxy."""

HEADER_BYTES = 2**16
"""An answer with a longer header is none."""

BODY_BYTES = 16 * 2**20
"""A longer answer is not read to its end."""

CONNECT_S = 10.0
"""Longest wait for a connection, and always less than the whole attempt may take: where none was made nothing can have
been billed, which a timeout of the attempt could not tell."""

KEEPALIVE_S = 3.0
"""An idle connection is not used again after this. Many servers (llama.cpp, uvicorn, Node) close theirs after 5 s; a
request that meets the closing is lost, and nobody knows whether it was billed."""


def open_client() -> Client:
    """A client without a limit of its own (that is the scaffold's), to be opened in the loop that uses it.

    It keeps no cookies: nothing that a server hands to one episode comes back with another. Nothing of the environment
    is used but certificates and proxies: no password of a `.netrc` is sent.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S, ssl=_certificates()),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"user-agent": "agent-bench-stability", "accept-encoding": "gzip, deflate"},
        skip_auto_headers=("content-type",),
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
    )


@cache
def _certificates() -> ssl.SSLContext:
    """The system's certificates and those of certifi, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name alone; read once,
    which takes longer than everything else about a client."""
    context = ssl.create_default_context()
    if not {"SSL_CERT_FILE", "SSL_CERT_DIR"} & os.environ.keys():
        context.load_verify_locations(certifi.where())
    return context


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for an address; none for loopback.

    Raises:
        ConfigurationError: it names one that does not speak HTTP.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return None
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found:
        return None
    named = found if "://" in found else f"http://{found}"
    if urlsplit(named).scheme not in ("http", "https"):
        raise ConfigurationError(
            f"the environment names a proxy for {parts.scheme}://{host} that is not an http proxy; "
            f"name one that is in {parts.scheme.upper()}_PROXY, or except the host in NO_PROXY"
        )
    return named


def body_bytes(body: JsonValue) -> bytes:
    """The body as it goes over the wire: ASCII JSON in the order of its keys, so that any text survives."""
    return json.dumps(body, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


async def post_json(
    client: Client,
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
    scrub = key.scrub if key else str
    received = await _attempt(client, url, body, headers, key, key_header, scrub, timeout_s)
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
    client: Client,
    url: str,
    body: JsonValue,
    headers: Mapping[str, str],
    key: ApiKey | None,
    key_header: tuple[str, str],
    scrub: Callable[[str], str],
    timeout_s: float,
) -> tuple[int, Mapping[str, str], str] | ModelCallError:
    """Status, headers and scrubbed text of the answer; or the failure to get one, which the caller raises."""
    try:
        async with (
            asyncio.timeout(timeout_s),
            client.post(
                url,
                data=io.BytesIO(body_bytes(body)),
                headers={
                    "content-type": "application/json",
                    "accept": "application/json",
                    **headers,
                    **(key.header(*key_header) if key else {}),
                },
                allow_redirects=False,
                proxy=proxy_of(url),
                timeout=aiohttp.ClientTimeout(
                    total=None, connect=min(CONNECT_S, 0.8 * timeout_s), ceil_threshold=math.inf
                ),
            ) as response,
        ):
            received = bytearray()
            async for chunk in response.content.iter_any():
                received += chunk
                if len(received) > BODY_BYTES:
                    response.close()
                    return bad_answer(f"the answer is longer than {BODY_BYTES} bytes", None, response.status)
            text = scrub(received.decode("utf-8", errors="replace"))
            return response.status, response.headers, text
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError) as error:
        return TransientError("connection", bounded(scrub(f"{type(error).__name__}: {error}")))
    except TimeoutError:
        return TransientError("timeout", f"no complete answer within {timeout_s:g} s")
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
        return RequestRejected("bad_request", f"{type(error).__name__}: the request cannot be sent as it is")
    except aiohttp.ClientError as error:
        if isinstance(error.__cause__, ContentEncodingError):
            return bad_answer("the answer's compression is broken", None)
        return TransientError("connection_lost", bounded(scrub(f"{type(error).__name__}: {error}")))
