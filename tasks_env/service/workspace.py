"""The agent's side of a task: a copy of the service, and tools to read and change it. Nothing in it can be run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from tasks_env.errors import ToolError
from tasks_env.families.base import Reply
from tasks_env.naming import literal
from tasks_env.tools import parameter, tool
from tasks_env.types import JsonObject, ToolCall, ToolSpec

SUBMIT = "submit"
LONGEST_PATH = 200
LONGEST_FILE = 60_000
MOST_FILES = 300
MOST_MATCHES = 60

_PATH = parameter("string", "Path of a file from the root of the service, such as app/main.py.", maxLength=LONGEST_PATH)


def workspace_tools() -> tuple[ToolSpec, ...]:
    """The tools by canonical names, the closing one last."""
    folder = parameter("string", "Only files in this folder, such as app/orders.", maxLength=LONGEST_PATH)
    text = parameter("string", "Text to find, taken literally.", minLength=1, maxLength=200)
    content = parameter("string", "The whole new content of the file.", maxLength=LONGEST_FILE)
    return (
        tool("list_files", "List the files of the service's repository, with their sizes.", {}, {"folder": folder}),
        tool("read_file", "Show a file.", {"path": _PATH}),
        tool("search_text", "Show the lines that contain a text, with file and line number.", {"text": text}),
        tool("write_file", "Write a file: a new one, or all of an existing one.", {"path": _PATH, "content": content}),
        tool("delete_file", "Delete a file.", {"path": _PATH}),
        tool(
            SUBMIT,
            "Hand in the repository as it is now. Ends the task. Nothing can be run before: the change is built and "
            "tested afterwards.",
            {},
        ),
    )


class Workspace:
    """One agent's copy of the service."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.submitted = False
        self._files = dict(files)

    def call(self, name: str, arguments: JsonObject) -> Reply:
        """Carry out one call. Raises `ToolError`."""
        given = cast(dict[str, str], arguments)
        if name == "list_files":
            return self._listing(given.get("folder", ""))
        if name == "read_file":
            return Reply(text=self._files[self._existing(given["path"])])
        if name == "search_text":
            return self._found(given["text"])
        if name == "write_file":
            return self._write(_clean(given["path"], "path"), given["content"])
        if name == "delete_file":
            del self._files[self._existing(given["path"])]
            return Reply(text="deleted")
        self.submitted = True
        return Reply(text="handed in")

    def state(self) -> JsonObject:
        """`files`: content by path."""
        return {"files": dict(sorted(self._files.items()))}

    def _existing(self, path: str) -> str:
        clean = _clean(path, "path")
        if clean not in self._files:
            raise ToolError(
                f"there is no file {literal(clean)}; {{tool:list_files}} shows what there is", argument="path"
            )
        return clean

    def _listing(self, folder: str) -> Reply:
        clean = _clean(folder, "folder") if folder.strip("./ ") else ""
        lines = [
            f"{path}  {len(content.encode())} bytes"
            for path, content in sorted(self._files.items())
            if not clean or path.startswith(f"{clean}/")
        ]
        if not lines:
            raise ToolError(f"there is no folder {literal(clean)}, or no file in it", argument="folder")
        return Reply(text="\n".join(lines))

    def _found(self, text: str) -> Reply:
        lines = list(self._matches(text))
        if not lines:
            return Reply(text="no line contains it")
        more = [f"... and {len(lines) - MOST_MATCHES} more lines"] if len(lines) > MOST_MATCHES else []
        return Reply(text="\n".join([*lines[:MOST_MATCHES], *more]))

    def _matches(self, text: str) -> Iterator[str]:
        for path, content in sorted(self._files.items()):
            for number, line in enumerate(content.splitlines(), start=1):
                if text in line:
                    yield f"{path}:{number}: {line[:200]}"

    def _write(self, path: str, content: str) -> Reply:
        if path not in self._files and len(self._files) >= MOST_FILES:
            raise ToolError(f"there are {MOST_FILES} files already; delete some first", argument="path")
        inside = next(
            (other for other in self._files if other.startswith(f"{path}/") or path.startswith(f"{other}/")), None
        )
        if inside is not None:
            raise ToolError(
                f"{literal(path)} and {literal(inside)} cannot both be there: one would be a folder", "path"
            )
        self._files[path] = content
        return Reply(text=f"written: {len(content.encode())} bytes")


def _clean(path: str, argument: str) -> str:
    """A path in its one form: relative, without `.`, `..` or what a file system may take for something else."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    usable = path.isprintable() and not path.startswith("/") and "\\" not in path and ".." not in parts and parts
    if usable and len(path.encode()) > LONGEST_PATH:
        raise ToolError(f"the path is longer than {LONGEST_PATH} bytes", argument)
    if not usable or any(part != part.strip() for part in parts):
        raise ToolError("expected a path from the root of the service, such as app/main.py, without '..'", argument)
    return "/".join(parts)


def plan_of(baseline: Mapping[str, str], wanted: Mapping[str, str]) -> tuple[ToolCall, ...]:
    """Calls that turn `baseline` into `wanted` and hand it in; a look around comes first."""
    calls = [ToolCall(name="list_files", arguments={})]
    calls += [ToolCall(name="delete_file", arguments={"path": path}) for path in sorted(set(baseline) - set(wanted))]
    calls += [
        ToolCall(name="write_file", arguments={"path": path, "content": content})
        for path, content in sorted(wanted.items())
        if baseline.get(path) != content
    ]
    return (*calls, ToolCall(name=SUBMIT, arguments={}))
