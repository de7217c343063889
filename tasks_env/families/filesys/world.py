"""The mutable tree of one episode and the actions on it."""

from __future__ import annotations

from collections.abc import Callable

from tasks_env.errors import ToolError
from tasks_env.families.base import Reply
from tasks_env.families.filesys.goals import Files
from tasks_env.families.filesys.paths import names_folder, nearest, normal_path, shown
from tasks_env.families.filesys.tools import CLOSING_TOOL
from tasks_env.types import JsonObject

FILE_LIMIT = 300
TEXT_CHARS = 20_000
TREE_CHARS = 400_000
LIST_ROWS = 200
SEARCH_ROWS = 60
ROW_CHARS = 300


class FileWorld:
    """A tree in memory. `state()` is `{"files": {path: text}}`, sorted by path.

    Args:
        files: The start tree; copied.
    """

    def __init__(self, files: Files) -> None:
        self.submitted = False
        self._files = dict(files)
        self._actions: dict[str, Callable[[JsonObject], Reply]] = {
            "list_files": self._list,
            "read_file": self._read,
            "search_files": self._search,
            "write_file": self._write,
            "move_file": self._move,
            "delete_file": self._delete,
            CLOSING_TOOL: self._submit,
        }

    def call(self, name: str, arguments: JsonObject) -> Reply:
        """Carry out one call. Raises `ToolError` for what the agent should be told."""
        if self.submitted:
            raise ToolError("the work has been submitted; nothing can be done afterwards")
        return self._actions[name](arguments)

    def state(self) -> JsonObject:
        """The tree as it is now."""
        return {"files": dict(sorted(self._files.items()))}

    def _list(self, arguments: JsonObject) -> Reply:
        folder = normal_path(_text(arguments, "path"), "path")
        if folder in self._files:
            raise ToolError(f"{shown(folder)} is a file; show its text with {{tool:read_file}}", "path")
        inside = self._inside(folder, "path")
        rows = inside
        if not arguments.get("recursive", False):
            heads = [(path, path.find("/", len(folder) + 1)) for path in inside]
            rows = sorted({path if end < 0 else path[: end + 1] for path, end in heads})
        note = f"{len(inside)} files at every level" if len(rows) < len(inside) else f"{len(rows)} files"
        return _bounded(rows, len(rows), LIST_ROWS, note, empty="(no files)")

    def _read(self, arguments: JsonObject) -> Reply:
        text = self._files[self._file(arguments, "path")]
        return Reply(text=text) if text else Reply(text="", note="(the file is empty)")

    def _search(self, arguments: JsonObject) -> Reply:
        wanted = _text(arguments, "text")
        if "\n" in wanted or "\r" in wanted:
            raise ToolError("a search looks at single lines; leave out the line break", "text")
        start = normal_path(_text(arguments, "path", "/"), "path")
        paths = [start] if start in self._files else self._inside(start, "path")
        rows: list[str] = []
        lines = owners = 0
        for path in paths:
            text = self._files[path]
            if wanted not in text:
                continue
            owners += 1
            for number, line in enumerate(text.split("\n"), start=1):
                if wanted in line:
                    lines += 1
                    # A row repeats its path: only those that are shown may take up memory.
                    if len(rows) < SEARCH_ROWS:
                        rows.append(f"{path}:{number}: {line}")
        if not lines:
            return Reply(text="", note=f"no line contains this text; {len(paths)} files searched")
        return _bounded(rows, lines, SEARCH_ROWS, f"{lines} matching lines in {owners} of {len(paths)} files", empty="")

    def _write(self, arguments: JsonObject) -> Reply:
        path = self._target(arguments, "path")
        text = _text(arguments, "content").replace("\r\n", "\n").replace("\r", "\n")
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise ToolError("the text holds a lone surrogate, which UTF-8 cannot store", "content")
        if len(text) > TEXT_CHARS:
            raise ToolError(f"a file holds at most {TEXT_CHARS} characters; got {len(text)}", "content")
        others = sum(len(other) for known, other in self._files.items() if known != path)
        known = path in self._files
        if others + len(text) > TREE_CHARS or (not known and len(self._files) >= FILE_LIMIT):
            raise ToolError(f"the file system is full ({FILE_LIMIT} files, {TREE_CHARS} characters)", "path")
        self._files[path] = text
        lines = text.count("\n") + (not text.endswith("\n") and text != "")
        return Reply(text=f"{'replaced' if known else 'created'} {path} ({lines} lines)")

    def _move(self, arguments: JsonObject) -> Reply:
        source = self._file(arguments, "source")
        destination = self._target(arguments, "destination", moving=source)
        if destination in self._files:
            same = " and is where it already lies" if destination == source else ""
            raise ToolError(
                f"{shown(destination)} exists already{same}; an existing file is never replaced",
                "destination",
            )
        self._files[destination] = self._files.pop(source)
        return Reply(text=f"moved {source} to {destination}")

    def _delete(self, arguments: JsonObject) -> Reply:
        path = self._file(arguments, "path")
        del self._files[path]
        return Reply(text=f"deleted {path}")

    def _submit(self, _: JsonObject) -> Reply:
        self.submitted = True
        return Reply(text="submitted")

    def _inside(self, folder: str, argument: str) -> list[str]:
        """Sorted paths below an existing folder; the root exists always."""
        inside = sorted(path for path in self._files if path.startswith(folder + "/"))
        if not inside and folder:
            raise ToolError(f"there is no file or folder {shown(folder)}{self._hint(folder)}", argument)
        return inside

    def _file(self, arguments: JsonObject, argument: str) -> str:
        """The path of an existing file."""
        given = _text(arguments, argument)
        path = normal_path(given, argument)
        if path in self._files and not names_folder(given):
            return path
        if path in self._files:
            raise ToolError(f"{shown(path)} is a file; leave out the slash or dots at the end", argument)
        if not path or any(other.startswith(path + "/") for other in self._files):
            raise ToolError(
                f"{shown(path or '/')} is a folder, not a file; {{tool:list_files}} shows what is in it",
                argument,
            )
        raise ToolError(f"there is no file {shown(path)}{self._hint(path)}", argument)

    def _target(self, arguments: JsonObject, argument: str, moving: str | None = None) -> str:
        """A path at which a file may be stored."""
        given = _text(arguments, argument)
        path = normal_path(given, argument)
        if names_folder(given) or any(other.startswith(path + "/") for other in self._files):
            raise ToolError(f"{shown(given)} names a folder; give the path of the file, name included", argument)
        parts = path.split("/")
        for end in range(2, len(parts)):
            parent = "/".join(parts[:end])
            if parent in self._files and parent != moving:
                raise ToolError(f"{shown(parent)} is a file, so nothing can lie below it", argument)
        return path

    def _hint(self, path: str) -> str:
        folders = {path[:at] for path in self._files for at, c in enumerate(path) if c == "/" and at}
        return nearest(path, folders.union(self._files))


def _text(arguments: JsonObject, name: str, default: str | None = None) -> str:
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise ToolError("expected a string", name)
    return value


def _bounded(rows: list[str], total: int, limit: int, note: str, *, empty: str) -> Reply:
    """The first `limit` of `total` rows, of which `rows` holds at least those."""
    if not rows:
        return Reply(text="", note=empty)
    kept = [row if len(row) <= ROW_CHARS else row[:ROW_CHARS] + "…" for row in rows[:limit]]
    cut = f"; the first {limit} rows of {total} are shown" if total > limit else ""
    return Reply(text="\n".join(kept), note=f"({note}{cut})")
