from __future__ import annotations

import pytest
from pydantic import JsonValue

from tasks_env.errors import UnknownName
from tasks_env.families import FAMILIES
from tasks_env.generation import generate_instance
from tasks_env.session import Session, play, render, verify
from tasks_env.types import Instance, JsonObject, Naming, Presentation, ToolCall
from tests.tasks_env.shelves import Shelves

RENAMED = Presentation(
    naming=Naming(
        tools={"list_shelves": "t1", "count_items": "t2", "write_count": "t3", "submit": "t4"},
        arguments={"shelf": "a1", "count": "a2", "pages": "a3"},
    )
)


@pytest.fixture(autouse=True)
def _shelves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "shelves", Shelves())


@pytest.fixture
def instance() -> Instance:
    return generate_instance("shelves", {"shelves": 2}, seed=5)


def opened(instance: Instance, presentation: Presentation | None = None) -> Session:
    return Session(instance, render(instance, presentation))


def test_the_identity_presentation_is_the_baseline(instance: Instance) -> None:
    assert render(instance, Presentation()) == render(instance)
    assert [spec.name for spec in render(instance).tools] == [spec.name for spec in Shelves().tools()]


def test_a_variant_id_covers_the_cell_and_the_perturbation_seed(instance: Instance) -> None:
    ids = {
        render(instance, axis=axis, level=level, seed=seed).variant_id
        for axis, level, seed in (
            ("none", "baseline", 0),
            ("order", "baseline", 0),
            ("order", "shuffled", 0),
            ("order", "shuffled", 1),
        )
    }
    assert len(ids) == 4


def test_placeholders_follow_the_renaming_in_every_text(instance: Instance) -> None:
    variant = render(instance, RENAMED)
    assert variant.prompt.endswith("shelves with t2, then t4.")
    assert variant.tools[0].description == "Names of the shelves; a3 times over."
    assert variant.tools[2].description == "Write down the a2 of a a1."
    assert variant.tools[1].parameters["properties"]["a1"]["description"] == "A shelf from t1."
    assert variant.tools[2].parameters["required"] == ["a1", "a2"]


def test_distractors_come_after_the_real_tools_in_the_given_order(instance: Instance) -> None:
    shown = Presentation(distractors=("track_parcel", "convert_units"))
    names = [spec.name for spec in render(instance, shown).tools]
    assert names == [*(spec.name for spec in Shelves().tools()), "track_parcel", "convert_units"]


def test_an_unknown_distractor_is_named(instance: Instance) -> None:
    with pytest.raises(UnknownName, match=r"unknown distractor 'convert_unit'.*did you mean 'convert_units'"):
        render(instance, Presentation(distractors=("convert_unit",)))


def test_an_unknown_wording_is_named(instance: Instance) -> None:
    with pytest.raises(UnknownName, match=r"unknown phrasing of family 'shelves' 'p6'; known: base, p1"):
        render(instance, Presentation(phrasing="p6"))


def test_two_tools_under_one_name_are_refused(instance: Instance) -> None:
    with pytest.raises(ValueError, match="two tools would be shown under one name"):
        render(instance, Presentation(naming=Naming(tools={"list_shelves": "submit"})))
    with pytest.raises(ValueError, match="two tools would be shown under one name"):
        render(instance, Presentation(distractors=("track_parcel", "track_parcel")))


def test_two_arguments_under_one_name_are_refused(instance: Instance) -> None:
    with pytest.raises(ValueError, match="two arguments of tool 'write_count'"):
        render(instance, Presentation(naming=Naming(arguments={"shelf": "count"})))


def test_a_variant_of_another_instance_is_refused(instance: Instance) -> None:
    other = generate_instance("shelves", {"shelves": 2}, seed=6)
    with pytest.raises(ValueError, match=f"belongs to {other.instance_id}"):
        Session(instance, render(other))


@pytest.mark.parametrize("presentation", [None, RENAMED], ids=["canonical", "renamed"])
def test_the_reference_passes_and_the_calls_are_kept_by_canonical_names(
    instance: Instance, presentation: Presentation | None
) -> None:
    session = opened(instance, presentation)
    results = play(session, Shelves().reference(instance))
    assert [result.is_error for result in results] == [False] * 6
    assert [result.ends_episode for result in results] == [False] * 5 + [True]
    assert tuple(session.calls) == Shelves().reference(instance)
    assert tuple(result.call for result in results) == Shelves().reference(instance)
    assert session.verdict().passed
    assert session.verdict() == verify(instance, tuple(session.calls), session.final_state())


def test_an_untouched_world_fails(instance: Instance) -> None:
    session = opened(instance)
    assert not session.submitted
    assert not session.final_state().submitted
    assert not session.verdict().passed


def test_an_unknown_tool_is_an_error_that_lists_the_shown_names(instance: Instance) -> None:
    session = opened(instance, RENAMED)
    result = session.call("list_shelves", {})
    assert result.is_error
    assert result.call is None
    assert result.content == "error: there is no tool 'list_shelves'; available tools: t1, t2, t3, t4"
    assert session.calls == []


def test_canonical_argument_names_are_refused_under_a_renaming(instance: Instance) -> None:
    result = opened(instance, RENAMED).call("t2", {"shelf": "shelf-0"})
    assert result.is_error
    assert result.content == "error: unknown argument 'shelf'; this tool's arguments: a1"


@pytest.mark.parametrize(
    ("arguments", "content"),
    [
        ({}, "error in argument 'a1': missing; expected a string"),
        ({"a1": 7}, "error in argument 'a1': expected a string; 7 is not of type 'string'"),
        (
            {"a1": ["{arg:x}"]},
            "error in argument 'a1': expected a string; ['{arg:x}'] is not of type 'string'",
        ),
        ({"a1": "attic"}, "error in argument 'a1': no shelf attic; see t1"),
    ],
)
def test_an_error_names_the_shown_argument(instance: Instance, arguments: JsonObject, content: str) -> None:
    result = opened(instance, RENAMED).call("t2", arguments)
    assert result.is_error
    assert result.content == content


def test_a_failed_call_is_reported_by_canonical_names_but_not_counted_as_carried_out(
    instance: Instance,
) -> None:
    session = opened(instance, RENAMED)
    result = session.call("t2", {"a1": "attic"})
    assert result.call == ToolCall(name="count_items", arguments={"shelf": "attic"})
    assert session.calls == []


def test_notes_follow_the_renaming_and_data_is_left_alone(instance: Instance) -> None:
    content = opened(instance, RENAMED).call("t1", {}).content
    assert content == "shelf-0 {tool:submit}\nshelf-1 {tool:submit}\nCount with t3."


def test_a_long_result_is_cut_and_says_so_and_keeps_its_note(instance: Instance) -> None:
    session = Session(instance, render(instance), max_output_chars=100)
    whole = Shelves().open(instance).call("list_shelves", {"pages": 9}).text
    cut, notice, note = session.call("list_shelves", {"pages": 9}).content.rsplit("\n", 2)
    assert cut == whole[:100]
    assert notice == f"[cut: 100 of {len(whole)} characters shown]"
    assert note == "Count with write_count."


def test_a_long_error_is_cut_too(instance: Instance) -> None:
    session = Session(instance, render(instance), max_output_chars=100)
    long_calls: list[tuple[str, JsonObject]] = [
        ("count_items", {"shelf": "x" * 5000}),
        ("count_items", {"y" * 5000: 1}),
        ("z" * 5000, {}),
    ]
    for name, arguments in long_calls:
        assert len(session.call(name, arguments).content) < 300


def test_a_whole_number_written_as_a_float_is_an_integer(instance: Instance) -> None:
    session = opened(instance)
    result = session.call("write_count", {"shelf": "shelf-0", "count": 5.0})
    assert result.call == ToolCall(name="write_count", arguments={"shelf": "shelf-0", "count": 5})
    assert isinstance(session.calls[0].arguments["count"], int)
    assert repr(session.final_state().data["counts"]) == "{'shelf-0': 5}"


@pytest.mark.parametrize("count", [float("nan"), float("inf"), True, "5", None, 5.5, [5]])
def test_what_is_no_integer_is_refused_by_name(instance: Instance, count: JsonValue) -> None:
    result = opened(instance).call("write_count", {"shelf": "shelf-0", "count": count})
    assert result.content.startswith("error in argument 'count': expected ")


def test_text_that_no_file_can_hold_is_refused(instance: Instance) -> None:
    result = opened(instance).call("count_items", {"shelf": "shelf-\ud800"})
    assert result.content == "error in argument 'shelf': expected finite numbers and text that UTF-8 can encode"


def test_a_distractor_answers_and_leaves_no_trace(instance: Instance) -> None:
    session = opened(instance, Presentation(distractors=("convert_units",)))
    before = session.final_state()
    result = session.call("convert_units", {"value": 2, "from_unit": "km", "to_unit": "m"})
    assert result.content == "2 km = 2000 m"
    assert not result.is_error
    assert not result.ends_episode
    assert session.calls == []
    assert session.final_state() == before


def test_a_distractor_that_is_not_shown_does_not_exist(instance: Instance) -> None:
    assert "there is no tool" in opened(instance).call("convert_units", {}).content


def test_sessions_of_one_variant_do_not_share_a_world(instance: Instance) -> None:
    variant = render(instance)
    first, second = Session(instance, variant), Session(instance, variant)
    play(first, Shelves().reference(instance))
    assert first.verdict().passed
    assert second.final_state().data == {"counts": {}}


def test_arguments_nested_beyond_what_can_be_recorded_are_answered_as_an_error(instance: Instance) -> None:
    value: JsonValue = []
    for _ in range(900):
        value = [value]
    for arguments in ({"shelf": value}, {"unheard_of": {"of": value}}):
        result = opened(instance).call("count_items", arguments)
        assert result.is_error
        assert result.content == "error: arguments nested more than 100 levels deep"
        assert result.call is None
