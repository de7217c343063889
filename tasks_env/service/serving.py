"""The services of one submission: each started afresh, asked until it answers, ended."""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tasks_env.service.benchmark import Limits
from tasks_env.service.harness.client import Client, NoAnswer
from tasks_env.service.harness.serve import NOT_COMPILED
from tasks_env.service.nursery import Nursery
from tasks_env.service.processes import Confined, Reach

POLL_S = 0.02
LONGEST_EVENT = 100


@dataclass(frozen=True)
class Started:
    """How a start went."""

    problem: str | None
    """Null: the service answers."""
    timed_out: bool
    seconds: float


class Host:
    """The process from which all services of one submission are forked."""

    def __init__(self, tree: Path, private: Path, limits: Limits, nursery: Nursery) -> None:
        private.mkdir(mode=0o700)
        self._private = private
        self._limits = limits
        self._names: dict[str, str] = {}
        """Service → its name to those who run it: drawn, so that none knows by it which questions it will get."""
        self._ended: dict[str, int] = {}
        reading, events = os.pipe()
        try:
            self.process = Confined(nursery.host(tree, private, events), tree, private, limits)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(events)
        self._listener = threading.Thread(target=self._listen, args=[reading], daemon=True)
        self._listener.start()

    @property
    def reach(self) -> Reach:
        """What its services are kept from."""
        return self.process.reach

    def socket(self, name: str) -> Path:
        """Where the service called `name` listens."""
        return self._private / self._names[name] / "socket"

    def trouble(self, name: str) -> str | None:
        """What became of a service, if it is no longer there; null if it runs as it should."""
        if self.process.exceeded is not None:
            return f"the service was killed: {self.process.exceeded}"
        code = self._ended.get(self._names[name])
        if code is not None:
            return f"the service ended (exit code {code}): {self.process.tail}"
        code = self.process.poll()
        return None if code is None else f"the service ended (exit code {code}): {self.process.tail}"

    @contextmanager
    def service(self, name: str) -> Iterator[Started]:
        """A service under way, or the attempt at one."""
        drawn = self._names[name] = secrets.token_hex(4)
        self.process.tell(f"start {drawn}")
        try:
            yield self._start(name)
        finally:
            self.process.tell(f"end {drawn}")

    def end(self) -> None:
        """End all services and whatever they started."""
        self.process.end()
        self._listener.join(timeout=5)

    def _start(self, name: str) -> Started:
        begun = time.monotonic()
        socket = self.socket(name)
        client = Client(str(socket), self._limits.request_s)
        while (elapsed := time.monotonic() - begun) < self._limits.start_s:
            if self._ended.get(self._names[name]) == NOT_COMPILED:
                return Started(self.process.tail or "a module does not compile", False, elapsed)
            trouble = self.trouble(name)
            if trouble is not None:
                return Started(f"while it started, {trouble}", False, elapsed)
            if socket.exists():
                try:
                    client.get("/")  # any answer will do
                except NoAnswer:
                    pass
                else:
                    return Started(None, False, time.monotonic() - begun)
            time.sleep(POLL_S)
        return Started(f"the service did not answer within {self._limits.start_s:g} s of its start", True, elapsed)

    def _listen(self, reading: int) -> None:
        """Take in which services ended by themselves."""
        with os.fdopen(reading, "r", encoding="ascii", errors="replace") as pipe:
            while line := pipe.readline(LONGEST_EVENT):
                event = re.fullmatch(r"([0-9a-f]+) (-?[0-9]{1,3})\n", line)
                if event is not None:
                    self._ended[event[1]] = int(event[2])


@contextmanager
def hosting(tree: Path, private: Path, limits: Limits, nursery: Nursery) -> Iterator[Host]:
    """A host for the staged `tree`, ended with everything that it started."""
    host = Host(tree, private, limits, nursery)
    try:
        yield host
    finally:
        host.end()
