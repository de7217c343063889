"""What differs between two manifests is named by its path, with both values."""

from __future__ import annotations

from typing import Any

import pytest

from flows.manifest.changes import SHOWN_CHARS, changes


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, []),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 2]}}, []),
        ({"a": 1}, {"a": 2}, ["a: 1 -> 2"]),
        ({"a": {"b": 1.0, "c": "x"}}, {"a": {"b": 1.5, "c": "x"}}, ["a.b: 1.0 -> 1.5"]),
        ({"a": True}, {"a": 1}, ["a: true -> 1"]),
        ({"a": None}, {}, ["a: null -> (absent)"]),
        ({}, {"a": {"b": 1}}, ['a: (absent) -> {"b":1}']),
        ({"a": {"b": 1}}, {"a": 3}, ['a: {"b":1} -> 3']),
        ({"a": [1, 2]}, {"a": [2, 1]}, ["a: [1,2] -> [2,1]"]),
        ({"b": 1, "a": 1}, {"a": 2, "c": 1, "b": 2}, ["b: 1 -> 2", "a: 1 -> 2", "c: (absent) -> 1"]),
        ({"a": "\ud800\x1b"}, {"a": ""}, [r'a: "\ud800\u001b" -> ""']),
    ],
)
def test_each_difference_is_one_line(before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    assert changes(before, after) == expected


def test_long_values_are_shown_around_their_first_difference() -> None:
    old, new = [f"m{n}" for n in range(200)], [f"m{n}" for n in range(200)]
    new[150] = "changed"
    (line,) = changes({"grid": {"models": old}}, {"grid": {"models": new}})
    shown_old, shown_new = line.removeprefix("grid.models: ").split(" -> ")
    assert '"m150"' in shown_old
    assert '"changed"' in shown_new
    assert max(len(shown_old), len(shown_new)) <= SHOWN_CHARS + 2


def test_what_was_added_at_a_long_end_shows() -> None:
    (line,) = changes({"a": "x" * 300}, {"a": "x" * 300 + "END"})
    assert line.endswith('xEND"')
