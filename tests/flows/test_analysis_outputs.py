"""What an analysis writes beside its figures: tables for programs and for spreadsheets, and the report."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from flows.analysis import outputs
from flows.analysis.inputs import COMMAND_KEY, coverage, preregistration_table, read_inputs, up_to_date
from flows.errors import StoreError
from flows.results_file import write_results
from flows.store import Store
from tests.flows.stats.synthetic import Plan, synthetic_results
from tests.flows.stats.test_hypotheses import REGISTERED

PLAN = Plan(
    models=("alpha", "beta"),
    strata=(("query", "easy"),),
    levels={"none": ("baseline",), "order": ("shuffled",)},
    instances=4,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with results and hypotheses that were never committed."""
    store = Store(tmp_path)
    rows = [{str(name): None if pd.isna(v) else v for name, v in row.items()} for row in _records()]
    write_results(store.table, rows, {"study": "small", "seed": 1, "analysis": {"resamples": 20}})
    (tmp_path / "HYPOTHESES.md").write_text(REGISTERED.read_text("utf-8"), encoding="utf-8")
    return store


def _records() -> list[dict[object, object]]:
    return [dict(row) for row in synthetic_results(PLAN, 1).to_dict("records")]


def test_texts_that_a_spreadsheet_would_run_are_text_and_numbers_stay_numbers(store: Store) -> None:
    names = ['=HYPERLINK("http://x")', "+1", "-1", "@SUM(A1)", "\tx", "\r=x", "\n=x", "plain", "σ², é", 'say "x", y']
    table = pd.DataFrame({"model": pd.array([*names, None], dtype="str"), "delta": [-0.5] * 11})
    outputs.write_tables(store, {"deltas": table})
    data = (store.analysis / "tables" / "deltas.csv").read_bytes()
    assert data.startswith("\ufeff".encode())
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert rows[0] == ["model", "delta"]
    shown = [name.replace("\r", "\n") for name in names]
    assert [row[0] for row in rows[1:]] == [*(f"'{name}" for name in shown[:7]), *shown[7:], ""]
    assert {row[1] for row in rows[1:]} == {"-0.5"}
    exact = pd.read_parquet(store.analysis / "tables" / "deltas.parquet")
    assert exact["model"].iloc[:10].tolist() == names


def test_the_dictionary_of_columns_comes_in_both_formats(store: Store) -> None:
    outputs.write_tables(store, {})
    dictionary = pd.read_parquet(store.analysis / "columns.parquet")
    assert pd.read_csv(store.analysis / "columns.csv", keep_default_na=False).equals(dictionary)
    documented = {table: list(rows["column"]) for table, rows in dictionary.groupby("table")}
    assert documented == {table: list(columns) for table, columns in outputs.TABLE_COLUMNS.items()}
    assert dictionary["meaning"].str.len().min() > 5


def test_every_table_has_the_columns_that_are_documented_and_the_report_is_written(store: Store) -> None:
    inputs = read_inputs(store.table, store.root / "HYPOTHESES.md")
    tables = outputs.descriptive_tables(inputs) | outputs.inferential_tables(inputs)
    assert {name: list(table.columns) for name, table in tables.items()} == {
        name: list(columns) for name, columns in outputs.TABLE_COLUMNS.items()
    }
    outputs.write_report(store, inputs, tables, {})
    report = (store.analysis / "report.html").read_text(encoding="utf-8")
    assert "<h1>small</h1>" in report
    warning = preregistration_table(inputs.registered)["message"].iloc[0]
    assert coverage(inputs).empty
    assert f"HYPOTHESES.md: {warning}" in report.split("<main>")[0].replace("&#39;", "'")


def test_a_calibration_beside_the_results_is_printed_and_makes_the_analysis_stale(store: Store) -> None:
    hypotheses = store.root / "HYPOTHESES.md"
    before = read_inputs(store.table, hypotheses)
    assert before.calibration is None
    outputs.finish(store, before, {})
    assert up_to_date(store, before)
    table = pa.Table.from_pandas(pd.DataFrame({"method": ["Tango"], "coverage": [0.951]}))
    command = {COMMAND_KEY: b"agent-bench calibration --studies 7"}
    pq.write_table(table.replace_schema_metadata(command), store.results / "calibration.parquet")
    after = read_inputs(store.table, hypotheses)
    assert not up_to_date(store, after)
    assert after.calibration is not None
    assert after.calibration.command == "agent-bench calibration --studies 7"
    assert after.calibration.rows["coverage"].tolist() == [0.951]
    (store.results / "calibration.parquet").write_bytes(b"no parquet")
    with pytest.raises(StoreError, match=r"calibration\.parquet"):
        read_inputs(store.table, hypotheses)
