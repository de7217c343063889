"""Known wrong readings of the goals that concern one file, by name."""

from __future__ import annotations

from tasks_env.families.filesys.effects import Effects, as_text, settings, with_value
from tasks_env.families.filesys.goals import Append, Create, Delete, Edit, Files, Move, SimpleGoal


def simple_readings(goal: SimpleGoal, files: Files) -> dict[str, Effects]:
    """What each misreading of `goal` would do to `files`; empty: it would do nothing."""
    match goal:
        case Create():
            return _creations(goal)
        case Move():
            return _moves(goal, files)
        case Delete():
            return {"as emptied": {goal.path: ""}}
        case Edit():
            return _edits(goal, files[goal.path])
        case Append():
            text = files[goal.path]
            return {
                "as the first line": {goal.path: goal.line + "\n" + text},
                "in place of the text": {goal.path: goal.line + "\n"},
                "as the rest of the last line": {goal.path: text.rstrip("\n") + goal.line + "\n"},
            }


def _creations(goal: Create) -> dict[str, Effects]:
    wrong = {"with the quotation marks": [f'"{line}"' for line in goal.lines]}
    if len(goal.lines) > 1:
        wrong["all on one line"] = [", ".join(goal.lines)]
        wrong["in reverse order"] = list(reversed(goal.lines))
    return {name: {goal.path: as_text(lines)} for name, lines in wrong.items()}


def _moves(goal: Move, files: Files) -> dict[str, Effects]:
    text, name = files[goal.source], goal.source.rsplit("/", 1)[1]
    wrong: dict[str, Effects] = {
        "as a copy": {goal.destination: text},
        "into a folder of that name": {goal.source: None, f"{goal.destination}/{name}": text},
    }
    old_name = f"{goal.destination.rsplit('/', 1)[0]}/{name}"
    if old_name not in (goal.destination, goal.source):
        wrong["under its old name"] = {goal.source: None, old_name: text}
    return wrong


def _edits(goal: Edit, text: str) -> dict[str, Effects]:
    found = list(settings(text))
    first = next((i for i, _, key, _ in found if key == goal.key), None)
    alike = next((i for i, line in enumerate(text.split("\n")) if goal.key in line and " = " in line), None)
    right = next((i for i, section, key, _ in found if (section, key) == (goal.section, goal.key)), None)
    return {
        "in whichever section comes first": _set(goal, text, first) if goal.section is not None else {},
        "in the first line that mentions the key": _set(goal, text, alike),
        "as a new line at the end": {goal.path: text + f"{goal.key} = {goal.value}\n"},
        "without the spaces": _respaced(goal, text, right),
    }


def _set(goal: Edit, text: str, index: int | None) -> Effects:
    return {} if index is None else {goal.path: with_value(text, index, goal.value)}


def _respaced(goal: Edit, text: str, index: int | None) -> Effects:
    if index is None:
        return {}
    lines = text.split("\n")
    lines[index] = f"{goal.key}={goal.value}"
    return {goal.path: "\n".join(lines)}
