"""What an importer is: it finds a harness's files and says of each episode what the results schema asks.

Everything else is the same for every format and happens outside: columns that the command line takes from other
fields or sets, numbers of runs, names of cells, the schema.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from flows.errors import StudyError
from flows.importers.scale import Scale


class ImportProblem(StudyError):
    """One paragraph that names file, place and field; nothing was written."""

    exit_code = 2

    def __init__(self, path: Path, place: str, field: str, problem: str) -> None:
        super().__init__(f"{path}, {place}, {field}: {problem}")


@dataclass(frozen=True)
class Episode:
    """What a source says of one episode, and where it says so."""

    values: Mapping[str, Any]
    """Column of the results schema → value of the column's type; null or left out: not known.

    Needed are model, instance_id and a verdict: passed, or partial_score, from which passed then follows; or
    infra_error for an episode that has none. partial_score is on the source's own scale.
    """
    path: Path
    place: str
    """Within the file: `line 3`, `sample q-7`."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Everything of the source that a person may want a column taken from; may be nested."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the source knows that could change an outcome: runs of one cell that differ here are refused."""

    def problem(self, field: str, problem: str) -> ImportProblem:
        """A mistake in this episode."""
        return ImportProblem(self.path, self.place, field, problem)


@dataclass(frozen=True)
class Choices:
    """What a person chose where a source offers several things."""

    metric: str | None = None
    """The score that decides; null: the source's first."""
    filter: str | None = None
    """Of several extractions of the same answer, the one that counts; null: the source's first."""
    scale: Scale = field(default_factory=Scale)
    """Range of the score and from where on it passes: applied outside, for an importer that has to know it too."""


class Importer(ABC):
    """One format. Instances hold no state."""

    name: ClassVar[str]
    """As the command line calls it."""
    reads: ClassVar[str]
    """What it reads, in a few words, for the help text."""
    patterns: ClassVar[tuple[str, ...]]
    """File names that it looks for in a folder."""

    @abstractmethod
    def episodes(self, files: Sequence[Path], choices: Choices, note: Callable[[str], None]) -> Iterator[Episode]:
        """Every episode of the files, in an order that does not depend on the machine.

        Args:
            files: What a person named, folders resolved to the files in them; in order, none twice.
            note: Takes a sentence that a person should know: a file left out, a choice made for them.

        Raises:
            ImportProblem: something cannot be read, one paragraph with file, place and field.
            StoreError: a file cannot be read at all.
        """
