"""The file tree of a study: where everything under data/, runs/ and results/ lies, and what vouches for it.

    data/instances/<family>-<difficulty>-<sample>-<digest>/instances.jsonl, _COMPLETE     immutable
    data/variants/<cell-id>/<digest>/variants.jsonl, _COMPLETE                            immutable
    runs/<model>/<cell-id>/.lock
    runs/<model>/<cell-id>/episodes/<episode-id>.jsonl, <episode-id>._COMPLETE            a transcript and its marker
    runs/<model>/<cell-id>/episodes/<episode-id>.attempt-<n>.jsonl                        earlier attempts (infra_error,
                                               or finished in a conversation that was not whole and is met again)
    runs/ledger.jsonl                                                                     reservations and spend
    runs/manifest.json                                                                    of the last run, resolved
    results/scores.jsonl                                                                  append-only journal of rows
    results/results.parquet, results._COMPLETE                                            its compaction
    results/analysis/                                                                     tables and figures
    .prefect/                                                  of the embedded Prefect server, which alone writes there
    .prefect/server/, .prefect/worker/                         of `agent-bench server` and `agent-bench worker`

A marker is written after what it vouches for has been flushed; anything without its marker is an interrupted
attempt and is done again. Every byte is written through `flows.files`.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flows.errors import StoreError
from flows.files import append_lines, exclusive, remove_temporaries, storage, write_atomically, write_flushed
from tasks_env.canonical import canonical_json

MARKER = "_COMPLETE"
REBUILD_JOURNAL = "delete the file and score again, every row is made anew from its transcript"


class Store:
    """One study's tree under `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "data"
        self.runs = root / "runs"
        self.prefect = root / ".prefect"
        self.server = self.prefect / "server"
        self.worker = self.prefect / "worker"
        self.results = root / "results"
        self.analysis = self.results / "analysis"
        self.journal = self.results / "scores.jsonl"
        self.table = self.results / "results.parquet"
        self.ledger = self.runs / "ledger.jsonl"
        self.last_manifest = self.runs / "manifest.json"
        self._episodes: dict[tuple[str, str], Path] = {}

    def identity(self) -> str:
        """A random id that lives and dies with runs/: in cache keys, it keeps a cache from outliving its files."""
        path = self.runs / ".identity"
        if not path.exists():
            write_atomically(path, uuid.uuid4().hex.encode())
        with storage(path):
            return path.read_text(encoding="ascii")

    def last_run(self) -> dict[str, Any] | None:
        """What the last run left to compare with; null if there was none, nothing in it if it was damaged."""
        with storage(self.last_manifest):
            try:
                data = self.last_manifest.read_bytes()
            except FileNotFoundError:
                return None
        try:
            content = json.loads(data, parse_constant=_refuse_constant)
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}

    def remember_run(self, content: dict[str, Any]) -> None:
        """Leave `content` for the next run; an equal one is left as it is. Raises `StoreError`."""
        if self.last_run() != content:
            write_atomically(self.last_manifest, canonical_json(content).encode("ascii") + b"\n")

    # --- sets of instances and variants -------------------------------------------------------------------

    def instance_set(self, name: str) -> Path:
        """Folder of an instance set."""
        return self.data / "instances" / name

    def variant_set(self, cell_id: str, digest: str) -> Path:
        """Folder of a cell's variants of one instance set."""
        return self.data / "variants" / cell_id / digest

    def has_set(self, folder: Path) -> bool:
        """Whether the set was written to its end."""
        return (folder / MARKER).is_file()

    def write_set(self, folder: Path, file_name: str, records: Iterable[Any]) -> None:
        """Write a set once and for all: in a folder beside it, marked, then moved into place.

        Raises:
            StoreError: the disk refuses, and nothing is left marked complete; or the set is there already with
                other bytes.
        """
        with storage(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
            shutil.rmtree(temporary, ignore_errors=True)
            try:
                temporary.mkdir()
                lines = [canonical_json(record) + "\n" for record in records]
                data = "".join(lines).encode("ascii")
                write_flushed(temporary / file_name, data)
                marker = {"count": len(lines), "sha256": hashlib.sha256(data).hexdigest()}
                write_flushed(temporary / MARKER, canonical_json(marker).encode())
                if folder.exists() and not self.has_set(folder):
                    shutil.rmtree(folder)
                _move_unless_there(temporary, folder)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise

    def read_set(self, folder: Path, file_name: str) -> list[Any]:
        """The records of a complete set.

        Raises:
            StoreError: the set is missing, or its bytes are not those that were written.
        """
        if not self.has_set(folder):
            raise StoreError(folder, "this set does not exist or was not finished; run the stage that writes it")
        marker = _read_marker(folder / MARKER, "sha256")
        with storage(folder):
            data = (folder / file_name).read_bytes()
        if hashlib.sha256(data).hexdigest() != marker["sha256"]:
            raise StoreError(
                folder / file_name,
                "was edited after it was written (its hash does not match its marker); sets are immutable: "
                "restore the file, or delete the folder and every result that came from it",
            )
        return [json.loads(line) for line in data.splitlines()]

    # --- episodes -----------------------------------------------------------------------------------------

    def episodes(self, model: str, cell_id: str) -> Path:
        """Folder of a cell's transcripts."""
        key = (model, cell_id)
        if key not in self._episodes:
            self._episodes[key] = self.runs / model / cell_id / "episodes"
        return self._episodes[key]

    def transcript(self, model: str, cell_id: str, episode_id: str) -> Path:
        """Path of an episode's (latest) transcript."""
        return self.episodes(model, cell_id) / f"{episode_id}.jsonl"

    def finished_transcripts(self) -> dict[tuple[str, str], set[str]]:
        """The ids of all marked episodes by model and cell id, whatever the manifest says of them."""
        found: dict[tuple[str, str], set[str]] = {}
        with storage(self.runs):
            for folder in sorted(self.runs.glob("*/*/episodes")):
                ids = {path.name.removesuffix(f".{MARKER}") for path in folder.glob(f"*.{MARKER}")}
                ids = {each for each in ids if (folder / f"{each}.jsonl").is_file()}
                if ids:
                    found[(folder.parent.parent.name, folder.parent.name)] = ids
        return found

    def touched(self, model: str, cell_id: str) -> set[str]:
        """The ids of a cell's episodes that have left anything, finished or not: one look for all of them."""
        folder = self.episodes(model, cell_id)
        with storage(folder):
            try:
                with os.scandir(folder) as entries:
                    return {entry.name.partition(".")[0] for entry in entries}
            except FileNotFoundError:
                return set()

    @staticmethod
    def marker(transcript: Path) -> dict[str, Any] | None:
        """What the marker says of a finished transcript; null if the attempt was interrupted or never began.

        Raises:
            StoreError: the marker is there but damaged.
        """
        path = _beside(transcript, MARKER)
        if not path.exists() or not transcript.is_file():
            return None
        try:
            return _read_marker(path, "sha256", "outcome", "attempt")
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):  # another process has just set the attempt aside
                return None
            raise

    @staticmethod
    def earlier_attempts(transcript: Path) -> int:
        """How many finished attempts were set aside, numbered from 1; to look costs the same in a cell of any size."""
        numbers = itertools.count(1)
        return next(number for number in numbers if not Store.earlier_attempt(transcript, number).exists()) - 1

    @staticmethod
    def earlier_attempt(transcript: Path, number: int) -> Path:
        """Where a finished attempt is kept that was set aside."""
        return _beside(transcript, f"attempt-{number}.jsonl")

    def set_aside(self, transcript: Path) -> None:
        """Make room for another attempt: a finished one is kept under its number, an interrupted one is dropped."""
        with storage(transcript):
            if self.marker(transcript) is not None:
                number = self.earlier_attempts(transcript) + 1
                transcript.rename(self.earlier_attempt(transcript, number))
            _beside(transcript, MARKER).unlink(missing_ok=True)
            transcript.unlink(missing_ok=True)

    def mark_complete(self, transcript: Path, content: dict[str, Any]) -> None:
        """Vouch for a flushed transcript."""
        write_atomically(_beside(transcript, MARKER), canonical_json(content).encode())

    @contextmanager
    def cell_lock(self, model: str, cell_id: str) -> Iterator[None]:
        """Hold the cell against every other process.

        Raises:
            CellLocked: names the holder's pid.
        """
        with exclusive(self.runs / model / cell_id / ".lock", f"cell {cell_id} of model {model}"):
            remove_temporaries(self.episodes(model, cell_id))
            yield

    # --- results ------------------------------------------------------------------------------------------

    @contextmanager
    def results_lock(self) -> Iterator[None]:
        """Hold the results against every other process. Raises `CellLocked`."""
        with exclusive(self.results / ".lock", f"{self.results}"):
            remove_temporaries(self.results)
            yield

    def journal_rows(self) -> list[dict[str, Any]]:
        """The journal's rows in the order of writing; a torn last line is an interrupted row and is left out.

        Raises:
            StoreError: a whole line is not a JSON object.
        """
        with storage(self.journal):
            try:
                data = self.journal.read_bytes()
            except FileNotFoundError:
                return []
        whole, _, _ = data.rpartition(b"\n")
        return [
            _json_object(line, self.journal, f"line {number} is not a row; {REBUILD_JOURNAL}")
            for number, line in enumerate(whole.splitlines(), start=1)
        ]

    def append_rows(self, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows to the journal, flushed; a torn line of an earlier crash is cut off first."""
        append_lines(self.journal, [canonical_json(row) for row in rows])

    def disk_bytes(self) -> int:
        """Bytes that data/, runs/, results/ and the embedded Prefect server's state take."""
        total = 0
        for top in (self.data, self.runs, self.results, self.prefect):
            for folder, _, names in os.walk(top):
                for name in names:
                    try:
                        total += Path(folder, name).lstat().st_size
                    except FileNotFoundError:
                        continue
        return total


def _move_unless_there(temporary: Path, folder: Path) -> None:
    """Put a finished set in place; another process may have finished the same bytes first."""
    try:
        temporary.rename(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not (folder / MARKER).is_file():
            raise
        if (folder / MARKER).read_bytes() != (temporary / MARKER).read_bytes():
            raise StoreError(
                folder,
                "exists with other content than was now made from the same seeds; sets are immutable: move it away",
            ) from None
        shutil.rmtree(temporary)


def _beside(transcript: Path, suffix: str) -> Path:
    return transcript.parent / f"{transcript.stem}.{suffix}"


def _read_marker(path: Path, *keys: str) -> dict[str, Any]:
    advice = "it was cut off or edited; delete it, and what it vouches for is made anew"
    with storage(path):
        content = _json_object(path.read_bytes(), path, f"this marker is not a JSON object: {advice}")
    missing = [key for key in keys if key not in content]
    if missing:
        raise StoreError(path, f"this marker lacks {', '.join(missing)}: {advice}")
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _json_object(data: bytes, path: Path, problem: str) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise StoreError(path, problem)
    return content
