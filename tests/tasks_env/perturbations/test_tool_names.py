from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.errors import UnknownName
from tasks_env.families import FAMILIES, family
from tasks_env.naming import shown_spec
from tasks_env.perturbations.synonyms import PAIRS, SYNONYMS, replace_words
from tasks_env.perturbations.tool_names import LEVELS, LONGEST_NAME, ToolNames, rename
from tasks_env.session import Session, render
from tasks_env.tools import parameter, tool
from tasks_env.types import Instance, Naming, ToolSpec
from tests.tasks_env.perturbations.preservation import (
    assert_preserved,
    family_names,
    instance_for,
    instances,
    presented,
    search,
    seeds,
)

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII)
levels = st.sampled_from(LEVELS)


def spec(name: str, *arguments: str) -> ToolSpec:
    return tool(name, "Does it.", {argument: parameter("string", "It.") for argument in arguments})


def argument_names(specs: tuple[ToolSpec, ...]) -> set[str]:
    return {name for each in specs for name in each.parameters["properties"]}


@search
@given(instances(), seeds, levels)
def test_other_names_preserve_the_task(instance: Instance, own_seed: int, level: str) -> None:
    variant = assert_preserved(instance, "tool_names", level, own_seed)
    assert len(variant.tools) == len(render(instance).tools)


@search
@given(instances(), seeds, levels)
def test_canonical_names_are_unknown_to_a_renamed_variant(instance: Instance, own_seed: int, level: str) -> None:
    session = Session(instance, presented(instance, "tool_names", level, own_seed))
    for call in family(instance.family).reference(instance):
        assert "there is no tool" in session.call(call.name, call.arguments).content
        if call.arguments:
            shown = session.variant.presentation.naming.tools[call.name]
            assert "error: unknown argument" in session.call(shown, call.arguments).content
    assert session.calls == []
    assert not session.submitted


@search
@given(family_names, seeds, levels)
def test_errors_name_the_shown_argument(name: str, own_seed: int, level: str) -> None:
    instance = instance_for(name, 1, "base")
    session = Session(instance, presented(instance, "tool_names", level, own_seed))
    for each in session.variant.tools:
        for argument in each.parameters["required"]:
            result = session.call(each.name, {key: {} for key in each.parameters["properties"] if key != argument})
            assert result.content.startswith(f"error in argument {argument!r}: missing; expected ")


@search
@given(instances(), seeds, levels)
def test_a_renamed_tool_list_is_the_same_but_for_the_names(instance: Instance, own_seed: int, level: str) -> None:
    variant, baseline = presented(instance, "tool_names", level, own_seed), render(instance)
    naming = variant.presentation.naming
    for shown, plain in zip(variant.tools, baseline.tools, strict=True):
        assert shown.name == naming.tools[plain.name]
        there, here = shown.parameters, plain.parameters
        assert list(there["properties"]) == [naming.arguments[name] for name in here["properties"]]
        assert there["required"] == [naming.arguments[name] for name in here["required"]]
        assert {key: value for key, value in there.items() if key not in ("properties", "required")} == {
            key: value for key, value in here.items() if key not in ("properties", "required")
        }
        for name, schema in here["properties"].items():
            renamed = there["properties"][naming.arguments[name]]
            assert {**renamed, "description": ""} == {**schema, "description": ""}
            assert bool(renamed["description"]) == bool(schema["description"])


@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.parametrize("level", LEVELS)
def test_every_name_of_every_family_changes_and_none_is_used_twice(name: str, level: str) -> None:
    specs = family(name).tools()
    assert_renamed_without_collision(specs, rename(specs, level, 1))


def assert_renamed_without_collision(specs: tuple[ToolSpec, ...], naming: Naming) -> None:
    for canonical, shown in (
        ({each.name for each in specs}, naming.tools),
        (argument_names(specs), naming.arguments),
    ):
        assert set(shown) == canonical
        assert len(set(shown.values())) == len(canonical)
        assert canonical.isdisjoint(shown.values())
        assert all(_NAME.fullmatch(each) for each in shown.values())
    shown_specs = [shown_spec(each, naming) for each in specs]
    assert len({each.name for each in shown_specs}) == len(specs)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_family_s_own_vocabulary_has_synonyms(name: str) -> None:
    specs = family(name).tools()
    for canonical in {each.name for each in specs} | argument_names(specs):
        assert replace_words(canonical) != canonical, f"no word of {canonical!r} has a synonym"


words = st.sampled_from([*SYNONYMS, "zorp", "quux", "run", "value", "tool", "t1", "t2", "a1", "1", ""])
names = st.lists(words, min_size=1, max_size=4).map("_".join).filter(lambda name: bool(_NAME.fullmatch(name)))
long_names = st.text("abcz_", min_size=60, max_size=LONGEST_NAME)
foreign = st.lists(
    st.tuples(names | long_names, st.lists(names | long_names, max_size=4, unique=True)),
    max_size=8,
    unique_by=lambda each: each[0],
).map(lambda tools: tuple(spec(name, *arguments) for name, arguments in tools))


@given(foreign, levels, seeds)
def test_a_stranger_s_tools_are_renamed_without_collision(
    specs: tuple[ToolSpec, ...], level: str, own_seed: int
) -> None:
    naming = rename(specs, level, own_seed)
    assert_renamed_without_collision(specs, naming)
    assert rename(specs, level, own_seed) == naming


def test_synonyms_replace_words_in_tools_and_arguments() -> None:
    naming = rename([spec("read_file", "path"), spec("list_zorps", "zorp_path"), spec("submit")], "synonyms", 0)
    assert naming.tools == {
        "read_file": "fetch_document",
        "list_zorps": "enumerate_zorps",
        "submit": "deliver",
    }
    assert naming.arguments == {"path": "location", "zorp_path": "zorp_location"}


def test_a_name_of_unknown_words_is_marked() -> None:
    naming = rename([spec("zorp", "quux")], "synonyms", 0)
    assert naming == Naming(tools={"zorp": "run_zorp"}, arguments={"quux": "quux_value"})


def test_a_pair_within_one_tool_list_does_not_swap() -> None:
    naming = rename([spec("read", "path", "location"), spec("fetch")], "synonyms", 0)
    assert naming.tools == {"read": "run_read", "fetch": "run_fetch"}
    assert naming.arguments == {"path": "path_value", "location": "location_value"}


def test_the_last_resort_is_a_number() -> None:
    naming = rename([spec("zorp"), spec("run_zorp"), spec("execute_zorp"), spec("tool_1")], "synonyms", 0)
    assert naming.tools == {
        "zorp": "tool_2",
        "run_zorp": "run_run_zorp",
        "execute_zorp": "run_execute_zorp",
        "tool_1": "run_tool_1",
    }


def test_opaque_names_are_numbers_that_the_seed_assigns() -> None:
    specs = [spec(f"tool_{letter}", f"argument_{letter}") for letter in "abcdef"]
    naming = rename(specs, "opaque", 1)
    assert sorted(naming.tools.values()) == ["t1", "t2", "t3", "t4", "t5", "t6"]
    assert sorted(naming.arguments.values()) == ["a1", "a2", "a3", "a4", "a5", "a6"]
    assert rename(specs, "opaque", 1) == naming
    assert len({tuple(rename(specs, "opaque", seed).tools.values()) for seed in range(8)}) > 4


def test_opaque_names_avoid_a_stranger_s_own_numbers() -> None:
    naming = rename([spec("t1", "a2"), spec("t3")], "opaque", 0)
    assert sorted(naming.tools.values()) == ["t2", "t4"]
    assert naming.arguments == {"a2": "a1"}


def test_the_table_is_its_own_inverse() -> None:
    assert len(SYNONYMS) == 2 * len(PAIRS)
    assert all(SYNONYMS[other] == word != other for word, other in SYNONYMS.items())
    assert all(re.fullmatch("[a-z]+", word) for word in SYNONYMS)


@given(names)
def test_replacing_words_twice_gives_the_name_back(name: str) -> None:
    assert replace_words(replace_words(name)) == name


def test_one_cell_shows_one_naming_per_family() -> None:
    a_set = [instance_for(name, seed, "base") for name in sorted(FAMILIES) for seed in (1, 2)]
    shown = ToolNames().present(a_set, "opaque", 5)
    for i in range(0, len(a_set), 2):
        assert shown[i] == shown[i + 1]


@pytest.mark.parametrize("level", ["", "synonym", "numbers"])
def test_another_level_is_refused(level: str) -> None:
    with pytest.raises(UnknownName, match=r"unknown tool_names level .*; known: opaque, synonyms"):
        ToolNames().check_level(level)
    with pytest.raises(UnknownName):
        rename([], level, 0)
