"""Plans that hand in the start tree: at once, after a look around, or after calls that change nothing."""

from __future__ import annotations

from collections.abc import Iterator

from tasks_env.families.filesys.goals import Files
from tasks_env.families.filesys.tools import CLOSING_TOOL
from tasks_env.types import ToolCall

PARKED = "/parked.txt"
"""A path at the root, where no task has a file."""
HANDLED = 5
"""Files that a plan reads, rewrites or moves at most."""


def untouched(files: Files) -> Iterator[tuple[ToolCall, ...]]:
    """Each plan, closing call included; `files` is the start tree."""
    submit = ToolCall(name=CLOSING_TOOL, arguments={})
    look = ToolCall(name="list_files", arguments={"path": "/", "recursive": True})
    handled = list(files)[:HANDLED]
    reads = [ToolCall(name="read_file", arguments={"path": path}) for path in handled]
    rewrites = [ToolCall(name="write_file", arguments={"path": path, "content": files[path]}) for path in handled]
    moves = [
        ToolCall(name="move_file", arguments={"source": source, "destination": destination})
        for path in handled
        for source, destination in ((path, PARKED), (PARKED, path))
    ]
    yield (submit,)
    yield (look, *reads, submit)
    yield (*rewrites, submit)
    yield (*moves, submit)
