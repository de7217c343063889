"""Trees of files as data: read with a limit on everything, hashed, compared.

A tree that somebody else wrote may hold anything. Only regular files of a bounded size, with names that any file system
takes, are read; every other entry is named with the reason, and is never followed, opened or copied.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path

from tasks_env.canonical import content_hash

Files = Mapping[str, bytes]
"""Content by path, `/` between the parts."""

LONGEST_PATH = 240
DEEPEST = 20
MOST_LISTED = 100_000
"""Entries of one folder that are looked at, many times what any benchmark allows in all."""
BYTECODE = (".pyc", ".pyo", ".so", ".pyd", ".dylib", ".dll")
"""What can be imported and not be reviewed."""


@dataclass(frozen=True)
class Bounds:
    """How much of a tree is read."""

    files: int
    """Entries, folders included."""
    file_bytes: int
    total_bytes: int


@dataclass
class Tree:
    """What was found under a folder."""

    files: dict[str, bytes] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Path → why the entry was not read."""

    @property
    def paths(self) -> set[str]:
        """Every entry, read or refused."""
        return {*self.files, *self.refused}


def read_tree(root: Path, ignored: Sequence[str], bounds: Bounds) -> Tree:
    """The tree under `root`, without what `ignored` names.

    Args:
        ignored: Names of folders that are passed over wherever they are: caches, and nothing else.

    Raises:
        OSError: `root` itself is no readable folder.
    """
    tree, total = Tree(), 0
    for seen, (relative, entry, reason) in enumerate(_entries(root, ignored), start=1):
        if seen > bounds.files:
            tree.refused[relative] = (
                f"the tree has more than {bounds.files} entries; this one and the rest are not read"
            )
            break
        if reason is None and entry.is_dir(follow_symlinks=False) and relative.count("/") < DEEPEST:
            continue
        reason = reason or _refusal(relative, entry, bounds)
        if reason is None and total + (size := entry.stat(follow_symlinks=False).st_size) > bounds.total_bytes:
            reason = f"the files before it and it are larger than {bounds.total_bytes} bytes"
        if reason is not None:
            tree.refused[relative] = reason
            continue
        try:
            content = Path(entry.path).read_bytes()
        except OSError as error:
            tree.refused[relative] = f"cannot be read: {error.strerror}"
            continue
        total += max(size, len(content))
        tree.files[relative] = content
    return tree


def _entries(root: Path, ignored: Sequence[str]) -> Iterator[tuple[str, os.DirEntry[str], str | None]]:
    """Every entry with what is wrong with it as a folder, sorted by name within each folder."""
    folders: list[os.DirEntry[str] | None] = [None]
    prefixes = [""]
    while folders:
        above, prefix = folders.pop(), prefixes.pop()
        try:
            with os.scandir(root if above is None else above.path) as found:
                entries = sorted(islice(found, MOST_LISTED), key=lambda entry: entry.name)
        except OSError as error:
            if above is None:
                raise
            yield prefix.rstrip("/"), above, f"a folder that cannot be read: {error.strerror}"
            continue
        inner = []
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and entry.name in ignored:
                continue
            relative = f"{prefix}{entry.name}"
            yield relative, entry, None
            if is_folder and relative.count("/") < DEEPEST:
                inner.append(entry)
        folders += reversed(inner)
        prefixes += [f"{prefix}{entry.name}/" for entry in reversed(inner)]


def _refusal(relative: str, entry: os.DirEntry[str], bounds: Bounds) -> str | None:
    """Why an entry is not read; null if it is."""
    if not relative.isprintable() or not _encodable(relative):
        return "its name is not printable text"
    if len(relative.encode()) > LONGEST_PATH:
        return f"its path is longer than {LONGEST_PATH} bytes"
    if entry.is_symlink():
        return "a symbolic link"
    if entry.is_dir(follow_symlinks=False):
        return f"folders more than {DEEPEST} deep"
    about = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(about.st_mode):
        return "not a regular file"
    if about.st_size > bounds.file_bytes:
        return f"larger than {bounds.file_bytes} bytes"
    if relative.lower().endswith(BYTECODE):
        return "compiled code, which nobody can review"
    return None


def _encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def tree_hash(files: Files) -> str:
    """SHA-256 over all paths and contents."""
    return content_hash({path: files[path].hex() for path in sorted(files)})


def remove_tree(root: Path) -> None:
    """Remove a folder with all that a submission may have left in it: however deep, whatever its modes.

    Every folder is moved to the top before it is looked into, so that no path and no recursion grows with the depth.
    What cannot be removed is left.
    """
    names = (root / f".{number}" for number in count())
    folders = [root]
    while folders:
        folder = folders.pop()
        for path in _listed(folder):
            with contextlib.suppress(OSError):
                if path.is_symlink() or not path.is_dir():
                    path.unlink()
                else:
                    path.chmod(0o700)  # else it could be neither moved nor looked into
                    folders.append(path.rename(next(names)))
        if folder != root:
            with contextlib.suppress(OSError):
                folder.rmdir()
    with contextlib.suppress(OSError):
        root.rmdir()


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def write_tree(root: Path, files: Files) -> None:
    """Write `files` under `root`, which is made."""
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


@dataclass(frozen=True)
class Changes:
    """How a tree differs from the baseline; every list sorted."""

    added: list[str]
    edited: list[str]
    removed: list[str]

    @property
    def all(self) -> list[str]:
        """Every path that differs."""
        return sorted([*self.added, *self.edited, *self.removed])


def changes(baseline: Files, tree: Tree) -> Changes:
    """What was added, edited (refused entries in place of a file included) and removed."""
    return Changes(
        added=sorted(tree.paths - set(baseline)),
        edited=sorted(path for path in tree.paths & set(baseline) if tree.files.get(path) != baseline[path]),
        removed=sorted(set(baseline) - tree.paths),
    )
