"""Put suites to services: one JSON object per line of standard input, one suite each.

The process never imports the submission and runs no test that it has touched. What it finds leaves through a pipe
that it inherited (its descriptor is the only argument), one JSON object per line, each with the suite's `number`:
`collected`, then `test` for every test, then `end`, and `over` once the suite's own process is gone. pytest is
imported once; each suite is a fork.

    number           of the suite, echoed
    root, files      where the tests lie, and which
    socket           of the service
    request_s        limit of one request
    order, draw      seeds of the tests' order, and of the values that they draw
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
from collections.abc import Generator
from typing import Any

import pytest
from client import Client, TooSlow  # type: ignore[import-not-found]

DETAIL_CHARS = 200


class Harness:
    """The fixtures that the tests are written against, and the report of what became of them."""

    def __init__(self, config: dict[str, Any], report: int) -> None:
        self._config = config
        self._report = report
        self._results: dict[str, tuple[str, str]] = {}
        self._slow = False

    @pytest.fixture
    def client(self) -> Client:
        """The service under test."""
        return Client(self._config["socket"], self._config["request_s"])

    @pytest.fixture
    def draw(self, request: pytest.FixtureRequest) -> random.Random:
        """Random values of this evaluation and this test."""
        return random.Random(f"{self._config['draw']} {request.node.nodeid}")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Shuffle, and tell what there is."""
        random.Random(self._config["order"]).shuffle(items)
        self._say("collected", tests=[item.nodeid for item in items])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep the worst of a test's phases; a request that took too long ends the suite."""
        report = yield
        worst, _ = self._results.get(item.nodeid, ("passed", ""))
        if worst == "passed":
            self._results[item.nodeid] = (report.outcome, "" if report.outcome == "passed" else _detail(call))
        if call.excinfo is not None and call.excinfo.errisinstance(TooSlow):
            self._slow = True
            item.session.shouldstop = "a request took too long"
        return report

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Tell how the test came out."""
        outcome, detail = self._results.get(nodeid, ("missing", ""))
        self._say("test", id=nodeid, outcome=outcome, detail=detail)

    def end(self) -> None:
        """The last line: the suite came to its end."""
        self._say("end", timed_out=self._slow)

    def _say(self, event: str, **fields: Any) -> None:
        say(self._report, event, self._config["number"], **fields)


def say(report: int, event: str, number: int, **fields: Any) -> None:
    """One line of the report."""
    os.write(report, json.dumps({"event": event, "number": number, **fields}).encode("ascii") + b"\n")


def _detail(call: pytest.CallInfo[None]) -> str:
    """What went wrong, without the addresses of objects that differ from run to run."""
    if call.excinfo is None:
        return "skipped"
    text = " ".join(call.excinfo.exconly(tryshort=True).split())
    return text.partition(" + where")[0][:DETAIL_CHARS]


HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as `sys.path` has it
OPTIONS = ("--quiet", "--noconftest", "--import-mode=importlib", f"--config-file={HERE}/suite.ini")
UNCACHED = ("-p", "no:cacheprovider")


def run(config: dict[str, Any], report: int) -> None:
    """Run one suite."""
    harness = Harness(config, report)
    root = config["root"]
    files = [f"{root}/{file}" for file in config["files"]]
    pytest.main([*OPTIONS, *UNCACHED, f"--rootdir={root}", *files], plugins=[harness])
    harness.end()


def warm_up() -> None:
    """Have pytest import what it imports only once it runs: here are no tests to be found."""
    gc.disable()
    pytest.main([*OPTIONS, *UNCACHED, f"--rootdir={HERE}", HERE])
    gc.freeze()
    gc.enable()


def main(report: int) -> None:
    """Run suites, one after the other, until standard input ends."""
    warm_up()
    for line in sys.stdin:
        config = json.loads(line)
        child = os.fork()
        if not child:
            try:
                run(config, report)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        say(report, "over", config["number"])


if __name__ == "__main__":
    main(int(sys.argv[1]))
