"""What an analysis is made from: the results, their grid, the registered hypotheses. Light to import."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from flows.errors import StoreError
from flows.files import storage
from flows.preregistration import Preregistration, read_preregistration
from flows.report.calibration import Calibration
from flows.results_file import read_results
from flows.store import MARKER, Store
from tasks_env.canonical import content_hash
from tasks_env.seeding import derive_seed

HYPOTHESES = "HYPOTHESES.md"
CALIBRATION = "calibration.parquet"
"""Beside the results: what `agent-bench calibration` measured."""
COMMAND_KEY = b"agent_bench_command"
"""In the metadata of its schema: the command that made it."""
_SOURCES = {".py", ".jinja", ".css"}

COVERAGE_COLUMNS = {
    "model": "model of the grid",
    "cell_id": "cell of the grid",
    "planned": "episodes that the grid spells out",
    "scored": "episodes with a verdict",
    "infra_error": "episodes that infrastructure let down",
    "state": "complete, partial, missing, all infra_error, or unsupported",
    "reason": "why a cell cannot be run, where it cannot",
}
PREREGISTRATION_COLUMNS = {
    "code": "kind of warning, `ok` for a text without one",
    "message": "what it means for the verdicts",
}


@dataclass(frozen=True)
class Inputs:
    """What an analysis is made from."""

    frame: pd.DataFrame
    metadata: Mapping[str, Any]
    registered: Preregistration
    calibration: Calibration | None
    key: str
    """Hash of everything that could change an output."""

    @property
    def seed(self) -> int:
        """Of all resampling."""
        return derive_seed(int(self.metadata.get("seed", 0)), "analysis")

    @property
    def resamples(self) -> int:
        """Bootstrap resamples and permutations."""
        return int(self.metadata.get("analysis", {}).get("resamples", 10_000))


def read_inputs(results: Path, hypotheses: Path) -> Inputs:
    """Read and check everything. Raises `StoreError`."""
    frame, metadata = read_results(results)
    registered = read_preregistration(hypotheses, frame["started_at"].dt.to_pydatetime().tolist())
    with storage(results):
        digest = hashlib.sha256(results.read_bytes()).hexdigest()
    texts = [text.name for text in registered.texts]
    calibrated = results.with_name(CALIBRATION)
    measured = _calibration(calibrated)
    parts = [digest, texts, [list(warning) for warning in registered.warnings], _code_hash()]
    if measured is not None:
        parts.append(hashlib.sha256(calibrated.read_bytes()).hexdigest())
    return Inputs(frame, metadata, registered, measured, content_hash(parts))


def _code_hash() -> str:
    package = Path(__file__).parent.parent
    folders = [package / part for part in ("stats", "report", "analysis")]
    sources = sorted(path for folder in folders for path in folder.iterdir() if path.suffix in _SOURCES)
    return content_hash([[path.name, path.read_text(encoding="utf-8")] for path in sources])


def _calibration(path: Path) -> Calibration | None:
    """The measured properties of the methods, if a calibration was run beside these results."""
    if not path.is_file():
        return None
    with storage(path):
        try:
            found = pq.read_table(path)
        except pa.ArrowInvalid:
            raise StoreError(path, "is no Parquet file; run the calibration again, or delete it") from None
    command = (found.schema.metadata or {}).get(COMMAND_KEY, b"agent-bench calibration").decode("utf-8")
    return Calibration(found.to_pandas(), command)


def up_to_date(store: Store, inputs: Inputs) -> bool:
    """Whether the written analysis is the one that `inputs` would give."""
    marker = store.analysis / MARKER
    return marker.is_file() and marker.read_text(encoding="ascii") == inputs.key


def coverage(inputs: Inputs) -> pd.DataFrame:
    """One row per (model, cell) of the grid: planned and scored episodes, and whether the cell is whole."""
    counts = inputs.frame.groupby(["model", "cell_id"])["infra_error"].agg(["size", "sum"])
    rows: list[dict[str, Any]] = []
    for cell in inputs.metadata.get("planned", []):
        key = (cell["model"], cell["cell_id"])
        size, infra = (int(counts.loc[key, name]) for name in ("size", "sum")) if key in counts.index else (0, 0)
        if size == 0:
            state = "missing"
        elif infra == size:
            state = "all infra_error"
        else:
            state = "complete" if size - infra == cell["episodes"] else "partial"
        rows.append(
            {
                "model": cell["model"],
                "cell_id": cell["cell_id"],
                "planned": cell["episodes"],
                "scored": size - infra,
                "infra_error": infra,
                "state": state,
                "reason": None,
            }
        )
    rows += [
        {**cell, "planned": 0, "scored": 0, "infra_error": 0, "state": "unsupported"}
        for cell in inputs.metadata.get("unsupported", [])
    ]
    frame = pd.DataFrame(rows, columns=list(COVERAGE_COLUMNS))
    return frame.astype({"model": "str", "cell_id": "str", "state": "str", "reason": "str"})


def preregistration_table(registered: Preregistration) -> pd.DataFrame:
    """Every warning about the hypotheses' text, or the one line that says there is none."""
    rows = [tuple(warning) for warning in registered.warnings]
    rows = rows or [("ok", f"in force: {', '.join(text.name for text in registered.texts)}")]
    return pd.DataFrame(rows, columns=list(PREREGISTRATION_COLUMNS), dtype="str")
