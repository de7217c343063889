"""The verdict on a final tree: each goal by itself, and everything that no goal mentions.

Texts are compared by one rule: line breaks (CRLF, CR) as LF, Unicode in normal form C, newlines at the end
ignored. Paths, which the tools keep in their one form, are compared as they stand.
"""

from __future__ import annotations

import unicodedata
from itertools import zip_longest

from pydantic import JsonValue

from tasks_env.families.filesys.goals import Files, tree
from tasks_env.families.filesys.paths import ascii_safe
from tasks_env.types import Condition, JsonObject, Verdict, VerifierInput

COLLATERAL = "nothing_else_changed"
SUBMITTED = "submitted"
NAMED_PATHS = 3
CUT = 60


def verify(evidence: VerifierInput) -> Verdict:
    """Judge the final state.

    The conditions are one per goal in the order of the spec, `nothing_else_changed` (every path that no goal
    concerns is as it was, and there is no further file) and `submitted`. The partial score is the share that
    holds of the goals and `nothing_else_changed`; work that was never submitted counts as one more condition
    missed. As long as no goal is met the score is 0, because doing nothing changes nothing else.
    """
    expected = tree(evidence.instance.truth["files"])
    found = final_tree(evidence.final_state.data)
    if found is None:
        return _verdict([], [Condition(name="final_state", holds=False, detail="there is no tree of files and texts")])
    concerned: set[str] = set()
    goals = []
    for name, paths in _goal_paths(evidence.instance.truth):
        concerned.update(paths)
        goals.append(_condition(name, _differences(paths, expected, found)))
    rest = sorted((expected.keys() | found.keys()) - concerned)
    others = _condition(COLLATERAL, _differences(rest, expected, found))
    submitted = evidence.final_state.submitted
    note = "" if submitted else "the work was never submitted"
    return _verdict(goals, [others, Condition(name=SUBMITTED, holds=submitted, detail=note)])


def canonical_text(text: str) -> str:
    """The form in which texts are compared."""
    plain = text if "\r" not in text else text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", plain).rstrip("\n")


def final_tree(data: JsonObject) -> Files | None:
    """The tree in a final state; null if the state holds none."""
    try:
        return tree(data.get("files"))
    except TypeError:
        return None


def _verdict(goals: list[Condition], others: list[Condition]) -> Verdict:
    conditions = (*goals, *others)
    scored = [condition.holds for condition in conditions if condition.name != SUBMITTED or not condition.holds]
    score = sum(scored) / len(scored) if any(goal.holds for goal in goals) else 0.0
    return Verdict(passed=all(scored), partial_score=score, conditions=conditions)


def _goal_paths(truth: JsonObject) -> list[tuple[str, list[str]]]:
    goals: JsonValue = truth["goals"]
    pairs = []
    for goal in goals if isinstance(goals, list) else []:
        if isinstance(goal, dict) and isinstance(goal["paths"], list):
            pairs.append((str(goal["name"]), [str(path) for path in goal["paths"]]))
    return pairs


def _condition(name: str, differences: list[str]) -> Condition:
    shown = "; ".join(differences[:NAMED_PATHS])
    more = f"; and {len(differences) - NAMED_PATHS} more" if len(differences) > NAMED_PATHS else ""
    return Condition(name=name, holds=not differences, detail=shown + more)


def _differences(paths: list[str], expected: Files, found: Files) -> list[str]:
    differences = []
    for path in paths:
        wanted, got = expected.get(path), found.get(path)
        if wanted == got:
            continue
        shown = _cut(path, 2 * CUT)
        if got is None:
            differences.append(f"{shown} is missing")
        elif wanted is None:
            differences.append(f"{shown} should not exist")
        elif canonical_text(wanted) != canonical_text(got):
            differences.append(f"{shown} {_first_difference(wanted, got)}")
    return differences


def _first_difference(wanted: str, got: str) -> str:
    pairs = zip_longest(canonical_text(wanted).split("\n"), canonical_text(got).split("\n"))
    for number, (right, actual) in enumerate(pairs, start=1):
        if right == actual:
            continue
        if actual is None:
            return f"ends before line {number}: {_cut(right)!r}"
        if right is None:
            return f"has one line too many, line {number}: {_cut(actual)!r}"
        return f"line {number}: expected {_cut(right)!r}, found {_cut(actual)!r}"
    raise AssertionError("called for equal texts")


def _cut(text: str, limit: int = CUT) -> str:
    return ascii_safe(text if len(text) <= limit else text[:limit] + "…")
