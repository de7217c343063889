"""The rules of paths: what a path may look like and which file it names.

A path is absolute (`/notes/a.txt`). Repeated slashes and `.` are dropped, `..` goes up one folder and never
above the root, a slash at the end names a folder, upper and lower case differ, and names are brought to
Unicode normal form C, so that both ways of writing `é` name one file. Control characters, lone surrogates
and the backslash are refused.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

from tasks_env.errors import ToolError
from tasks_env.naming import literal

PATH_CHARS = 240
DEPTH_LIMIT = 16

RULES = (
    "Paths are absolute, as in /notes/a.txt; upper and lower case differ; repeated slashes and . are ignored,"
    " .. goes up one folder but not above the root; names are compared in Unicode normal form C."
)
"""The rules in short, for a tool's description."""


def shown(text: str) -> str:
    """A quoted, bounded copy of what an agent sent, safe inside a message whose placeholders get resolved."""
    cut = text if len(text) <= 120 else text[:120] + "…"
    return literal(ascii_safe(repr(cut)))


def ascii_safe(text: str) -> str:
    """`text` with lone surrogates written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def normal_path(path: str, argument: str) -> str:
    """The one form of `path`; the root is the empty string, so that `normal + "/" + name` is always a path.

    Raises:
        ToolError: names `argument` and the rule that was broken.
    """
    if not path.startswith("/"):
        raise ToolError(f"paths are absolute and start with '/', as in '/notes/a.txt'; got {shown(path)}", argument)
    if len(path) > PATH_CHARS:
        raise ToolError(f"a path has at most {PATH_CHARS} characters; this one has {len(path)}", argument)
    parts: list[str] = []
    for part in unicodedata.normalize("NFC", path).split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not parts:
                raise ToolError(f"{shown(path)} leads above the root", argument)
            parts.pop()
            continue
        if any(c == "\\" or unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in part):
            raise ToolError(f"names hold no control characters, surrogates or backslashes; got {shown(path)}", argument)
        parts.append(part)
    if len(parts) > DEPTH_LIMIT:
        raise ToolError(f"a path has at most {DEPTH_LIMIT} parts; this one has {len(parts)}", argument)
    return "".join("/" + part for part in parts)


def names_folder(path: str) -> bool:
    """Whether the way `path` is written says that it means a folder."""
    return path.rsplit("/", 1)[-1] in ("", ".", "..")


def nearest(path: str, known: Iterable[str]) -> str:
    """A hint at up to three paths that resemble `path`; empty if none does."""
    candidates = sorted(known)
    name = path.rsplit("/", 1)[-1]
    same = [other for other in candidates if other.rsplit("/", 1)[-1].lower() == name.lower()][:3]
    near = same or difflib.get_close_matches(path, candidates, n=3, cutoff=0.75)
    return f"; did you mean {' or '.join(map(shown, near))}?" if near else ""
