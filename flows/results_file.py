"""results.parquet: written whole and atomically, read back checked."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pandera.errors import SchemaErrors

from flows.errors import StoreError
from flows.results import COLUMNS, SCHEMA, SCHEMA_VERSION, results_frame
from flows.store import storage, write_atomically
from tasks_env.canonical import canonical_json

METADATA_KEY = b"agent_bench"


def write_results(path: Path, rows: list[dict[str, Any]], metadata: dict[str, Any]) -> pd.DataFrame:
    """Replace results.parquet by `rows`, guarded by the schema, with `metadata` inside the file.

    Raises:
        pandera.errors.SchemaErrors: a row breaks the schema; the old file stays.
        StoreError: the disk refuses; the old file stays.
    """
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


def read_results(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A results file and its metadata.

    Raises:
        StoreError: missing, no Parquet, another schema version, foreign or missing columns, values that break the
            schema.
    """
    with storage(path):
        try:
            table = pq.read_table(path)
        except FileNotFoundError:
            raise StoreError(path, "there are no results yet; run `agent-bench score` first") from None
        except pa.ArrowInvalid as error:
            raise StoreError(path, f"is not a Parquet file: {error}") from None
    metadata = json.loads((table.schema.metadata or {}).get(METADATA_KEY, b"{}"))
    version = metadata.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise StoreError(path, f"has results schema {version}; this version reads {SCHEMA_VERSION}")
    foreign = sorted(set(table.column_names) - set(COLUMNS))
    missing = [name for name in COLUMNS if name not in table.column_names]
    if foreign or missing:
        raise StoreError(
            path,
            "is not in the results schema: "
            + "; ".join(
                f"{what} columns {', '.join(names)}"
                for what, names in (("foreign", foreign), ("missing", missing))
                if names
            ),
        )
    try:
        frame = table.select(list(COLUMNS)).to_pandas()
        frame = frame.astype({name: column.dtype for name, column in COLUMNS.items()})
        return SCHEMA.validate(frame, lazy=True), metadata
    except SchemaErrors as error:
        first = error.failure_cases.iloc[0]
        problem = f"column {first['column']!r}, check {first['check']!r}, value {first['failure_case']!r}"
        raise StoreError(path, f"has values that break the results schema: {problem}") from None
    except (ValueError, TypeError) as error:
        raise StoreError(path, f"has values that break the results schema: {error}") from None
