from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.naming import canonical_arguments, literal, resolve, shown_arguments, shown_spec
from tasks_env.tools import parameter, tool
from tasks_env.types import JsonObject, Naming

NAMING = Naming(tools={"read_file": "t1", "path": "wrong"}, arguments={"path": "a1", "read_file": "wrong"})
SPEC = tool(
    "read_file",
    "Read the file at {arg:path}.",
    {"path": parameter("string", "As {tool:list_files} gives it.")},
    {"lines": parameter("integer", "How many.", minimum=1)},
)


def test_a_placeholder_becomes_the_shown_name_of_its_own_kind() -> None:
    assert resolve("{tool:read_file}({arg:path})", NAMING) == "t1(a1)"


def test_an_unmapped_name_is_shown_as_it_is() -> None:
    assert resolve("{tool:list_files} {arg:lines}", NAMING) == "list_files lines"


@pytest.mark.parametrize("text", ["{}", "{tool}", "{tool:}", "{Tool:x}", "{other:path}", "{tool:a-b}", "{ tool:x}"])
def test_what_is_no_placeholder_is_left_alone(text: str) -> None:
    assert resolve(text, NAMING) == text


@given(st.text(st.sampled_from("{}tolargx:_ab"), max_size=30))
def test_literal_text_is_never_resolved(text: str) -> None:
    said = literal(f"{{tool:read_file}} {text}")
    assert resolve(said, NAMING) == said
    assert said.replace("\\x7b", "{") == f"{{tool:read_file}} {text}"


def test_a_shown_name_is_not_resolved_again() -> None:
    assert resolve("{tool:x}", Naming(tools={"x": "{tool:y}", "y": "z"})) == "{tool:y}"


def test_without_a_naming_a_specification_loses_its_placeholders_only() -> None:
    shown = shown_spec(SPEC, Naming())
    assert shown.description == "Read the file at path."
    assert shown.parameters["properties"]["path"]["description"] == "As list_files gives it."
    assert list(shown.parameters["properties"]) == ["path", "lines"]


def test_a_specification_is_renamed_with_its_arguments_and_keeps_its_constraints() -> None:
    shown = shown_spec(SPEC, NAMING)
    assert shown.name == "t1"
    assert shown.parameters == {
        "type": "object",
        "properties": {
            "a1": {"type": "string", "description": "As list_files gives it."},
            "lines": {"type": "integer", "description": "How many.", "minimum": 1},
        },
        "required": ["a1"],
        "additionalProperties": False,
    }


def test_renaming_leaves_the_source_specification_alone() -> None:
    before = SPEC.model_dump_json()
    shown_spec(SPEC, NAMING).parameters["properties"]["a1"]["type"] = "integer"
    assert SPEC.model_dump_json() == before


def test_two_arguments_under_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two arguments of tool 'read_file'"):
        shown_spec(SPEC, Naming(arguments={"path": "lines"}))


names = st.text("abcdef_", min_size=1, max_size=6)


@given(canonical=st.lists(names, unique=True, max_size=6), data=st.data())
def test_argument_names_survive_the_way_there_and_back(canonical: list[str], data: st.DataObject) -> None:
    shown = [name.upper() for name in data.draw(st.permutations(canonical))]
    naming = Naming(arguments=dict(zip(canonical, shown, strict=True)))
    arguments: JsonObject = {name: i for i, name in enumerate(canonical)}
    assert canonical_arguments(shown_arguments(arguments, naming), naming) == arguments
    assert set(shown_arguments(arguments, naming)) == set(shown)
