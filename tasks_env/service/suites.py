"""Suites put to services, and what is believed of their reports."""

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
from tasks_env.service.nursery import NOWHERE
from tasks_env.service.processes import HARNESS, constructed_environment


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


class SuiteRunner:
    """The process that holds the suites and asks the questions; it ends with this one.

    It serves any number of submissions, one suite at a time, each in a fork of its own. One that is killed for its time
    is replaced.

    Args:
        limits: Of the benchmark.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._report = -1
        self._unread = bytearray()
        self._number = 0

    def run(self, root: Path, tests: Mapping[str, str], socket: Path, *, order: int, draw: int) -> SuiteResult:
        """Run the registered `tests` of `root` against the service at `socket`.

        Args:
            tests: The registered ids, `test_file.py::test_name`; a suite that has others, or lacks one, fails.
            order: Seed of the tests' order.
            draw: Seed of the values that they draw.
        """
        started = time.monotonic()
        self._number += 1
        config = {
            "number": self._number,
            "root": str(root),
            "files": sorted({test.partition("::")[0] for test in tests}),
            "socket": str(socket),
            "request_s": self._limits.request_s,
            "order": order,
            "draw": draw,
        }
        process = self._started()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(config).encode("ascii") + b"\n")
            process.stdin.flush()
        report, in_time = self._read(started + self._limits.suite_s)
        result = believed(tests, report)
        if not in_time:
            self.end()
            result.timed_out = True
            result.problem = f"the suite did not end within {self._limits.suite_s:g} s"
        result.seconds = time.monotonic() - started
        return result

    def end(self) -> None:
        """Kill the process, if there is one."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        os.close(self._report)
        self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._unread.clear()
            self._report, writing = os.pipe()
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-B", "-c", _START, str(HARNESS), str(writing)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=constructed_environment(NOWHERE),
                    cwd=NOWHERE,
                    pass_fds=[writing],
                    start_new_session=True,
                )
            finally:
                os.close(writing)
        return self._process

    def _read(self, until: float) -> tuple[list[dict[str, Any]], bool]:
        """The lines about the suite under way, and whether it was over in time."""
        events: list[dict[str, Any]] = []
        while (left := until - time.monotonic()) > 0:
            if not select.select([self._report], [], [], left)[0]:
                continue
            chunk = os.read(self._report, 65536)
            if not chunk:
                self.end()
                return events, True
            self._unread += chunk
            *lines, rest = self._unread.split(b"\n")
            self._unread = bytearray(rest)
            events += [event for line in lines if (event := json.loads(line))["number"] == self._number]
            if events and events[-1]["event"] == "over":
                return events, True
        return events, False


_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); import suite; suite.main(int(sys.argv[1]))"


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
