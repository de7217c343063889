"""CSV and JSON lines as people have them: every oddity becomes rows, or one paragraph with file, line and field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.importers.conftest import Import, Refusal, written

MAPPED = ("--map", "model=m", "--map", "instance_id=task", "--map", "passed=ok", "--set", "family=qa")


def test_a_mapped_csv_becomes_results(tmp_path: Path, imported: Import) -> None:
    path = written(tmp_path, "m,task,ok,cost_usd\na,t1,1,0.5\na,t2,false,\na,t1,0,0.25\nb,t1,PASS,1\n")
    frame = imported("table", path, *MAPPED, "--benchmark", "mine")
    assert set(frame["benchmark"]) == {"mine"}
    one = frame[(frame["model"] == "a") & (frame["instance_id"] == "t1")].sort_values("run_seed")
    assert one["run_seed"].tolist() == [1, 2]
    assert one["passed"].tolist() == [True, False]
    assert frame["cost_usd"].sum() == 1.75
    assert set(frame["cell_id"]) == {"qa-none-none-baseline"}
    assert frame["tokens_in"].isna().all()


def test_json_lines_by_the_schemas_own_names(tmp_path: Path, imported: Import) -> None:
    lines = [
        {"model": "a", "family": "f", "instance_id": "1", "passed": True, "partial_score": 1, "run_seed": 3},
        {"model": "a", "family": "f", "instance_id": "1", "infra_error": True, "axis": "paraphrase", "level": "p1"},
    ]
    path = written(tmp_path, "\n".join(map(json.dumps, lines)) + "\n\n", "runs.jsonl")
    frame = imported("table", path).set_index("axis")
    assert (frame.loc["none", "run_seed"], frame.loc["none", "partial_score"]) == (3, 1)
    assert frame.loc["paraphrase", "infra_error"]
    assert frame.loc["paraphrase", "outcome"] == "infra_error"


def test_a_field_may_be_nested_and_a_record_may_leave_one_out(tmp_path: Path, imported: Import) -> None:
    lines = [{"m": {"name": "a"}, "id": 1, "ok": True, "cost_usd": 0.5}, {"m": {"name": "a"}, "id": 2, "ok": False}]
    path = written(tmp_path, json.dumps(lines), "runs.json")
    frame = imported("table", path, "--map", "model=m.name", "--map", "instance_id=id", "--map", "passed=ok")
    assert frame["model"].tolist() == ["a", "a"]
    assert frame["passed"].tolist() == [True, False]
    assert frame["cost_usd"].fillna(-1).tolist() == [0.5, -1]


@pytest.mark.parametrize(
    ("text", "name", "encoding"),
    [
        ("model,instance_id,passed\na,1,1\na,2,0\n", "bom.csv", "utf-8-sig"),
        ("model,instance_id,passed\r\na,1,1\r\na,2,0\r\n", "crlf.csv", "utf-8"),
        ("model,instance_id,passed\ra,1,1\ra,2,0\r", "cr.csv", "utf-8"),
        (" model , instance_id,passed\n a ,1 , 1\n\n\na,2,0\n", "spaces.csv", "utf-8"),
        ("model;instance_id;passed\na;1;1\na;2;0\n", "semicolons.csv", "utf-8"),
        ("model\tinstance_id\tpassed\na\t1\t1\na\t2\t0\n", "tabs.tsv", "utf-8"),
        ("model\tinstance_id\tpassed\na\t1\t1\na\t2\t0\n", "tabs.CSV", "utf-8"),
        ("model,instance_id,passed,answer\na,1,1,\na,2,0," + "x" * 200_000 + "\n", "long.csv", "utf-8"),
    ],
)
def test_what_spreadsheets_write_is_read(tmp_path: Path, imported: Import, text: str, name: str, encoding: str) -> None:
    frame = imported("table", written(tmp_path, text, name, encoding))
    assert frame["model"].tolist() == ["a", "a"]
    assert frame["instance_id"].tolist() == ["1", "2"]
    assert frame["passed"].tolist() == [True, False]


def test_line_breaks_of_any_script_inside_a_field_are_part_of_it(tmp_path: Path, imported: Import) -> None:
    path = written(tmp_path, 'model,instance_id,passed\nmödel ☃,"題\u20281",1\nmödel ☃,x\x0b2,0\nmödel ☃,"3\n4",1\n')
    assert set(imported("table", path)["instance_id"]) == {"題\u20281", "x\x0b2", "3\n4"}


def test_words_and_digits_say_pass_or_fail(tmp_path: Path, imported: Import) -> None:
    words = ["true", "FALSE", "1", "0", "pass", "Fail", "yes", "no", "C", "I", "1.0", "0.0", "correct", "incorrect"]
    path = written(tmp_path, "model,instance_id,passed\n" + "".join(f"a,{i:02},{w}\n" for i, w in enumerate(words)))
    assert imported("table", path)["passed"].tolist() == [True, False] * 7


def test_numbers_keep_every_digit_and_seeds_may_count_from_zero(tmp_path: Path, imported: Import) -> None:
    text = "model,instance_id,passed,instance_seed,run_seed\na,1,1,9007199254740993,0\na,1,0,9007199254740993,1\n"
    frame = imported("table", written(tmp_path, text))
    assert frame["instance_seed"].tolist() == [9007199254740993] * 2
    assert frame["run_seed"].tolist() == [1, 2]


def test_a_score_passes_from_the_named_one_on(tmp_path: Path, imported: Import) -> None:
    path = written(tmp_path, "model,instance_id,partial_score\na,1,4\na,2,7\na,3,10\n")
    frame = imported("table", path, "--range", "0:10", "--pass-at", "7")
    assert frame["passed"].tolist() == [False, True, True]
    assert frame["partial_score"].tolist() == [0.4, 0.7, 1.0]
    best = imported("table", path, "--range", "0:10")
    assert best["passed"].tolist() == [False, False, True]
    lower = imported("table", path, "--range", "10:0", "--pass-at", "4")
    assert lower["passed"].tolist() == [True, False, False]
    assert lower["partial_score"].tolist() == pytest.approx([0.6, 0.3, 0.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m,task,ok\na,t1,maybe\n", "runs.csv, line 2, ok: expected true or false"),
        ("m,task,ok\na,,1\n", "line 2, instance_id: is missing: name the field that holds it"),
        ("m,task,ok\na,t1,1\na,t2,\n", "line 3, passed: is missing"),
        ("m,task,okay\na,t1,1\n", "line 2, ok: there is no such field to take passed from; did you mean 'okay'?"),
        ("m task ok\na t1 1\n", "(fields there: m task ok)"),
        ("m,task,ok\na,t1\n", "line 2, row: has 2 fields where the header has 3"),
        ("m,task,ok,m\na,t1,1,b\n", "line 1, header: names m more than once"),
        ('m,task,ok\na,"t1,1\n', "line 2, row: is not CSV"),
        ("", "line 1, header: is empty"),
        ("\n\n", "line 1, header: is empty"),
        ("m,task,ok\n", "there is no episode in"),
        ("m,task,ok,run_seed\na,t1,1,1\na,t1,0,1\n", "line 3, run_seed: the same run (1) is already in"),
        ("m,task,ok,partial_score\na,t1,1,nan\n", "line 2, partial_score: expected a finite number"),
        ("m;task;ok;partial_score\na;t1;1;0,5\n", "with a point, not a comma"),
        ("m,task,ok,partial_score\na,t1,1,7\n", "line 2, score: expected a number from 0 to 1, got 7; name the range"),
        ("m,task,ok,instance_seed\na,t1,1,99999999999999999999\n", "line 2, instance_seed: expected a whole number"),
        ("m,task,ok,started_at\na,t1,1,yesterday\n", "line 2, started_at: expected a date and time"),
        ("m,task,ok,axis\na,t1,1,paraphrase\n", "line 2, level: axis 'paraphrase' does not go with"),
        ("m,task,ok,outcome\na,t1,1,fine\n", "line 2, outcome: expected one of completed"),
        ("m,task,ok\nall,t1,1\n", "line 2, model: 'all' means an average in every table"),
    ],
)
def test_a_bad_table_names_file_line_and_field(tmp_path: Path, refusal: Refusal, text: str, expected: str) -> None:
    assert expected in refusal("table", written(tmp_path, text), *MAPPED)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", b"{\n", "line 1, row: is not JSON"),
        ("a.jsonl", b"[1]\n", "line 1, row: expected a JSON object"),
        ("a.jsonl", b"[" * 100_000, "line 1, row: is not JSON"),
        ("a.jsonl", b"", "there is no episode in"),
        ("a.json", b'{"model": "a"}', "file, format: expected a list of JSON objects"),
        ("a.csv", b"\xff\xfem\x00", "byte 0, text: is not UTF-8; save the file as UTF-8"),
        ("a.xlsx", b"PK", "name, format: expected a file ending in .csv"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, refusal: Refusal, name: str, content: bytes, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert expected in refusal("table", path)
