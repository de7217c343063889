"""Known wrong readings, by name: each leads to another tree in every instance, or the wording settles it."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tasks_env.families.filesys.effects import apply, below, effects
from tasks_env.families.filesys.goals import Collect, Conditional, Goal, Spec
from tasks_env.families.filesys.near_misses import KINDS
from tasks_env.families.filesys.phrasings import PHRASINGS
from tasks_env.families.filesys.readings import SORT_ORDERS, ambiguous, wrong_readings
from tests.tasks_env.filesys.levels import SHIPPED, goals, instance, shipped, start
from tests.tasks_env.filesys.test_contract import CASES

TOLD_APART: dict[str, set[str]] = {
    "create": {"with the quotation marks", "all on one line", "in reverse order"},
    "move": {"as a copy", "into a folder of that name", "under its old name"},
    "delete": {"as emptied"},
    "edit": {
        "in whichever section comes first",
        "in the first line that mentions the key",
        "as a new line at the end",
        "without the spaces",
    },
    "append": {"as the first line", "in place of the text", "as the rest of the last line"},
    "count": {"ignoring case", "by occurrences", "by files", "anywhere", "without subfolders"},
    "count_rows": {"anywhere in the row", "in any cell", "as part of the cell", "ignoring case", "all rows"},
    "collect": {
        "contained anywhere",
        "ignoring case",
        "from the whole tree",
        "each line once",
        "without the prefix",
        "sorted by line",
        "without subfolders",
    },
    "find": {"as part of a line", "from the whole tree"},
    "purge": {"contained anywhere in the name", "from the whole tree", "without subfolders"},
    "conditional": {
        "as the other branch",
        "as both branches",
        "in whichever section comes first",
        "in the comment",
    },
}
"""Kind of goal → readings that lead to another tree wherever they can be read at all."""

STATED: dict[tuple[str, str], str] = {
    ("collect", "sorted by the name of the file alone"): r"full( file)? path",
    (
        "collect",
        "in an order of the reader's own within a file",
    ): r"stand|position|bottom|original order|sequence|order they",
    ("find", "with its subfolder kept"): r"directly|right into",
    ("edit", "with other spacing elsewhere"): r"spacing",
    ("append", "before the last line"): r"end|last|below|final",
    ("count", "as a sentence"): r"only that number|digits only|nothing more|this number alone|bare number",
    ("count_rows", "as a sentence"): r"only that number|digits only|nothing more|this number alone|bare number",
}
"""(Kind, reading) that an instance may not tell apart → what every wording of that kind says about it."""
BOUNDS = {
    "at_least": r"included|>=|or higher|or equal|or above|or anything bigger",
    "more_than": r"itself is not|> |not just equal|strictly|\(not |won't do",
}
"""Operator → what every wording says of the bound itself: a setting is that bound in some instances only."""


def seen_goals() -> list[tuple[Goal, dict[str, str]]]:
    tasks = [instance(level, seed) for level, seed in CASES]
    tasks += [shipped(level, seed) for level in SHIPPED for seed in range(60)]
    return [(goal, start(task)) for task in tasks for goal in goals(task)]


def test_every_wrong_reading_leads_to_another_tree_in_every_instance() -> None:
    met: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for goal, files in seen_goals():
        right = apply(effects(goal, files), files)
        for name, changes in wrong_readings(goal, files).items():
            assert apply(changes, files) != right, (name, goal)
            met[goal.kind][name] += 1
        assert ambiguous(goal, files) is None
    nested = {f"{kind} {name}" for kind in ("create", "move", "delete", "edit", "append") for name in TOLD_APART[kind]}
    assert {kind: set(names) for kind, names in met.items()} == {
        **TOLD_APART,
        "conditional": TOLD_APART["conditional"] | nested,
    }
    assert min(count for names in met.values() for count in names.values()) >= 5


def test_files_to_collect_from_come_in_one_order_under_every_way_of_sorting() -> None:
    collections = [(goal, files) for goal, files in seen_goals() if isinstance(goal, Collect)]
    assert len(collections) >= 50
    for goal, files in collections:
        owners = [path for path in below(goal.directory, files) if f"\n{goal.prefix}" in files[path]]
        for name, key in SORT_ORDERS.items():
            assert sorted(owners, key=key) == owners, name


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_readings_that_an_instance_may_not_tell_apart_are_settled_by_the_wording(phrasing: str) -> None:
    wording = PHRASINGS[phrasing]
    for (kind, reading), statement in STATED.items():
        assert re.search(statement, wording.clauses[kind]), (kind, reading)
    for operator, statement in BOUNDS.items():
        assert re.search(statement, wording.checks[operator]), operator


def test_a_bound_is_met_exactly_in_a_good_part_of_the_comparisons() -> None:
    at_bound = compared = 0
    for goal, files in seen_goals():
        if isinstance(goal, Conditional) and goal.check.operator != "is":
            compared += 1
            section = files[goal.check.path].split(f"[{goal.check.section}]\n")[1]
            at_bound += re.search(rf"^{goal.check.key} = {goal.check.value}$", section, re.MULTILINE) is not None
    assert compared >= 60
    assert at_bound / compared > 0.2


def test_a_misreading_inside_a_branch_is_objected_to() -> None:
    files = {"/a.ini": "[web]\nport = 1\n[db]\nport = 2\nmode = x\n"}
    branch = {"kind": "edit", "path": "/a.ini", "section": "web", "key": "port", "value": "9"}
    check = {"path": "/a.ini", "section": "db", "key": "port", "operator": "is", "value": "2"}
    other = {"kind": "create", "path": "/b.md", "lines": ["b"]}
    spec = {"goals": [{"kind": "conditional", "check": check, "then": branch, "otherwise": other}]}
    assert "edit in whichever section comes first" in str(ambiguous(Spec.model_validate(spec).goals[0], files))
