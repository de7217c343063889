"""The shipped benchmarks' contracts, and what is said of contracts that are malformed or files that were edited."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tasks_env.errors import UnknownName
from tasks_env.service.benchmark import (
    BASELINE,
    CACHES,
    CHECKS,
    CONTRACT,
    LIBRARY,
    Benchmark,
    benchmark_ids,
    load_benchmark,
)
from tasks_env.service.errors import EvidenceError
from tasks_env.service.evaluation import EXITS, MEANINGS
from tasks_env.service.scope import lies_in

IDS = benchmark_ids()


@pytest.fixture(params=IDS)
def benchmark(request: pytest.FixtureRequest) -> Benchmark:
    return load_benchmark(request.param)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A copy that may be broken."""
    for name in (BASELINE, "tasks"):
        shutil.copytree(LIBRARY / name, tmp_path / name, ignore=shutil.ignore_patterns(*CACHES))
    return tmp_path


def contract_file(library: Path) -> Path:
    return next(library.glob("tasks/BE-002-*")) / CONTRACT


def test_both_benchmarks_are_there_with_the_briefs_criteria() -> None:
    assert IDS == ["BE-001", "BE-002"]
    checks = {name: [each.check for each in load_benchmark(name).contract.criteria] for name in IDS}
    assert checks == {
        "BE-001": ["starts", "baseline", "functional", "functional", "dependencies", "scope"],
        "BE-002": ["starts", "baseline", "functional", "contract", "functional", "dependencies", "scope"],
    }


def test_exit_codes_and_classes_are_the_briefs() -> None:
    assert EXITS == {
        "starts": (10, "F04"),
        "baseline": (11, "F05"),
        "functional": (12, "F03"),
        "contract": (13, "F02"),
        "dependencies": (20, "F07"),
        "scope": (21, "F07"),
    }
    assert tuple(EXITS) == CHECKS
    assert set(MEANINGS) == {0, 30, *(code for code, _ in EXITS.values())}


def test_what_is_registered_is_what_lies_there(benchmark: Benchmark) -> None:
    benchmark.check_evidence()


def test_the_readme_answers_the_tautology_guard(benchmark: Benchmark) -> None:
    text = (benchmark.folder / "README.md").read_text(encoding="utf-8")
    guard = text.partition("## The tautology guard")[2]
    for number in ("1. ", "2. ", "3. "):
        assert re.search(rf"^{re.escape(number)}", guard, re.MULTILINE)


def test_the_known_good_submission_changes_nothing_but_what_is_asked_for(benchmark: Benchmark) -> None:
    changed = [path for path, content in benchmark.known_good.items() if benchmark.baseline.get(path) != content]
    assert changed
    assert all(lies_in(path, benchmark.contract.allowed_production_paths) for path in changed)


def test_the_contract_suite_knows_no_code_string() -> None:
    suite = (load_benchmark("BE-002").acceptance / "test_contract.py").read_text(encoding="utf-8")
    assert not re.search(r"\[\"code\"\] (==|in)", suite)
    assert not re.search(r"[A-Z]{3,}_[A-Z]{3,}", suite)


def test_a_benchmark_is_found_by_id_and_by_folder() -> None:
    assert load_benchmark("BE-002-order-amount-validation").id == "BE-002"
    with pytest.raises(UnknownName, match=r"unknown benchmark 'BE-003'; known: BE-001, BE-002"):
        load_benchmark("BE-003")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema_version: 1", "schema_version: 2", r"schema_version: Input should be 1"),
        ("category:", "kategory:", r"category: Field required; kategory: Extra inputs"),
        ("check: contract", "check: taste", r"criteria\.3\.check: Input should be 'starts'"),
        ("  - id: AC4", "  - id: AC9", r"criteria: .*numbered AC1, AC2, …; got .*AC9"),
        ("start_s: 30.0", "start_s: soon", r"limits\.start_s: Input should be a valid number"),
        ("suite_hash: ", "suite_hash: x", r"suite_hash: String should match"),
        ("schema_version: 1", "schema_version: [", r"not valid YAML"),
        ("id: BE-002", "id: BE-001", r"id: BE-001, but the folder is called BE-002"),
    ],
)
def test_a_malformed_contract_is_one_paragraph_that_names_file_and_field(
    library: Path, old: str, new: str, said: str
) -> None:
    path = contract_file(library)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(EvidenceError, match=said) as caught:
        load_benchmark("BE-002", library)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"- a\n- b\n", b"\xff\xfe", b"just text"])
def test_a_contract_that_is_no_mapping_is_refused(library: Path, content: bytes) -> None:
    contract_file(library).write_bytes(content)
    with pytest.raises(EvidenceError, match=r"expected a mapping|cannot be read"):
        load_benchmark("BE-002", library)


def test_a_missing_contract_is_refused(library: Path) -> None:
    contract_file(library).unlink()
    with pytest.raises(EvidenceError, match="cannot be read: No such file"):
        load_benchmark("BE-002", library)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("sample-service/app/main.py", "baseline_hash is"),
        ("sample-service/pyproject.toml", "the baseline's manifest is missing"),
        ("tasks/BE-002-order-amount-validation/acceptance/test_functional.py", "suite_hash is"),
    ],
)
def test_a_file_that_is_gone_is_missed(library: Path, path: str, said: str) -> None:
    (library / path).unlink()
    with pytest.raises(EvidenceError, match=said):
        load_benchmark("BE-002", library).check_evidence()


def test_a_link_among_the_evaluators_own_files_is_refused(library: Path) -> None:
    (library / BASELINE / "app" / "link").symlink_to("/etc")
    with pytest.raises(EvidenceError, match="does not belong to the evaluator's files"):
        load_benchmark("BE-002", library).check_evidence()


def test_a_library_without_a_baseline_is_refused(library: Path) -> None:
    shutil.rmtree(library / BASELINE)
    with pytest.raises(EvidenceError, match="sample-service: cannot be read"):
        load_benchmark("BE-002", library).check_evidence()
