"""The sample service: green by its own tests, readable by an agent, and without the validation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tasks_env.service.benchmark import BASELINE, LIBRARY, load_benchmark


def test_its_own_tests_are_green_where_it_lies() -> None:
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    result = subprocess.run(command, cwd=LIBRARY / BASELINE, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "11 passed" in result.stdout


def test_every_file_can_be_read_whole_by_an_agent() -> None:
    longest = max(len(content) for content in load_benchmark("BE-002").baseline.values())
    assert longest < 4000  # scaffold.tool_output_chars of the shipped manifest


def test_it_holds_no_trace_of_the_answer() -> None:
    baseline = load_benchmark("BE-001").baseline
    text = b"\n".join(baseline.values())
    assert not [path for path in baseline if Path(path).parts[0] not in {"app", "tests"} and "/" in path]
    assert b"400" not in text
    assert b"blank" not in text
