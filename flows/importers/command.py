"""The `import` command: files of another harness in, results.parquet out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from flows.errors import ConfigurationError, StoreError
from flows.importers.inspect_ai import read_inspect
from flows.importers.lm_eval import read_lm_eval
from flows.importers.rows import Episode, result_rows
from flows.importers.tables import read_table
from flows.results import COLUMNS
from flows.results_file import write_results


@dataclass(frozen=True)
class Request:
    """What to import, and what the source does not say itself."""

    format: str
    sources: tuple[Path, ...]
    out: Path
    benchmark: str
    metric: str | None = None
    """Scorer (inspect) or metric (lm-eval) that decides."""
    mapping: Mapping[str, str] = field(default_factory=dict)
    """Column → column of the file (table)."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Column → value for every episode, such as axis and level of a perturbed run; wins over the source."""


Reader = Callable[[Path, Request], Iterator[Episode]]
FORMATS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "table": (lambda path, request: read_table(path, request.mapping), ("*.csv", "*.jsonl")),
    "inspect": (lambda path, request: read_inspect(path, request.metric), ("*.eval", "*.json")),
    "lm-eval": (lambda path, request: read_lm_eval(path, request.metric), ("samples_*.jsonl",)),
}
"""Format → its reader, and what it looks for in a folder. A new one is a function from a file to episodes."""
SETTABLE = ("model", "family", "difficulty", "axis", "level")


def pairs(texts: Sequence[str], option: str, allowed: Sequence[str]) -> dict[str, str]:
    """`COLUMN=VALUE` options as a map. Raises `ConfigurationError`."""
    found = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals or not value or column not in allowed:
            raise ConfigurationError(f"{option} {text}: expected COLUMN=VALUE, with a column of {', '.join(allowed)}")
        found[column] = value
    return found


def import_results(request: Request) -> list[str]:
    """Write the results file. Returns what a person should know of it.

    Raises:
        StudyError: a source that cannot be read, one paragraph with file, line and field; nothing is written.
    """
    reader, patterns = FORMATS[request.format]
    files = [file for source in request.sources for file in _files(source, patterns)]
    episodes = (
        replace(episode, values={**episode.values, **request.constants})
        for file in files
        for episode in reader(file, request)
    )
    if request.benchmark == "stability":
        raise ConfigurationError("--benchmark stability is this project's own; name the imported one")
    rows, lacking = result_rows(episodes, request.benchmark)
    if not rows:
        raise StoreError(request.sources[0], "holds no episode")
    metadata = {
        "study": request.benchmark,
        "imported": {"format": request.format, "files": [file.name for file in files], "lacking": lacking},
    }
    frame = write_results(request.out, rows, metadata)
    return [
        f"import: {len(frame)} episodes of {frame['model'].nunique()} models and {frame['instance_id'].nunique()} "
        f"instances, {int(frame['infra_error'].sum())} infra_error, from {len(files)} files, in {request.out}",
        f"import: the source lacks {', '.join(lacking)}" if lacking else "import: the source has every column",
        f"import: agent-bench analyze --results {request.out} --out DIR",
    ]


def _files(source: Path, patterns: Sequence[str]) -> list[Path]:
    if source.is_dir():
        found = sorted({file for pattern in patterns for file in source.rglob(pattern)})
        if not found:
            raise StoreError(source, f"has no file like {' or '.join(patterns)}")
        return found
    if not source.is_file():
        raise StoreError(source, "there is no such file or folder")
    return [source]


def columns_of_schema() -> tuple[str, ...]:
    """Columns that a mapping may fill."""
    return tuple(name for name in COLUMNS if name not in ("benchmark", "episode_id", "cell_id"))
