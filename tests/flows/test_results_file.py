"""results.parquet and its schema: what is written comes back, and nothing else is let in or out."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.errors import StoreError
from flows.results import COLUMNS, OUTCOMES, SORT_KEY, results_frame
from flows.results_file import METADATA_KEY, read_results, write_results
from tests.flows.small_study import REMOVED, tree_bytes


def row(number: int = 1, **values: Any) -> dict[str, Any]:
    """A row that fits; `values` replace its cells."""
    return {
        "benchmark": "stability",
        "episode_id": f"e{number:04}",
        "model": "steady",
        "family": "query",
        "difficulty": "easy",
        "axis": "none",
        "level": "baseline",
        "cell_id": "query-easy-none-baseline",
        "instance_id": f"query-easy-{number:012}",
        "variant_id": f"v{number}",
        "instance_seed": 2**62 + number,
        "run_seed": 1,
        "conversation_id": None,
        "conversation_position": None,
        "passed": True,
        "partial_score": 1.0,
        "steps_used": 3,
        "outcome": "completed",
        "failure_class": None,
        "infra_error": False,
        "attempts": 1,
        "tokens_in": 1000,
        "tokens_cached": None,
        "tokens_out": 50,
        "tokens_reasoning": None,
        "usage_known": True,
        "cost_usd": 0.25,
        "trajectory_hash": "0123456789abcdef",
        "trajectory_length": 3,
        "malformed_calls": 1,
        "git_sha": "unknown",
        "manifest_hash": "0" * 16,
        "scientific_hash": "1" * 16,
        "adapter_version": "scripted/1",
        "scaffold_version": "1",
        "started_at": datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC),
        "wall_clock_s": 0.125,
        **values,
    }


INFRA = {
    "passed": None,
    "partial_score": None,
    "outcome": "infra_error",
    "failure_class": "timeout",
    "infra_error": True,
}


def mixed_rows() -> list[dict[str, Any]]:
    return [
        row(1),
        row(2, passed=False, partial_score=0.5, outcome="step_cap", failure_class="step_cap"),
        row(3, **INFRA, tokens_in=None, tokens_out=None, usage_known=False, cost_usd=None),
        row(4, variant_id=None, trajectory_hash=None, trajectory_length=None, partial_score=None),
    ]


def test_round_trip_keeps_every_value_and_type(tmp_path: Path) -> None:
    path = tmp_path / "results" / "results.parquet"
    written = write_results(path, mixed_rows(), {"profile": "full"})
    frame, metadata = read_results(path)
    pd.testing.assert_frame_equal(frame, written)
    assert metadata == {"schema_version": 1, "profile": "full"}
    for expected, found in zip(mixed_rows(), frame.to_dict("records"), strict=True):
        assert {name: None if pd.isna(value) else value for name, value in found.items()} == expected


def test_no_rows_are_a_table_too(tmp_path: Path) -> None:
    write_results(tmp_path / "r.parquet", [], {})
    frame, _ = read_results(tmp_path / "r.parquet")
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame) == 0


def test_rows_are_sorted_whatever_their_order(tmp_path: Path) -> None:
    rows = [
        row(n, model=model, run_seed=seed, episode_id=f"{n}{model}{seed}")
        for n in (2, 1)
        for model in "ba"
        for seed in (2, 1)
    ]
    write_results(tmp_path / "one.parquet", rows, {})
    write_results(tmp_path / "two.parquet", rows[::-1], {})
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    frame, _ = read_results(tmp_path / "one.parquet")
    keys = list(frame[SORT_KEY].itertuples(index=False, name=None))
    assert keys == sorted(keys)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_fits(outcome: str) -> None:
    values = INFRA if outcome == "infra_error" else {"passed": False, "outcome": outcome, "failure_class": outcome}
    assert results_frame([row(**values)])["outcome"].tolist() == [outcome]


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "unknown outcome": ({"outcome": "exploded"}, "outcome"),
    "score above 1": ({"partial_score": 1.5}, "partial_score"),
    "no model": ({"model": None}, "model"),
    "no run seed": ({"run_seed": 0}, "run_seed"),
    "no attempt": ({"attempts": 0}, "attempts"),
    "negative tokens": ({"tokens_in": -1}, "tokens_in"),
    "negative cost": ({"cost_usd": -0.5}, "cost_usd"),
    "infinite cost": ({"cost_usd": float("inf")}, "cost_usd"),
    "negative duration": ({"wall_clock_s": -1.0}, "wall_clock_s"),
    "verdict for an infra_error": ({**INFRA, "passed": False}, "passed is null exactly when infra_error"),
    "no verdict": ({"passed": None}, "passed is null exactly when infra_error"),
    "infra_error in one column alone": ({**INFRA, "outcome": "completed"}, "outcome is infra_error exactly when"),
    "score for an infra_error": ({**INFRA, "partial_score": 0.5}, "an infra_error has no partial_score"),
    "failure of a passed episode": ({"failure_class": "step_cap"}, "a passed episode has no failure_class"),
    "missing column": ({"model": REMOVED}, "'model' is missing"),
    "text for a number": ({"steps_used": "many"}, "many"),
    "null for a number": ({"steps_used": None}, "int"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_row_that_breaks_the_schema_is_not_written(tmp_path: Path, name: str) -> None:
    changes, expected = BROKEN[name]
    path = tmp_path / "results.parquet"
    write_results(path, [row(9)], {})
    before = tree_bytes(tmp_path)
    bad = {key: value for key, value in row(1, **changes).items() if value is not REMOVED}
    with pytest.raises(StoreError) as caught:
        write_results(path, [row(2), bad], {})
    message = str(caught.value)
    assert message.startswith(f"{path}: was not written: a row breaks the results schema: ")
    assert expected in message
    assert "\n" not in message
    assert tree_bytes(tmp_path) == before


def test_one_episode_has_one_row(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="more than one row has 'e0001'"):
        write_results(tmp_path / "r.parquet", [row(1), row(1, attempts=2)], {})


def test_old_file_survives_a_full_device(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    write_results(path, [row(1)], {})
    before = tree_bytes(tmp_path)
    (tmp_path / f".results.parquet.{os.getpid()}.tmp").symlink_to("/dev/full")
    with pytest.raises(StoreError, match="no space left on the device"):
        write_results(path, [row(n) for n in range(2000)], {})
    assert tree_bytes(tmp_path) == before


def good_table() -> pa.Table:
    return pa.Table.from_pandas(results_frame(mixed_rows()), preserve_index=False).replace_schema_metadata(None)


def replaced(name: str, values: Any) -> pa.Table:
    table = good_table()
    return table.set_column(table.column_names.index(name), name, values)


def with_metadata(content: bytes) -> pa.Table:
    return good_table().replace_schema_metadata({METADATA_KEY: content})


FOREIGN: dict[str, tuple[Callable[[], pa.Table], str]] = {
    "foreign column": (lambda: good_table().append_column("note", pa.array(["x"] * 4)), "foreign columns note"),
    "missing column": (lambda: good_table().drop_columns(["passed", "axis"]), "missing columns axis, passed"),
    "repeated column": (
        lambda: good_table().append_column("axis", pa.array(["x"] * 4)),
        "repeated columns axis",
    ),
    "other schema version": (
        lambda: with_metadata(b'{"schema_version": 7}'),
        "has results schema 7; this version reads 1",
    ),
    "damaged metadata": (lambda: with_metadata(b"{"), "has damaged metadata"),
    "metadata of another kind": (lambda: with_metadata(b"[]"), "has damaged metadata"),
    "fraction as a run seed": (
        lambda: replaced("run_seed", pa.array([1.5, 1.0, 1.0, 1.0])),
        "column 'run_seed' is of type double, expected int64",
    ),
    "number too large": (
        lambda: replaced("instance_seed", pa.array([2**63, 1, 2, 3], pa.uint64())),
        "9223372036854775808",
    ),
    "text as a verdict": (lambda: replaced("passed", pa.array(["yes"] * 4)), "column 'passed' is of type string"),
    "nulls where none may be": (
        lambda: replaced("attempts", pa.array([1, None, 1, 1])),
        "column 'attempts' has 1 nulls",
    ),
    "time without a zone": (
        lambda: replaced("started_at", pa.array([datetime(2026, 3, 1)] * 4, pa.timestamp("us"))),
        "column 'started_at' is of type timestamp[us]",
    ),
    "unknown outcome": (lambda: replaced("outcome", pa.array(["won"] * 4)), "column 'outcome', row 0: isin"),
    "repeated episode": (lambda: replaced("episode_id", pa.array(["e"] * 4)), "more than one row has 'e'"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_table_is_refused_in_one_paragraph(tmp_path: Path, name: str) -> None:
    table, expected = FOREIGN[name]
    path = tmp_path / "results.parquet"
    pq.write_table(table(), path)
    with pytest.raises(StoreError) as caught:
        read_results(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize("content", [b"", b"not parquet at all", b"PAR1" * 40], ids=["empty", "text", "torn"])
def test_file_that_is_no_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "results.parquet"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is not a readable Parquet file") as caught:
        read_results(path)
    assert "\n" not in str(caught.value)


def test_cut_off_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    write_results(path, mixed_rows(), {})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(StoreError, match="is not a readable Parquet file"):
        read_results(path)


def test_missing_file_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no results yet; run `agent-bench score` first"):
        read_results(tmp_path / "results.parquet")
    (tmp_path / "results.parquet").mkdir()
    with pytest.raises(StoreError, match="directory"):
        read_results(tmp_path / "results.parquet")


def test_table_of_another_tool_is_read_with_columns_in_any_order_and_narrower_types(tmp_path: Path) -> None:
    table = good_table()
    narrow = {"run_seed": pa.int16(), "attempts": pa.uint8(), "model": pa.large_string(), "wall_clock_s": pa.float32()}
    columns = {name: table[name].cast(narrow.get(name, table[name].type)) for name in reversed(table.column_names)}
    columns["family"] = columns["family"].dictionary_encode()
    columns["tokens_cached"] = pa.nulls(4)
    columns["started_at"] = table["started_at"].cast(pa.timestamp("ms", "Europe/Berlin"), safe=False)
    path = tmp_path / "x=1" / "results.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table(columns), path)
    frame, metadata = read_results(path)
    expected = results_frame(mixed_rows())
    expected["started_at"] = expected["started_at"].dt.floor("ms")
    pd.testing.assert_frame_equal(frame, expected)
    assert metadata == {}


def test_large_seeds_pass_through_no_float(tmp_path: Path) -> None:
    rows = [row(n, instance_seed=2**63 - 1 - n) for n in range(3)]
    write_results(tmp_path / "r.parquet", rows, {})
    frame, _ = read_results(tmp_path / "r.parquet")
    assert frame["instance_seed"].tolist() == [2**63 - 1 - n for n in range(3)]
