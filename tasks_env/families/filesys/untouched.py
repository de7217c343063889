"""Plans that hand in the start tree: at once, after a look around, or after calls that change nothing."""

from __future__ import annotations

from collections.abc import Iterator

from tasks_env.families.filesys.goals import Files
from tasks_env.families.filesys.tools import CLOSING_TOOL
from tasks_env.types import ToolCall

PARKED = "/parked.txt"
"""A path at the root, where no task has a file."""


def untouched(files: Files) -> Iterator[tuple[ToolCall, ...]]:
    """Each plan, closing call included; `files` is the start tree."""
    submit = ToolCall(name=CLOSING_TOOL, arguments={})
    look = ToolCall(name="list_files", arguments={"path": "/", "recursive": True})
    reads = [ToolCall(name="read_file", arguments={"path": path}) for path in files]
    rewrites = [ToolCall(name="write_file", arguments={"path": path, "content": text}) for path, text in files.items()]
    there = [ToolCall(name="move_file", arguments={"source": path, "destination": PARKED}) for path in files]
    back = [ToolCall(name="move_file", arguments={"source": PARKED, "destination": path}) for path in files]
    yield (submit,)
    yield (look, *reads, submit)
    yield (*rewrites, submit)
    yield (*[call for pair in zip(there, back, strict=True) for call in pair], submit)
