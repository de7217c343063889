"""A tree under construction: where files of a kind belong, what they are called, and what resembles them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tasks_env.families.filesys.content import (
    FOLDERS,
    KINDS,
    OUTPUT_FOLDERS,
    STEMS,
    SUBFOLDERS,
)
from tasks_env.families.filesys.effects import as_text
from tasks_env.families.filesys.goals import Files
from tasks_env.families.filesys.params import FilesysParams


class Draft:
    """Files added so far; every choice comes from `rng`.

    Args:
        params: The difficulty.
        rng: The only source of choices.
    """

    def __init__(self, params: FilesysParams, rng: random.Random) -> None:
        self.params = params
        self.rng = rng
        self.files: Files = {}
        self._folders: list[str] = []
        self._at_depth: dict[int, list[str]] = {}
        self._reserved: set[str] = set()
        self._tops = {extension: rng.sample(names, len(names)) for extension, names in FOLDERS.items()}

    def area(self, extension: str) -> str:
        """A top folder that nothing uses yet, at home to files of this kind while there are any."""
        for kind in (extension, *self._tops):
            if self._tops[kind]:
                return self._known("/" + self._tops[kind].pop())
        raise AssertionError("more areas than top folders: the bounds of the parameters are wrong")

    def search_scope(self, extension: str) -> tuple[str, str]:
        """A folder to search and a folder like it outside."""
        area = self.area(extension)
        if self.params.depth >= 3 and self.rng.random() < 0.6:
            inside, outside = self.rng.sample(SUBFOLDERS, 2)
            return self._known(f"{area}/{inside}"), self._known(f"{area}/{outside}")
        return area, self.area(extension)

    def subfolder(self, base: str) -> str:
        """A folder below `base`, or `base` itself if nothing fits below it within the depth."""
        if base.count("/") >= self.params.depth:
            return base
        known = [folder for folder in self._folders if folder.startswith(base + "/")]
        if known and self.rng.random() < 0.5:
            return self.rng.choice(known)
        return self._known(f"{base}/{self.rng.choice(SUBFOLDERS)}")

    def folder(self, base: str) -> str:
        """`base` or a folder below it, down to the permitted depth."""
        while base.count("/") < self.params.depth and self.rng.random() < 0.5:
            base = self.subfolder(base)
        return base

    def output(self, name: str) -> str:
        """An unused path for a result called `name`, in a folder where no source lies."""
        folder = self.output_folder()
        return self.reserve(self._unused(folder, *name.rsplit(".", 1)))

    def output_folder(self) -> str:
        """A folder for results."""
        return self.folder(self._known("/" + self.rng.choice(OUTPUT_FOLDERS)))

    def reserve(self, path: str) -> str:
        """Keep `path` free of generated files."""
        self._reserved.add(path)
        return path

    def fresh(self, folder: str, extension: str) -> str:
        """An unused path in `folder` with a common name."""
        return self._unused(folder, self.rng.choice(_stems(extension)), extension)

    def spread(self, directory: str, count: int, extension: str, *, one_level: bool = False) -> list[str]:
        """`count` paths in `directory`, now reserved, at least one of them in a subfolder if the depth permits.

        With `one_level` all of them lie exactly one folder deeper if the depth permits.
        """
        stems = _stems(extension)
        names = self.rng.sample(stems, len(stems))
        paths = []
        for number in range(count):
            folder = directory
            if one_level and directory.count("/") < self.params.depth:
                folder = self._known(f"{directory}/{self.rng.choice(SUBFOLDERS)}")
            elif number == 0 or self.rng.random() < 0.4:
                folder = self.subfolder(directory)
            paths.append(self.reserve(self._unused(folder, names[number % len(names)], extension)))
        return paths

    def release(self, paths: list[str]) -> None:
        """Give up reserved paths."""
        self._reserved.difference_update(paths)

    def add(self, path: str, lines: Sequence[str]) -> str:
        """Put a file with these lines into the tree."""
        self.files[path] = as_text(tuple(lines))
        self._reserved.add(path)
        return path

    def add_filler(self) -> None:
        """One more file that no goal mentions; the first ones reach the permitted depth."""
        extension = self.rng.choice(list(KINDS))
        deepest = max(self._at_depth, default=0)
        if not self._folders or (self.rng.random() < 0.3 and self._tops[extension]):
            folder = self.folder(self.area(extension))
        elif deepest < self.params.depth:
            folder = self.subfolder(self.rng.choice(self._at_depth[deepest]))
        else:
            folder = self.rng.choice(self._folders)
        self.add(self.fresh(folder, extension), KINDS[extension](self.rng))

    def add_decoy(self, path: str, scope: str) -> None:
        """A file below `scope` that resembles the one at `path`: its name elsewhere, or nearly its name."""
        folder, name = path.rsplit("/", 1)
        stem, extension = name.split(".", 1)
        kind = extension.split(".")[0]
        other = self.folder(scope)
        if other == folder or f"{other}/{name}" in self._reserved:
            stem = f"{stem}-{self.rng.choice(('old', 'draft', 'next', 'copy'))}"
        self.add(self._unused(other, stem, kind), KINDS[kind](self.rng))

    def _known(self, folder: str) -> str:
        alike = self._at_depth.setdefault(folder.count("/"), [])
        if folder not in alike:
            alike.append(folder)
            self._folders.append(folder)
        return folder

    def _unused(self, folder: str, stem: str, extension: str) -> str:
        path = f"{folder}/{stem}.{extension}"
        while path in self._reserved:
            stem = f"{stem}-{self.rng.choice(SUBFOLDERS)}"
            path = f"{folder}/{stem}.{extension}"
        return path


def _stems(extension: str) -> tuple[str, ...]:
    """Common names of files whose extension, such as `md` or `md.bak`, is this."""
    return next((STEMS[part] for part in extension.split(".") if part in STEMS), STEMS["md"])
