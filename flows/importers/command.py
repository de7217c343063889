"""The `import` command: files of another harness in, results.parquet out."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pandas as pd

from flows.errors import ConfigurationError
from flows.files import storage
from flows.importers.fields import column_value, found_field
from flows.importers.importer import Choices, Episode
from flows.importers.registration import importer
from flows.importers.rows import Row, result_rows
from flows.results_file import read_results, write_results
from flows.stats.answerable import refusals

SETTABLE = ("model", "family", "difficulty", "axis", "level")
_TABLE = "results.parquet"
_MOST_LINES = 24


@dataclass(frozen=True)
class Request:
    """What to import, and what the source does not say itself."""

    format: str
    sources: tuple[Path, ...]
    out: Path
    """A .parquet file, or the folder of one."""
    benchmark: str
    choices: Choices = field(default_factory=Choices)
    mapping: Mapping[str, str] = field(default_factory=dict)
    """Column → field of the source; wins over what the importer says."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Column → value for every episode, such as axis and level of a perturbed run; wins over the mapping."""
    baseline: str | None = None
    """The level that is the unperturbed one."""
    ignored: frozenset[str] = frozenset()
    """Settings in which runs of one cell may differ."""
    add: bool = False
    """Whether to add to what was imported into `out` before."""


def pairs(texts: Sequence[str], option: str, allowed: Sequence[str]) -> dict[str, str]:
    """`COLUMN=VALUE` options as a map. Raises `ConfigurationError`."""
    found: dict[str, str] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals or not value or column not in allowed:
            raise ConfigurationError(f"{option} {text}: expected COLUMN=VALUE, with a column of {', '.join(allowed)}")
        if column in found:
            raise ConfigurationError(f"{option} {text}: {column} is already {option} {column}={found[column]}")
        found[column] = value
    return found


def import_results(request: Request) -> list[str]:
    """Write the results file. Returns what a person should know of it.

    Raises:
        StudyError: a source that cannot be read or understood, one paragraph with file, line and field; nothing is
            written.
    """
    reader = importer(request.format)
    files = _files(request.sources, reader.patterns)
    out = request.out if request.out.suffix == ".parquet" else request.out / _TABLE
    known, before = _before(out, request, files)
    notes: list[str] = []
    episodes = (_placed(episode, request) for episode in reader.episodes(files, request.choices, notes.append))
    rows, lacking = result_rows(episodes, request.benchmark, known, request.ignored)
    if not rows:
        raise ConfigurationError(f"import: there is no episode in {', '.join(map(str, request.sources))}")
    source = {
        "format": request.format,
        "files": [{"name": file.name, "sha256": _digest(file)} for file in files],
        "lacking": lacking,
        "notes": notes,
    }
    frame = write_results(out, [*known, *rows], {"study": request.benchmark, "imported": [*before, source]})
    return list(_summary(frame, len(rows), files, notes, lacking, out))


def _files(sources: Sequence[Path], patterns: Sequence[str]) -> list[Path]:
    """Every file that was named, and those of the folders, none twice."""
    found: dict[Path, Path] = {}
    for source in sources:
        if source.is_dir():
            inside = sorted({file for pattern in patterns for file in source.rglob(pattern) if file.is_file()})
            if not inside:
                raise ConfigurationError(f"import: the folder {source} has no file like {' or '.join(patterns)}")
        elif source.is_file():
            inside = [source]
        else:
            raise ConfigurationError(f"import: there is no such file or folder: {source}")
        for file in inside:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def _before(out: Path, request: Request, files: Sequence[Path]) -> tuple[list[Row], list[Mapping[str, Any]]]:
    """Rows and sources that `out` holds already, if the new ones are to be added. Raises `ConfigurationError`."""
    if not out.exists():
        if request.add:
            raise ConfigurationError(f"--add: there is nothing to add to: {out}")
        return [], []
    frame, metadata = read_results(out)
    sources = metadata.get("imported")
    if not isinstance(sources, list):
        raise ConfigurationError(f"--out {out}: holds results that were not imported; choose another file")
    if not request.add:
        return [], []
    [benchmark] = frame["benchmark"].unique()
    if benchmark != request.benchmark:
        raise ConfigurationError(
            f"--add: {out} holds the benchmark {benchmark!r}, these are of {request.benchmark!r}; name the same with "
            "--benchmark, since one file is one benchmark"
        )
    imported = {(file["name"], file["sha256"]) for source in sources for file in source["files"]}
    if again := [file for file in files if (file.name, _digest(file)) in imported]:
        raise ConfigurationError(f"--add: {again[0]} is already in {out}")
    plain = frame.astype(object).where(frame.notna(), None)
    return cast(list[Row], plain.to_dict("records")), sources


def _digest(file: Path) -> str:
    with storage(file):
        return hashlib.sha256(file.read_bytes()).hexdigest()


def _placed(episode: Episode, request: Request) -> Episode:
    """The episode with what the person said of it."""
    taken = {
        column: column_value(column, found_field(episode, name, column), episode, name)
        for column, name in request.mapping.items()
    }
    values = {**episode.values, **taken, **request.constants}
    if request.baseline is not None and values.get("level") == request.baseline:
        values |= {"axis": "none", "level": "baseline"}
    return replace(episode, values=values if values.get("infra_error") else _graded(episode, values, request))


def _graded(episode: Episode, values: Row, request: Request) -> Row:
    """With the score brought to 0 to 1, and the verdict taken from it where the source has none of its own."""
    score, scale = values.get("partial_score"), request.choices.scale
    if score is None:
        if scale.pass_at is not None:
            raise episode.problem("score", "there is none for --pass-at; name its field with --map partial_score=FIELD")
        return values
    try:
        graded = {"partial_score": scale.partial(score)}
    except ValueError as error:
        raise episode.problem(request.mapping.get("partial_score", "score"), str(error)) from None
    if values.get("passed") is None or scale.pass_at is not None:
        graded["passed"] = scale.passed(score)
    return {**values, **graded}


def _summary(
    frame: pd.DataFrame, added: int, files: Sequence[Path], notes: Sequence[str], lacking: Sequence[str], out: Path
) -> Iterator[str]:
    tasks = frame[["family", "difficulty", "instance_id"]].drop_duplicates()
    yield (
        f"import: {added:,} episodes from {_count(len(files), 'file')}; "
        f"{out} holds {len(frame):,}: {_count(frame['model'].nunique(), 'model')}, {_count(len(tasks), 'instance')}, "
        f"{_runs(frame)}, {int(frame['infra_error'].sum()):,} infra_error"
    )
    yield from (f"import: note: {note}" for note in notes)
    yield from _rates(frame)
    if lacking:
        yield f"import: the source lacks {', '.join(lacking)}"
    yield from (f"import: not possible with these results: {what}: {why}" for what, why in refusals(frame))
    yield f"import: next: agent-bench analyze --results {shlex.quote(str(out))} --out DIR"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _runs(frame: pd.DataFrame) -> str:
    counts = frame.groupby(["model", "family", "difficulty", "axis", "level", "instance_id"], sort=False).size()
    least, most = int(counts.min()), int(counts.max())
    runs = f"{least}" if least == most else f"{least} to {most}"
    return f"{runs} {'run' if most == 1 else 'runs'} of each in a cell"


def _rates(frame: pd.DataFrame) -> Iterator[str]:
    """Pass rate and mean score of every cell, to be held against what the harness printed."""
    scored = frame[~frame["infra_error"]]
    cells = scored.groupby(["family", "difficulty", "axis", "level", "model"], sort=True)
    if len(scored):
        yield "import: plain means over episodes, to be compared with what the harness printed:"
    for number, (names, own) in enumerate(cells):
        if number == _MOST_LINES:
            yield f"  and {cells.ngroups - number:,} cells more"
            return
        family, difficulty, axis, level, model = map(str, names)
        place = " ".join([family, *([] if difficulty == "none" else [difficulty])])
        change = "" if axis == "none" else f", {axis} {level}"
        score = own["partial_score"].mean()
        yield (
            f"  {place}{change}, {model}: passed {own['passed'].mean():.4f} of {len(own):,}"
            + ("" if pd.isna(score) else f", mean score {score:.4f}")
        )
