"""Errors that reach the user, each with the exit code that it means. Everything else is a defect.

StudyError              1   the work could not be done
├── ConfigurationError  2   manifest, options, keys: refused before any work
├── StoreError          1   a path that cannot be read, written or trusted
├── CellLocked          1   another process works on the cell
└── RunHalted           3   the provider refuses every further call (authentication, quota)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


class StudyError(Exception):
    """Base: one paragraph that says what is wrong, where, and what to do. Survives the way to another process."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[StudyError], args: tuple[Any, ...], state: dict[str, Any]) -> StudyError:
    """An error as it was, whatever its constructor takes."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigurationError(StudyError):
    """A mistake in the manifest, an option or the environment; nothing was written."""

    exit_code = 2


class StoreError(StudyError):
    """A file or folder that is missing, edited, unwritable or full."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


class CellLocked(StudyError):
    """The cell's lock is held."""

    def __init__(self, cell: str, pid: str) -> None:
        super().__init__(f"{cell} is being worked on by process {pid}; wait for it, or stop it, and run again")
        self.pid = pid


class RunHalted(StudyError):
    """Every further episode would fail the same way."""

    exit_code = 3
