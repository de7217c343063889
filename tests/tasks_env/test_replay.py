"""What happened once must happen again: the first thing that does not is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tasks_env import (
    FinalState,
    Instance,
    Session,
    ToolCall,
    Variant,
    Verdict,
    VerifierInput,
    generate_instance,
    perturbation,
    registered,
    render,
)
from tasks_env.replay import ARGUMENT_CHARS, EXCERPT_CHARS, RecordedCall, Recording, replay
from tasks_env.types import JsonObject
from tests.tasks_env.stranger import Book, Ledger

CHARS = 4000


@pytest.fixture(autouse=True)
def _ledger() -> Iterator[None]:
    with registered(Ledger()):
        yield


@pytest.fixture
def instance() -> Instance:
    return generate_instance("ledger", {"accounts": 3, "entries": 12}, 1)


@pytest.fixture(params=[None, "opaque", "synonyms"])
def variant(instance: Instance, request: pytest.FixtureRequest) -> Variant:
    if request.param is None:
        return render(instance)
    [shown] = perturbation("tool_names").present([instance], request.param, 1)
    return render(instance, shown)


def recorded(session: Session, name: str, arguments: JsonObject) -> RecordedCall:
    """Call a tool under its shown names, keep what came back."""
    result = session.call(name, arguments)
    return RecordedCall(
        name=name, arguments=arguments, call=result.call, content=result.content, is_error=result.is_error
    )


def recording_of(instance: Instance, variant: Variant) -> Recording:
    """A whole episode with errors, a tool that does not exist and a distractor's place, handed in in the end."""
    session, naming = Session(instance, variant, CHARS), variant.presentation.naming
    plan = [ToolCall(name="read_journal", arguments={"page_number": 99}), *Ledger().reference(instance)]
    calls = [recorded(session, "no_such_tool", {"x": 1})]
    calls += [
        recorded(
            session,
            naming.tools.get(call.name, call.name),
            {naming.arguments.get(name, name): value for name, value in call.arguments.items()},
        )
        for call in plan
    ]
    return Recording(calls=tuple(calls), carried_out=tuple(session.calls), final_state=session.final_state())


def changed(recording: Recording, index: int, **fields: Any) -> Recording:
    calls = list(recording.calls)
    calls[index] = calls[index].model_copy(update=fields)
    return recording.model_copy(update={"calls": tuple(calls)})


def test_what_was_recorded_comes_out_again_under_every_naming(instance: Instance, variant: Variant) -> None:
    recording = recording_of(instance, variant)
    assert recording.final_state.submitted
    assert sum(call.is_error for call in recording.calls) == 2
    assert replay(instance, variant, recording, CHARS) is None


def test_same_calls_of_another_instance_do_not_come_out_again(instance: Instance, variant: Variant) -> None:
    recording = recording_of(instance, variant)
    other = generate_instance("ledger", {"accounts": 3, "entries": 12}, 2)
    difference = replay(other, render(other, variant.presentation), recording, CHARS)
    assert difference is not None
    assert (difference.what, difference.number) == ("call", 2 if "pages" in difference.recorded else 3)


def test_changed_result_names_the_call_and_shows_both_texts(instance: Instance, variant: Variant) -> None:
    recording = recording_of(instance, variant)
    number = len(recording.calls) - 1
    call = recording.calls[number - 1]
    difference = replay(instance, variant, changed(recording, number - 1, content="written 2\nmore"), CHARS)
    assert difference is not None
    assert (difference.what, difference.number, difference.tool) == ("call", number, call.name)
    assert "written 2" in difference.recorded
    assert "written" in difference.replayed
    assert "written 2" not in difference.replayed
    text = str(difference)
    assert text.startswith(f"call {number}, {call.name}({{")
    assert all(f'"{name}":' in text for name in call.arguments)
    assert "\n" not in text


@pytest.mark.parametrize(
    "fields", [{"is_error": True}, {"call": None}, {"call": ToolCall(name="close_books", arguments={})}]
)
def test_changed_flag_or_meaning_of_a_result_differs(
    instance: Instance, variant: Variant, fields: dict[str, Any]
) -> None:
    difference = replay(instance, variant, changed(recording_of(instance, variant), 3, **fields), CHARS)
    assert difference is not None
    assert (difference.what, difference.number) == ("call", 4)


def test_call_added_removed_or_moved_differs_where_it_matters(instance: Instance, variant: Variant) -> None:
    recording = recording_of(instance, variant)
    calls = recording.calls

    def first(*changed_calls: RecordedCall) -> tuple[str, int | None]:
        difference = replay(instance, variant, recording.model_copy(update={"calls": changed_calls}), CHARS)
        assert difference is not None
        return difference.what, difference.number

    assert first(*calls, calls[3]) == ("call", len(calls) + 1), "added after the task was handed in"
    assert first(*calls[:3], calls[3], *calls[3:]) == ("calls carried out", None), "added before"
    assert first(*calls[:-2], calls[-1]) == ("calls carried out", None)
    assert first(*calls[:-1]) == ("calls carried out", None)
    assert first(*calls[:-3], calls[-2], calls[-3], calls[-1]) == ("calls carried out", None)
    assert first() == ("calls carried out", None)


@pytest.mark.parametrize("change", ["amount", "account", "submitted"])
def test_changed_final_state_differs(instance: Instance, variant: Variant, change: str) -> None:
    recording = recording_of(instance, variant)
    balances: Any = recording.final_state.data["balances"]
    state = {
        "amount": FinalState(submitted=True, data={"balances": {**balances, next(iter(balances)): "1.00"}}),
        "account": FinalState(submitted=True, data={"balances": {**balances, "extra": "1.00"}}),
        "submitted": recording.final_state.model_copy(update={"submitted": False}),
    }[change]
    difference = replay(instance, variant, recording.model_copy(update={"final_state": state}), CHARS)
    assert difference is not None
    assert difference.what == "final state"
    assert str(difference).startswith("final state: recorded ")


def test_other_bound_on_results_differs(instance: Instance, variant: Variant) -> None:
    difference = replay(instance, variant, recording_of(instance, variant), 40)
    assert difference is not None
    assert difference.what == "call"


def test_long_texts_are_cut_around_the_first_difference(instance: Instance) -> None:
    variant = render(instance)
    session = Session(instance, variant, CHARS)
    long = recorded(session, "write_balance", {"account_name": "a" * 3000, "amount": "1"})
    recording = Recording(calls=(long,), carried_out=(), final_state=session.final_state())
    assert replay(instance, variant, recording, CHARS) is None
    other = changed(recording, 0, content=long.content + "x" * 5000)
    difference = replay(instance, variant, other, CHARS)
    assert difference is not None
    assert max(len(difference.recorded), len(difference.replayed)) <= EXCERPT_CHARS + 2
    assert len(difference.arguments) <= ARGUMENT_CHARS + 1
    assert "xxx" in difference.recorded
    assert difference.recorded.startswith("…")


class TestWhatBreaks:
    def test_tool_that_raises_now_is_a_difference(
        self, instance: Instance, variant: Variant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recording = recording_of(instance, variant)

        def broken(_book: Book, _arguments: JsonObject) -> None:
            raise ZeroDivisionError("a defect")

        monkeypatch.setattr(Book, "_list", broken)
        difference = replay(instance, variant, recording, CHARS)
        assert difference is not None
        assert difference.number == 3
        assert "raised ZeroDivisionError: a defect" in difference.replayed

    def test_state_that_cannot_be_read_now_is_a_difference(
        self, instance: Instance, variant: Variant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recording = recording_of(instance, variant)

        def broken(_book: Book) -> None:
            raise ZeroDivisionError("a defect")

        monkeypatch.setattr(Book, "state", broken)
        difference = replay(instance, variant, recording, CHARS)
        assert difference is not None
        assert (difference.what, difference.replayed) == ("final state", "raised ZeroDivisionError: a defect")

    def test_verifier_that_changes_its_mind_is_a_difference(
        self, instance: Instance, variant: Variant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recording = recording_of(instance, variant)
        verdicts = iter([True, False])

        def fickle(ledger: Ledger, evidence: VerifierInput) -> Verdict:  # noqa: ARG001
            return Verdict(passed=next(verdicts), partial_score=0, conditions=())

        monkeypatch.setattr(Ledger, "verify", fickle)
        difference = replay(instance, variant, recording, CHARS)
        assert difference is not None
        assert difference.what == "verdict"

    def test_verifier_that_breaks_on_both_is_no_difference(
        self, instance: Instance, variant: Variant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recording = recording_of(instance, variant)

        def broken(*_arguments: object) -> Verdict:
            raise ZeroDivisionError("a defect")

        monkeypatch.setattr(Ledger, "verify", broken)
        assert replay(instance, variant, recording, CHARS) is None
