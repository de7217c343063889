"""Which flow runs a starting study may call crashed: those of its root whose process has certainly ended."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from flows.orchestration.claims import OWNER_LABEL, PAGE, ROOT_LABEL, is_left, mark_crashed
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


class Server:
    """A study with a stage under it, and tasks of which some never change their state."""

    def __init__(self, labels: dict[str, str], tasks: int, stubborn: int) -> None:
        self.runs = [SimpleNamespace(id=uuid4(), labels=labels), SimpleNamespace(id=uuid4(), labels={})]
        self.tasks = [SimpleNamespace(id=uuid4()) for _ in range(tasks)]
        self.stubborn = {task.id for task in self.tasks[:stubborn]}
        self.ended: list[UUID] = []
        self.looks = 0

    async def read_flow_runs(self, *, flow_run_filter: Any, **_: Any) -> list[SimpleNamespace]:
        parents = flow_run_filter.parent_flow_run_id
        if parents is None:
            return self.runs[:1]
        return self.runs[1:] if parents.any_ == [self.runs[0].id] else []

    async def read_task_runs(self, *, flow_run_filter: Any, limit: int, **_: Any) -> list[SimpleNamespace]:
        self.looks += 1
        assert self.looks < 20, "it looks for ever"
        if flow_run_filter.id.any_ != [self.runs[1].id]:
            return []
        return [task for task in self.tasks if task.id not in self.ended or task.id in self.stubborn][:limit]

    async def set_task_run_state(self, run: UUID, *_: Any, **__: Any) -> None:
        self.ended.append(run)

    set_flow_run_state = set_task_run_state


@pytest.mark.usefixtures("prefect_api_url")  # which must be known before Prefect is first imported
@pytest.mark.parametrize(("tasks", "stubborn"), [(0, 0), (2 * PAGE + 1, 0), (PAGE + 5, 3), (3, 3), (PAGE + 1, PAGE)])
def test_every_look_at_the_server_marks_something_or_is_the_last(
    tmp_path: Path, ended: list[Any], tasks: int, stubborn: int
) -> None:
    server = Server(labels(tmp_path, ended), tasks, stubborn)
    client: Any = server
    assert asyncio.run(mark_crashed(client, tmp_path)) == (2, stubborn)
    assert len(server.ended) == len(set(server.ended)), "nobody is told twice"
    assert {run.id for run in server.runs} <= set(server.ended)
    assert sum(task.id in server.ended for task in server.tasks) == min(tasks, PAGE if stubborn == PAGE else tasks)
