"""Plans: the reference solution of a task, and solutions with one plausible wrong step."""

from __future__ import annotations

import random
from collections.abc import Callable

from tasks_env.errors import GenerationError, ToolError
from tasks_env.families.filesys.effects import Effects, below, effects, holds
from tasks_env.families.filesys.goals import (
    Append,
    Collect,
    Conditional,
    Count,
    CountRows,
    Create,
    Delete,
    Edit,
    Files,
    Find,
    Goal,
    Move,
    Purge,
    Spec,
    tree,
)
from tasks_env.families.filesys.readings import wrong_readings
from tasks_env.families.filesys.tools import CLOSING_TOOL
from tasks_env.families.filesys.verifier import verify
from tasks_env.families.filesys.world import FileWorld
from tasks_env.types import FinalState, Instance, ToolCall, VerifierInput

SUBMIT = ToolCall(name=CLOSING_TOOL, arguments={})

Change = Callable[[Goal, Files, random.Random], Effects]
"""What a wrong step does instead of the goal's own effects."""


def reference(spec: Spec, files: Files) -> tuple[ToolCall, ...]:
    """Look around, carry out each goal in turn, submit."""
    return _plan(spec, files, [effects(goal, files) for goal in spec.goals])


def mistake(instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:
    """The reference with one wrong step, checked to fail.

    Raises:
        GenerationError: every wrong step passes, which no generated task allows.
    """
    spec, files = Spec.model_validate(instance.spec), tree(instance.world["files"])
    right = [effects(goal, files) for goal in spec.goals]
    wrong_at = rng.randrange(len(spec.goals))
    for change in rng.sample(list(MISTAKES.values()), len(MISTAKES)):
        changed = [*right]
        changed[wrong_at] = change(spec.goals[wrong_at], files, rng)
        plan = _plan(spec, files, changed)
        if changed[wrong_at] != right[wrong_at] and not _passes(instance, files, plan):
            return plan
    raise GenerationError(f"{instance.instance_id}: no wrong step fails")


def _plan(spec: Spec, files: Files, outcomes: list[Effects]) -> tuple[ToolCall, ...]:
    several = len(spec.goals) > 1
    calls = [_call("list_files", path="/", recursive=True)] if several else []
    for goal, changes in zip(spec.goals, outcomes, strict=True):
        calls += _look(goal, files, listed=several)
        calls += _act(changes, files)
    return (*calls, SUBMIT)


def _look(goal: Goal, files: Files, *, listed: bool) -> list[ToolCall]:
    """The calls that tell a careful agent what it has to know before it acts."""
    match goal:
        case Create():
            return [] if listed else _listing(goal.path, files)
        case Delete():
            return [] if listed else _listing(goal.path, files)
        case Move():
            return [] if listed else _listing(goal.source, files)
        case Edit() | Append() | CountRows():
            return [_call("read_file", path=goal.path)]
        case Count():
            return [_call("search_files", text=goal.text, path=goal.scope)]
        case Collect():
            return [_call("search_files", text=goal.prefix, path=goal.directory)]
        case Find():
            return [_call("search_files", text=goal.line, path=goal.directory)]
        case Purge():
            return [_call("list_files", path=goal.directory, recursive=True)]
        case Conditional():
            branch = goal.then if holds(goal.check, files) else goal.otherwise
            return [_call("read_file", path=goal.check.path), *_look(branch, files, listed=listed)]


def _listing(path: str, files: Files) -> list[ToolCall]:
    """A look at the folder of `path`, if it exists."""
    folder = path.rsplit("/", 1)[0]
    return [_call("list_files", path=folder)] if below(folder, files) else []


def _act(changes: Effects, files: Files) -> list[ToolCall]:
    """The calls that bring about `changes`: moves where a text only changes its path."""
    calls: list[ToolCall] = []
    gone = [path for path, text in changes.items() if text is None]
    for path, text in changes.items():
        if text is None:
            continue
        source = next((old for old in gone if files.get(old) == text), None)
        if source is not None and path not in files:
            gone.remove(source)
            calls.append(_call("move_file", source=source, destination=path))
        else:
            calls.append(_call("write_file", path=path, content=text))
    return calls + [_call("delete_file", path=path) for path in gone]


def _call(name: str, **arguments: str | bool) -> ToolCall:
    return ToolCall(name=name, arguments=dict(arguments))


def _passes(instance: Instance, files: Files, plan: tuple[ToolCall, ...]) -> bool:
    world = FileWorld(files)
    for call in plan:
        try:
            world.call(call.name, call.arguments)
        except ToolError:
            continue
    state = FinalState(submitted=world.submitted, data=world.state())
    return verify(VerifierInput(instance=instance, calls=plan, final_state=state)).passed


def _skip(goal: Goal, files: Files, rng: random.Random) -> Effects:  # noqa: ARG001
    return {}


def _misread(goal: Goal, files: Files, rng: random.Random) -> Effects:
    readings = [changes for changes in wrong_readings(goal, files).values() if changes]
    return rng.choice(readings) if readings else effects(goal, files)


def _leave_stray_file(goal: Goal, files: Files, rng: random.Random) -> Effects:
    folder = rng.choice([path.rsplit("/", 1)[0] for path in files])
    name = rng.choice(("scratch.txt", "progress.txt", "summary.txt"))
    return {**effects(goal, files), f"{folder}/{name}": f"done: {goal.kind}\n"}


def _leave_source(goal: Goal, files: Files, rng: random.Random) -> Effects:  # noqa: ARG001
    changes = effects(goal, files)
    kept: Effects = {path: text for path, text in changes.items() if text is not None}
    return kept or dict(list(changes.items())[1:])


def _delete_neighbour(goal: Goal, files: Files, rng: random.Random) -> Effects:
    others = [path for path in files if path not in effects(goal, files)]
    return {**effects(goal, files), rng.choice(others): None} if others else {}


def _slip(goal: Goal, files: Files, rng: random.Random) -> Effects:
    """A miscounted number, a lost line, a misspelt name, one file forgotten."""
    changes = effects(goal, files)
    path = rng.choice(sorted(changes))
    text = changes[path]
    if text is None:
        return {other: kept for other, kept in changes.items() if other != path}
    if text in files.values():
        folder, name = path.rsplit("/", 1)
        return {f"{folder}/new-{name}" if other == path else other: kept for other, kept in changes.items()}
    if text.strip().isdigit():
        return {**changes, path: f"{int(text) + rng.choice((-1, 1))}\n"}
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    return {**changes, path: "".join(lines[:at] + lines[at + 1 :])}


MISTAKES: dict[str, Change] = {
    "skip": _skip,
    "misread": _misread,
    "leave a stray file": _leave_stray_file,
    "leave the source": _leave_source,
    "delete a neighbour": _delete_neighbour,
    "slip": _slip,
}
