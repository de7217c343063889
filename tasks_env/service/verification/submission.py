"""A submission as data, and the edits by which the cases are made: each must find what it replaces."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tasks_env.service.trees import write_tree


@dataclass(frozen=True)
class Submission:
    """A tree that may hold more than ordinary files."""

    files: Mapping[str, bytes]
    links: Mapping[str, str] = field(default_factory=dict)
    """Path → what the symbolic link points to."""
    holes: Mapping[str, int] = field(default_factory=dict)
    """Path → size of a file that is nothing but a hole."""
    pipes: tuple[str, ...] = ()
    """Paths of named pipes."""

    @property
    def is_text(self) -> bool:
        """Whether an agent could make it with tools that write text."""
        return not (self.links or self.holes or self.pipes) and all(_is_text(each) for each in self.files.values())

    def edited(self, path: str, old: str, new: str) -> Submission:
        """`old`, which stands in the file exactly once, replaced by `new`.

        Raises:
            ValueError: it does not, so the case would no longer be what it says.
        """
        text = self.files[path].decode()
        if text.count(old) != 1:
            raise ValueError(
                f"{path} has {old!r} {text.count(old)} times, expected once; the case must follow the file"
            )
        return self.having({path: text.replace(old, new)})

    def having(self, texts: Mapping[str, str | bytes]) -> Submission:
        """Files added or replaced."""
        encoded = {path: text.encode() if isinstance(text, str) else text for path, text in texts.items()}
        return replace(self, files={**self.files, **encoded})

    def opening(self, path: str, code: str) -> Submission:
        """`code` put at the very beginning of a module."""
        return self.having({path: code + self.files[path].decode()})

    def without(self, *paths: str) -> Submission:
        """Files removed; a path that ends with `/` stands for a folder. Raises `ValueError` if there is none."""
        gone = {
            each for each in self.files for path in paths if each == path or (path[-1] == "/" and each.startswith(path))
        }
        if not gone:
            raise ValueError(f"{', '.join(paths)}: nothing to remove; the case must follow the tree")
        return replace(self, files={path: content for path, content in self.files.items() if path not in gone})

    def write(self, folder: Path) -> None:
        """Make the tree on the disk."""
        write_tree(folder, self.files)
        for path in {*self.links, *self.holes, *self.pipes}:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
        for path, target in self.links.items():
            (folder / path).unlink(missing_ok=True)
            (folder / path).symlink_to(target)
        for path, size in self.holes.items():
            with (folder / path).open("wb") as file:
                file.truncate(size)
        for path in self.pipes:
            os.mkfifo(folder / path)


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content
