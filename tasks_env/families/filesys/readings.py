"""Known wrong readings of each goal: a generated tree must tell every one of them from the right one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tasks_env.families.filesys.effects import (
    Effects,
    as_text,
    below,
    compare,
    effects,
    holds,
    settings,
)
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
)
from tasks_env.families.filesys.simple_readings import simple_readings


def wrong_readings(goal: Goal, files: Files) -> dict[str, Effects]:
    """What each known misreading of `goal` would do to `files`, by name; empty: it would do nothing.

    The wording settles every one of these cases; that they differ here makes a misreading visible.
    """
    match goal:
        case Create() | Move() | Delete() | Edit() | Append():
            return simple_readings(goal, files)
        case Count():
            return _counts(goal, files)
        case CountRows():
            return _row_counts(goal, files[goal.path])
        case Collect():
            return _collections(goal, files)
        case Find():
            return _finds(goal, files)
        case Purge():
            return _purges(goal, files)
        case Conditional():
            return _branches(goal, files)


def ambiguous(goal: Goal, files: Files) -> str | None:
    """Why two readings of `goal` could not be told apart in this tree; null if all can."""
    right = effects(goal, files)
    for name, changes in wrong_readings(goal, files).items():
        if changes == right:
            return f"{goal.kind}: same outcome when read {name!r}"
    if isinstance(goal, Collect):
        paths = [path for path in below(goal.directory, files) if _starts(goal.prefix, files[path])]
        if not sorts_one_way(paths):
            return "collect: the order of paths depends on the way of sorting"
    return None


SORT_ORDERS: dict[str, Callable[[str], Any]] = {
    "by name of each folder": lambda path: path.split("/"),
    "case ignored": lambda path: path.lower(),
    "punctuation ignored": lambda path: [c for c in path if c.isalnum()],
    "folders after files": lambda path: [(i < path.count("/"), part) for i, part in enumerate(path.split("/"))],
}
"""Ways in which people and programs sort paths; collected files come in the same order under all of them."""


def sorts_one_way(paths: list[str]) -> bool:
    """Whether `paths`, sorted by code point, keep their order under every way of sorting."""
    return all(sorted(paths, key=order) == paths for order in SORT_ORDERS.values())


def _starts(prefix: str, text: str) -> bool:
    return any(line.startswith(prefix) for line in text.split("\n"))


def _counts(goal: Count, files: Files) -> dict[str, Effects]:
    def number(paths: list[str], count: Callable[[str], int]) -> Effects:
        return {goal.destination: f"{sum(count(files[path]) for path in paths)}\n"}

    def lines(text: str) -> int:
        return sum(goal.text in line for line in text.split("\n"))

    paths = below(goal.scope, files) if goal.recursive else [goal.scope]
    wrong = {
        "ignoring case": number(
            paths, lambda text: sum(goal.text.lower() in line.lower() for line in text.split("\n"))
        ),
        "by occurrences": number(paths, lambda text: text.count(goal.text)),
    }
    if goal.recursive:
        wrong["by files"] = number(paths, lambda text: goal.text in text)
        wrong["anywhere"] = number(list(files), lines)
        wrong |= _if_nested(goal.scope, files, lambda direct: number(direct, lines))
    return wrong


def _if_nested(directory: str, files: Files, read: Callable[[list[str]], Effects]) -> dict[str, Effects]:
    inside = below(directory, files)
    direct = [path for path in inside if "/" not in path[len(directory) + 1 :]]
    return {"without subfolders": read(direct)} if len(direct) < len(inside) else {}


def _row_counts(goal: CountRows, text: str) -> dict[str, Effects]:
    header, *rows = text.splitlines()
    column = header.split(",").index(goal.column)
    cells = [row.split(",")[column] for row in rows]
    counts = {
        "anywhere in the row": sum(goal.value in row for row in rows),
        "in any cell": sum(goal.value in row.split(",") for row in rows),
        "as part of the cell": sum(goal.value in cell for cell in cells),
        "ignoring case": sum(goal.value.lower() == cell.lower() for cell in cells),
        "all rows": len(rows),
    }
    return {name: {goal.destination: f"{number}\n"} for name, number in counts.items()}


def _collections(goal: Collect, files: Files) -> dict[str, Effects]:
    def gather(paths: list[str], wanted: Callable[[str], bool]) -> Effects:
        found = [line for path in paths for line in files[path].split("\n") if wanted(line)]
        return {goal.destination: as_text(found)}

    def starts(line: str) -> bool:
        return line.startswith(goal.prefix)

    paths = below(goal.directory, files)
    right = [line for path in paths for line in files[path].split("\n") if starts(line)]
    return {
        "contained anywhere": gather(paths, lambda line: goal.prefix in line),
        "ignoring case": gather(paths, lambda line: line.lower().startswith(goal.prefix.lower())),
        "from the whole tree": gather(sorted(files), starts),
        "each line once": {goal.destination: as_text(list(dict.fromkeys(right)))},
        "without the prefix": {goal.destination: as_text([line[len(goal.prefix) :].strip() for line in right])},
        "sorted by line": {goal.destination: as_text(sorted(right))} if len(set(right)) > 1 else {},
        **_if_nested(goal.directory, files, lambda direct: gather(direct, starts)),
    }


def _finds(goal: Find, files: Files) -> dict[str, Effects]:
    def moved(paths: list[str]) -> Effects:
        changes: Effects = {}
        for path in paths:
            changes |= {path: None, goal.destination + path[path.rindex("/") :]: files[path]}
        return changes

    inside = below(goal.directory, files)
    return {
        "as part of a line": moved([path for path in inside if goal.line in files[path]]),
        "from the whole tree": moved([path for path in sorted(files) if goal.line in files[path].split("\n")]),
    }


def _purges(goal: Purge, files: Files) -> dict[str, Effects]:
    def gone(paths: list[str], wanted: Callable[[str], bool]) -> Effects:
        return {path: None for path in paths if wanted(path)}

    def ends(path: str) -> bool:
        return path.endswith(goal.suffix)

    inside = below(goal.directory, files)
    return {
        "contained anywhere in the name": gone(inside, lambda path: goal.suffix in path.rsplit("/", 1)[1]),
        "from the whole tree": gone(sorted(files), ends),
        **_if_nested(goal.directory, files, lambda direct: gone(direct, ends)),
    }


def _branches(goal: Conditional, files: Files) -> dict[str, Effects]:
    check = goal.check
    outcomes = {True: effects(goal.then, files), False: effects(goal.otherwise, files)}
    truth = holds(check, files)
    text = files[check.path]
    first = next(value for _, _, key, value in settings(text) if key == check.key)
    comment = next((line[2:] for line in text.split("\n") if line.startswith(f"# {check.key} = ")), None)
    wrong = {
        "as the other branch": outcomes[not truth],
        "as both branches": {**outcomes[True], **outcomes[False]},
        "in whichever section comes first": outcomes[compare(check, first)],
    }
    if comment is not None:
        wrong["in the comment"] = outcomes[compare(check, comment.split(" = ", 1)[1])]
    branch = goal.then if truth else goal.otherwise
    return wrong | {f"{branch.kind} {name}": changes for name, changes in wrong_readings(branch, files).items()}
