"""Whatever an agent calls, it gets a bounded answer, and the episode gets a verdict."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_env import Session, render
from tasks_env.families.tabular.tools import TOOLS
from tasks_env.session import TOOL_OUTPUT_CHARS

from .handmade import RESULT, handmade

INSTANCE = handmade()
VARIANT = render(INSTANCE)

TABLES = ["orders", "customers", "x", "y", "none"]
COLUMNS = ["order_id", "customer_id", "region", "quantity", "unit_price", "discount", "segment", "a", "b", ""]
TEXTS = [RESULT, "a,b\n0,0\n5,\n", "a\n999999999999999.999999\n-3\n", "customer_id,a\nC-1,1\nC-1,2\n", "a,b\n1\n", "{"]


def plausible(name: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Mostly valid values for an argument, so that calls get past the checking of types."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "integer":
        return st.integers(schema.get("minimum", 0), schema.get("maximum", 12))
    if schema["type"] == "array":
        return st.lists(plausible(f"{name} item", schema["items"]), min_size=1, max_size=2)
    if name in ("table", "other_table", "output"):
        return st.sampled_from(TABLES)
    if name == "text":
        return st.sampled_from(TEXTS)
    if name == "values item":
        return st.sampled_from(["2", "2.50", "north", "", "2024-01-01", "-0"])
    return st.sampled_from(COLUMNS)


def plausible_call(index: int) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    spec = TOOLS[index]
    properties = spec.parameters["properties"]
    required = {name: plausible(name, properties[name]) for name in spec.parameters["required"]}
    optional = {name: plausible(name, schema) for name, schema in properties.items() if name not in required}
    return st.tuples(st.just(spec.name), st.fixed_dictionaries(required, optional=optional))


calls = st.integers(0, len(TOOLS) - 1).flatmap(plausible_call)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
argument_names = st.sampled_from(sorted({name for spec in TOOLS for name in spec.parameters["properties"]}))


@settings(max_examples=150, deadline=None)
@given(st.lists(calls, max_size=12))
def test_plausible_calls_never_raise(sequence: list[tuple[str, dict[str, Any]]]) -> None:
    session = Session(INSTANCE, VARIANT)
    for name, arguments in sequence:
        result = session.call(name, arguments)
        assert len(result.content) <= TOOL_OUTPUT_CHARS + 200
        assert result.ends_episode == (name == "submit" and not result.is_error)
    verdict = session.verdict()
    assert verdict.passed == (verdict.partial_score == 1.0)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([spec.name for spec in TOOLS]), st.dictionaries(argument_names, anything, max_size=6))
def test_arbitrary_arguments_never_raise(name: str, arguments: dict[str, Any]) -> None:
    result = Session(INSTANCE, VARIANT).call(name, arguments)
    assert result.content
    assert len(result.content) <= TOOL_OUTPUT_CHARS + 200
