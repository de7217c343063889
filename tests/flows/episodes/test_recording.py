"""Reading a transcript back: what reached a tool is carried out again, what the scaffold refused is not."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from flows.episodes.recording import Contradiction, recording_of, replay_problem
from tests.flows.episodes.answering import AnsweringServer, Turn, play_turns
from tests.flows.episodes.support import Ran, http_entry, open_study, run_study

LOOK: tuple[str, Any] = ("list_tables", {})
UNKNOWN: tuple[str, Any] = ("guess", {"answer": "4"})
WRONG: tuple[str, Any] = ("list_tables", {"page": "four"})
BROKEN: tuple[str, Any] = ("submit", '{"answer": ')
SUBMIT: tuple[str, Any] = ("submit", {"answer": "4"})


def play(server: AnsweringServer, folder: Path, *turns: Turn) -> Ran:
    play_turns(server, "openai", turns)
    return run_study(open_study(folder, {"model": http_entry("openai", server.url)}), first=1)


def problem(ran: Ran, events: list[dict[str, Any]] | None = None) -> str | None:
    job = ran.jobs[0]
    return replay_problem(job.instance, job.variant, ran.events() if events is None else events)


@pytest.fixture
def eventful(server: AnsweringServer, tmp_path: Path) -> Ran:
    """Everything at once: errors, a tool that does not exist, calls that the scaffold refuses in each of three ways."""
    return play(
        server,
        tmp_path,
        Turn(calls=(LOOK, UNKNOWN, WRONG, LOOK, SUBMIT)),
        Turn(calls=(BROKEN, LOOK), number=1),
        Turn("just talk", number=2),
        Turn(calls=(SUBMIT, LOOK), number=3),
    )


def test_eventful_episode_replays(eventful: Ran) -> None:
    assert eventful.end["outcome"] == "completed"
    assert problem(eventful) is None


def test_only_what_reached_a_tool_is_carried_out_again(eventful: Ran) -> None:
    recording = recording_of(eventful.events())
    assert [call.name for call in recording.calls] == ["list_tables", "guess", "list_tables", "list_tables", "submit"]
    assert [call.is_error for call in recording.calls] == [False, True, True, False, False]
    assert len([event for event in eventful.events() if event["event"] == "result"]) == 9
    assert [call.name for call in recording.carried_out] == ["list_tables", "list_tables", "submit"]


@pytest.mark.parametrize(
    ("turns", "outcome"),
    [
        ([Turn(calls=(LOOK,)), Turn("no", calls=(LOOK,), stop="refusal", number=1)], "refused"),
        ([Turn("I", calls=(LOOK, BROKEN), stop="length")], "truncated"),
        ([Turn(calls=(LOOK,), number=number) for number in range(4)], "step_cap"),
        ([Turn(calls=(BROKEN,), number=number) for number in range(4)], "malformed"),
        ([Turn("talk"), Turn("talk", number=1)], "no_submission"),
    ],
)
def test_every_ending_that_is_judged_replays(
    server: AnsweringServer, tmp_path: Path, turns: list[Turn], outcome: str
) -> None:
    ran = play(server, tmp_path, *turns)
    assert ran.end["outcome"] == outcome
    assert problem(ran) is None


class TestTampering:
    """Changes to a transcript as if it had been recorded so."""

    @pytest.fixture
    def ran(self, server: AnsweringServer, tmp_path: Path) -> Ran:
        return play(
            server,
            tmp_path,
            Turn(calls=(LOOK,)),
            Turn(calls=(WRONG, ("describe_table", {"table": "x"})), number=1),
            Turn(calls=(SUBMIT,), number=2),
        )

    @pytest.fixture
    def events(self, ran: Ran) -> list[dict[str, Any]]:
        assert problem(ran) is None
        return copy.deepcopy(ran.events())

    def of(self, events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
        return [event for event in events if event["event"] == kind]

    def test_result_text(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        self.of(events, "result")[0]["content"] += " and more"
        found = problem(ran, events)
        assert found is not None
        assert found.startswith("call 1, list_tables({}): recorded result 'orders")
        assert "and more" in found

    def test_arguments(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        self.of(events, "answer")[2]["calls"][0]["arguments"] = {"answer": "5"}
        assert str(problem(ran, events)).startswith('call 4, submit({"answer":"5"}): recorded ')

    def test_final_state(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        events[-1]["final_state"]["data"]["answer"] = "5"
        assert str(problem(ran, events)).startswith("final state: recorded ")

    def test_calls_that_the_verifier_is_shown(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        events[-1]["calls"].pop(0)
        assert str(problem(ran, events)).startswith("calls carried out: recorded ")

    def test_added_result(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        events.insert(-1, self.of(events, "result")[0])
        assert problem(ran, events) == "step 1: a result of 'list_tables' that no call asked for"

    def test_added_call_with_its_result(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        answer, result = self.of(events, "answer")[0], self.of(events, "result")[0]
        answer["calls"].append({**answer["calls"][0], "id": "call_new"})
        events.insert(events.index(result) + 1, {**result, "call_id": "call_new"})
        assert str(problem(ran, events)).startswith("calls carried out: recorded ")
        events[-1]["calls"].insert(0, events[-1]["calls"][0])
        assert problem(ran, events) == "trajectory: recorded 4 calls, replayed 5, or in another order"

    def test_removed_result(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        events.remove(self.of(events, "result")[1])
        assert problem(ran, events) == "step 2: the result of 'describe_table' stands where 'list_tables' was called"

    def test_removed_call(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        self.of(events, "answer")[1]["calls"].pop(0)
        assert problem(ran, events) == "step 2: the result of 'list_tables' stands where 'describe_table' was called"

    def test_removed_last_results_of_a_turn(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        events.remove(self.of(events, "result")[2])
        assert problem(ran, events) == "step 2: 2 calls, but 1 results"

    def test_removed_last_results_of_the_episode(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        events.remove(self.of(events, "result")[3])
        assert problem(ran, events) == "step 3: 1 calls, but 0 results"

    def test_changed_order(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        first, second = (events.index(result) for result in self.of(events, "result")[1:3])
        events[first], events[second] = events[second], events[first]
        assert "stands where" in str(problem(ran, events))

    def test_changed_order_of_whole_steps(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        """Calls and results of a turn swapped together: they are answered alike, but the trajectory is another."""
        [calls] = [answer["calls"] for answer in self.of(events, "answer")[1:2]]
        calls.reverse()
        first, second = (events.index(result) for result in self.of(events, "result")[1:3])
        events[first], events[second] = events[second], events[first]
        assert problem(ran, events) == "trajectory: recorded 4 calls, replayed 4, or in another order"

    def test_refused_call_that_is_said_to_have_been_answered(self, eventful: Ran) -> None:
        for fields in ({"is_error": False}, {"call": {"name": "list_tables", "arguments": {}}}):
            events = copy.deepcopy(eventful.events())
            self.of(events, "result")[-1].update(fields)
            assert problem(eventful, events) == "step 4: a call of 'list_tables' that was refused has a tool's result"

    def test_another_variant(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        events[0]["variant_id"] = "0" * 16
        assert str(problem(ran, events)).startswith("it is of variant 0000000000000000 of ")

    @pytest.mark.parametrize("key", ["calls", "final_state", "trajectory_hash"])
    def test_what_cannot_be_read_back_is_said(self, ran: Ran, events: list[dict[str, Any]], key: str) -> None:
        del events[-1][key]
        assert problem(ran, events) == f"cannot be read back: KeyError: '{key}'"

    def test_what_has_another_form_is_said(self, ran: Ran, events: list[dict[str, Any]]) -> None:
        events[-1]["calls"] = [{"tool": "x"}]
        assert str(problem(ran, events)).startswith("cannot be read back: ValidationError: ")

    def test_recording_of_a_contradiction_is_refused(self, events: list[dict[str, Any]]) -> None:
        events.insert(-1, self.of(events, "result")[0])
        with pytest.raises(Contradiction):
            recording_of(events)


def test_edited_family_does_not_replay_and_does_not_crash(eventful: Ran) -> None:
    events = copy.deepcopy(eventful.events())
    events[0]["family"] = "nowhere"
    assert str(problem(eventful, events)).startswith("cannot be read back: UnknownName: unknown family 'nowhere'")
