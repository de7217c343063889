"""From results.parquet, HYPOTHESES.md and git to tables and figures: the analyze stage without its orchestration."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from flows.preregistration import Preregistration, read_preregistration
from flows.report.figures import draw_figures, render_png, render_svg
from flows.results_file import read_results
from flows.stats.inference_tables import TABLE_COLUMNS as INFERENCE_COLUMNS
from flows.stats.inference_tables import inference_tables
from flows.stats.tables import TABLE_COLUMNS as CORE_COLUMNS
from flows.stats.tables import core_tables
from flows.store import MARKER, Store, storage, write_atomically
from tasks_env.canonical import canonical_json, content_hash
from tasks_env.seeding import derive_seed

HYPOTHESES = "HYPOTHESES.md"

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
TABLE_COLUMNS = {
    "coverage": COVERAGE_COLUMNS,
    "preregistration": PREREGISTRATION_COLUMNS,
    **CORE_COLUMNS,
    **INFERENCE_COLUMNS,
}
"""Table → column → meaning, of everything that analyze writes."""

Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Inputs:
    """What an analysis is made from."""

    frame: pd.DataFrame
    metadata: Mapping[str, Any]
    registered: Preregistration
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
    key = content_hash([digest, texts, [list(warning) for warning in registered.warnings], _code_hash()])
    return Inputs(frame, metadata, registered, key)


def _code_hash() -> str:
    folder = Path(__file__).parent
    sources = sorted([*folder.glob("stats/*.py"), *folder.glob("report/*.py"), *folder.glob("analy*.py")])
    return content_hash([[path.name, path.read_text(encoding="utf-8")] for path in sources])


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


def descriptive_tables(inputs: Inputs) -> Tables:
    """Coverage, preregistration and every table that needs no hypothesis."""
    return {
        "coverage": coverage(inputs),
        "preregistration": preregistration_table(inputs.registered),
        **core_tables(inputs.frame, seed=inputs.seed, resamples=inputs.resamples),
    }


def inferential_tables(inputs: Inputs) -> Tables:
    """Variance components, power and verdicts."""
    return inference_tables(
        inputs.frame, inputs.registered.registrations, seed=inputs.seed, resamples=inputs.resamples
    )


def write_tables(store: Store, tables: Tables) -> None:
    """Each table as Parquet and as CSV, and the dictionary of all columns. Raises `StoreError`."""
    for name, table in tables.items():
        write_atomically(store.analysis / "tables" / f"{name}.parquet", _parquet(table))
        write_atomically(store.analysis / "tables" / f"{name}.csv", _csv(table))
    dictionary = pd.DataFrame(
        [(name, column, meaning) for name, columns in TABLE_COLUMNS.items() for column, meaning in columns.items()],
        columns=["table", "column", "meaning"],
    )
    write_atomically(store.analysis / "columns.csv", _csv(dictionary))


def draw(tables: Tables) -> dict[str, tuple[Figure, pd.DataFrame]]:
    """Every figure with its data."""
    return draw_figures(tables)


def write_figures(store: Store, figures: Mapping[str, tuple[Figure, pd.DataFrame]]) -> None:
    """Each figure as PNG and SVG with the plotted data as Parquet. Raises `StoreError`."""
    for name, (figure, data) in figures.items():
        write_atomically(store.analysis / "figures" / f"{name}.png", render_png(figure))
        write_atomically(store.analysis / "figures" / f"{name}.svg", render_svg(figure))
        write_atomically(store.analysis / "figures" / f"{name}.parquet", _parquet(data))


def begin(store: Store) -> None:
    """Take the marker away: from here on the written analysis is in the making."""
    with storage(store.analysis):
        (store.analysis / MARKER).unlink(missing_ok=True)


def finish(store: Store, inputs: Inputs, summary: Mapping[str, Any]) -> None:
    """Write what the analysis was made from, then the marker. Raises `StoreError`."""
    write_atomically(store.analysis / "source.json", canonical_json(dict(summary)).encode("ascii") + b"\n")
    write_atomically(store.analysis / MARKER, inputs.key.encode("ascii"))


def source_summary(inputs: Inputs) -> dict[str, Any]:
    """What the analysis was made from, for whoever finds the folder."""
    frame = inputs.frame
    names = ("study", "profile", "seed", "manifest_hash", "scientific_hash", "grid", "analysis")
    return {
        **{name: inputs.metadata.get(name) for name in names},
        "rows": len(frame),
        "infra_error": int(frame["infra_error"].sum()),
        "git_shas": sorted(set(frame["git_sha"])),
        "hypotheses": [text.name for text in inputs.registered.texts],
        "key": inputs.key,
    }


def report_lines(tables: Tables) -> list[str]:
    """What a person should see at once: gaps in the data, warnings, verdicts."""
    cells = tables["coverage"]
    gaps = cells[~cells["state"].isin(["complete"])]
    lines = [
        f"analyze: {state}: {row.model} {row.cell_id}: {row.scored} of {row.planned} episodes scored"
        + (f", {row.infra_error} infra_error" if row.infra_error else "")
        + (f" ({row.reason})" if state == "unsupported" else "")
        for state in ("missing", "partial", "all infra_error", "unsupported")
        for row in gaps[gaps["state"] == state].itertuples()
    ]
    if lines:
        lines.insert(0, f"analyze: WARNING: {len(lines)} of {len(cells)} cells are not complete:")
    lines += [
        f"analyze: WARNING: HYPOTHESES.md: {row.message}"
        for row in tables["preregistration"].itertuples()
        if row.code != "ok"
    ]
    return lines


def _parquet(table: pd.DataFrame) -> bytes:
    buffer = BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode("utf-8")
