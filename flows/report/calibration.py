"""Measured properties of the methods, as the appendix prints them: a study's own, or the table that ships.

The table that ships is `measured_coverage.csv`: a line with the command that made it, then the calibration's table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from flows.errors import StoreError
from flows.files import storage

METADATA_KEY = b"agent_bench_calibration"
"""In a calibration's Parquet schema: JSON with the command that made it."""
SHIPPED = Path(__file__).with_name("measured_coverage.csv")

COLUMNS = {
    "population": "str",
    "instances": "int64",
    "table": "str",
    "quantity": "str",
    "scope": "str",
    "measure": "str",
    "nominal": "Float64",
    "value": "Float64",
    "mc_error": "Float64",
    "truth": "Float64",
    "studies": "int64",
    "rows": "int64",
    "misses": "boolean",
}
"""Of a calibration's table, with dtypes; `flows.calibration.summary` says what they mean."""
_COMMENT = "# "
_AGAIN = "run `agent-bench calibration` again"


@dataclass(frozen=True)
class Calibration:
    """Measured coverage, size, power and bias of the methods on data with known truth."""

    rows: pd.DataFrame
    """Columns as in `COLUMNS`; each row is one measured property."""
    command: str
    """What made it."""
    shipped: bool = False
    """It came with the code, and was not made beside the results."""


def read_calibration(path: Path) -> Calibration:
    """What `agent-bench calibration` wrote as Parquet. Raises `StoreError`."""
    with storage(path):
        try:
            found = pq.read_table(path)
            about = json.loads((found.schema.metadata or {}).get(METADATA_KEY, b"{}"))
        except (pa.ArrowInvalid, ValueError):
            raise StoreError(path, f"is no calibration; delete it, or {_AGAIN}") from None
    return Calibration(_whole(found.to_pandas(), path).astype(COLUMNS), str(about.get("command", "")))


def read_shipped(path: Path = SHIPPED) -> Calibration:
    """The table that ships. Raises `StoreError`."""
    with storage(path):
        first, _, rest = path.read_bytes().partition(b"\n")
    command = first.decode("utf-8").removeprefix(_COMMENT).strip()
    # Text alone: no value of a text column is a number or a null.
    table = pd.read_csv(BytesIO(rest), dtype="str", keep_default_na=False)
    values = _whole(table, path).map(lambda value: value or None)
    for name in ("nominal", "value", "mc_error", "truth"):
        values[name] = values[name].astype("Float64")
    values["misses"] = values["misses"].map({"True": True, "False": False})
    return Calibration(values.astype(COLUMNS), command, shipped=True)


def shipped_form(table: pd.DataFrame, command: str) -> bytes:
    """A calibration's table as the file that ships: numbers to six digits, the same bytes for the same table."""
    lines = table[list(COLUMNS)].to_csv(index=False, lineterminator="\n", float_format="%.6g")
    return f"{_COMMENT}{command}\n{lines}".encode()


def _whole(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise StoreError(path, f"lacks the columns {', '.join(missing)}; {_AGAIN}")
    return table[list(COLUMNS)]
