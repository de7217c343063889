"""The Prefect server that a study brings along when `PREFECT_API_URL` names none.

It is started as soon as a command is sure to need it, and makes ready while the command imports what it needs. It
listens on a free loopback port and ends with the block, or with this process, however that ends: the server watches
the pipe that is its standard input.

`python -m flows.orchestration.server FD` is the server itself, on the listening socket that it inherits.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from flows.errors import StudyError
from flows.files import exclusive
from flows.orchestration.settings import API_URL, embed, quiet, report
from flows.turns import in_turn

READY_WITHIN_S = 180.0
STOP_WITHIN_S = 10.0


class ServerNotReady(StudyError):
    """The embedded server ended, or stayed silent."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"Prefect's embedded server {problem}; try again on a less busy machine, or start one with "
            f"`prefect server start` and point {API_URL} at it"
        )


class Serving:
    """A server that is starting, or one that somebody else runs."""

    def __init__(self, address: str | None, process: subprocess.Popen[bytes] | None) -> None:
        self.address = address
        self._process = process

    def wait(self, within_s: float = READY_WITHIN_S) -> None:
        """Return once the embedded server answers. Raises `ServerNotReady`."""
        import fastapi.encoders  # noqa: F401 - Prefect's first flow would: half a second that is free while we wait

        if self.address is not None:
            wait_until_ready(self.address, self._process, within_s)


def wait_until_ready(
    address: str, process: subprocess.Popen[bytes] | None = None, within_s: float = READY_WITHIN_S
) -> None:
    """Return once the server at `address` answers. Raises `ServerNotReady`, at once if its `process` has ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if process is not None and process.poll() is not None:
            raise ServerNotReady(f"ended with code {process.returncode}")
        try:
            with urllib.request.urlopen(f"{address}/api/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.05)
    raise ServerNotReady(f"did not answer within {within_s:.0f} s")


@contextmanager
def serving(root: Path, environ: MutableMapping[str, str] = os.environ) -> Iterator[Serving]:
    """Prefect's settings for this process and, unless the user has a server, one of our own while the block runs.

    Must be entered before Prefect is first imported.
    """
    quiet(environ)
    if environ.get(API_URL):
        report(root, environ)
        yield Serving(None, None)
        return
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        embed(root, address, environ)
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.orchestration.server", str(listener.fileno())],
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,  # a Ctrl-C is for the study, which then stops its server
        )
    try:
        yield Serving(address, process)
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main(arguments: list[str]) -> int:
    """Serve on the inherited socket until standard input ends."""
    import uvicorn
    from prefect.server.api.server import create_app

    starting = Path(os.environ["PREFECT_HOME"]) / ".starting"

    class Server(uvicorn.Server):
        """Two that made the same new database at once would break each other."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            async with in_turn(lambda: exclusive(starting, str(starting)), within_s=READY_WITHIN_S):
                await super().startup(sockets)

    listener = socket.socket(fileno=int(arguments[0]))
    server = Server(uvicorn.Config(create_app, factory=True, log_level="error", lifespan="on"))
    threading.Thread(target=_end_with_input, daemon=True).start()
    server.run(sockets=[listener])
    return 0


def _end_with_input() -> None:
    while sys.stdin.buffer.read(4096):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_WITHIN_S)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
