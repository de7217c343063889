"""A model behind an HTTP endpoint doing a task, through either adapter: from its requests to its row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.context import Options
from flows.results_file import read_results
from flows.service.run import run_benchmark
from tasks_env.service.benchmark import load_benchmark
from tasks_env.service.family import case_tree
from tests.conftest import small_manifest
from tests.flows.episodes.answering import AnsweringServer, Turn, play_turns
from tests.flows.episodes.support import http_entry
from tests.flows.service.support import Judge, console

CHANGED = "app/orders/service.py"


@pytest.fixture(scope="module")
def server() -> Iterator[AnsweringServer]:
    made = AnsweringServer()
    with made.running():
        yield made


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_a_model_reads_writes_and_hands_in(server: AnsweringServer, tmp_path: Path, adapter: str) -> None:
    right = case_tree("BE-002", "known_good")[CHANGED]
    play_turns(
        server,
        adapter,
        [
            Turn(calls=(("list_files", {}), ("read_file", {"path": CHANGED}))),
            Turn(calls=(("search_text", {"text": "ApiError"}),), number=1),
            Turn(calls=(("write_file", {"path": CHANGED, "content": right}),), number=2),
            Turn(calls=(("submit", {}),), number=3),
        ],
    )
    path = small_manifest(tmp_path, models={"over-http": http_entry(adapter, server.url)})
    line, out = console()
    options = Options(manifest=str(path), profile="smoke")
    assert run_benchmark(options, load_benchmark("BE-002"), "over-http", line, runs=1, environ={}, judge=Judge()) == 0
    frame, metadata = read_results(tmp_path / ".smoke" / "service-change" / "results" / "results.parquet")
    [row] = frame.to_dict("records")
    assert (row["passed"], row["outcome"], row["steps_used"], row["trajectory_length"]) == (True, "completed", 4, 5)
    assert row["cost_usd"] > 0
    assert metadata["planned"][0]["cell_id"] == "service-be-002-none-baseline"
    assert "accepts an `amount` of 0 or less" in str(server.requests[0].body)
    assert "0 of 1 runs fail" in out.getvalue()
