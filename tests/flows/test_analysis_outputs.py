"""What an analysis writes beside its figures: tables for programs and for spreadsheets, and the report."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from flows.analysis import outputs
from flows.analysis.coverage import coverage
from flows.analysis.inputs import Inputs, preregistration_table, read_inputs, up_to_date
from flows.calibration.command import write_table
from flows.calibration.summary import FIELDS
from flows.errors import StoreError
from flows.report.calibration import COLUMNS, SHIPPED, read_shipped, shipped_form
from flows.report.glossary import FIGURE_COLUMNS
from flows.results import NO_START
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
    figures = {f"figures/{name}": list(columns) for name, columns in FIGURE_COLUMNS.items()}
    assert documented == {table: list(columns) for table, columns in outputs.TABLE_COLUMNS.items()} | figures
    assert dictionary["meaning"].str.len().min() > 5
    contents = pd.read_parquet(store.analysis / "tables.parquet")
    assert list(contents["table"]) == list(outputs.TABLE_COLUMNS)
    assert contents["meaning"].str.len().min() > 20


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
    assert (coverage(inputs)["state"] == "complete").all()
    assert f"HYPOTHESES.md: {warning}" in report.split("<main>")[0].replace("&#39;", "'")


def test_a_calibration_beside_the_results_is_printed_and_makes_the_analysis_stale(store: Store) -> None:
    hypotheses = store.root / "HYPOTHESES.md"
    before = read_inputs(store.table, hypotheses)
    assert before.calibration.shipped
    outputs.finish(store, before, {})
    assert up_to_date(store, before)
    made = before.calibration.rows.head(3)
    write_table(made, store.results / "calibration.parquet", "agent-bench calibration --studies 7")
    after = read_inputs(store.table, hypotheses)
    assert not up_to_date(store, after)
    assert not after.calibration.shipped
    assert after.calibration.command == "agent-bench calibration --studies 7"
    assert after.calibration.rows.equals(made)
    (store.results / "calibration.parquet").write_bytes(b"no parquet")
    with pytest.raises(StoreError, match=r"calibration\.parquet"):
        read_inputs(store.table, hypotheses)


def test_the_shipped_table_of_measured_coverage_is_whole_and_reads_back_as_it_was_written(tmp_path: Path) -> None:
    shipped = read_shipped()
    assert shipped.command.startswith("agent-bench calibration --studies ")
    assert set(shipped.rows["measure"]) == {"coverage", "false conclusions", "right conclusions", "bias"}
    assert {"pass_rates", "deltas", "pair_gaps", "variance_components", "verdicts"} <= set(shipped.rows["table"])
    intervals = shipped.rows[shipped.rows["quantity"].isin(["95% interval, one run", "95% interval, paired"])]
    scopes = {"cell", "stratum", "model_family", "family", "model", "overall"}
    assert {table: set(own["scope"]) for table, own in intervals.groupby("table")} == {
        "pass_rates": scopes,
        "deltas": scopes,
    }
    assert {name: field.dtype for name, field in FIELDS.items()} == COLUMNS
    assert shipped_form(shipped.rows, shipped.command) == SHIPPED.read_bytes()
    (tmp_path / "short.csv").write_bytes(b"# command\npopulation,table\na,b\n")
    with pytest.raises(StoreError, match="lacks the columns"):
        read_shipped(tmp_path / "short.csv")


def test_without_a_grid_a_cell_is_whole_if_it_has_every_task_that_any_model_has(store: Store) -> None:
    frame = synthetic_results(PLAN, 1)
    last = frame["instance_id"].max()
    base = frame["axis"] == "none"
    lost = (frame["model"] == "beta") & ((~base & (frame["instance_id"] == last)) | (base & (frame["run_seed"] == 2)))
    third = frame[(frame["model"] == "beta") & base & (frame["run_seed"] == 1)].assign(model="gamma")
    third["episode_id"] = "gamma-" + third["episode_id"]
    rows = pd.concat([frame[~lost], third]).astype(object).where(lambda values: values.notna(), None)
    write_results(store.table, rows.to_dict("records"), {})
    cells = coverage(read_inputs(store.table, store.root / "HYPOTHESES.md")).set_index(["model", "cell_id"])
    seen = cells[["planned", "scored", "state"]].agg(tuple, axis=1).to_dict()
    assert seen == {
        ("alpha", "query-easy-none-baseline"): (8, 8, "complete"),
        ("beta", "query-easy-none-baseline"): (4, 4, "complete"),
        ("gamma", "query-easy-none-baseline"): (4, 4, "complete"),
        ("alpha", "query-easy-order-shuffled"): (8, 8, "complete"),
        ("beta", "query-easy-order-shuffled"): (8, 6, "partial"),
        ("gamma", "query-easy-order-shuffled"): (8, 0, "missing"),
    }


def imported(store: Store, started_at: bool) -> Inputs:
    """The store's results as if they had been imported, with or without the starts of their episodes."""
    frame = synthetic_results(PLAN, 1)
    if not started_at:
        frame["started_at"] = pd.Series(NO_START, index=frame.index).astype(frame["started_at"].dtype)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    source = {
        "format": "inspect",
        "files": [{"name": f"{name}.eval", "sha256": "0123456789abcdef"} for name in ("<log>", "b", "c")],
        "lacking": ["cost_usd"],
        "notes": ["<log>.eval: the run ended as cancelled, with 3 of 10 samples", *(f"{n}.eval: same" for n in "bc")],
    }
    write_results(store.table, rows, {"study": "foreign", "imported": [source]})
    return read_inputs(store.table, store.root / "HYPOTHESES.md")


def test_imported_results_say_where_they_come_from_and_need_no_hypotheses(store: Store) -> None:
    (store.root / "HYPOTHESES.md").unlink()
    inputs = imported(store, started_at=False)
    tables = outputs.descriptive_tables(inputs) | outputs.inferential_tables(inputs)
    assert tables["preregistration"]["code"].tolist() == ["none"]
    assert not [line for line in outputs.report_lines(tables) if "WARNING" in line]
    outputs.write_report(store, inputs, tables, {})
    report = (store.analysis / "report.html").read_text(encoding="utf-8")
    assert "&lt;log&gt;.eval (SHA-256 0123456789ab…)" in report
    assert "&lt;log&gt;.eval: the run ended as cancelled, with 3 of 10 samples. 2 files: same." in report
    assert "unknown: the source does not say" in report
    assert "1970" not in report.split('id="dictionary"')[0]
    assert "10,000 of each interval" in report
    assert "The results were imported, and nothing was registered for them" in report


def test_a_text_beside_imported_results_judges_them_with_its_doubts(store: Store) -> None:
    committed(store.root, REGISTERED.read_text("utf-8"), "2025-12-31T00:00:00Z")
    assert imported(store, started_at=True).registered.warnings == ()
    inputs = imported(store, started_at=False)
    assert [warning.code for warning in inputs.registered.warnings] == ["unknown_start"]
    tables = outputs.descriptive_tables(inputs) | outputs.inferential_tables(inputs)
    assert tables["verdicts"]["before_rows"].isna().all()
    [registered] = tables["registered_texts"].to_dict("records")
    assert registered["rows"] == len(inputs.frame)
    assert pd.isna(registered["first_row"])


def committed(folder: Path, text: str, moment: str) -> str:
    """Commit HYPOTHESES.md in `folder` as of `moment`. Returns the commit."""
    (folder / "HYPOTHESES.md").write_text(text, encoding="utf-8")
    environment = {**os.environ, "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
    identity = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    said = ""
    for command in (["init"], ["add", "HYPOTHESES.md"], [*identity, "commit", "-m", "text"], ["rev-parse", "HEAD"]):
        said = subprocess.run(
            ["git", *command], cwd=folder, env=environment, check=True, capture_output=True, text=True
        ).stdout
    return said.strip()


def test_a_text_changed_after_the_first_row_is_recorded_and_said_loudly(store: Store) -> None:
    text = REGISTERED.read_text("utf-8")
    changed = text.replace("0.03", "0.05")
    first = committed(store.root, text, "2025-12-31T00:00:00Z")
    second = committed(store.root, changed, "2026-01-01T00:00:30Z")
    inputs = read_inputs(store.table, store.root / "HYPOTHESES.md")
    tables = outputs.descriptive_tables(inputs)
    registered = tables["registered_texts"]
    assert list(registered["commit"]) == [first, second]
    assert list(registered["rows"]) == [30, len(inputs.frame) - 30]
    assert registered["committed_at"].iloc[1] == pd.Timestamp("2026-01-01T00:00:30Z")
    assert registered["last_row"].iloc[0] < registered["committed_at"].iloc[1] <= registered["first_row"].iloc[1]
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert registered["text_hash"].iloc[0] == digest
    lines = "\n".join(outputs.report_lines(tables))
    assert "WARNING: HYPOTHESES.md: the text changed after the first row had started" in lines
    assert f"HYPOTHESES.md: text {digest}, commit {first[:12]} of 2025-12-31T00:00:00Z, judges 30 rows" in lines
    assert outputs.source_summary(inputs)["hypotheses"][0] == {
        "commit": first,
        "committed_at": "2025-12-31T00:00:00+00:00",
        "text_hash": digest,
    }
    assert (store.root / "HYPOTHESES.md").read_text(encoding="utf-8") == changed


def test_a_text_that_was_never_committed_is_recorded_as_such(store: Store) -> None:
    inputs = read_inputs(store.table, store.root / "HYPOTHESES.md")
    [row] = outputs.descriptive_tables(inputs)["registered_texts"].to_dict("records")
    assert pd.isna(row["commit"])
    assert pd.isna(row["committed_at"])
    assert row["rows"] == len(inputs.frame)
    (store.root / "HYPOTHESES.md").unlink()
    without = read_inputs(store.table, store.root / "HYPOTHESES.md")
    tables = outputs.descriptive_tables(without)
    assert tables["registered_texts"].empty
    assert list(tables["registered_texts"].columns) == list(outputs.TABLE_COLUMNS["registered_texts"])
    assert tables["preregistration"]["code"].tolist() == ["missing_file"]


def test_a_hypothesis_that_several_texts_judge_is_told_apart_by_its_text() -> None:
    verdicts = pd.DataFrame(
        [("H-A", "commit one", "supported"), ("H-B", "commit one", "refuted"),
         ("H-A", "commit two", "inconclusive")],
        columns=["id", "registration", "final_label"],
    )  # fmt: skip
    assert outputs.verdict_lines(verdicts) == [
        ("H-A, judged by commit one", "supported"),
        ("H-B", "refuted"),
        ("H-A, judged by commit two", "inconclusive"),
    ]
    assert outputs.verdict_lines(verdicts.iloc[:0]) == []
