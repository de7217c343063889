"""Samples files as lm-evaluation-harness 0.4.13 writes them: one filter, one metric, the run's model beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.flows.importers.conftest import Import, Refusal, written

TIME = "2026-01-02T03-04-05.123456"


def samples(folder: Path, *records: dict[str, Any], task: str = "parity") -> Path:
    """A samples file in the folder of its model."""
    text = "".join(json.dumps({"filter": "none", "metrics": ["acc"], **record}) + "\n" for record in records)
    return written(folder, text, f"vendor__model/samples_{task}_{TIME}.jsonl")


def run(folder: Path, **changes: Any) -> Path:
    """The results file of the same run."""
    content = {
        "model_name": "vendor/model",
        "config": {"model_args": "pretrained=vendor/model", "gen_kwargs": {}},
        **changes,
    }
    return written(folder, json.dumps(content), f"vendor__model/results_{TIME}.json")


def test_task_document_and_metric_become_family_instance_and_score(tmp_path: Path, imported: Import) -> None:
    samples(tmp_path, {"doc_id": 0, "acc": 1.0}, {"doc_id": 1, "acc": 0.0})
    run(tmp_path, date=1796033194.5, lm_eval_version="0.4.13")
    frame = imported("lm-eval", tmp_path)
    assert set(frame["started_at"]) == {pd.Timestamp("2026-11-30T10:06:34.5Z")}
    assert set(frame["adapter_version"]) == {"lm-eval 0.4.13"}
    assert frame[["model", "family"]].drop_duplicates().to_numpy().tolist() == [["vendor/model", "parity"]]
    assert dict(zip(frame["instance_id"], frame["passed"], strict=True)) == {"0": True, "1": False}


def test_without_the_results_file_the_folder_names_the_model(tmp_path: Path, imported: Import) -> None:
    samples(tmp_path, {"doc_id": 0, "acc": 1.0})
    assert imported("lm-eval", tmp_path)["model"].tolist() == ["vendor__model"]


def test_the_first_filter_and_number_decide_unless_others_are_named(
    tmp_path: Path, imported: Import, refusal: Refusal, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = {"metrics": ["bleu", "exact_match", "f1"], "bleu": ["yes", "lol"]}
    strict = {**listed, "doc_id": 0, "filter": "strict", "exact_match": 0.0, "f1": 0.5}
    samples(tmp_path, strict, {**strict, "filter": "flexible", "exact_match": 1.0})
    assert imported("lm-eval", tmp_path)["passed"].tolist() == [False]
    text = capsys.readouterr().out
    assert "exact_match decides, of exact_match, bleu, f1 (--metric)" in text
    assert "filter strict counts, of strict, flexible (--filter)" in text
    assert imported("lm-eval", tmp_path, "--filter", "flexible")["passed"].tolist() == [True]
    lenient = imported("lm-eval", tmp_path, "--metric", "f1", "--pass-at", "0.5")
    assert lenient[["passed", "partial_score"]].to_numpy().tolist() == [[True, 0.5]]
    assert "there is no filter 'loose'; there are strict, flexible" in refusal("lm-eval", tmp_path, "--filter", "loose")
    assert "bleu: expected a number for each document" in refusal("lm-eval", tmp_path, "--metric", "bleu")
    assert "there is no such metric; there are bleu" in refusal("lm-eval", tmp_path, "--metric", "rouge")


def test_a_name_that_lm_eval_drew_makes_no_two_models_one(
    tmp_path: Path, imported: Import, refusal: Refusal, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its Python interface draws after seeding: every model without a name in its arguments has the same one."""
    for name, time in (("one", TIME), ("two", "2026-01-03T00-00-00.000000")):
        folder, record = tmp_path / name / "wxrd1574", json.dumps({"doc_id": 0, "metrics": ["acc"], "acc": 1.0})
        config = {"model": "Mine", "model_args": None}
        written(folder, record + "\n", f"samples_parity_{time}.jsonl")
        written(folder, json.dumps({"model_name": "wxrd1574", "config": config}), f"results_{time}.json")
    assert "run: '2026-01-03T00-00-00.000000' here, '2026-01-02" in refusal("lm-eval", tmp_path)
    imported("lm-eval", tmp_path / "one", "--set", "model=first")
    assert "lm-eval drew the name wxrd1574; --set model=NAME says which it was" in capsys.readouterr().out
    frame = imported("lm-eval", tmp_path / "two", "--set", "model=second", "--add")
    assert frame["model"].tolist() == ["first", "second"]


def test_several_answers_to_one_document_are_one_verdict_and_said_to_be(
    tmp_path: Path, imported: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    samples(tmp_path, {"doc_id": 0, "acc": 1.0, "resps": [["4", "5", "4"]], "filtered_resps": ["4"]})
    assert len(imported("lm-eval", tmp_path)) == 1
    assert "each document was answered 3 times, of which lm-eval made one verdict" in capsys.readouterr().out


def test_a_reworded_task_pairs_with_its_baseline(tmp_path: Path, imported: Import) -> None:
    imported("lm-eval", samples(tmp_path, {"doc_id": 0, "acc": 1.0}))
    polite = samples(tmp_path, {"doc_id": 0, "acc": 0.0}, task="parity_polite")
    level = ("--set", "family=parity", "--set", "axis=paraphrase", "--set", "level=polite")
    frame = imported("lm-eval", polite, *level, "--add")
    assert frame["instance_id"].tolist() == ["0", "0"]
    assert frame["cell_id"].tolist() == ["parity-none-none-baseline", "parity-none-paraphrase-polite"]


def test_runs_under_other_settings_are_no_repetitions(tmp_path: Path, refusal: Refusal) -> None:
    for name, temperature in (("one", 0), ("two", 1)):
        samples(tmp_path / name, {"doc_id": 0, "acc": 1.0})
        run(tmp_path / name, config={"gen_kwargs": {"temperature": temperature}})
    assert "gen_kwargs.temperature: 1 here, 0 in samples_parity" in refusal("lm-eval", tmp_path)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"doc_id": 0, "metrics": ["ppl"], "ppl": [-3.5, 3]}, "metrics: none gives each document a number (ppl)"),
        ({"doc_id": 0, "metrics": ["ppl"], "ppl": 3.5}, "score: expected a number from 0 to 1, got 3.5"),
        ({"acc": 1.0}, "line 1, doc_id: is missing"),
    ],
)
def test_a_line_that_is_no_verdict_is_named(
    tmp_path: Path, refusal: Refusal, record: dict[str, Any], expected: str
) -> None:
    assert expected in refusal("lm-eval", samples(tmp_path, record))


def test_a_metric_of_which_less_is_better_asks_for_its_range(
    tmp_path: Path, imported: Import, refusal: Refusal
) -> None:
    samples(tmp_path, {"doc_id": 0, "metrics": ["wer"], "wer": 0.25})
    run(tmp_path, higher_is_better={"parity": {"wer": False}})
    assert "the less of it the better, as lm-eval says; --range WORST:BEST turns it round" in refusal(
        "lm-eval", tmp_path
    )
    frame = imported("lm-eval", tmp_path, "--range", "1:0", "--pass-at", "0.3")
    assert frame[["passed", "partial_score"]].to_numpy().tolist() == [[True, 0.75]]


def test_other_names_are_refused(tmp_path: Path, refusal: Refusal) -> None:
    assert "expected samples_<task>_<time>.jsonl" in refusal("lm-eval", written(tmp_path, "{}", "one.jsonl"))
