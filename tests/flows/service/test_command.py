"""`agent-bench service` as it is typed: exit codes, what is printed and written, and every kind of bad input."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from flows.cli import main
from tasks_env.service.benchmark import BASELINE, CACHES, LIBRARY, load_benchmark
from tasks_env.service.evaluation import check_document
from tasks_env.service.verification.cases import find_case


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    for name in (BASELINE, "tasks"):
        shutil.copytree(LIBRARY / name, tmp_path / "lib" / name, ignore=shutil.ignore_patterns(*CACHES))
    return tmp_path / "lib"


def submitted(case: str, task: str = "BE-002") -> None:
    benchmark = load_benchmark(task)
    find_case(benchmark, case).build(benchmark).write(Path("submission"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "code", "said"),
    [
        ("known_good", 0, "exit 0, all acceptance criteria passed"),
        ("framework_400", 13, "exit 13, error contract violated (F02)"),
        ("scratch_file", 21, "exit 21, unrelated files changed (F07)"),
    ],
)
def test_evaluate_prints_the_criteria_writes_the_file_and_exits_with_the_code(
    case: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    submitted(case)
    assert main(["service", "evaluate", "--task", "BE-002", "--submission", "submission", "--run-id", "r-9"]) == code
    out = capsys.readouterr().out
    assert said in out
    assert len(re.findall(r"^  AC[1-7] ", out, re.MULTILINE)) == 7
    document = json.loads(Path("evaluation.json").read_text(encoding="utf-8"))
    check_document(document)
    assert (document["exit_code"], document["run_id"]) == (code, "r-9")


def test_without_a_submission_there_is_no_verdict_and_no_old_file_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    Path("evaluation.json").write_text('{"exit_code": 0}', encoding="utf-8")
    assert main(["service", "evaluate", "--task", "BE-002", "--submission", "nothing"]) == 30
    assert "nothing: does not exist: no submission to judge; give the folder" in capsys.readouterr().out
    assert json.loads(Path("evaluation.json").read_text(encoding="utf-8"))["exit_code"] == 30


def test_the_verdict_must_not_become_part_of_the_submission(capsys: pytest.CaptureFixture[str]) -> None:
    submitted("known_good")
    arguments = ["service", "evaluate", "--task", "BE-002", "--submission", "submission"]
    assert main([*arguments, "--out", "submission/tests/evaluation.json"]) == 2
    assert "lies in the submission and would change it" in capsys.readouterr().err
    assert not Path("submission/tests/evaluation.json").exists()
    Path("folder").mkdir()
    assert main([*arguments, "--out", "folder"]) == 2
    assert "--out: folder is a folder; name the file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--task", "BE-0O2", "--submission", "x"], "--task: unknown benchmark 'BE-0O2'; known: BE-001, BE-002"),
        (["--task", "BE-002", "--submission", "x", "--library", "."], "--library: . holds no benchmark"),
    ],
)
def test_names_that_do_not_exist_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["service", "evaluate", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("breakage", "said"),
    [
        (lambda lib: (lib / BASELINE / "pyproject.toml").unlink(), "the baseline's manifest is missing"),
        (lambda lib: shutil.rmtree(lib / BASELINE), "sample-service: cannot be read: No such file or directory"),
    ],
)
def test_a_broken_baseline_is_30_with_a_file_that_says_so(
    library: Path, breakage: object, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(breakage)
    breakage(library)
    submitted("known_good")
    arguments = ["--task", "BE-002", "--submission", "submission", "--library", str(library)]
    assert main(["service", "evaluate", *arguments]) == 30
    assert said in capsys.readouterr().out
    assert said in json.loads(Path("evaluation.json").read_text(encoding="utf-8"))["detail"]


def test_a_malformed_contract_is_30_and_one_paragraph(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contract = next(library.glob("tasks/BE-002-*/benchmark.yaml"))
    contract.write_text("id: [", encoding="utf-8")
    submitted("known_good")
    arguments = ["--task", "BE-002", "--submission", "submission", "--library", str(library)]
    assert main(["service", "evaluate", *arguments]) == 30
    error = capsys.readouterr().err
    assert error.startswith(f"agent-bench service: {contract}: not valid YAML")
    assert error.count("\n") == 1


def test_an_export_is_what_an_agent_gets_with_the_task_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "export", "--task", "BE-001", "copy"]) == 0
    benchmark = load_benchmark("BE-001")
    found = {str(path.relative_to("copy")): path.read_bytes() for path in Path("copy").rglob("*") if path.is_file()}
    assert found == dict(benchmark.baseline)
    assert Path("copy.md").read_text(encoding="utf-8") == benchmark.prompt
    assert "evaluate --task BE-001 --submission copy" in capsys.readouterr().out
    assert main(["service", "export", "--task", "BE-001", "copy"]) == 2


def test_hashes_are_printed_as_the_contracts_register_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "hashes"]) == 0
    contract = load_benchmark("BE-002").contract
    out = capsys.readouterr().out
    assert f"BE-002 baseline_hash: {contract.baseline_hash}" in out
    assert f"BE-002 suite_hash: {contract.suite_hash}" in out


@pytest.mark.slow
def test_verify_prints_a_table_and_says_whether_the_proof_holds(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["--case", "untouched", "--case", "known_good", "--case", "suite_hash_edited", "--rounds", "2"]
    assert main(["service", "verify", "--task", "BE-001", *chosen]) == 0
    out = capsys.readouterr().out
    assert re.search(r"untouched +12 +12 12", out)
    assert re.search(r"suite_hash_edited +30 +30 30", out)
    assert "VERIFY OK: 6 verdicts" in out
    contract = next(library.glob("tasks/BE-001-*/benchmark.yaml"))
    text = contract.read_text(encoding="utf-8")
    contract.write_text(text.replace("  untouched: 12", "  untouched: 0"), encoding="utf-8")
    wrong = ["--task", "BE-001", "--library", str(library), "--case", "untouched", "--rounds", "1"]
    assert main(["service", "verify", *wrong]) == 1
    assert "VERIFY FAILED: 1 problems in 1 verdicts" in capsys.readouterr().out


def test_an_unknown_case_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "verify", "--task", "BE-001", "--case", "known_god"]) == 2
    assert "did you mean 'known_good'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--workers", "x"], ["--rounds", "-1"]])
def test_numbers_that_make_no_sense_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["service", "verify", *arguments])
    assert caught.value.code == 2


def test_help_needs_no_heavy_import(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["service", "--help"])
    out = capsys.readouterr().out
    for command in ("evaluate", "verify", "run", "rehearse", "export", "hashes"):
        assert f"    {command} " in out
