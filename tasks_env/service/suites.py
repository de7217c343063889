"""One suite put to one service, and what is believed of its report."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks_env.service.benchmark import Limits
from tasks_env.service.processes import HARNESS, constructed_environment

REPORT_BYTES = 5_000_000


@dataclass
class SuiteResult:
    """How a suite came out. Only tests that were registered count, and each of them must have passed."""

    failed: dict[str, str] = field(default_factory=dict)
    """Test → why."""
    passed: set[str] = field(default_factory=set)
    timed_out: bool = False
    problem: str = ""
    """What was wrong with the suite as a whole: tests missing or foreign, no end."""
    seconds: float = 0.0


def run_suite(
    root: Path,
    tests: Mapping[str, str],
    socket: Path,
    private: Path,
    limits: Limits,
    *,
    order: int,
    draw: int,
) -> SuiteResult:
    """Run the registered `tests` of `root` against the service at `socket`.

    Args:
        tests: The registered ids, `test_file.py::test_name`; a suite that has others, or lacks one, fails.
        order: Seed of the tests' order.
        draw: Seed of the values that they draw.
    """
    reading, writing = os.pipe()
    config = {
        "root": str(root),
        "files": sorted({test.partition("::")[0] for test in tests}),
        "socket": str(socket),
        "request_s": limits.request_s,
        "order": order,
        "draw": draw,
        "report": writing,
    }
    private.mkdir(mode=0o700)
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _START, str(HARNESS), json.dumps(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=constructed_environment(private),
            cwd=private,
            pass_fds=[writing],
            start_new_session=True,
        )
    finally:
        os.close(writing)
    try:
        report, in_time = _read(reading, started + limits.suite_s)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    result = believed(tests, report)
    result.timed_out = result.timed_out or not in_time
    if not in_time:
        result.problem = f"the suite did not end within {limits.suite_s:g} s"
    result.seconds = time.monotonic() - started
    return result


_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); import json, suite; suite.main(json.loads(sys.argv[1]))"


def believed(tests: Mapping[str, str], report: Sequence[Mapping[str, Any]]) -> SuiteResult:
    """What follows from the lines of a report.

    A test that was skipped, or never told of, has failed. Tests that nobody registered make the whole suite fail: then
    it is not the suite that the verdict would be about.
    """
    result = SuiteResult()
    collected = [test for event in report if event.get("event") == "collected" for test in event["tests"]]
    told = {event["id"]: event for event in report if event.get("event") == "test"}
    ended = [event for event in report if event.get("event") == "end"]
    for test in tests:
        event = told.get(test)
        if event is not None and event["outcome"] == "passed":
            result.passed.add(test)
        else:
            result.failed[test] = "was not run" if event is None else event["detail"] or event["outcome"]
    result.timed_out = any(event["timed_out"] for event in ended)
    missing, foreign = sorted(set(tests) - set(collected)), sorted(set(collected) - set(tests))
    if missing or foreign or len(collected) != len(set(collected)):
        listed = [*(f"{test} is missing" for test in missing), *(f"{test} is not registered" for test in foreign)]
        result.problem = f"the suite is not the registered one: {', '.join(listed)[:300]}"
    elif len(ended) != 1:
        result.problem = "the suite did not come to its end"
    return result


def _read(descriptor: int, until: float) -> tuple[list[dict[str, Any]], bool]:
    """The lines of the report, and whether it ended in time."""
    data = bytearray()
    with os.fdopen(descriptor, "rb", buffering=0) as pipe:
        while (left := until - time.monotonic()) > 0 and len(data) < REPORT_BYTES:
            if not select.select([pipe], [], [], left)[0]:
                continue
            chunk = pipe.read(65536)
            if not chunk:
                return _lines(bytes(data)), True
            data += chunk
    return _lines(bytes(data)), False


def _lines(data: bytes) -> list[dict[str, Any]]:
    events = []
    for line in data.split(b"\n")[:-1]:
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict):
                events.append(event)
    return events
