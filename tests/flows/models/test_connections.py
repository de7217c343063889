"""Where requests go: connections kept and counted, proxies, certificates, and nothing else of the machine."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from flows.episodes.calling import possibly_billed
from flows.errors import ConfigurationError
from flows.models import ApiKey, Endpoint, http, open_adapter, open_client
from flows.models.adapter import ModelCallError, request_of
from flows.models.http import proxy_of
from tests.flows.models.fault_server import FaultServer, Reply
from tests.flows.models.support import KEY, complete, conversation, entry, plain_answer

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names no proxy."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def test_connections_are_kept_and_only_as_many_as_requests_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    connected = FaultServer._connected

    async def counted(self: FaultServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(1)
        await connected(self, reader, writer)

    monkeypatch.setattr(FaultServer, "_connected", counted)
    server = FaultServer()

    async def go() -> None:
        async with open_client() as client:
            model = open_adapter(entry("openai", server.url), Endpoint(server.url, None), 64, client)
            request = request_of(model, conversation(), (), None)
            for _ in range(2):
                await asyncio.gather(*(model.complete(request) for _ in range(4)))

    with server.running():
        server.script(*[Reply(body=plain_answer("openai"), delay_s=0.02)] * 8)
        asyncio.run(go())
    assert len(server.requests) == 8
    assert len(opened) == 4


def test_more_requests_than_a_pool_would_hold_are_in_flight_at_once(server: FaultServer) -> None:
    async def go() -> None:
        async with open_client() as client:
            model = open_adapter(entry("openai", server.url), Endpoint(server.url, None), 64, client)
            request = request_of(model, conversation(), (), None)
            asking = [asyncio.create_task(model.complete(request)) for _ in range(150)]
            async with asyncio.timeout(20):
                while server.delayed < 150:
                    await asyncio.sleep(0.01)
            await asyncio.gather(*asking)

    server.script(*[Reply(body=plain_answer("openai"), delay_s=2.0)] * 150)
    asyncio.run(go())


def test_a_request_of_megabytes_is_sent_whole_and_without_a_warning(server: FaultServer) -> None:
    server.script(Reply(body=plain_answer("openai")))
    long = [message.model_copy(update={"text": "x" * 3_000_000}) for message in conversation()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        complete(entry("openai", server.url), messages=long)
    assert len(server.requests[0].content) > 3_000_000


def test_a_password_of_the_machine_is_not_sent(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    server.script(Reply(body=plain_answer("anthropic")))
    complete(entry("anthropic", server.url))
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_proxy_of_the_environment_is_asked_for_another_host(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch, variable: str, scheme: str
) -> None:
    monkeypatch.setenv(variable, scheme + server.url.removeprefix("http://"))
    server.script(Reply(body=plain_answer("openai")))
    assert complete(entry("openai", "http://provider.invalid/v1")).message.text == "Ochre."
    assert server.requests[0].path == "http://provider.invalid/v1/chat/completions"


def test_a_host_that_is_excepted_is_asked_without_the_proxy(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.setenv("NO_PROXY", "other.test,.invalid")
    server.script(Reply(body=plain_answer("openai")))
    with pytest.raises(ModelCallError) as caught:
        complete(entry("openai", "http://provider.invalid/v1"))
    assert (caught.value.kind, len(server.requests)) == ("connection", 0)


def test_a_proxy_that_refuses_to_pass_a_request_on_has_billed_nothing(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", server.url)
    server.script(Reply(403, "no"))
    with pytest.raises(ModelCallError) as caught:
        complete(entry("openai", "https://provider.invalid/v1"))
    assert server.requests[0].method == "CONNECT"
    assert KEY not in str(server.requests[0].headers), "what a proxy is told of an encrypted request is its host alone"
    assert caught.value.kind == "connection"
    assert not possibly_billed(caught.value)


def test_a_proxy_that_does_not_speak_http_is_refused_when_the_model_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:password@10.0.0.1:1080")
    url = "https://provider.test/v1"

    async def opened() -> None:
        async with open_client() as client:
            open_adapter(entry("openai", url), Endpoint(url, None), 9, client)

    with pytest.raises(
        ConfigurationError, match=r"https://provider\.test that is not an http proxy.*HTTPS_PROXY"
    ) as no:
        asyncio.run(opened())
    assert "password" not in str(no.value)
    assert proxy_of("http://127.0.0.1:8/v1") is None, "loopback is asked all the same"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://localhost/v1", "http://[::1]:8000/v1"])
def test_loopback_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in PROXIES[:3]:
        monkeypatch.setenv(name, "http://10.0.0.1:3128")
    assert proxy_of(url) is None
    assert proxy_of("http://10.0.0.2/v1") == "http://10.0.0.1:3128"


@contextmanager
def encrypted(folder: Path) -> Iterator[tuple[str, Path]]:
    """An HTTPS server that answers as a model does: its address, and the certificate that it signed itself."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(private, hashes.SHA256())
    )
    public, both = folder / "public.pem", folder / "both.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    both.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + public.read_bytes()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_address[1]}", public
        finally:
            server.shutdown()
            thread.join(10)


class _Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = Reply(body=plain_answer("openai")).payload()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_certificate_that_nobody_vouches_for_is_refused_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with encrypted(tmp_path) as (url, certificate):
        http._certificates.cache_clear()
        with pytest.raises(ModelCallError) as caught:
            complete(entry("openai", url))
        assert caught.value.kind == "connection"
        assert "certificate" in caught.value.detail
        assert not possibly_billed(caught.value)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        http._certificates.cache_clear()
        try:
            assert complete(entry("openai", url)).message.text == "Ochre."
        finally:
            http._certificates.cache_clear()


def test_a_key_is_in_no_header_that_is_kept(server: FaultServer) -> None:
    async def go() -> str:
        async with open_client() as client:
            model = open_adapter(entry("openai", server.url), Endpoint(server.url, ApiKey(KEY)), 64, client)
            await model.complete(request_of(model, conversation(), (), None))
            return str(client.headers)

    server.script(Reply(body=plain_answer("openai")))
    assert KEY not in asyncio.run(go())
