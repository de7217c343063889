"""Every wording of a task carries every acceptance criterion."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tasks_env.service.benchmark import Benchmark, benchmark_ids, load_benchmark
from tasks_env.service.wording import missing_statements, numbered_items, wordings


@pytest.fixture(params=benchmark_ids())
def benchmark(request: pytest.FixtureRequest) -> Benchmark:
    return load_benchmark(request.param)


def test_every_wording_states_every_criterion(benchmark: Benchmark) -> None:
    assert missing_statements(benchmark) == []


def test_there_are_five_paraphrases_and_all_differ(benchmark: Benchmark) -> None:
    texts = wordings(benchmark)
    assert list(texts) == ["base", "p1", "p2", "p3", "p4", "p5"]
    assert len(set(texts.values())) == 6
    items = {item for text in texts.values() for item in numbered_items(text).values()}
    assert len(items) > 4 * len(benchmark.contract.criteria)


def test_no_wording_gives_the_answer_away(benchmark: Benchmark) -> None:
    for text in wordings(benchmark).values():
        assert not any(word in text for word in ("ApiError", "envelope", "HTTPException", "service.py", "pydantic"))


@pytest.mark.parametrize("number", range(1, 8))
def test_a_criterion_that_is_left_out_or_blurred_is_noticed(tmp_path: Path, number: int) -> None:
    benchmark = load_benchmark("BE-002")
    left_out = "\n".join(line for line in benchmark.prompt.splitlines() if not line.startswith(f"{number}. "))
    blurred = "\n".join(
        f"{number}. As usual." if line.startswith(f"{number}. ") else line for line in benchmark.prompt.splitlines()
    )
    contract = benchmark.contract.model_copy(update={"paraphrases": {"p1": "p1.md", "p2": "p2.md"}})
    (tmp_path / "task.md").write_text(benchmark.prompt, encoding="utf-8")
    (tmp_path / "p1.md").write_text(left_out, encoding="utf-8")
    (tmp_path / "p2.md").write_text(blurred, encoding="utf-8")
    problems = missing_statements(dataclasses.replace(benchmark, contract=contract, folder=tmp_path))
    assert any(problem.startswith("p1: items ") for problem in problems)
    assert any(problem.startswith(f"p2: item {number} does not say") for problem in problems)
    assert not any(problem.startswith("base") for problem in problems)
