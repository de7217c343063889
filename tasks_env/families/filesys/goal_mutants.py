"""Final trees in which one goal is not met: left out, half done, misread, miscounted, or done elsewhere."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tasks_env.families.filesys.effects import Effects, below, effects, holds
from tasks_env.families.filesys.goals import (
    Collect,
    Conditional,
    Count,
    CountRows,
    Files,
    Find,
    Goal,
    Move,
    Operator,
)
from tasks_env.families.filesys.readings import wrong_readings
from tasks_env.families.filesys.solved import Solved

READINGS_A_GOAL = 2
"""Misreadings put forward for one goal at most."""
OTHER_BOUND: dict[Operator, Operator] = {"at_least": "more_than", "more_than": "at_least"}
NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def unmet(task: Solved, kind: str) -> Iterator[Files]:
    """Each goal of this kind left out."""
    for number, goal in enumerate(task.goals):
        if goal.kind == kind:
            yield task.instead(number, {})


def misread(task: Solved, kind: str, rng: random.Random) -> Iterator[Files]:
    """Goals of this kind carried out by a known wrong reading."""
    for number, goal in enumerate(task.goals):
        if goal.kind == kind:
            readings = list(wrong_readings(goal, task.start).values())
            for changes in rng.sample(readings, min(READINGS_A_GOAL, len(readings))):
                yield task.instead(number, changes)


def half_done(task: Solved, rng: random.Random) -> Iterator[Files]:
    """Of a goal that changes several paths, one is left out."""
    for number, changes in enumerate(task.changes):
        if len(changes) > 1:
            left_out = rng.choice(sorted(changes))
            yield task.instead(number, {path: text for path, text in changes.items() if path != left_out})


def copied_instead_of_moved(task: Solved, rng: random.Random) -> Iterator[Files]:  # noqa: ARG001
    """The source of a move is still there."""
    for number, goal in _called_for(task):
        if isinstance(goal, Move | Find):
            yield task.instead(number, {path: text for path, text in task.changes[number].items() if text is not None})


def found_by_name(task: Solved, rng: random.Random) -> Iterator[Files]:
    """Another file of the searched folder is moved: one whose name promises it, not one with the line."""
    for number, goal in _called_for(task):
        if isinstance(goal, Find):
            others = [
                path
                for path in below(goal.directory, task.start)
                if path not in task.changes[number] and path in task.right
            ]
            if others:
                path = rng.choice(others)
                moved: Effects = {path: None, goal.destination + path[path.rindex("/") :]: task.start[path]}
                yield task.instead(number, moved)


def count_off_by_one(task: Solved, rng: random.Random) -> Iterator[Files]:  # noqa: ARG001
    """One too many, one too few."""
    for path, number in _numbers(task):
        yield {**task.right, path: f"{number + 1}\n"}
        yield {**task.right, path: f"{number - 1}\n"}


def number_with_a_word(task: Solved, rng: random.Random) -> Iterator[Files]:
    """The right number and what it counts."""
    for path, number in _numbers(task):
        text = rng.choice(("{} lines", "{} rows", "Total: {}", "count = {}", "{}."))
        yield {**task.right, path: text.format(number) + "\n"}


def number_in_another_form(task: Solved, rng: random.Random) -> Iterator[Files]:
    """The right number with decimals, in words, or with a sign."""
    for path, number in _numbers(task):
        forms = [f"{number}.0", f"+{number}"] + [word for n, word in enumerate(NUMBER_WORDS) if n == number]
        yield {**task.right, path: rng.choice(forms) + "\n"}


def collected_in_reverse(task: Solved, rng: random.Random) -> Iterator[Files]:  # noqa: ARG001
    """The collected lines from the last file to the first, and from the last line to the first."""
    for _, goal in _called_for(task):
        if isinstance(goal, Collect):
            files = [task.start[path].split("\n") for path in below(goal.directory, task.start)]
            groups = [[line for line in lines if line.startswith(goal.prefix)] for lines in files]
            right = [line for group in groups for line in group]
            for wrong in ([line for group in reversed(groups) for line in group], right[::-1]):
                if wrong != right:
                    yield {**task.right, goal.destination: "".join(line + "\n" for line in wrong)}


def condition_the_wrong_way(task: Solved, rng: random.Random) -> Iterator[Files]:  # noqa: ARG001
    """The other branch."""
    for number, goal in enumerate(task.goals):
        if isinstance(goal, Conditional):
            yield task.instead(number, effects(_other_branch(task, goal), task.start))


def bound_the_other_way(task: Solved, rng: random.Random) -> Iterator[Files]:  # noqa: ARG001
    """`at least` read as `more than` or the reverse, where the setting is the bound itself."""
    for number, goal in enumerate(task.goals):
        if isinstance(goal, Conditional) and goal.check.operator in OTHER_BOUND:
            check = goal.check.model_copy(update={"operator": OTHER_BOUND[goal.check.operator]})
            if holds(check, task.start) != holds(goal.check, task.start):
                yield task.instead(number, effects(_other_branch(task, goal), task.start))


def _other_branch(task: Solved, goal: Conditional) -> Goal:
    return goal.otherwise if holds(goal.check, task.start) else goal.then


def _called_for(task: Solved) -> Iterator[tuple[int, Goal]]:
    """Every goal with its number, a condition as the branch that applies."""
    for number, goal in enumerate(task.goals):
        if isinstance(goal, Conditional):
            yield number, goal.then if holds(goal.check, task.start) else goal.otherwise
        else:
            yield number, goal


def _numbers(task: Solved) -> Iterator[tuple[str, int]]:
    """Every file for a number, and the number."""
    for goal in task.goals:
        if isinstance(goal, Count | CountRows):
            yield goal.destination, int(task.right[goal.destination])
