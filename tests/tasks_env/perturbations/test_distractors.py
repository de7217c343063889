from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks_env.errors import ToolError, UnknownName
from tasks_env.families import FAMILIES, family
from tasks_env.perturbations.distractors import POOL, Distractors, distractor, draw
from tasks_env.perturbations.tool_names import LEVELS as NAMING_LEVELS
from tasks_env.perturbations.tool_names import rename
from tasks_env.session import Session, play, render
from tasks_env.tools import check_arguments
from tasks_env.types import Instance, JsonObject, Presentation, ToolSpec
from tests.tasks_env.perturbations.preservation import (
    assert_preserved,
    assert_shown_as_baseline,
    instance_for,
    instances,
    presented,
    search,
    seeds,
)

levels = st.sampled_from(["1", "2", "5", str(len(POOL))])


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit one argument's schema, the odd ones among them."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if schema["type"] == "integer":
        return st.integers(low, high)
    if schema["type"] == "number":
        return st.floats(low, high, allow_nan=False, allow_infinity=False) | st.integers(
            round(schema["minimum"]), round(schema["maximum"])
        )
    examples = re.findall(r"[A-Z#][A-Za-z0-9#]*|good morning|oats|km|lb", schema["description"])
    odd = [
        "2024-02-29",
        "2024-02-30",
        "0000-01-01",
        "9999-12-31",
        "0001-01-01",
        "23:59",
        "\u0662\u0663:\u0665\u0669",
        "",
        " ",
    ]
    fitting = [each for each in (*examples, *odd) if len(each) <= schema["maxLength"]]
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=schema["maxLength"])
    return st.sampled_from(fitting) | text


def calls(spec: ToolSpec) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({name: values(schema) for name, schema in spec.parameters["properties"].items()})


any_call = st.sampled_from(sorted(POOL)).flatmap(lambda name: st.tuples(st.just(name), calls(POOL[name].spec)))


@search
@given(instances(), seeds, levels)
def test_irrelevant_tools_preserve_the_task(instance: Instance, own_seed: int, level: str) -> None:
    variant = assert_preserved(instance, "distractors", level, own_seed)
    own = len(family(instance.family).tools())
    assert len(variant.tools) == own + int(level)
    assert_shown_as_baseline(instance, variant.model_copy(update={"tools": variant.tools[:own]}))


@search
@given(instances(), seeds, st.data())
def test_calling_distractors_in_between_changes_nothing(instance: Instance, own_seed: int, data: st.DataObject) -> None:
    plan = family(instance.family).reference(instance)
    undisturbed = Session(instance, render(instance))
    expected = play(undisturbed, plan)
    session = Session(instance, presented(instance, "distractors", "5", own_seed))
    results = []
    for call in plan:
        called = data.draw(st.sampled_from(session.variant.presentation.distractors))
        result = session.call(called, data.draw(calls(POOL[called].spec)))
        assert not result.is_error
        assert not result.ends_episode
        session.call(called, {"no such argument": 1})
        results += play(session, (call,))
    assert results == expected
    assert session.calls == undisturbed.calls
    assert session.final_state() == undisturbed.final_state()
    assert session.verdict() == undisturbed.verdict()


@given(any_call)
@example(("estimate_loan_payment", {"amount": 1.0, "yearly_rate": 5e-78, "years": 1}))
def test_a_distractor_answers_whatever_its_schema_lets_through(call: tuple[str, JsonObject]) -> None:
    name, arguments = call
    check_arguments(POOL[name].spec, arguments)
    answer = POOL[name].answer(arguments)
    assert answer
    assert answer == POOL[name].answer(dict(reversed(arguments.items())))
    assert len(answer) < 1000


@pytest.mark.parametrize("name", sorted(POOL))
def test_a_distractor_is_well_described_and_strict(name: str) -> None:
    spec = POOL[name].spec
    assert spec.name == name
    assert re.fullmatch(r"[a-z]+(_[a-z]+)+", name)
    assert len(spec.description) > 40
    assert spec.description.endswith(".")
    assert spec.parameters["required"] == list(spec.parameters["properties"])
    assert all(len(each["description"]) >= 8 for each in spec.parameters["properties"].values())
    assert not re.search(
        r"\b(test|fake|dummy|distract|irrelevant|synthetic|benchmark)", spec.model_dump_json().casefold()
    )
    for argument in spec.parameters["properties"]:
        with pytest.raises(ToolError):
            check_arguments(spec, {argument: None})


def test_the_pool_is_large_enough_to_draw_from() -> None:
    assert len(POOL) >= 12


@pytest.mark.parametrize("family_name", sorted(FAMILIES))
def test_no_name_collides_with_a_family_s_under_any_naming(family_name: str) -> None:
    specs = family(family_name).tools()
    taken = {spec.name for spec in specs}
    for level in NAMING_LEVELS:
        taken |= set(rename(specs, level, 0).tools.values())
    assert taken.isdisjoint(POOL)


def test_draws_differ_between_instances_and_seeds_and_repeat_for_the_same() -> None:
    instances = [instance_for("query", seed, "base") for seed in range(10)]
    shown = Distractors().present(instances, "5", 1)
    assert shown == Distractors().present(instances, "5", 1)
    assert shown[::-1] == Distractors().present(instances[::-1], "5", 1)
    assert len({each.distractors for each in shown}) == 10
    assert len({draw(instances[0], 5, seed) for seed in range(10)}) == 10


def test_with_one_seed_a_higher_level_adds_to_a_lower_one() -> None:
    instance = instance_for("query", 1, "base")
    for seed in range(20):
        whole = draw(instance, len(POOL), seed)
        assert all(draw(instance, count, seed) == whole[:count] for count in range(1, len(POOL)))


def test_every_distractor_is_drawn_about_equally_often() -> None:
    instance = instance_for("query", 1, "base")
    drawn = [name for seed in range(360) for name in draw(instance, 5, seed)]
    expected = 360 * 5 / len(POOL)
    assert all(0.6 * expected < drawn.count(name) < 1.4 * expected for name in POOL)


def test_the_whole_pool_is_the_highest_level() -> None:
    instance = instance_for("query", 1, "base")
    assert sorted(draw(instance, len(POOL), 0)) == sorted(POOL)


def test_a_family_s_own_tool_is_never_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instance_for("query", 1, "base")
    query = FAMILIES["query"]
    own = (POOL["track_parcel"].spec, *query.tools())
    monkeypatch.setattr(type(query), "tools", lambda _: own)
    assert "track_parcel" not in draw(instance, len(POOL) - 1, 0)
    with pytest.raises(ValueError, match=f"leaves {len(POOL) - 1} distractors to draw from, not {len(POOL)}"):
        draw(instance, len(POOL), 0)


@pytest.mark.parametrize("level", ["", "0", "-1", "02", "2.0", "two", "99", "\u0662", "2\n"])
def test_another_level_is_refused(level: str) -> None:
    with pytest.raises(ValueError, match=f"expected a whole number from 1 to {len(POOL)}"):
        Distractors().check_level(level)
    with pytest.raises(ValueError, match="whole number"):
        Distractors().present([], level, 0)


def test_an_unknown_distractor_is_named() -> None:
    with pytest.raises(UnknownName, match="unknown distractor 'track_parcels'"):
        distractor("track_parcels")


def test_the_identity_has_no_distractors() -> None:
    assert Presentation().distractors == ()
