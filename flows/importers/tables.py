"""Plain tables: CSV with a header, or JSON lines; columns by the schema's names or by a mapping."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.files import storage
from flows.importers.rows import Episode, ImportProblem
from flows.results import COLUMNS, OUTCOMES

_TRUE, _FALSE = ("true", "1", "1.0", "pass", "passed", "yes"), ("false", "0", "0.0", "fail", "failed", "no")


def read_table(path: Path, mapping: Mapping[str, str]) -> Iterator[Episode]:
    """Episodes of a .csv or .jsonl file.

    Args:
        mapping: Column of the results schema → column of the file; others are taken by the schema's own name.

    Raises:
        ImportProblem: names line and field.
        StoreError: the file cannot be read.
    """
    records = _csv_records(path) if path.suffix == ".csv" else _json_records(path)
    for place, record in records:
        for column, source in mapping.items():
            if source not in record:
                raise ImportProblem(path, place, source, f"there is no such column to take {column} from")
        taken = {column: record.get(mapping.get(column, column)) for column in COLUMNS}
        values = {
            column: _READERS[COLUMNS[column].dtype](value, Episode({}, path, place), mapping.get(column, column))
            for column, value in taken.items()
            if value not in (None, "")
        }
        if values.get("outcome", OUTCOMES[0]) not in OUTCOMES:
            raise ImportProblem(path, place, "outcome", f"expected one of {', '.join(OUTCOMES)}")
        if not 0 <= values.get("partial_score", 0.0) <= 1:
            raise ImportProblem(path, place, mapping.get("partial_score", "partial_score"), "expected 0 to 1")
        yield Episode(values, path, place)


def read_text(path: Path) -> str:
    """A text file in UTF-8. Raises `StoreError`, `ImportProblem`."""
    with storage(path):
        data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ImportProblem(path, f"byte {error.start}", "text", "is not UTF-8") from None


def _csv_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    reader = csv.DictReader(read_text(path).splitlines(keepends=True), strict=True)
    try:
        for record in reader:
            place = f"line {reader.line_num}"
            if None in record or None in record.values():
                raise ImportProblem(path, place, "row", f"expected {len(reader.fieldnames or ())} fields")
            yield place, dict(record)
    except csv.Error as error:
        raise ImportProblem(path, f"line {reader.line_num}", "row", str(error)) from None


def _json_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ImportProblem(path, f"line {number}", "row", f"is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise ImportProblem(path, f"line {number}", "row", "expected a JSON object")
        yield f"line {number}", record


def _text(value: Any, at: Episode, field: str) -> str:
    if isinstance(value, str | int | float | bool):
        return str(value)
    raise at.problem(field, f"expected text, got {value!r:.60}")


def _boolean(value: Any, at: Episode, field: str) -> bool:
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise at.problem(field, f"expected true or false (or 1 or 0), got {value!r:.60}")


def _number(value: Any, at: Episode, field: str) -> float:
    try:
        number = math.nan if isinstance(value, bool | list | dict) else float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise at.problem(field, f"expected a finite number, got {value!r:.60}")
    return number


def _integer(value: Any, at: Episode, field: str) -> int:
    number = _number(value, at, field)
    if number != int(number) or number < 0:
        raise at.problem(field, f"expected a whole number from 0, got {value!r:.60}")
    return int(number)


def _moment(value: Any, at: Episode, field: str) -> datetime:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise at.problem(field, f"expected a date and time (ISO 8601), got {value!r:.60}") from None
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)


_READERS: dict[str, Callable[[Any, Episode, str], Any]] = {
    "str": _text,
    "bool": _boolean,
    "boolean": _boolean,
    "float64": _number,
    "Float64": _number,
    "int64": _integer,
    "Int64": _integer,
    "datetime64[us, UTC]": _moment,
}
