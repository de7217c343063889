from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from tasks_env.errors import ToolError, UnknownName
from tasks_env.families import FAMILIES, family
from tasks_env.perturbations.distractors import POOL, Distractors, distractor, draw
from tasks_env.perturbations.tool_names import LEVELS as NAMING_LEVELS
from tasks_env.perturbations.tool_names import rename
from tasks_env.session import Session, play, render
from tasks_env.tools import check_arguments
from tasks_env.types import Instance, JsonObject, Presentation, ToolSpec
from tests.tasks_env.perturbations.draws import drawn_instance
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


@search
@given(instances(), instances(), seeds, st.data())
def test_a_distractor_cannot_know_the_task(one: Instance, other: Instance, own_seed: int, data: st.DataObject) -> None:
    """It is given its arguments alone: asked the same beside two different tasks, in any state, it says the same."""
    shown = Presentation(distractors=draw(one, 5, own_seed))
    sessions = [Session(instance, render(instance, shown)) for instance in (one, other)]
    play(sessions[1], family(other.family).reference(other)[:-1])
    for name in shown.distractors:
        arguments = data.draw(calls(POOL[name].spec))
        first, second = (session.call(name, arguments) for session in sessions)
        assert first == second
        assert first.content == POOL[name].answer(arguments)


@pytest.mark.parametrize("name", sorted(POOL))
def test_a_distractor_s_answer_repeats_no_truth_that_it_was_not_given(name: str) -> None:
    """Whole answers, rows, lines and paths: what a task asks for never stands in what an irrelevant tool says."""
    properties = POOL[name].spec.parameters["properties"].items()
    examples = [{argument: example(argument, schema, turn) for argument, schema in properties} for turn in range(6)]
    answers = [POOL[name].answer(each) for each in examples]
    assert all(answers)
    for family_name in sorted(FAMILIES):
        for seed in range(40):
            for truth in whole_truths(truth_holder(family_name, seed)):
                assert not any(truth in answer for answer in answers), truth


@cache
def truth_holder(family_name: str, seed: int) -> Instance:
    return drawn_instance(family_name, seed)


def whole_truths(instance: Instance) -> list[str]:
    """What would give the task away: rows of the right table, lines and paths of changed files, answers in words."""
    truth: Any = instance.truth
    if instance.family == "tabular":
        return [row for row in truth["csv"].splitlines()[1:] if "," in row]
    if instance.family == "filesys":
        before: Any = instance.world["files"]
        changed = {path: text for path, text in truth["files"].items() if before.get(path) != text}
        lines = {line for text in changed.values() for line in text.splitlines() if len(line) > 4}
        return sorted({*changed, *lines})
    answer = truth["answer"] if isinstance(truth["answer"], list) else [truth["answer"]]
    return ["; ".join(answer)] if len(answer) > 1 else [text for text in answer if " " in text]


def example(argument: str, schema: dict[str, Any], turn: int) -> JsonValue:
    """A sensible value for an argument."""
    if schema["type"] in ("integer", "number"):
        return int(min(schema["maximum"], max(schema["minimum"], (2, 12, 40, 365, 1000, 2024)[turn])))
    known: dict[str, tuple[str, ...]] = {
        "date": ("2024-02-29", "2023-06-01", "2025-12-24", "2024-07-15", "2022-03-03", "2024-11-11"),
        "time": ("09:30", "23:15", "00:00", "12:00", "18:45", "06:10"),
        "city": ("Oslo", "Lisbon", "Tokyo", "Cairo", "Nowhere", "Dublin"),
        "unit": ("km", "mi", "lb", "kg", "C", "F"),
        "currency": ("EUR", "USD", "JPY", "NOK", "XXX", "GBP"),
    }
    for kind, values in known.items():
        if argument.endswith(kind):
            return values[turn]
    found = re.findall(r"such as ([A-Za-z0-9# ]+)\.", schema["description"])
    return (found[0] if found else "Norwegian wood")[: schema["maxLength"]]


@pytest.mark.parametrize("name", sorted(POOL))
def test_a_bad_call_of_a_distractor_is_told_of_as_a_real_tool_s_is(name: str) -> None:
    instance = instance_for("query", 1)
    session = Session(instance, render(instance, Presentation(distractors=(name,))))
    first, *others = POOL[name].spec.parameters["properties"]
    wrong = {first: [1], **{other: {} for other in others}}
    results = [session.call(name, each) for each in ({}, wrong, {"surprise": 1})]
    real = [session.call("run_query", each) for each in ({}, {"query": [1]}, {"surprise": 1})]
    for told in (results, real):
        assert all(result.is_error and not result.ends_episode for result in told)
        missing, mistyped, unknown = (result.content for result in told)
        assert re.match(r"error in argument '\w+': missing; expected an? \w+", missing)
        assert re.match(r"error in argument '\w+': expected an? \w+; ", mistyped)
        assert unknown.startswith("error: unknown argument 'surprise'; this tool's arguments: ")
    assert session.calls == []
