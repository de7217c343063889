"""Other harnesses' results become rows of the schema, or one paragraph that names file, line and field."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from flows.cli import main
from flows.results_file import read_results


def imported(tmp_path: Path, *arguments: object) -> pd.DataFrame:
    out = tmp_path / "out" / "results.parquet"
    assert main(["import", *map(str, arguments), "--out", str(out)]) == 0
    return read_results(out)[0]


def refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    out = tmp_path / "out" / "results.parquet"
    assert main(["import", *map(str, arguments), "--out", str(out)]) != 0
    assert not out.exists()
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def table(folder: Path, text: str, name: str = "runs.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


MAPPED = ("--map", "model=m", "--map", "instance_id=task", "--map", "passed=ok", "--set", "family=qa")


def test_a_mapped_csv_becomes_results(tmp_path: Path) -> None:
    path = table(tmp_path, "m,task,ok,cost_usd\na,t1,1,0.5\na,t2,false,\na,t1,0,0.25\nb,t1,PASS,1\n")
    frame = imported(tmp_path, "table", path, *MAPPED, "--benchmark", "mine")
    assert set(frame["benchmark"]) == {"mine"}
    one = frame[(frame["model"] == "a") & (frame["instance_id"] == "t1")].sort_values("run_seed")
    assert one["run_seed"].tolist() == [1, 2]
    assert one["passed"].tolist() == [True, False]
    assert frame["cost_usd"].sum() == 1.75
    assert set(frame["cell_id"]) == {"qa-none-none-baseline"}
    assert frame["tokens_in"].isna().all()


def test_json_lines_by_the_schemas_own_names(tmp_path: Path) -> None:
    lines = [
        {"model": "a", "family": "f", "instance_id": "1", "passed": True, "partial_score": 1, "run_seed": 3},
        {"model": "a", "family": "f", "instance_id": "1", "infra_error": True, "axis": "paraphrase", "level": "p1"},
    ]
    path = table(tmp_path, "\n".join(map(json.dumps, lines)) + "\n\n", "runs.jsonl")
    frame = imported(tmp_path, "table", path).set_index("axis")
    assert (frame.loc["none", "run_seed"], frame.loc["none", "partial_score"]) == (3, 1)
    assert frame.loc["paraphrase", "infra_error"]
    assert frame.loc["paraphrase", "outcome"] == "infra_error"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m,task,ok\na,t1,maybe\n", "runs.csv, line 2, ok: expected true or false"),
        ("m,task,ok\na,,1\n", "line 2, instance_id: is missing"),
        ("m,task,ok\na,t1,1\na,t2,\n", "line 3, passed: is missing"),
        ("m,task\na,t1\n", "line 2, ok: there is no such column"),
        ("m,task,ok\na,t1\n", "line 2, row: expected 3 fields"),
        ("m,task,ok,run_seed\na,t1,1,1\na,t1,0,1\n", "line 3, run_seed: the same run is already in"),
        ("m,task,ok,partial_score\na,t1,1,nan\n", "line 2, partial_score: expected a finite number"),
        ("m,task,ok,partial_score\na,t1,1,7\n", "line 2, partial_score: expected 0 to 1"),
        ("m,task,ok,axis\na,t1,1,paraphrase\n", "line 2, level: axis 'paraphrase' does not go with"),
        ("m,task,ok,outcome\na,t1,1,fine\n", "line 2, outcome: expected one of completed"),
    ],
)
def test_a_bad_table_names_file_line_and_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str
) -> None:
    assert expected in refusal(tmp_path, capsys, "table", table(tmp_path, text), *MAPPED)


def test_bad_lines_bytes_and_options_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path, "{\n", "runs.jsonl")
    assert "line 1, row: is not JSON" in refusal(tmp_path, capsys, "table", path)
    path.write_text("[1]\n")
    assert "line 1, row: expected a JSON object" in refusal(tmp_path, capsys, "table", path)
    path.write_bytes(b"\xff\xfe")
    assert "is not UTF-8" in refusal(tmp_path, capsys, "table", path)
    assert "expected COLUMN=VALUE" in refusal(tmp_path, capsys, "table", path, "--set", "passed=1")
    assert "no such file" in refusal(tmp_path, capsys, "table", tmp_path / "absent.csv")
    assert "holds no episode" in refusal(tmp_path, capsys, "table", table(tmp_path, "m\n"))


def log(**changes: Any) -> dict[str, Any]:
    """An inspect_ai log of version 2, with the fields that matter."""
    samples = [
        {
            "id": 1,
            "epoch": 1,
            "input": "q",
            "target": "a",
            "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
            "scores": {"match": {"value": "C"}, "judge": {"value": 0.25}},
            "model_usage": {"m": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}},
            "total_time": 1.5,
        },
        {"id": 1, "epoch": 2, "input": "q", "target": "a", "messages": [], "scores": {"match": {"value": "I"}}},
        {"id": 2, "epoch": 1, "input": "q", "target": "a", "messages": [], "scores": {}},
        {
            "id": 3,
            "epoch": 1,
            "input": "q",
            "target": "a",
            "messages": [],
            "scores": {"match": {"value": "P"}},
            "limit": {"type": "message", "limit": 3},
        },
    ]
    header = {"task": "arithmetic", "model": "mockllm/model", "created": "2026-01-02T03:04:05+01:00"}
    return {"version": 2, "status": "success", "eval": header, "samples": samples, **changes}


without_reader = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is not None, reason="inspect_ai's own reader wants whole logs"
)


@without_reader
def test_an_inspect_log_becomes_results(tmp_path: Path) -> None:
    frame = imported(tmp_path, "inspect", table(tmp_path, json.dumps(log()), "one.json"))
    frame = frame.set_index(["instance_id", "run_seed"])
    first = frame.loc[("1", 1)]
    assert (first["family"], first["model"], first["passed"]) == ("arithmetic", "mockllm/model", True)
    assert (first["tokens_in"], first["tokens_out"], first["steps_used"]) == (5, 2, 1)
    assert first["started_at"] == pd.Timestamp("2026-01-02T02:04:05Z")
    assert not frame.loc[("1", 2), "passed"]
    assert (frame.loc[("2", 1), "infra_error"], frame.loc[("2", 1), "failure_class"]) == (True, "no_score")
    assert (frame.loc[("3", 1), "passed"], frame.loc[("3", 1), "partial_score"]) == (False, 0.5)
    assert frame.loc[("3", 1), "outcome"] == "step_cap"


@without_reader
def test_a_perturbed_inspect_log_pairs_with_its_baseline(tmp_path: Path) -> None:
    path = table(tmp_path, json.dumps(log()), "one.json")
    frame = imported(tmp_path, "inspect", path, "--set", "axis=paraphrase", "--set", "level=p1", "--set", "model=x")
    assert set(frame["level"]) == {"p1"}
    assert set(frame["model"]) == {"x"}


@without_reader
@pytest.mark.parametrize(
    ("content", "arguments", "expected"),
    [
        (json.dumps(log(eval={})), [], "header, eval.task: is missing"),
        ("{", [], "file, format: is not JSON"),
        (json.dumps(log()), ["--metric", "absent"], "sample 1, scores.absent: there is no such scorer"),
        (json.dumps(log(samples=[{"id": 1, "scores": {"m": {"value": {"a": 1}}}}])), [], "sample 1, scores.m.value"),
    ],
)
def test_a_bad_inspect_log_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, arguments: list[str], expected: str
) -> None:
    path = table(tmp_path, content, "one.json")
    assert expected in refusal(tmp_path, capsys, "inspect", path, *arguments)


@without_reader
def test_an_eval_file_needs_the_own_reader_and_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "[inspect]" in refusal(tmp_path, capsys, "inspect", table(tmp_path, "PK", "one.eval"))


def samples_file(folder: Path, *records: dict[str, Any]) -> Path:
    (folder / "vendor__model").mkdir()
    name = "vendor__model/samples_gsm8k_2026-01-02T03-04-05.123456.jsonl"
    return table(folder, "".join(json.dumps(record) + "\n" for record in records), name)


def test_lm_eval_samples_become_results_of_one_filter(tmp_path: Path) -> None:
    samples_file(
        tmp_path,
        {"doc_id": 0, "filter": "strict", "metrics": ["exact_match"], "exact_match": 1.0},
        {"doc_id": 1, "filter": "strict", "metrics": ["exact_match"], "exact_match": 0.0},
        {"doc_id": 0, "filter": "flexible", "metrics": ["exact_match"], "exact_match": 0.0},
    )
    frame = imported(tmp_path, "lm-eval", tmp_path)
    assert frame[["model", "family"]].drop_duplicates().values.tolist() == [["vendor__model", "gsm8k"]]
    assert dict(zip(frame["instance_id"], frame["passed"], strict=True)) == {"gsm8k-0": True, "gsm8k-1": False}


def test_a_bad_lm_eval_line_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = samples_file(tmp_path, {"doc_id": 0, "metrics": ["ppl"], "ppl": -3.5})
    assert "line 1, ppl: expected a number from 0 to 1" in refusal(tmp_path, capsys, "lm-eval", path)
    assert "line 1, acc: expected a number" in refusal(tmp_path, capsys, "lm-eval", path, "--metric", "acc")
