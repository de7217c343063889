"""Which flow runs a starting study may call crashed: those of its root whose process has certainly ended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flows.orchestration.claims import OWNER_LABEL, ROOT_LABEL, is_left
from flows.owners import this_process


def labels(root: Path, owner: Any) -> dict[str, str]:
    return {ROOT_LABEL: str(root.resolve()), OWNER_LABEL: json.dumps(owner)}


@pytest.fixture(scope="module")
def ended() -> list[Any]:
    """The owner of a process that has ended."""
    program = "import json; from flows.owners import this_process; print(json.dumps(this_process()))"
    owner: list[Any] = json.loads(subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE).stdout)
    return owner


def test_a_run_of_a_process_that_ended_is_left(tmp_path: Path, ended: list[Any]) -> None:
    assert is_left(labels(tmp_path, ended), tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    assert is_left(labels(tmp_path, ended), tmp_path / "link"), "the same root by another name"


def test_a_run_of_a_living_process_is_not(tmp_path: Path) -> None:
    assert not is_left(labels(tmp_path, this_process()), tmp_path)


def test_a_run_of_another_root_is_not(tmp_path: Path, ended: list[Any]) -> None:
    assert not is_left(labels(tmp_path / "other", ended), tmp_path)


def test_a_run_of_another_machine_is_not(tmp_path: Path, ended: list[Any]) -> None:
    assert not is_left(labels(tmp_path, [ended[0], "elsewhere", ended[2]]), tmp_path)


@pytest.mark.parametrize("owner", [None, "", [], [1, 2, 3, 4, 5], {"pid": 1}])
def test_a_run_that_says_nothing_of_its_process_is_not(tmp_path: Path, owner: Any) -> None:
    assert not is_left(labels(tmp_path, owner), tmp_path)
    assert not is_left({ROOT_LABEL: str(tmp_path)}, tmp_path)
    assert not is_left({}, tmp_path)
