"""Every way an episode can end, over real HTTP, through both adapters, from constructed answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.episodes.opening import REMINDER
from flows.episodes.scaffold import NO_ANSWER, OVER
from flows.models.conversation import check_conversation
from tasks_env.errors import ToolError
from tasks_env.families.query.tools import QueryWorld
from tests.flows.episodes.answering import AnsweringServer, Turn, play_turns, said
from tests.flows.episodes.support import Ran, conversation_of, http_entry, of_kind, open_study, run_study
from tests.flows.models.fault_server import Reply

LOOK: tuple[str, Any] = ("list_tables", {})
SUBMIT: tuple[str, Any] = ("submit", {"answer": "4"})
BROKEN: dict[str, tuple[str, Any]] = {"openai": ("submit", '{"answer": '), "anthropic": ("submit", ["4"])}
"""Arguments that cannot be read: one provider sends text, the other JSON of any type."""

pytestmark = pytest.mark.parametrize("adapter", ["openai", "anthropic"])


def play(server: AnsweringServer, tmp_path: Path, adapter: str, turns: Sequence[Turn], **sections: Any) -> Ran:
    """One episode of a model that answers with `turns`."""
    play_turns(server, adapter, turns)
    fields = sections.pop("entry", {})
    study = open_study(tmp_path, {"model": http_entry(adapter, server.url, **fields)}, **sections)
    return run_study(study, first=1)


def results(ran: Ran) -> list[tuple[str, bool]]:
    """Content and error flag of every call's answer."""
    return [(event["content"], event["is_error"]) for event in of_kind(ran.events(), "result")]


def test_a_handed_in_task_is_completed(server: AnsweringServer, tmp_path: Path, adapter: str) -> None:
    ran = play(server, tmp_path, adapter, [Turn(calls=(LOOK,)), Turn("Done.", calls=(SUBMIT,), number=1)])
    assert (ran.end["outcome"], ran.end["steps"], ran.end["kind"]) == ("completed", 2, None)
    assert [call["name"] for call in ran.end["calls"]] == ["list_tables", "submit"]
    assert ran.end["final_state"]["submitted"] is True
    assert ran.marker() is not None
    assert len(server.requests) == 2


def test_an_endless_explorer_meets_the_step_cap(server: AnsweringServer, tmp_path: Path, adapter: str) -> None:
    ran = play(server, tmp_path, adapter, [Turn(calls=(LOOK,), number=number) for number in range(9)])
    assert (ran.end["outcome"], ran.end["steps"]) == ("step_cap", 4)
    assert len(server.requests) == 4


@pytest.mark.parametrize("broken", [False, True])
def test_an_answer_cut_off_by_the_limit_is_truncated(
    server: AnsweringServer, tmp_path: Path, adapter: str, broken: bool
) -> None:
    turn = Turn("I think", calls=(LOOK, BROKEN[adapter]) if broken else (), stop="length")
    ran = play(server, tmp_path, adapter, [turn])
    assert (ran.end["outcome"], ran.end["steps"]) == ("truncated", 1)
    assert results(ran) == []
    assert ran.end["calls"] == []


def test_a_call_that_ends_an_answer_at_the_limit_is_not_carried_out_however_whole_it_looks(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    """One format shows the broken text, the other an object made of what there was: neither model gets an advantage."""
    ran = play(server, tmp_path, adapter, [Turn("Well", calls=(LOOK, SUBMIT), stop="length")])
    assert (ran.end["outcome"], ran.end["calls"]) == ("truncated", [])


def test_a_server_that_finds_the_conversation_too_long_overflows_the_context(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    message = {"openai": "maximum context length is 10 tokens", "anthropic": "prompt is too long: 11 tokens > 10"}
    study = open_study(tmp_path, {"model": http_entry(adapter, server.url)})
    server.script(Reply(400, {"error": {"type": "invalid_request_error", "message": message[adapter]}}))
    ran = run_study(study, first=1)
    assert (ran.end["outcome"], ran.end["steps"], ran.end["cost_usd"]) == ("context_overflow", 0, 0.0)
    assert message[adapter] in ran.end["detail"]


def test_a_request_beyond_the_manifests_limit_is_never_sent(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    turns = [Turn("x" * 5000, calls=(LOOK,), number=number) for number in range(4)]
    ran = play(server, tmp_path, adapter, turns, scaffold={"conversation_bytes": 9000})
    requests = of_kind(ran.events(), "request")
    assert ran.end["outcome"] == "context_overflow"
    assert str(requests[-1]["bytes"]) in ran.end["detail"]
    assert [event["bytes"] <= 9000 for event in requests] == [True] * len(server.requests) + [False]
    assert [event["bytes"] for event in requests[:-1]] == [len(request.content) for request in server.requests]


def test_a_context_that_fills_up_while_answering_overflows(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    if adapter == "openai":
        study = open_study(tmp_path, {"model": http_entry(adapter, server.url)})
        server.script(Reply(200, {"error": {"code": "context_length_exceeded", "message": "full"}}))
        ran = run_study(study, first=1)
        assert ran.end["usage_known"] is False, "the model may have worked before the server said so"
    else:
        ran = play(server, tmp_path, adapter, [Turn("I", stop="context")])
    assert ran.end["outcome"] == "context_overflow"


def test_a_refusal_ends_the_episode_and_is_paid(server: AnsweringServer, tmp_path: Path, adapter: str) -> None:
    ran = play(server, tmp_path, adapter, [Turn("I cannot.", stop="refusal"), Turn(calls=(SUBMIT,))])
    assert (ran.end["outcome"], ran.end["steps"]) == ("refused", 1)
    assert ran.end["cost_usd"] > 0
    assert len(server.requests) == 1


def test_output_that_breaks_the_server_is_malformed_and_asked_once(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    patterns = [{"status": 500, "body": "cannot parse the call"}]
    study = open_study(tmp_path, {"model": http_entry(adapter, server.url, malformed_patterns=patterns)})
    server.script(Reply(500, {"error": {"message": "cannot parse the call <tool>{"}}))
    ran = run_study(study, first=1)
    assert (ran.end["outcome"], ran.end["kind"]) == ("malformed", None)
    assert (len(server.requests), ran.waits) == (1, [])
    assert (ran.end["usage_known"], ran.end["cost_usd"]) == (False, None), "the model did work"


def test_a_last_turn_that_cannot_be_read_is_malformed(server: AnsweringServer, tmp_path: Path, adapter: str) -> None:
    turns = [Turn(calls=(BROKEN[adapter],), number=number) for number in range(4)]
    ran = play(server, tmp_path, adapter, turns)
    assert (ran.end["outcome"], ran.end["steps"]) == ("malformed", 4)


def test_a_last_turn_that_can_be_read_in_part_is_not_malformed(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    turns = [Turn(calls=(LOOK, BROKEN[adapter]), number=number) for number in range(4)]
    ran = play(server, tmp_path, adapter, turns)
    assert ran.end["outcome"] == "step_cap"


@pytest.mark.parametrize(("nudge", "asked"), [(True, 2), (False, 1)])
def test_a_model_that_only_talks_is_reminded_once(
    server: AnsweringServer, tmp_path: Path, adapter: str, nudge: bool, asked: int
) -> None:
    turns = [Turn("The answer is 4.", number=number) for number in range(4)]
    ran = play(server, tmp_path, adapter, turns, scaffold={"nudge": nudge})
    assert (ran.end["outcome"], ran.end["steps"], len(server.requests)) == ("no_submission", asked, asked)
    assert server.requests[-1].content.decode().count(REMINDER) == asked - 1


def test_the_reminder_comes_once_even_if_it_helped_for_a_while(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    turns = [Turn("Hm."), Turn(calls=(LOOK,), number=1), Turn("Hm.", number=2), Turn(calls=(SUBMIT,), number=3)]
    ran = play(server, tmp_path, adapter, turns)
    assert (ran.end["outcome"], ran.end["steps"]) == ("no_submission", 3)
    assert server.requests[-1].content.decode().count(REMINDER) == 1


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_answer_is_reminded_and_replayed_as_words(
    server: AnsweringServer, tmp_path: Path, adapter: str, text: str
) -> None:
    ran = play(server, tmp_path, adapter, [Turn(text), Turn(calls=(SUBMIT,), number=1)])
    assert ran.end["outcome"] == "completed"
    second = json.loads(server.requests[1].content)["messages"]
    assert [message["role"] for message in second[-3:]] == ["user", "assistant", "user"]
    assert NO_ANSWER.text in json.dumps(second[-2])
    assert of_kind(ran.events(), "answer")[0]["text"] == text


def test_broken_arguments_are_answered_and_the_conversation_stays_valid(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    ran = play(server, tmp_path, adapter, [Turn(calls=(BROKEN[adapter],)), Turn(calls=(SUBMIT,), number=1)])
    assert ran.end["outcome"] == "completed"
    (broken, is_error), (_, submitted_badly) = results(ran)
    assert broken.startswith("error: the arguments")
    assert broken.endswith("the call was not carried out")
    assert (is_error, submitted_badly) == (True, False)
    check_conversation(conversation_of(ran.events()))
    assert [call["arguments"] for call in ran.end["calls"]] == [{"answer": "4"}]
    sent = json.loads(server.requests[1].content)["messages"]
    replayed = sent[-2]["tool_calls"][0]["function"] if adapter == "openai" else sent[-2]["content"][0]
    assert replayed.get("arguments", replayed.get("input")) in ("{}", {}), "no server has to parse broken text again"


def test_calls_beyond_the_turns_limit_are_answered_with_an_error(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    ran = play(server, tmp_path, adapter, [Turn(calls=(LOOK,) * 4 + (SUBMIT,)), Turn(calls=(SUBMIT,), number=1)])
    assert ran.end["outcome"] == "completed"
    assert [is_error for _, is_error in results(ran)] == [False, False, False, True, True, False]
    assert results(ran)[3][0] == "error: more than 3 calls in one turn; this one was not carried out"
    assert len(ran.end["calls"]) == 4
    assert ran.end["trajectory_length"] == 4
    check_conversation(conversation_of(ran.events()))


def test_calls_after_the_closing_call_are_not_carried_out(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    later = ("submit", {"answer": "5"})
    ran = play(server, tmp_path, adapter, [Turn(calls=(SUBMIT, later))])
    assert (ran.end["outcome"], ran.end["steps"]) == ("completed", 1)
    assert ran.end["final_state"]["data"]["answer"] == "4"
    assert results(ran)[1] == (OVER, True)
    assert len(ran.end["calls"]) == ran.end["trajectory_length"] == 1


def test_a_closing_call_that_is_refused_does_not_end_the_episode(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    empty = ("submit", {"answer": " "})
    ran = play(server, tmp_path, adapter, [Turn(calls=(empty,)), Turn(calls=(SUBMIT,), number=1)])
    assert (ran.end["outcome"], ran.end["steps"]) == ("completed", 2)
    assert [is_error for _, is_error in results(ran)] == [True, False]


def test_an_unknown_tool_is_answered_with_the_names_that_exist(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    ran = play(server, tmp_path, adapter, [Turn(calls=(("look up!", {"x": 1}),)), Turn(calls=(SUBMIT,), number=1)])
    content, is_error = results(ran)[0]
    assert content.startswith("error: there is no tool 'look up!'; available tools: list_tables, describe_table,")
    assert is_error is True
    assert of_kind(ran.events(), "result")[0]["call"] is None
    sent = json.loads(server.requests[1].content)["messages"]
    replayed = sent[-2]["tool_calls"][0]["function"] if adapter == "openai" else sent[-2]["content"][0]
    assert replayed["name"] == "look_up_", "no provider takes the invented name back"


class Boom(Exception):
    """A defect of a tool."""


def test_a_tool_that_breaks_is_one_infra_error_and_the_run_goes_on(
    server: AnsweringServer, tmp_path: Path, adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    works, broken = QueryWorld.call, [True]

    def call(self: QueryWorld, name: str, arguments: Any) -> Any:
        if broken.pop() if broken else False:
            raise Boom("out of order")
        return works(self, name, arguments)

    monkeypatch.setattr(QueryWorld, "call", call)
    server.answer_with(lambda _request: Reply(body=said(adapter, Turn(calls=(SUBMIT,)))))
    study = open_study(tmp_path, {"model": http_entry(adapter, server.url, limits={"concurrent_episodes": 1})})
    ran = run_study(study)
    assert [summary and summary.outcome for summary in ran.summaries] == ["infra_error", "completed"]
    assert (ran.end["kind"], ran.end["detail"]) == ("tool_exception", "submit: Boom: out of order")
    assert len(of_kind(ran.events(), "end")) == 1
    assert ran.marker() is not None
    assert ran.campaign.tally.infra_errors == 1
    assert (ran.campaign.halted, ran.campaign.capped) == (None, False)
    assert ran.end["usage_known"] is True, "the answer that was paid for is booked"


def test_a_world_that_cannot_be_read_is_an_infra_error_too(
    server: AnsweringServer, tmp_path: Path, adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state(_self: QueryWorld) -> Any:
        raise Boom("no state")

    monkeypatch.setattr(QueryWorld, "state", state)
    ran = play(server, tmp_path, adapter, [Turn(calls=(SUBMIT,))])
    assert (ran.end["outcome"], ran.end["kind"]) == ("infra_error", "tool_exception")
    assert ran.end["detail"] == "final state: Boom: no state"
    assert ran.end["final_state"] == {"submitted": False, "data": {}}


def test_a_tools_own_error_is_the_agents_to_read(
    server: AnsweringServer, tmp_path: Path, adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = QueryWorld.call

    def call(self: QueryWorld, name: str, arguments: Any) -> Any:
        if name == "list_tables":
            raise ToolError("closed on Mondays")
        return works(self, name, arguments)

    monkeypatch.setattr(QueryWorld, "call", call)
    ran = play(server, tmp_path, adapter, [Turn(calls=(LOOK,)), Turn(calls=(SUBMIT,), number=1)])
    assert ran.end["outcome"] == "completed"
    assert results(ran)[0] == ("error: closed on Mondays", True)


def test_servers_that_stay_down_are_an_infra_error_with_its_kind(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    study = open_study(tmp_path, {"model": http_entry(adapter, server.url)})
    server.script(*[Reply(503, {"error": {"message": "down"}})] * 3)
    ran = run_study(study, first=1)
    assert (ran.end["outcome"], ran.end["kind"], ran.end["steps"]) == ("infra_error", "http_503", 0)
    assert (ran.end["cost_usd"], ran.end["usage_known"], ran.end["http_attempts"]) == (0.0, True, 3)


def test_a_conversation_that_the_providers_filter_refuses_is_a_refusal(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    study = open_study(tmp_path, {"model": http_entry(adapter, server.url)})
    body = {"error": {"message": "The response was filtered", "code": "content_filter", "param": "prompt"}}
    server.script(Reply(body=said(adapter, Turn(calls=(LOOK,)))), Reply(400, body))
    ran = run_study(study, first=1)
    assert (ran.end["outcome"], ran.end["usage_known"], ran.end["http_attempts"]) == ("refused", True, 2)
    assert ran.campaign.tally.infra_errors == 0
    assert of_kind(ran.events(), "answer")[-1]["raw"] == body


def test_a_call_that_was_cut_off_is_carried_out_by_neither_adapter(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    """One format has the broken text, the other an empty object: what the model's words mean is the same."""
    cut: tuple[str, Any] = ("list_tables", "{") if adapter == "openai" else ("list_tables", {})
    ran = play(server, tmp_path, adapter, [Turn(calls=(cut,), stop="length")])
    assert (ran.end["outcome"], ran.end["calls"]) == ("truncated", [])


def test_missing_usage_is_unknown_and_not_zero(server: AnsweringServer, tmp_path: Path, adapter: str) -> None:
    ran = play(server, tmp_path, adapter, [Turn(calls=(LOOK,)), Turn(calls=(SUBMIT,), usage=False, number=1)])
    assert ran.end["outcome"] == "completed"
    names = ("tokens_in", "tokens_cached", "tokens_out", "tokens_reasoning", "cost_usd")
    assert [ran.end[name] for name in names] == [None] * 5
    assert ran.end["usage_known"] is False


def test_missing_usage_of_a_free_model_is_unknown_too(server: AnsweringServer, tmp_path: Path, adapter: str) -> None:
    free = {"pricing": {"input": 0.0, "output": 0.0}}
    turns = [Turn(calls=(LOOK,)), Turn(calls=(SUBMIT,), usage=False, number=1)]
    ran = play(server, tmp_path, adapter, turns, entry=free)
    assert (ran.end["tokens_in"], ran.end["cost_usd"], ran.end["usage_known"]) == (None, None, False)
