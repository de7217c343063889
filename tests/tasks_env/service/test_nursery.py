"""The process that hosts are forked from: what a child has of it, and what is left when one of them is gone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks_env.service.benchmark import load_benchmark
from tasks_env.service.evaluator import working_folder
from tasks_env.service.nursery import Nursery
from tasks_env.service.serving import hosting
from tasks_env.service.trees import write_tree

BENCHMARK = load_benchmark("BE-001")
LIMITS = BENCHMARK.contract.limits
TELLING = b"""
import json, os
import sys
print("FOUND" + json.dumps({
    "environment": dict(os.environ),
    "modules": [name for name in ("serve", "confined", "nursery", "suite", "pytest") if name in sys.modules],
    "descriptors": [n for n in range(64) if os.path.exists(f"/dev/fd/{n}") or _open(n)],
}) + "END", flush=True)
"""
OPEN = b"""
def _open(number):
    import os
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
"""


@pytest.fixture
def work() -> Iterator[Path]:
    with working_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.end()


def answered(work: Path, nursery: Nursery, name: str, first: bytes = b"") -> str:
    """What a service printed that was asked until it answered."""
    tree = work / f"tree-{name}"
    write_tree(tree, {**BENCHMARK.baseline, "app/__init__.py": first})
    with hosting(tree, work / name, LIMITS, nursery) as host, host.service("baseline") as started:
        assert started.problem is None
        return host.process.tail


def test_a_child_has_nothing_of_the_nursery_or_of_us(
    work: Path, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    told = answered(work, nursery, "a", OPEN + TELLING)
    assert "sk-very-secret" not in told
    assert '"modules": []' in told
    assert '"descriptors": [0, 1, 2]' in told


def test_a_nursery_that_is_gone_is_replaced_and_its_children_are_gone_with_it(work: Path) -> None:
    nursery = Nursery()
    try:
        answered(work, nursery, "first")
        assert nursery._process is not None
        gone = nursery._process.pid
        tree = work / "tree-first"
        with hosting(tree, work / "second", LIMITS, nursery) as host:
            os.kill(gone, signal.SIGKILL)
            assert host.process.wait(10) == -signal.SIGKILL
        nursery._process.wait(10)
        answered(work, nursery, "third")
        assert nursery._process.pid != gone
    finally:
        nursery.end()


def test_the_end_of_a_nursery_is_the_end_of_its_children(work: Path) -> None:
    nursery = Nursery()
    write_tree(work / "tree", BENCHMARK.baseline)
    with hosting(work / "tree", work / "private", LIMITS, nursery) as host:
        nursery.end()
        began = time.monotonic()
        assert host.process.wait(10) is not None
        assert time.monotonic() - began < 10
