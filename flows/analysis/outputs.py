"""Tables, figures and what a person is told of them, from the inputs of an analysis."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from io import BytesIO
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from pandas.api.types import is_string_dtype

from flows.analysis.coverage import COVERAGE_COLUMNS, coverage
from flows.analysis.inputs import (
    PREREGISTRATION_COLUMNS,
    REGISTERED_COLUMNS,
    Inputs,
    preregistration_table,
    registered_table,
)
from flows.files import storage, write_atomically
from flows.report.about import described
from flows.report.document import render_report
from flows.report.figures import draw_figures, render_png, render_svg
from flows.report.glossary import FIGURE_COLUMNS, NO_DOUBT, NOTHING_REGISTERED, TABLES
from flows.report.judged import Text
from flows.report.pictures import inline_pictures
from flows.stats.inference_tables import TABLE_COLUMNS as INFERENCE_COLUMNS
from flows.stats.inference_tables import inference_tables
from flows.stats.tables import TABLE_COLUMNS as CORE_COLUMNS
from flows.stats.tables import core_tables
from flows.store import MARKER, Store
from tasks_env.canonical import canonical_json

TABLE_COLUMNS = {
    "coverage": COVERAGE_COLUMNS,
    "preregistration": PREREGISTRATION_COLUMNS,
    "registered_texts": REGISTERED_COLUMNS,
    **CORE_COLUMNS,
    **INFERENCE_COLUMNS,
}
"""Table → column → meaning, of everything that analyze writes."""

REPORT = "report.html"
_FORMULA = ("=", "+", "-", "@", "\t", "\n")
"""What a spreadsheet takes for the start of a formula, or skips on the way to one."""

Tables = dict[str, pd.DataFrame]


def descriptive_tables(inputs: Inputs) -> Tables:
    """Coverage, preregistration and every table that needs no hypothesis."""
    return {
        "coverage": coverage(inputs),
        "preregistration": preregistration_table(inputs.registered),
        "registered_texts": registered_table(inputs),
        **core_tables(inputs.frame, seed=inputs.seed, resamples=inputs.resamples),
    }


def inferential_tables(inputs: Inputs) -> Tables:
    """Variance components, power and verdicts."""
    return inference_tables(inputs.frame, inputs.registered.registrations, seed=inputs.seed, resamples=inputs.resamples)


def write_tables(store: Store, tables: Tables) -> None:
    """Each table, and what all tables and columns mean, as Parquet and as CSV. Raises `StoreError`."""
    for name, table in tables.items():
        write_atomically(store.analysis / "tables" / f"{name}.parquet", _parquet(table))
        write_atomically(store.analysis / "tables" / f"{name}.csv", _csv(table))
    documented = {**TABLE_COLUMNS, **{f"figures/{name}": columns for name, columns in FIGURE_COLUMNS.items()}}
    columns = pd.DataFrame(
        [(name, column, meaning) for name, meanings in documented.items() for column, meaning in meanings.items()],
        columns=["table", "column", "meaning"],
    )
    contents = pd.DataFrame(
        [(name, len(tables[name]) if name in tables else None, TABLES[name]) for name in TABLE_COLUMNS],
        columns=["table", "rows", "meaning"],
    ).astype({"rows": "Int64"})
    for name, table in (("columns", columns), ("tables", contents)):
        write_atomically(store.analysis / f"{name}.parquet", _parquet(table))
        write_atomically(store.analysis / f"{name}.csv", _csv(table))


def draw(tables: Tables) -> dict[str, tuple[Figure, pd.DataFrame]]:
    """Every figure with its data."""
    return draw_figures(tables)


def write_figures(store: Store, figures: Mapping[str, tuple[Figure, pd.DataFrame]]) -> None:
    """Each figure as PNG and SVG with the plotted data as Parquet. Raises `StoreError`."""
    for name, (figure, data) in figures.items():
        write_atomically(store.analysis / "figures" / f"{name}.png", render_png(figure))
        write_atomically(store.analysis / "figures" / f"{name}.svg", render_svg(figure))
        write_atomically(store.analysis / "figures" / f"{name}.parquet", _parquet(data))


def write_report(
    store: Store, inputs: Inputs, tables: Tables, figures: Mapping[str, tuple[Figure, pd.DataFrame]]
) -> None:
    """report.html, which needs no other file. Raises `StoreError`."""
    texts = [Text(text.name, text.committed_at, text.text) for text in inputs.registered.texts]
    made = {**inputs.metadata, "analysis": {"resamples": inputs.resamples}}
    study, pictures = described(inputs.frame, made), inline_pictures(figures, tables)
    html = render_report(study, tables, texts, TABLE_COLUMNS, pictures, inputs.calibration)
    write_atomically(store.analysis / REPORT, html.encode("utf-8", errors="replace"))


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
        "hypotheses": [
            {
                "commit": text.commit,
                "committed_at": text.committed_at.isoformat() if text.committed_at is not None else None,
                "text_hash": text.text_hash,
            }
            for text in inputs.registered.texts
        ],
        "key": inputs.key,
    }


def report_lines(tables: Tables) -> list[str]:
    """What a person should see at once: gaps in the data, warnings, verdicts."""
    cells = tables["coverage"]
    gaps = cells[cells["state"] != "complete"]
    lines = []
    if len(gaps):
        lines.append(f"analyze: WARNING: {len(gaps)} of {len(cells)} cells are not complete (cell scored/planned):")
    for state in ("all infra_error", "partial", "missing", "unsupported"):
        for model, rows in gaps[gaps["state"] == state].groupby("model", sort=False):
            whole = len(rows) == int((cells["model"] == model).sum())
            listed = f"all {len(rows)} cells" if whole else ", ".join(map(_gap, rows.to_dict("records")))
            lines.append(f"analyze: {state}: {model}: {listed}")
    lines += [
        f"analyze: WARNING: HYPOTHESES.md: {row.message}"
        for row in tables["preregistration"].itertuples()
        if row.code not in (NO_DOUBT, NOTHING_REGISTERED)
    ]
    lines += [f"analyze: HYPOTHESES.md: {_registered(row)}" for row in tables["registered_texts"].to_dict("records")]
    return lines


def verdict_lines(verdicts: pd.DataFrame) -> list[tuple[str, str]]:
    """Each hypothesis with its final label; one that several texts judge differently says by which of them."""
    texts = verdicts.groupby("id")["registration"].transform("nunique")
    return [
        (str(row.id) if several == 1 else f"{row.id}, judged by {row.registration}", str(row.final_label))
        for row, several in zip(verdicts.itertuples(), texts, strict=True)
    ]


def _registered(row: dict[Hashable, Any]) -> str:
    text = f"text {row['text_hash']}"
    if pd.isna(row["committed_at"]):
        return f"{text}, never committed, judges {row['rows']} rows"
    return f"{text}, commit {row['commit'][:12]} of {row['committed_at']:%Y-%m-%dT%H:%M:%SZ}, judges {row['rows']} rows"


def _gap(row: dict[Hashable, Any]) -> str:
    errors = f", {row['infra_error']} infra_error" if row["infra_error"] else ""
    reason = f" ({row['reason']})" if row["state"] == "unsupported" else ""
    return f"{row['cell_id']} {row['scored']}/{row['planned']}{errors}{reason}"


def _parquet(table: pd.DataFrame) -> bytes:
    buffer = BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _csv(table: pd.DataFrame) -> bytes:
    """For spreadsheets: a byte order mark says that it is UTF-8, and no text is read as a formula.

    Parquet holds the exact values. Numbers stay as they are: a negative one starts no formula.
    """
    shown = table.copy()
    for name in shown.columns[[is_string_dtype(table[name].dtype) for name in shown.columns]]:
        shown[name] = shown[name].map(_unformulated, na_action="ignore")
    return shown.to_csv(index=False, lineterminator="\n").encode("utf-8-sig")


def _unformulated(text: str) -> str:
    # The CSV writer leaves a lone carriage return unquoted, which begins a new row.
    lines = str(text).replace("\r\n", "\n").replace("\r", "\n")
    return f"'{lines}" if lines.startswith(_FORMULA) else lines
