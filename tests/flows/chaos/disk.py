"""A disk that fills up, turns read-only, or loses its process at a chosen operation, beneath Python's own files.

Everything that `flows.files` does to a file goes through `io.open` and `os`; both are replaced in a process that
lives for one run. What a full disk took of a write stays, as it does on a real one.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

KINDS = ("kill", "full", "readonly")


@dataclass
class Disaster:
    """What happens at the `at`-th operation that would change the disk, and for `lasts` operations from there."""

    kind: str
    at: int
    lasts: int = 10**9
    count: int = 0

    def __post_init__(self) -> None:
        self._turn = threading.Lock()

    def due(self) -> bool:
        """Count an operation; whether it is hit."""
        with self._turn:
            self.count += 1
            return self.at <= self.count < self.at + self.lasts

    def strike(self, takes_room: bool) -> None:
        """Let a hit operation fail. An operation that takes no room still works on a full disk."""
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "readonly":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if takes_room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def install(disaster: Disaster) -> None:
    """Make this process's disk behave so, for good."""
    os_write = os.write

    class Struck(io.FileIO):
        def write(self, data: Any) -> int:
            if not disaster.due():
                return super().write(data)
            if disaster.kind != "readonly" and disaster.count == disaster.at:
                half = bytes(data)[: len(data) // 2]
                os_write(self.fileno(), half)
                if disaster.kind == "full" and half:
                    return len(half)
            disaster.strike(takes_room=True)
            return super().write(data)

        def truncate(self, size: int | None = None) -> int:
            if disaster.due():
                disaster.strike(takes_room=False)
            return super().truncate(size)

    def opened(file: Any, mode: str = "r", buffering: int = -1, *arguments: Any, **options: Any) -> Any:
        if "b" not in mode or mode.strip("b") == "r":
            return plain_open(file, mode, buffering, *arguments, **options)
        if disaster.due():
            disaster.strike(takes_room=True)
        raw = Struck(os.fspath(file), mode.replace("b", ""))
        if buffering == 0:
            return raw
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

    def guarded(name: str, takes_room: bool) -> Callable[..., Any]:
        plain = getattr(os, name)

        def guard(*arguments: Any, **options: Any) -> Any:
            if disaster.due():
                disaster.strike(takes_room)
            return plain(*arguments, **options)

        return guard

    plain_open = io.open
    io.open = opened
    for name, takes_room in {"fsync": True, "mkdir": True, "replace": False, "rename": False, "unlink": False}.items():
        setattr(os, name, guarded(name, takes_room))
