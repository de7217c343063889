"""The Prefect server that people watch and schedule with: it stays up until it is told to end."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import threading
import urllib.request
from collections.abc import MutableMapping
from pathlib import Path

from flows.console import Console
from flows.errors import CellLocked, ConfigurationError, StudyError
from flows.files import exclusive, storage, write_atomically
from flows.orchestration.settings import API_URL, stand

PORT = 4200
CLOSE_WITHIN_S = 5
"""How long open pages and clients are waited for at the end."""


class PortTaken(ConfigurationError):
    """Something listens at the port already."""

    def __init__(self, port: int) -> None:
        if answers(port):
            super().__init__(
                f"a Prefect server is already running on port {port}; to use it: export {API_URL}={api_url(port)}; "
                "for a second one give another --port, or --port 0 for a free one"
            )
        else:
            super().__init__(
                f"port {port} of 127.0.0.1 is taken by another program; stop it, give another --port, or --port 0 for "
                "a free one"
            )


class AlreadyServing(ConfigurationError):
    """A server has this state open."""

    def __init__(self, home: Path, pid: str, api: str) -> None:
        super().__init__(
            f"a server already runs on {home} (process {pid}); to use it: export {API_URL}={api}; to start another "
            "one, stop it first with Ctrl-C or `kill`: two servers on one database would do everything twice"
        )


def api_url(port: int) -> str:
    """What `PREFECT_API_URL` must say for the server at this port."""
    return f"http://127.0.0.1:{port}/api"


def answers(port: int) -> bool:
    """Whether a Prefect server listens there."""
    try:
        with urllib.request.urlopen(f"{api_url(port)}/health", timeout=2) as answer:
            return bool(json.load(answer) is True)
    except (OSError, ValueError):
        return False


def serve(home: Path, port: int, console: Console, environ: MutableMapping[str, str] = os.environ) -> None:
    """Serve until Ctrl-C or SIGTERM. Must be called before Prefect is first imported.

    Args:
        home: Folder of the server's whole state.
        port: On the loopback interface; 0 for a free one.

    Raises:
        PortTaken: something else listens there.
        AlreadyServing: another process serves this folder.
        StoreError: the folder cannot be written.
        StudyError: the server did not start.
    """
    address = home / "address"
    try:
        with exclusive(home / ".lock", str(home)), _listener(port) as listener:
            port = listener.getsockname()[1]
            stand(home, port, environ)
            write_atomically(address, api_url(port).encode("ascii"))
            console.line(f"server: starting, with its state in {home}")
            _run(listener, port, console)
    except CellLocked as error:
        with storage(address):
            known = address.read_text(encoding="ascii") if address.exists() else "the address that it printed"
        raise AlreadyServing(home, error.pid, known) from None
    console.line("server: stopped")


def _listener(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that was just left is free
        listener.bind(("127.0.0.1", port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(port) from None
        raise ConfigurationError(f"port {port} of 127.0.0.1 cannot be used: {error.strerror}") from None
    return listener


def _run(listener: socket.socket, port: int, console: Console) -> None:
    import uvicorn
    from prefect.server.api.server import create_app

    class Announcing(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                console.line(f"server: ready at http://127.0.0.1:{port}; to report there:")
                console.line(f"export {API_URL}={api_url(port)}")
                console.line("server: Ctrl-C stops it")

    server = Announcing(
        uvicorn.Config(
            create_app, factory=True, log_level="error", lifespan="on", timeout_graceful_shutdown=CLOSE_WITHIN_S
        )
    )
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # what is to be done is the same
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        return
    if not server.started:
        raise StudyError("Prefect's server did not start; what it printed above says why")
