"""Run a suite against a service: `suite.py CONFIG`, a JSON object.

The process never imports the submission and runs no test that it has touched. What it found leaves through a pipe that
it inherited, one JSON object per line: `collected`, then `test` for every test, then `end`.

    root, files      where the tests lie, and which
    socket           of the service
    request_s        limit of one request
    order, draw      seeds of the tests' order, and of the values that they draw
    report           descriptor of the pipe
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from client import Client, TooSlow

DETAIL_CHARS = 300


class Harness:
    """The fixtures that the tests are written against, and the report of what became of them."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._pipe = os.fdopen(config["report"], "w", encoding="ascii")
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
    ) -> Iterator[None]:
        """Keep the worst of a test's phases; a request that took too long ends the suite."""
        report: Any = yield
        worst, _ = self._results.get(item.nodeid, ("passed", ""))
        if report.outcome != "passed" and worst == "passed":
            self._results[item.nodeid] = (report.outcome, _detail(call))
        else:
            self._results.setdefault(item.nodeid, (report.outcome, ""))
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
        self._pipe.close()

    def _say(self, event: str, **fields: Any) -> None:
        print(json.dumps({"event": event, **fields}), file=self._pipe, flush=True)


def _detail(call: pytest.CallInfo[None]) -> str:
    if call.excinfo is None:
        return "skipped"
    return " ".join(call.excinfo.exconly(tryshort=True).split())[:DETAIL_CHARS]


def main(config: dict[str, Any]) -> int:
    """Run the suite. Returns pytest's exit code."""
    harness = Harness(config)
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as `sys.path` has it
    code = pytest.main(
        [
            "--quiet",
            "--noconftest",
            "--import-mode=importlib",
            f"--config-file={here}/suite.ini",
            f"--rootdir={config['root']}",
            "-p",
            "no:cacheprovider",
            *(f"{config['root']}/{file}" for file in config["files"]),
        ],
        plugins=[harness],
    )
    harness.end()
    return int(code)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
