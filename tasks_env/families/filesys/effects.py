"""What a goal does to a tree: the first solver, source of the truth and of the reference plan."""

from __future__ import annotations

from collections.abc import Iterator

from tasks_env.errors import GenerationError
from tasks_env.families.filesys.goals import (
    Append,
    Check,
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
)

Effects = dict[str, str | None]
"""Path → its text afterwards; null: no such file. Paths that a goal leaves alone are missing."""


def below(directory: str, files: Files) -> list[str]:
    """The paths below `directory` at every level, sorted by code point."""
    return sorted(path for path in files if path.startswith(directory + "/"))


def as_text(lines: list[str] | tuple[str, ...]) -> str:
    """Lines as the text of a file: each ended by a newline."""
    return "".join(line + "\n" for line in lines)


def settings(text: str) -> Iterator[tuple[int, str | None, str, str]]:
    """Every `key = value` of a configuration text as (line index, section, key, value), comments skipped."""
    section: str | None = None
    for index, line in enumerate(text.split("\n")):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif " = " in line and line[0] not in "#;":
            key, value = line.split(" = ", 1)
            yield index, section, key, value


def with_value(text: str, index: int, value: str) -> str:
    """A configuration text whose setting in line `index` has another value."""
    lines = text.split("\n")
    lines[index] = lines[index].split(" = ", 1)[0] + " = " + value
    return "\n".join(lines)


def holds(check: Check, files: Files) -> bool:
    """Whether the setting in the file answers the check."""
    for _, section, key, value in settings(files[check.path]):
        if (section, key) == (check.section, check.key):
            return compare(check, value)
    raise GenerationError(f"{check.path} has no setting {check.key} in [{check.section}]")


def compare(check: Check, value: str) -> bool:
    """Whether `value` answers the check."""
    if check.operator == "is":
        return value == check.value
    if check.operator == "at_least":
        return int(value) >= int(check.value)
    return int(value) > int(check.value)


def effects(goal: Goal, files: Files) -> Effects:
    """The changes that `goal` calls for in `files`.

    Raises:
        GenerationError: the goal does not fit the tree (a missing file, two finds, a destination in use).
    """
    try:
        changes = _effects(goal, files)
    except KeyError as missing:
        raise GenerationError(f"{goal.kind}: no file {missing}") from None
    if not changes or all(files.get(path) == text for path, text in changes.items()):
        raise GenerationError(f"{goal.kind}: nothing to do")
    return changes


def _effects(goal: Goal, files: Files) -> Effects:
    match goal:
        case Create():
            return {_unused(goal.path, files): as_text(goal.lines)}
        case Move():
            return {goal.source: None, _unused(goal.destination, files): files[goal.source]}
        case Delete():
            return {goal.path: None} if goal.path in files else {}
        case Edit():
            return {goal.path: _edited(goal, files[goal.path])}
        case Append():
            return {goal.path: files[goal.path] + goal.line + "\n"}
        case Count():
            paths = below(goal.scope, files) if goal.recursive else [goal.scope]
            number = sum(goal.text in line for path in paths for line in files[path].split("\n"))
            return {_unused(goal.destination, files): f"{number}\n"}
        case CountRows():
            header, *rows = [line.split(",") for line in files[goal.path].splitlines()]
            column = header.index(goal.column)
            return {_unused(goal.destination, files): f"{sum(row[column] == goal.value for row in rows)}\n"}
        case Collect():
            lines = [line for path in below(goal.directory, files) for line in files[path].split("\n")]
            found = [line for line in lines if line.startswith(goal.prefix)]
            return {_unused(goal.destination, files): as_text(found)}
        case Find():
            owners = [path for path in below(goal.directory, files) if goal.line in files[path].split("\n")]
            if len(owners) != 1:
                raise GenerationError(f"find: {len(owners)} files have the line")
            target = goal.destination + owners[0][owners[0].rindex("/") :]
            return {owners[0]: None, _unused(target, files): files[owners[0]]}
        case Purge():
            return {path: None for path in below(goal.directory, files) if path.endswith(goal.suffix)}
        case Conditional():
            return effects(goal.then if holds(goal.check, files) else goal.otherwise, files)


def _edited(goal: Edit, text: str) -> str:
    found = [index for index, section, key, _ in settings(text) if (section, key) == (goal.section, goal.key)]
    if len(found) != 1:
        raise GenerationError(f"edit: {goal.path} has the setting {len(found)} times")
    return with_value(text, found[0], goal.value)


def _unused(path: str, files: Files) -> str:
    if path in files:
        raise GenerationError(f"{path} is in use")
    return path


def apply(changes: Effects, files: Files) -> Files:
    """A copy of `files` with the changes made, sorted by path."""
    merged: Effects = {**files, **changes}
    return {path: text for path, text in sorted(merged.items()) if text is not None}


def reads(goal: Goal) -> tuple[str, ...]:
    """The files and folders whose content decides what `goal` calls for."""
    match goal:
        case Create():
            return ()
        case Move():
            return (goal.source,)
        case Delete() | Edit() | Append() | CountRows():
            return (goal.path,)
        case Count():
            return (goal.scope,)
        case Collect() | Find() | Purge():
            return (goal.directory,)
        case Conditional():
            return (goal.check.path, *reads(goal.then), *reads(goal.otherwise))


def writes(goal: Goal, files: Files) -> set[str]:
    """The paths that `goal` could change, on either branch."""
    if isinstance(goal, Conditional):
        return writes(goal.then, files) | writes(goal.otherwise, files)
    return set(effects(goal, files))


def interfere(goals: tuple[Goal, ...], files: Files) -> bool:
    """Whether the outcome could depend on the order in which the goals are carried out."""
    written = [writes(goal, files) for goal in goals]
    for i, goal in enumerate(goals):
        for j, paths in enumerate(written):
            if i == j:
                continue
            if written[i] & paths:
                return True
            if any(path == read or path.startswith(read + "/") for read in reads(goal) for path in paths):
                return True
    return False
