from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from tasks_env.errors import ToolError
from tasks_env.tools import DEEPEST, check_arguments, integers_as_such, nested_too_deeply, parameter, tool
from tasks_env.types import JsonObject

SPEC = tool(
    "sort_rows",
    "Sort.",
    {
        "table": parameter("string", "Which.", minLength=1),
        "columns": parameter("array", "By what.", items={"type": "string"}),
    },
    {
        "direction": parameter("string", "Which way.", enum=["ascending", "descending"]),
        "limit": parameter("integer", "How many.", minimum=1),
        "share": parameter("number", "How much."),
        "stable": parameter("boolean", "Whether ties keep their order."),
        "ranks": parameter("array", "Places.", items={"type": "integer"}),
        "fill": {"type": ["string", "number"], "description": "For gaps."},
    },
)
VALID: JsonObject = {"table": "t", "columns": ["a"]}


def test_the_schema_lists_required_arguments_and_closes_the_object() -> None:
    assert SPEC.parameters["required"] == ["table", "columns"]
    assert SPEC.parameters["additionalProperties"] is False
    assert SPEC.parameters["properties"]["limit"] == {
        "type": "integer",
        "description": "How many.",
        "minimum": 1,
    }


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"limit": 1},
        {"limit": 2.0},
        {"share": 1},
        {"stable": True},
        {"ranks": []},
        {"fill": 1},
        {"fill": "x"},
    ],
)
def test_arguments_that_fit_are_accepted(extra: JsonObject) -> None:
    check_arguments(SPEC, {**VALID, **extra})


@pytest.mark.parametrize(
    ("extra", "argument", "message"),
    [
        ({"table": 1}, "table", "expected a string; 1 is not of type 'string'"),
        ({"table": ""}, "table", "expected a string; '' "),
        ({"columns": "a"}, "columns", "expected an array of strings; 'a' is not of type 'array'"),
        ({"columns": ["a", 1]}, "columns", "expected an array of strings; 1 is not of type 'string'"),
        ({"direction": "up"}, "direction", "expected one of ascending, descending; 'up' is not one of"),
        ({"limit": 0}, "limit", "expected an integer; 0 is less than the minimum of 1"),
        ({"limit": True}, "limit", "expected an integer; True is not of type 'integer'"),
        ({"limit": None}, "limit", "expected an integer; None is not of type 'integer'"),
        ({"limit": 1.5}, "limit", "expected an integer; 1.5 is not of type 'integer'"),
        ({"share": "1"}, "share", "expected a number; '1' is not of type 'number'"),
        ({"stable": 1}, "stable", "expected a boolean; 1 is not of type 'boolean'"),
        ({"fill": True}, "fill", "expected a string or a number; True is not of type"),
        ({"share": float("nan")}, "share", "expected finite numbers"),
        ({"columns": ["\udc80"]}, "columns", "expected finite numbers and text that UTF-8 can encode"),
    ],
)
def test_a_misfit_is_reported_with_its_argument_and_what_was_expected(
    extra: JsonObject, argument: str, message: str
) -> None:
    with pytest.raises(ToolError) as caught:
        check_arguments(SPEC, {**VALID, **extra})
    assert caught.value.argument == argument
    assert caught.value.message.startswith(message)


def test_a_missing_argument_is_reported_with_its_type() -> None:
    with pytest.raises(ToolError, match="missing; expected an array of strings") as caught:
        check_arguments(SPEC, {"table": "t"})
    assert caught.value.argument == "columns"


def test_an_unknown_argument_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ToolError, match="unknown argument 'tabel'; this tool's arguments: table, columns, dir"):
        check_arguments(SPEC, {"tabel": "t"})
    with pytest.raises(ToolError, match="this tool's arguments: none"):
        check_arguments(tool("submit", "End.", {}), {"x": 1})


def test_a_message_is_bounded() -> None:
    with pytest.raises(ToolError) as caught:
        check_arguments(SPEC, {**VALID, "limit": "x" * 10_000})
    assert len(caught.value.message) <= 500


def test_whole_floats_become_integers_only_where_the_schema_says_integer() -> None:
    arguments: JsonObject = {**VALID, "limit": 2.0, "share": 2.0, "ranks": [1.0, 2]}
    as_such = integers_as_such(SPEC, arguments)
    assert [repr(as_such[name]) for name in ("limit", "share", "ranks")] == ["2", "2.0", "[1, 2]"]
    assert repr(arguments["limit"]) == "2.0"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


_PLAIN = ["", "t", "ascending", "é", 0, 1, -1, 2.0, 1.5, 10**30, True, False, None, [], ["a"], [1], [1.0], [True], {}]


@given(
    st.fixed_dictionaries(
        {"table": st.just("t") | st.sampled_from(_PLAIN), "columns": st.just(["a"]) | st.sampled_from(_PLAIN)},
        optional={
            name: st.sampled_from(_PLAIN) | json_values
            for name in ("direction", "limit", "share", "stable", "ranks", "fill")
        },
    )
)
def test_the_check_accepts_exactly_what_json_schema_accepts(arguments: JsonObject) -> None:
    if Draft202012Validator(SPEC.parameters).is_valid(arguments):
        with contextlib.suppress(ToolError):
            check_arguments(SPEC, arguments)
            return
        with pytest.raises(ToolError, match="expected finite numbers and text that UTF-8 can encode"):
            check_arguments(SPEC, arguments)
    else:
        with pytest.raises(ToolError):
            check_arguments(SPEC, arguments)


def test_a_keyword_beyond_the_plain_ones_is_heeded() -> None:
    for extra in ({"pattern": "^a"}, {"pattern": "^[^b]+$"}, {"const": "a"}, {"not": {"const": "b"}}):
        spec = tool("t", "T.", {"x": parameter("string", "X.", **extra)})
        check_arguments(spec, {"x": "a"})
        with pytest.raises(ToolError):
            check_arguments(spec, {"x": "b"})
    spec = tool("t", "T.", {"x": parameter("array", "X.", items={"type": "string"}, uniqueItems=True)})
    with pytest.raises(ToolError):
        check_arguments(spec, {"x": ["a", "a"]})
    spec = tool("t", "T.", {"x": parameter("string", "X.")}, {"y": parameter("string", "Y.")})
    spec = spec.model_copy(update={"parameters": {**spec.parameters, "maxProperties": 1}})
    with pytest.raises(ToolError):
        check_arguments(spec, {"x": "a", "y": "b"})
    bounded = tool("t", "T.", {"x": parameter("array", "X.", items={"type": "integer"}, minItems=1, maxItems=2)})
    for wrong in ([], [1, 2, 3]):
        with pytest.raises(ToolError):
            check_arguments(bounded, {"x": wrong})
    sized = tool("t", "T.", {"x": parameter("string", "X.", minLength=2, maxLength=3)})
    for text in ("a", "abcd"):
        with pytest.raises(ToolError):
            check_arguments(sized, {"x": text})


@given(st.dictionaries(st.sampled_from([*SPEC.parameters["properties"], "other"]), json_values))
def test_no_arguments_crash_the_check(arguments: JsonObject) -> None:
    with contextlib.suppress(ToolError):
        check_arguments(SPEC, arguments)
        assert set(integers_as_such(SPEC, arguments)) == set(arguments)
        assert {"table", "columns"} <= set(arguments) <= set(SPEC.parameters["properties"])


def test_a_message_ends_with_what_is_wrong_however_long_the_value_is() -> None:
    short = tool("submit", "End.", {"answer": parameter("string", "What.", maxLength=2000)})
    with pytest.raises(ToolError) as caught:
        check_arguments(short, {"answer": "x" * 3000})
    assert caught.value.message.startswith("expected a string; 'xxx")
    assert caught.value.message.endswith("xxx' is too long")
    assert len(caught.value.message) <= 500


@pytest.mark.parametrize(("name", "fits"), [("total", True), ("total\n", False), ("to\ntal", False), ("", False)])
def test_a_pattern_ends_at_the_end_of_the_text(name: str, fits: bool) -> None:
    named = tool("keep", "Keep.", {"output": parameter("string", "Name.", pattern="^[a-z]{1,64}$")})
    if fits:
        check_arguments(named, {"output": name})
    else:
        with pytest.raises(ToolError, match="does not match") as caught:
            check_arguments(named, {"output": name})
        assert caught.value.argument == "output"


def test_an_escaped_dollar_at_the_end_of_a_pattern_stays_a_dollar() -> None:
    priced = tool("pay", "Pay.", {"price": parameter("string", "Price.", pattern=r"^[0-9]+\$")})
    check_arguments(priced, {"price": "5$"})
    with pytest.raises(ToolError, match="does not match"):
        check_arguments(priced, {"price": "5"})


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_nesting_is_counted_over_arrays_and_objects(wrap: Callable[[JsonValue], JsonValue]) -> None:
    value: JsonValue = 1
    for _ in range(DEEPEST):
        value = wrap(value)
    assert not nested_too_deeply({"x": value})
    assert nested_too_deeply({"y": 1, "x": wrap(value)})
