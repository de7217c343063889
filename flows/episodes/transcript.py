"""A transcript: one JSON event per line, written as the episode goes, everything that a verdict or an audit needs.

    episode    identity, provenance, settings asked for
    opening    the messages before the first answer, and the tools
    request    step, hash of the body as sent, hash without the provider's envelope, messages added since the last
    attempt    step, HTTP attempt: status or error, latency, the wait before the next, cost where known
    answer     step: the raw answer, its text, calls, stop reason, usage and cost
    result     step: the call in canonical names and what the tool answered
    end        outcome, final state, carried-out calls, totals

Lines are ASCII: control characters, lone surrogates and right-to-left text are escaped and survive.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from flows.errors import StoreError
from flows.store import storage
from tasks_env.canonical import canonical_json

TRANSCRIPT_VERSION = 1


class TranscriptWriter:
    """Writes events to `path`; `close` flushes them to the disk and returns the file's hash."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._hash = hashlib.sha256()
        with storage(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = path.open("wb")

    def record(self, event: str, **fields: Any) -> None:
        """Append one event. Raises `StoreError`."""
        line = canonical_json({"event": event, **fields}).encode("ascii") + b"\n"
        self._hash.update(line)
        with storage(self.path):
            self._file.write(line)
            self._file.flush()

    def close(self) -> str:
        """Flush to the disk. Returns the SHA-256 of all bytes."""
        with storage(self.path):
            os.fsync(self._file.fileno())
            self._file.close()
        return self._hash.hexdigest()

    def abandon(self) -> None:
        """Close without vouching for anything."""
        self._file.close()


def read_transcript(path: Path) -> list[dict[str, Any]]:
    """All events. Raises `StoreError` for a missing file or a line that is no JSON."""
    return list(_events(path))


def _events(path: Path) -> Iterator[dict[str, Any]]:
    with storage(path):
        lines = path.read_bytes().splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            yield json.loads(line)
        except ValueError:
            raise StoreError(path, f"line {number} is not JSON: the transcript was cut off or edited") from None
