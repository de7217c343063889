from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from flows.models.messages import MAX_DEPTH, Completion, depth, read_arguments
from flows.models.reading import BODY_DEPTH, flaw, parse_body

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_sound_json_is_read_as_the_standard_library_reads_it(value: JsonValue) -> None:
    text = json.dumps(value)
    assert parse_body(text) == json.loads(text)
    assert flaw(parse_body(text)) is None


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_sound_arguments_are_read_as_the_standard_library_reads_them(value: dict[str, JsonValue]) -> None:
    assert read_arguments(json.dumps(value)) == (value, None)


@given(st.text())
def test_no_text_breaks_the_reading_of_arguments(text: str) -> None:
    read, problem = read_arguments(text)
    assert (read is None) == (problem is not None)


@pytest.mark.parametrize("text", ["NaN", "[1, -Infinity]", '{"a": {"b": 1e999}}', '{"a": 1, "a": 1}', "[[-1e999]]"])
def test_unsound_places_are_marked_and_stay_loggable(text: str) -> None:
    value = parse_body(text)
    assert flaw(value) is not None
    assert json.loads(json.dumps(value, allow_nan=False)) == value


@pytest.mark.parametrize(("value", "levels"), [(1, 0), ([], 1), ({}, 1), ([[1], 2], 2), ({"a": [{}]}, 3)])
def test_depth_counts_levels(value: JsonValue, levels: int) -> None:
    assert depth(value) == levels


def test_the_deepest_nesting_that_is_read_is_still_logged() -> None:
    deepest = '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH
    read, problem = read_arguments(deepest)
    assert problem is None
    assert read_arguments(f'{{"a":{deepest}}}')[0] is None
    body = parse_body("[" * BODY_DEPTH + "]" * BODY_DEPTH)
    with pytest.raises(ValueError, match="too deeply"):
        parse_body("[" * (BODY_DEPTH + 1) + "]" * (BODY_DEPTH + 1))
    completion = Completion.model_validate({"message": {"replay": read}, "usage": None, "stop": "end", "raw": body})
    assert json.dumps(completion.model_dump(mode="json"))


def test_numbers_beyond_a_float_are_not_turned_into_infinity() -> None:
    read, problem = read_arguments('{"n": 1e400}')
    assert read is None
    assert problem is not None
    assert math.isinf(json.loads("1e400")), "what the standard library makes of it"
