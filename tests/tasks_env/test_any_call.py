"""Whatever an agent calls, a session answers: errors are results, and the verifier always has a word."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.canonical import canonical_json
from tasks_env.families import FAMILIES, family
from tasks_env.session import Session, play, render
from tasks_env.types import Instance, JsonObject, ToolSpec
from tests.tasks_env.perturbations.preservation import instance_for, search

ODD_TEXT = (
    "",
    " ",
    "/",
    "/..",
    "//a",
    ".",
    "\x00",
    "\n",
    "a" * 5000,
    "é",
    "e\u0301",
    "\u202e",
    "\ud800",
    "{tool:submit}",
    "'; --",
    "1e999",
    "-0",
    "NaN",
    "%s",
    "\\",
)
ODD_NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**30,
    0.5,
    -0.0,
    5.0,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
)
anything: st.SearchStrategy[Any] = st.sampled_from(
    [*ODD_TEXT, *ODD_NUMBERS, None, True, [], {}, [[]], [None], {"a": 1}]
)


def texts_of(instance: Instance) -> list[str]:
    """Strings that mean something in this instance: names, paths, cells, right arguments."""
    found: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            found.extend(value)
            for each in value.values():
                collect(each)
        elif isinstance(value, list):
            for each in value:
                collect(each)

    collect([instance.spec, instance.world, instance.truth])
    collect([call.arguments for call in family(instance.family).reference(instance)])
    return sorted(set(found))


def values(schema: dict[str, Any], texts: list[str]) -> st.SearchStrategy[Any]:
    """Values that mostly have the right type."""
    kind = schema.get("type")
    if "enum" in schema:
        fitting: st.SearchStrategy[Any] = st.sampled_from(schema["enum"])
    elif kind == "array":
        fitting = st.lists(values(schema["items"], texts), max_size=4)
    elif kind in ("integer", "number"):
        fitting = st.sampled_from(ODD_NUMBERS) | st.integers(-3, 40)
    elif kind == "boolean":
        fitting = st.booleans()
    else:
        fitting = st.sampled_from([*texts, *ODD_TEXT]) | st.text(max_size=12)
    return st.one_of(fitting, fitting, fitting, anything)


def calls(specs: tuple[ToolSpec, ...], texts: list[str]) -> st.SearchStrategy[tuple[str, JsonObject]]:
    """A call of one of the tools, optional arguments sometimes left out and required ones rarely."""

    def of(spec: ToolSpec) -> st.SearchStrategy[tuple[str, JsonObject]]:
        fields = {name: values(schema, texts) for name, schema in spec.parameters["properties"].items()}
        required = set(spec.parameters["required"])
        optional = {name: each for name, each in fields.items() if name not in required}
        whole = st.fixed_dictionaries({name: fields[name] for name in required}, optional=optional)
        return st.tuples(st.just(spec.name), whole)

    return st.sampled_from(specs).flatmap(of)


@pytest.mark.parametrize("name", sorted(FAMILIES))
@search
@given(data=st.data())
def test_any_sequence_of_calls_is_answered_and_judged(name: str, data: st.DataObject) -> None:
    instance = instance_for(name, data.draw(st.integers(0, 3)), "base")
    variant = render(instance)
    chosen = calls(variant.tools, texts_of(instance))
    session = Session(instance, variant)
    for tool_name, arguments in data.draw(st.lists(chosen, max_size=8)):
        result = session.call(tool_name, arguments)
        assert len(result.content) < 10_000
        assert result.content.encode("utf-8", "backslashreplace")
        if result.is_error:
            assert result.content.startswith("error")
        if result.ends_episode:
            break
    canonical_json(session.final_state().model_dump(mode="json"))
    verdict = session.verdict()
    assert 0.0 <= verdict.partial_score <= 1.0
    assert verdict.passed == (verdict.partial_score == 1.0)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_placeholder_that_an_agent_types_is_never_resolved(name: str) -> None:
    typed = "{tool:typed}"
    instance = instance_for(name, 1, "base")
    variant = render(instance)
    reference = family(name).reference(instance)
    errors = 0
    for spec in variant.tools:
        like = next((call.arguments for call in reference if call.name == spec.name), {})
        for argument, schema in spec.parameters["properties"].items():
            for text in (typed, f"/{typed}", f"SELECT {typed}", f"SELECT '{typed}"):
                value: Any = [text, text] if schema["type"] == "array" else text
                session = Session(instance, variant)
                result = session.call(spec.name, {**_filled(spec), **like, argument: value})
                errors += result.is_error
                assert "typed" not in result.content.replace("tool:typed", ""), result.content
    assert errors >= 5


def _filled(spec: ToolSpec) -> JsonObject:
    """Every required argument with some value of its type."""
    plain: dict[str, Any] = {"string": "x", "array": ["x"], "integer": 1, "number": 1, "boolean": True}
    properties = spec.parameters["properties"]
    return {
        name: properties[name]["enum"][0] if "enum" in properties[name] else plain[properties[name]["type"]]
        for name in spec.parameters["required"]
    }


@pytest.mark.parametrize("name", sorted(FAMILIES))
@search
@given(data=st.data())
def test_calls_that_fail_do_not_keep_the_reference_from_passing(name: str, data: st.DataObject) -> None:
    instance = instance_for(name, data.draw(st.integers(0, 3)), "base")
    variant = render(instance)
    broken = calls(variant.tools, texts_of(instance)).map(lambda call: (call[0], {**call[1], "no such argument": 1}))
    session = Session(instance, variant)
    for call in family(name).reference(instance):
        tool_name, arguments = data.draw(broken)
        assert session.call(tool_name, arguments).is_error
        assert not play(session, (call,))[0].is_error
    assert session.verdict().passed


@pytest.mark.parametrize("name", sorted(FAMILIES))
@search
@given(data=st.data())
def test_nothing_can_be_changed_after_the_closing_call(name: str, data: st.DataObject) -> None:
    instance = instance_for(name, data.draw(st.integers(0, 3)), "base")
    variant = render(instance)
    session = Session(instance, variant)
    play(session, family(name).reference(instance))
    tool_name, arguments = data.draw(calls(variant.tools, texts_of(instance)))
    before = session.final_state()
    session.call(tool_name, arguments)
    assert session.final_state() == before
    assert session.verdict().passed
