"""The process that hosts of submissions are forked from, as the evaluator has it: `harness/nursery.py`."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from tasks_env.service.processes import HARNESS, Running, Start, constructed_environment, installed

SCRIPT = HARNESS / "nursery.py"
NOWHERE = Path("/")
"""Home and working folder of a process that writes nothing."""


class Nursery:
    """Starts hosts of submissions without importing the framework for each; it ends with this process.

    It is started when it is first asked, and again if it is gone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None

    def host(self, tree: Path, private: Path, events: int) -> Start:
        """What starts a host for `tree`; `events` is its end of the pipe that is told of ended services."""

        def start(confinement: dict[str, Any], folder: Path, status: int) -> Running:
            request = {
                "confined": confinement,
                "environment": constructed_environment(folder),
                "tree": str(tree),
                "private": str(private),
            }
            return self._forked(json.dumps(request).encode("ascii") + b"\n", status, events)

        return start

    def end(self) -> None:
        """End it with all that it started."""
        with self._lock:
            self._end()

    def _forked(self, request: bytes, status: int, events: int) -> _Forked:
        (reading, stdin), (stdout, printing), (ending, told) = os.pipe(), os.pipe(), os.pipe()
        try:
            with self._lock:
                link = self._ready()
                socket.send_fds(link, [request[:1]], [reading, printing, status, events, told])
                link.sendall(request[1:])
                answer = b""
                while not answer.endswith(b"\n"):
                    data = link.recv(100)
                    if not data:
                        self._end()
                        raise OSError(f"{SCRIPT} ended")
                    answer += data
        except OSError:
            for descriptor in (stdin, stdout, ending):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (reading, printing, told):
                os.close(descriptor)
        return _Forked(int(answer), os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb"), ending)

    def _ready(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._link is None:
            self._link, far = socket.socketpair()
            with far:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(SCRIPT), str(far.fileno()), *installed()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=constructed_environment(NOWHERE),
                    cwd=NOWHERE,
                    pass_fds=[far.fileno()],
                    start_new_session=True,
                )
        return self._link

    def _end(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            self._process = None


class _Forked:
    """A process whose parent is the nursery, which tells its exit code through a pipe."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes], ending: int) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self._ending = ending
        self._code: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a forked host", timeout or 0)
        return code

    def _ended(self, seconds: float | None) -> int | None:
        with self._lock:
            if self._code is None and select.select([self._ending], [], [], seconds)[0]:
                told = os.read(self._ending, 100)
                self._code = int(told) if told else -signal.SIGKILL
                os.close(self._ending)
            return self._code
