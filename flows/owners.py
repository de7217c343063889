"""Who holds a reservation, and whether that process still lives.

A pid alone says neither: it is given to another process after its own has ended, and means nothing on another machine
that works on the same root. So a process is known by its host, its pid and the moment at which it began.
"""

from __future__ import annotations

import os
import platform
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STATE, _START = 0, 19
"""Places in /proc/<pid>/stat after the name, which may hold anything: state, and ticks from boot to start."""
_ENDED = ("Z", "X")


class Owner(NamedTuple):
    """A process. Null: an earlier version wrote the line, or the system does not tell."""

    pid: int
    host: str | None = None
    born: str | None = None
    """The moment it began, in the system's own words: equal or not, nothing else."""

    def is_elsewhere(self) -> bool:
        """Whether it belongs to another machine, from where nobody can see if it lives."""
        return self.host is not None and self.host != platform.node()

    def is_dead(self) -> bool:
        """Whether it has certainly ended; false for one of another machine."""
        if self.is_elsewhere():
            return False
        born = _born(self.pid)
        if born is None:
            return not _exists(self.pid)
        return born in _ENDED or (self.born is not None and self.born != born)


def this_process() -> Owner:
    """The owner of what this process reserves."""
    return _owner(os.getpid())


@lru_cache(maxsize=2)
def _owner(pid: int) -> Owner:
    """By pid, so that a forked process does not take itself for its parent."""
    return Owner(pid, platform.node(), _born(pid))


def _born(pid: int) -> str | None:
    """When a process began, or the letter of its state if it has ended; null if there is none, or nobody says."""
    try:
        # Linux: the name, in brackets, is the only field that may hold blanks or brackets.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return fields[_STATE] if fields[_STATE] in _ENDED else f"{_boot()} {fields[_START]}"
    except FileNotFoundError:
        return None if _BOOT.exists() else _listed(pid)
    except (OSError, IndexError):
        return None


@lru_cache(maxsize=1)
def _boot() -> str:
    return _BOOT.read_text(encoding="ascii").strip()


def _listed(pid: int) -> str | None:
    """By `ps`, where there is no /proc: macOS and the BSDs."""
    try:
        done = subprocess.run(
            ["ps", "-o", "state=,lstart=", "-p", str(pid)],
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    state, _, born = done.stdout.strip().partition(" ")
    return state[0] if state[:1] in _ENDED else born.strip() or None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
