"""Plain tables: CSV with a header, or JSON lines, a record per episode."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from flows.files import storage
from flows.importers.fields import MAPPABLE, column_value
from flows.importers.importer import Choices, Episode, Importer, ImportProblem

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
Record = tuple[str, dict[str, Any]]
"""A place in the file, and what stands there."""


class TableImporter(Importer):
    """Columns by the schema's own names, or by a mapping."""

    name: ClassVar[str] = "table"
    reads: ClassVar[str] = "CSV, TSV or JSON lines, a record per episode, columns named as in the schema or by --map"
    patterns: ClassVar[tuple[str, ...]] = ("*.csv", "*.tsv", "*.jsonl")

    def episodes(
        self,
        files: Sequence[Path],
        choices: Choices,  # noqa: ARG002 - a table leaves nothing to choose
        note: Callable[[str], None],
    ) -> Iterator[Episode]:
        for path in files:
            readers = {".csv": _csv_records, ".tsv": _csv_records, ".jsonl": _json_lines, ".json": _json_records}
            reader = readers.get(path.suffix.lower())
            if reader is None:
                raise ImportProblem(path, "name", "format", f"expected a file ending in {', '.join(readers)}")
            for place, record in reader(path, note):
                bare = Episode({}, path, place, record)
                values = {
                    column: column_value(column, record[column], bare, column)
                    for column in MAPPABLE
                    if record.get(column) not in (None, "")
                }
                yield Episode(values, path, place, record)


def read_text(path: Path) -> str:
    """A text file in UTF-8, with or without a byte order mark. Raises `StoreError`, `ImportProblem`."""
    with storage(path):
        data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ImportProblem(path, f"byte {error.start}", "text", "is not UTF-8; save the file as UTF-8") from None


def json_lines(path: Path) -> Iterator[Record]:
    """A JSON object per line; empty lines are skipped. Raises `StoreError`, `ImportProblem`."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        yield f"line {number}", _object(path, f"line {number}", line)


def _object(path: Path, place: str, text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ImportProblem(path, place, "row", f"is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise ImportProblem(path, place, "row", f"expected a JSON object, got {text.strip():.60}")
    return record


def _csv_records(path: Path, note: Callable[[str], None]) -> Iterator[Record]:
    csv.field_size_limit(sys.maxsize)  # the text is in memory anyway
    text = read_text(path)
    header = text.split("\n", 1)[0]
    counts = {separator: header.count(separator) for separator in _SEPARATORS}
    chosen = max(counts, key=lambda separator: counts[separator])
    if counts[chosen] and chosen != ("\t" if path.suffix.lower() == ".tsv" else ","):
        note(f"{path.name}: its columns are separated by {_SEPARATORS[chosen]}")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=chosen, strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_header(path, names)
        for fields in reader:
            if not fields:
                continue
            place = f"line {reader.line_num}"
            if len(fields) != len(names):
                raise ImportProblem(
                    path, place, "row", f"has {len(fields)} fields where the header has {len(names)}: {fields!r:.80}"
                )
            yield place, {name: field.strip() for name, field in zip(names, fields, strict=True)}
    except csv.Error as error:
        raise ImportProblem(path, f"line {reader.line_num}", "row", f"is not CSV: {error}") from None


def _check_header(path: Path, names: Sequence[str]) -> None:
    if not any(names):
        raise ImportProblem(path, "line 1", "header", "is empty; expected the names of the columns")
    if repeated := sorted({name for name in names if name and names.count(name) > 1}):
        raise ImportProblem(path, "line 1", "header", f"names {', '.join(repeated)} more than once")


def _json_lines(path: Path, _note: Callable[[str], None]) -> Iterator[Record]:
    return _with_every_key(list(json_lines(path)))


def _json_records(path: Path, _note: Callable[[str], None]) -> Iterator[Record]:
    try:
        records = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise ImportProblem(path, "file", "format", f"is not JSON: {error}") from None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise ImportProblem(path, "file", "format", "expected a list of JSON objects, or JSON lines named .jsonl")
    return _with_every_key([(f"record {number}", record) for number, record in enumerate(records, start=1)])


def _with_every_key(records: list[Record]) -> Iterator[Record]:
    """A key that a record leaves out is null there, as if the records were rows of a table."""
    keys = dict.fromkeys(key for _, record in records for key in record)
    for place, record in records:
        yield place, record if len(record) == len(keys) else {**dict.fromkeys(keys), **record}
