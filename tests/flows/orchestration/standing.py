"""A real Prefect server as `agent-bench server` starts it, what it is asked, and commands that report to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from flows.orchestration.settings import API_URL

ROOT = Path(__file__).parents[3]
PROGRAM = "import sys; from flows.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True)
class Standing:
    """A server that is up."""

    address: str
    process: subprocess.Popen[str]
    said: list[str]
    """What it printed until it was ready."""

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer of its API: to a POST where there is a body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}/api{path}", data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def refusal(self, path: str, body: Mapping[str, Any]) -> tuple[int, str]:
        """Status and text of an answer that is no."""
        try:
            self.ask(path, body)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        raise AssertionError(f"{path} was granted")

    @property
    def environment(self) -> dict[str, str]:
        """Of a command that reports to it."""
        return clean_environment() | {API_URL: f"{self.address}/api"}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command of agent-bench, from its start to its end."""
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *words], env=self.environment, capture_output=True, text=True, timeout=300
        )

    def started(self, *words: str) -> subprocess.Popen[bytes]:
        """One command of agent-bench that goes on."""
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            env=self.environment | {"PREFECT_WORKER_QUERY_SECONDS": "1", "PREFECT_WORKER_PREFETCH_SECONDS": "5"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def clean_environment() -> dict[str, str]:
    """Without a word of the test run's own server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "AGENT_BENCH_"))}
    return kept | {"PYTHONPATH": str(ROOT)}


def interrupted(process: subprocess.Popen[Any], within_s: float = 60) -> int:
    """The exit code after a Ctrl-C."""
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


@contextmanager
def standing_server(manifest: Path, environ: Mapping[str, str] | None = None) -> Iterator[Standing]:
    """The server while the block runs, with these variables in its environment."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "server", "--port", "0", "--manifest", str(manifest)],
        env=clean_environment() | dict(environ or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said: list[str] = []
    try:
        for line in process.stdout:
            said.append(line.rstrip("\n"))
            if "Ctrl-C stops it" in line:
                break
        [export] = [line for line in said if line.startswith(f"export {API_URL}=")]
        yield Standing(export.split("=")[1].removesuffix("/api"), process, said)
    finally:
        if process.poll() is None:
            interrupted(process)
        process.stdout.close()


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """An address on loopback, and what was posted there."""
    posted: list[str] = []

    class Keeping(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["content-length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on the screen."""

    server = HTTPServer(("127.0.0.1", 0), Keeping)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", posted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(seen: Callable[[], Any], within_s: float = 120) -> Any:
    """What is seen, as soon as it is something."""
    deadline = time.monotonic() + within_s
    while not (found := seen()):
        assert time.monotonic() < deadline, "it was never seen"
        time.sleep(0.1)
    return found
