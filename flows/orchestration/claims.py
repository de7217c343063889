"""Whose flow runs are whose, so that those of a process that was killed do not stay "Running" for ever.

A flow run that nobody started is claimed by its process: labels say for which root it works, and which process it is.
Whoever starts on the same root next looks at the runs that are still called running, and ends those whose process has.
On an embedded server nobody looks, and nothing is claimed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flows.console import Console
from flows.orchestration.sharing import is_shared
from flows.owners import Owner, this_process

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient

ROOT_LABEL = "agent-bench.root"
OWNER_LABEL = "agent-bench.process"
PAGE = 200


async def claim(root: Path, console: Console) -> None:
    """Claim the flow run that this is called in, and mark crashed what processes that were killed left.

    Nothing happens in a flow run that another one started, or on an embedded server.

    Args:
        root: Of the study. Its flow runs alone are looked at, and of these only those of this machine: whether a
            process of another one lives cannot be seen from here.
        console: Is told how many were marked.
    """
    if not is_shared():
        return
    from prefect.client.orchestration import get_client
    from prefect.runtime import flow_run

    if flow_run.id is None or flow_run.parent_flow_run_id is not None:
        return
    async with get_client() as client:
        owner = json.dumps(this_process(), separators=(",", ":"))
        await client.update_flow_run_labels(UUID(flow_run.id), {ROOT_LABEL: str(root.resolve()), OWNER_LABEL: owner})
        left, kept = await mark_crashed(client, root)
    if left:
        console.line(f"{left} flow runs on {root} whose process was killed are marked as crashed")
    if kept:
        console.line(f"{kept} of their tasks go on being shown as running: the server does not let them be marked")


async def mark_crashed(client: PrefectClient, root: Path) -> tuple[int, int]:
    """How many flow runs, and how many of their tasks keep their state all the same."""
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterParentFlowRunId,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import StateType

    unfinished = FlowRunFilterState(
        type=FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING, StateType.CANCELLING])
    )
    # A page is enough: there are never more studies on one server than that which nobody looked after.
    runs = await client.read_flow_runs(flow_run_filter=FlowRunFilter(state=unfinished), limit=PAGE)
    dead = [run.id for run in runs if is_left(run.labels, root)]
    kept, seen = 0, set[UUID]()
    while dead:  # from the top down, so that no stage is left running under a study that is not
        for run in dead:
            kept += await _crash(client, run)
        seen.update(dead)
        parents = FlowRunFilterParentFlowRunId(any_=dead)
        below = FlowRunFilter(state=unfinished, parent_flow_run_id=parents)
        found = await client.read_flow_runs(flow_run_filter=below, limit=PAGE)
        dead = [run.id for run in found if run.id not in seen]
    return len(seen), kept


def is_left(labels: Mapping[str, Any], root: Path) -> bool:
    """Whether these are the labels of a flow run of this root whose process has certainly ended."""
    if labels.get(ROOT_LABEL) != str(root.resolve()):
        return False
    try:
        return Owner(*json.loads(str(labels.get(OWNER_LABEL)))).is_dead()
    except (ValueError, TypeError):  # of another version
        return False


async def _crash(client: PrefectClient, run: UUID) -> int:
    """How many of the run's tasks keep their state."""
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterId,
        TaskRunFilter,
        TaskRunFilterState,
        TaskRunFilterStateType,
    )
    from prefect.client.schemas.objects import State, StateType
    from prefect.states import Crashed

    state: State[None] = Crashed(message="Its process ended without a word; found by the next one on the same root.")
    running = TaskRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING])
    unfinished = TaskRunFilter(state=TaskRunFilterState(type=running))
    of_run, asked = FlowRunFilter(id=FlowRunFilterId(any_=[run])), set[UUID]()
    while True:
        left = await client.read_task_runs(flow_run_filter=of_run, task_run_filter=unfinished, limit=PAGE)
        fresh = [task.id for task in left if task.id not in asked]
        if not fresh:  # none is left, or those that are have been told
            break
        for task in fresh:
            await client.set_task_run_state(task, state, force=True)
        asked.update(fresh)
    await client.set_flow_run_state(run, state, force=True)
    return len(left)
