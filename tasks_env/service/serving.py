"""One service of a submission: started, asked until it answers, ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tasks_env.service.benchmark import Limits
from tasks_env.service.harness.client import Client, NoAnswer
from tasks_env.service.harness.serve import NOT_COMPILED
from tasks_env.service.processes import HARNESS, Confined, Reach, installed

POLL_S = 0.03


@dataclass(frozen=True)
class Started:
    """How a start went."""

    problem: str | None
    """Null: the service answers."""
    timed_out: bool
    seconds: float


class Service:
    """A service under way."""

    def __init__(self, process: Confined, socket: Path, started: Started) -> None:
        self._process = process
        self.socket = socket
        self.started = started

    @property
    def reach(self) -> Reach:
        """What it is kept from."""
        return self._process.reach

    @property
    def trouble(self) -> str | None:
        """What became of it, if it is no longer there; null if it runs as it should."""
        if self._process.exceeded is not None:
            return f"the service was killed: {self._process.exceeded}"
        code = self._process.poll()
        return None if code is None else f"the service ended (exit code {code})"


@contextmanager
def serving(tree: Path, private: Path, limits: Limits) -> Iterator[Service]:
    """A service over the staged `tree`, or the attempt at one: look at `started`."""
    private.mkdir(mode=0o700)
    socket = private / "socket"
    command = [sys.executable, "-I", "-S", str(HARNESS / "serve.py"), str(tree), str(socket), str(private / "cache")]
    process = Confined([*command, *installed()], tree, private, limits)
    try:
        yield Service(process, socket, _start(process, socket, limits))
    finally:
        process.end()


def _start(process: Confined, socket: Path, limits: Limits) -> Started:
    begun = time.monotonic()
    client = Client(str(socket), limits.request_s)
    while (elapsed := time.monotonic() - begun) < limits.start_s:
        code = process.poll()
        if process.exceeded is not None:
            return Started(f"the service was killed while it started: {process.exceeded}", False, elapsed)
        if code == NOT_COMPILED:
            return Started(f"does not compile: {process.tail}", False, elapsed)
        if code is not None:
            return Started(f"the service ended while it started (exit code {code}): {process.tail}", False, elapsed)
        if socket.exists():
            try:
                client.get("/openapi.json")
            except NoAnswer:
                pass
            else:
                return Started(None, False, time.monotonic() - begun)
        time.sleep(POLL_S)
    return Started(f"the service did not answer within {limits.start_s:g} s of its start", True, elapsed)
