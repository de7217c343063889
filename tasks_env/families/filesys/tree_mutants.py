"""Final trees that are wrong by one file: one too many, one too few, one at another path."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tasks_env.families.filesys.goals import Files
from tasks_env.families.filesys.lookalikes import lookalikes
from tasks_env.families.filesys.solved import Solved

STRAY_NAMES = ("scratch.txt", "progress.txt", "todo.md", "untitled.txt")


def extra_file(task: Solved, rng: random.Random) -> Iterator[Files]:
    """A stray note; a copy of a file, kept for safety."""
    folder = rng.choice(task.folders)
    yield from _with_new(task.right, f"{folder}/{rng.choice(STRAY_NAMES)}", "done\n")
    if task.right:
        path = rng.choice(sorted(task.right))
        yield from _with_new(task.right, path + rng.choice((".bak", ".orig", "~")), task.right[path])


def extra_empty_file(task: Solved, rng: random.Random) -> Iterator[Files]:
    """A stray file without text."""
    yield from _with_new(task.right, f"{rng.choice(task.folders)}/{rng.choice(STRAY_NAMES)}", "")


def untouched_file_deleted(task: Solved, rng: random.Random) -> Iterator[Files]:
    """One file fewer."""
    if task.untouched:
        yield _without(task.right, rng.choice(task.untouched))


def untouched_file_moved(task: Solved, rng: random.Random) -> Iterator[Files]:
    """A file that should have stayed, under another name in its folder."""
    if task.untouched:
        path = rng.choice(task.untouched)
        folder, name = path.rsplit("/", 1)
        yield from _renamed(task.right, path, f"{folder}/{rng.choice(('old', 'new', 'my'))}-{name}")


def written_file_missing(task: Solved, rng: random.Random) -> Iterator[Files]:
    """A file that a goal made is not there."""
    if task.written:
        yield _without(task.right, rng.choice(task.written))


def deleted_file_left_empty(task: Solved, rng: random.Random) -> Iterator[Files]:
    """A file that should be gone is still there, without its text."""
    if task.removed:
        yield {**task.right, rng.choice(task.removed): ""}


def deleted_file_kept(task: Solved, rng: random.Random) -> Iterator[Files]:
    """A file that should be gone is still there; of a moved one this makes a copy."""
    if task.removed:
        path = rng.choice(task.removed)
        yield {**task.right, path: task.start[path]}


def path_in_another_case(task: Solved, rng: random.Random) -> Iterator[Files]:
    """The name in capitals; a folder with a capital."""
    for path in _places(task, rng):
        folder, name = path.rsplit("/", 1)
        other = f"{folder}/{name.upper()}" if not folder or rng.random() < 0.5 else f"{folder.title()}/{name}"
        yield from _renamed(task.right, path, other)


def path_in_another_folder(task: Solved, rng: random.Random) -> Iterator[Files]:
    """The right name in a wrong folder; in a folder that is called like the file."""
    for path in _places(task, rng):
        folder, name = path.rsplit("/", 1)
        others = [other for other in task.folders if other != folder and f"{other}/{name}" not in task.right]
        if others:
            yield from _renamed(task.right, path, f"{rng.choice(others)}/{name}")
    if task.written:
        path = rng.choice(task.written)
        yield from _renamed(task.right, path, path + path[path.rindex("/") :])


def look_alike_name(task: Solved, rng: random.Random) -> Iterator[Files]:
    """One letter of the name from another script, or in a compatibility form."""
    if task.right:
        path = rng.choice(sorted(task.right))
        folder, name = path.rsplit("/", 1)
        for other in lookalikes(name, rng):
            yield from _renamed(task.right, path, f"{folder}/{other}")


def two_files_exchanged(task: Solved, rng: random.Random) -> Iterator[Files]:
    """A file that a goal made, and another one, each with the text of the other."""
    if task.written:
        path = rng.choice(task.written)
        others = [other for other, text in task.right.items() if text != task.right[path]]
        if others:
            other = rng.choice(others)
            yield {**task.right, path: task.right[other], other: task.right[path]}


def _places(task: Solved, rng: random.Random) -> list[str]:
    """A written file and an untouched one, as far as there are any."""
    return [rng.choice(paths) for paths in (task.written, task.untouched) if paths]


def _without(files: Files, path: str) -> Files:
    return {other: text for other, text in files.items() if other != path}


def _renamed(files: Files, path: str, other: str) -> Iterator[Files]:
    yield from _with_new(_without(files, path), other, files[path])


def _with_new(files: Files, path: str, text: str) -> Iterator[Files]:
    """Nothing if the path is in use."""
    if path not in files:
        yield {**files, path: text}
