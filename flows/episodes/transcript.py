"""A transcript: one JSON event per line, written as the episode goes, everything that a verdict or an audit needs.

Every event and field is described in docs/transcripts.md and typed in `flows.episodes.schema`.

A step is: request, one or more attempts, answer, the results of its calls. Lines are ASCII: control characters, lone
surrogates and right-to-left text are escaped and survive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.errors import StoreError
from flows.files import LineFile, storage
from tasks_env.canonical import canonical_json

TRANSCRIPT_VERSION = 2


class TranscriptWriter(LineFile):
    """Writes events; `close` vouches for them."""

    def record(self, event: str, **fields: Any) -> None:
        """Append one event. Raises `StoreError`."""
        self.append(canonical_json({"event": event, **fields}))


def read_transcript(path: Path) -> list[dict[str, Any]]:
    """All events. Raises `StoreError` for a missing file or a line that is no JSON object."""
    with storage(path):
        data = path.read_bytes()
    return events_of(path, data)


def events_of(path: Path, data: bytes) -> list[dict[str, Any]]:
    """All events in the bytes of the transcript at `path`. Raises `StoreError` for a line that is no JSON object."""
    return list(_events(path, data))


def _events(path: Path, data: bytes) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            raise StoreError(path, f"line {number} is not JSON: the transcript was cut off or edited") from None
        if not isinstance(event, dict):
            raise StoreError(path, f"line {number} is no JSON object: the transcript was edited")
        yield event
