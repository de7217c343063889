"""results.parquet: written whole and atomically, read back checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pandera.errors import SchemaErrors

from flows.errors import StoreError
from flows.files import storage, write_atomically
from flows.results import COLUMNS, LATER_COLUMNS, SCHEMA, SCHEMA_VERSION, results_frame
from flows.store import MARKER
from tasks_env.canonical import canonical_json

METADATA_KEY = b"agent_bench"

_ARROW_TYPES = {
    "str": pa.string(),
    "int64": pa.int64(),
    "Int64": pa.int64(),
    "float64": pa.float64(),
    "Float64": pa.float64(),
    "bool": pa.bool_(),
    "boolean": pa.bool_(),
    "datetime64[us, UTC]": pa.timestamp("us", "UTC"),
}
_PANDAS_TYPES = {pa.int64(): pd.Int64Dtype(), pa.float64(): pd.Float64Dtype(), pa.bool_(): pd.BooleanDtype()}
"""Types that keep null apart from a number, so that no integer passes through a float."""


def write_results(path: Path, rows: list[dict[str, Any]], metadata: dict[str, Any]) -> pd.DataFrame:
    """Replace results.parquet by `rows`, guarded by the schema, with `metadata` inside the file.

    Raises:
        StoreError: a row breaks the schema, or the disk refuses; the old file stays.
    """
    with _guarded(path, "was not written: a row breaks the results schema"):
        frame = results_frame(rows)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    content = {"schema_version": SCHEMA_VERSION, **metadata}
    table = table.replace_schema_metadata(
        {**(table.schema.metadata or {}), METADATA_KEY: canonical_json(content).encode("ascii")}
    )
    buffer = BytesIO()
    pq.write_table(table, buffer)
    write_atomically(path, buffer.getvalue())
    return frame


def refresh_results(path: Path, rows: list[dict[str, Any]], metadata: dict[str, Any]) -> bool:
    """Write the table unless the file is, byte for byte, the one that was written from the same rows and metadata.

    Returns whether it was written. Raises as `write_results`.
    """
    marker = path.with_name(f"{path.stem}.{MARKER}")
    source = hashlib.sha256(canonical_json([_plain(rows), metadata]).encode("ascii")).hexdigest()
    if marker.is_file() and path.is_file() and marker.read_text(encoding="ascii") == f"{source} {_digest(path)}":
        return False
    with storage(marker):
        marker.unlink(missing_ok=True)
    write_results(path, rows, metadata)
    write_atomically(marker, f"{source} {_digest(path)}".encode("ascii"))
    return True


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "started_at": row["started_at"].isoformat()} for row in rows]


def _digest(path: Path) -> str:
    with storage(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def read_results(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A results file and its metadata, which is empty for a file that was not written here.

    Raises:
        StoreError: missing, no Parquet, another schema version, foreign or missing columns, values that break the
            schema. No value is rounded, cut off or parsed to make it fit.
    """
    with storage(path):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise StoreError(path, "there are no results yet; run `agent-bench score` first") from None
    try:
        table = pq.ParquetFile(pa.BufferReader(data)).read()
    except (pa.ArrowException, OSError) as error:
        raise StoreError(path, f"is not a readable Parquet file: {_one_line(error)}") from None
    metadata = _metadata(path, table)
    _check_columns(path, table.column_names)
    with _guarded(path, "has values that break the results schema"):
        frame = _typed(table).astype({name: column.dtype for name, column in COLUMNS.items()})
        return SCHEMA.validate(frame, lazy=True), metadata


def _metadata(path: Path, table: pa.Table) -> dict[str, Any]:
    try:
        metadata = json.loads((table.schema.metadata or {}).get(METADATA_KEY, b"{}"))
    except ValueError:
        metadata = None
    if not isinstance(metadata, dict):
        raise StoreError(path, "has damaged metadata; run `agent-bench score` to write it anew")
    version = metadata.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise StoreError(path, f"has results schema {version}; this version reads {SCHEMA_VERSION}")
    return metadata


def _check_columns(path: Path, names: list[str]) -> None:
    problems = {
        "foreign": sorted(set(names) - set(COLUMNS)),
        "missing": [name for name in COLUMNS if name not in names and name not in LATER_COLUMNS],
        "repeated": sorted({name for name in names if names.count(name) > 1}),
    }
    if any(problems.values()):
        listed = "; ".join(f"{what} columns {', '.join(found)}" for what, found in problems.items() if found)
        raise StoreError(path, f"is not in the results schema: {listed}")


def _typed(table: pa.Table) -> pd.DataFrame:
    """The columns in order, cast only where nothing is lost."""
    columns = {}
    for name, column in COLUMNS.items():
        found = table[name] if name in table.column_names else pa.nulls(len(table))
        wanted = _ARROW_TYPES[column.dtype]
        if not column.nullable and found.null_count:
            raise ValueError(f"column {name!r} has {found.null_count} nulls; it may have none")
        if not _is_widening(found.type, wanted):
            raise ValueError(f"column {name!r} is of type {found.type}, expected {wanted}")
        columns[name] = found.cast(wanted, safe=True)
    frame: pd.DataFrame = pa.table(columns).to_pandas(types_mapper=_PANDAS_TYPES.get)
    return frame


def _is_widening(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of `found` are values of `wanted`, as far as types say; the cast itself refuses overflow."""
    if pa.types.is_dictionary(found):
        return _is_widening(found.value_type, wanted)
    kinds = (
        (pa.types.is_string, lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind)),
        (pa.types.is_integer, pa.types.is_integer),
        (pa.types.is_floating, lambda kind: pa.types.is_floating(kind) or pa.types.is_integer(kind)),
        (pa.types.is_boolean, pa.types.is_boolean),
        (pa.types.is_timestamp, lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None),
    )
    return pa.types.is_null(found) or any(is_wanted(wanted) and fits(found) for is_wanted, fits in kinds)


@contextmanager
def _guarded(path: Path, what: str) -> Iterator[None]:
    """Turn a broken schema into one paragraph that names the first failing column and value, or row."""
    try:
        yield
    except SchemaErrors as error:
        problem = _first_case(error.failure_cases)
    except KeyError as error:
        problem = f"column {error} is missing"
    except (ValueError, TypeError, pa.ArrowException) as error:
        problem = _one_line(error)
    else:
        return
    raise StoreError(path, f"{what}: {problem}")


def _first_case(cases: pd.DataFrame) -> str:
    """One of pandera's failure cases; those of a column say more than those of whole rows."""
    of_columns = cases[cases["schema_context"] == "Column"]
    if len(of_columns):
        first = of_columns.iloc[0]
        return f"column {first['column']!r}, row {first['index']}: {first['check']}, got {first['failure_case']!r}"
    repeated = cases[(cases["check"] == "multiple_fields_uniqueness") & (cases["column"] == "episode_id")]
    if len(repeated):
        return f"column 'episode_id': more than one row has {repeated.iloc[0]['failure_case']!r}"
    first = cases.iloc[0]
    return f"row {first['index']}: {first['check']}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
