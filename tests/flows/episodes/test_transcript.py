"""The transcript's format, event by event, and that it tells everything."""

from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from flows.episodes.transcript import TranscriptWriter, read_transcript
from flows.errors import StoreError
from flows.manifest import SCAFFOLD_VERSION
from flows.models.conversation import check_conversation
from flows.models.messages import Answer, AssistantMessage, ToolMessage
from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import Ran, conversation_of, http_entry, of_kind, open_study, run_study
from tests.flows.models.fault_server import Reply

NULL = type(None)
SCHEMA: dict[str, dict[str, tuple[type, ...]]] = {
    "episode": {
        "transcript_version": (int,),
        "episode_id": (str,),
        "attempt": (int,),
        "model": (str,),
        "model_id": (str, NULL),
        "cell_id": (str,),
        "family": (str,),
        "difficulty": (str,),
        "axis": (str,),
        "level": (str,),
        "instance_id": (str,),
        "instance_seed": (int,),
        "variant_id": (str,),
        "run_seed": (int,),
        "temperature": (float, NULL),
        "scaffold": (dict,),
        "scaffold_version": (str,),
        "adapter_version": (str,),
        "git_sha": (str,),
        "manifest_hash": (str,),
        "scientific_hash": (str,),
        "started_at": (str,),
    },
    "opening": {"tools": (list,)},
    "request": {
        "step": (int,),
        "added": (list,),
        "temperature": (float, NULL),
        "settings": (dict,),
        "bytes": (int,),
        "body_sha256": (str,),
        "normal_sha256": (str,),
    },
    "attempt": {
        "step": (int,),
        "attempt": (int,),
        "latency_s": (float,),
        "error": (str, NULL),
        "status": (int, NULL),
        "cost_usd": (float, NULL),
    },
    "failed attempt": {
        "detail": (str,),
        "raw": (dict, list, str, NULL),
        "wait_s": (float, NULL),
    },
    "answer": {
        "step": (int,),
        "text": (str,),
        "calls": (list,),
        "stop": (str,),
        "usage": (dict, NULL),
        "raw": (dict, NULL),
    },
    "result": {
        "step": (int,),
        "call_id": (str,),
        "name": (str,),
        "call": (dict, NULL),
        "content": (str,),
        "is_error": (bool,),
    },
    "end": {
        "outcome": (str,),
        "kind": (str, NULL),
        "detail": (str,),
        "steps": (int,),
        "final_state": (dict,),
        "calls": (list,),
        "trajectory_hash": (str,),
        "trajectory_length": (int,),
        "tokens_in": (int, NULL),
        "tokens_cached": (int, NULL),
        "tokens_out": (int, NULL),
        "tokens_reasoning": (int, NULL),
        "usage_known": (bool,),
        "cost_usd": (float, NULL),
        "http_attempts": (int,),
        "wall_clock_s": (float,),
    },
}
"""Event → field → its types. Another field, or a missing one, is a change of format: raise TRANSCRIPT_VERSION."""

HOSTILE = 'a\u0000\u001b[31m\ud800\u202e"}\n{"event":"end"}\r\u2028\u0085 é 😀 [key]'


@pytest.fixture
def ran(server: AnsweringServer, tmp_path: Path) -> Ran:
    """An episode with a retry, talk, errors and hostile text."""
    server.script(
        Reply(503, {"error": {"message": f"down {HOSTILE}"}}),
        Reply(body=said("openai", Turn(HOSTILE))),
        Reply(body=said("openai", Turn("", (("list_tables", {}), ("nothing", {HOSTILE: HOSTILE})), number=1))),
        Reply(body=said("openai", Turn("", (("run_query", '{"sql":'), ("run_query", {"sql": HOSTILE})), number=2))),
        Reply(body=said("openai", Turn("", (("submit", {"answer": "4"}),) * 2, number=3))),
    )
    return run_study(open_study(tmp_path, {"model": http_entry("openai", server.url)}), first=1)


def test_every_event_has_its_fields_and_no_other(ran: Ran) -> None:
    events = ran.events()
    kinds = set()
    for event in events:
        kind = event.pop("event")
        fields = SCHEMA[kind]
        if kind == "attempt" and event["error"] is not None:
            kind, fields = "failed attempt", {**fields, **SCHEMA["failed attempt"]}
        kinds.add(kind)
        assert {name: type(value) for name, value in event.items() if type(value) not in fields.get(name, ())} == {}
        assert set(event) == set(fields)
    assert kinds == set(SCHEMA)


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_every_request_tells_the_settings_that_the_server_received(
    adapter: str, server: AnsweringServer, tmp_path: Path
) -> None:
    server.script(*[Reply(body=said(adapter, Turn("", (("submit", {"answer": "4"}),)))) for _ in range(2)])
    ran = run_study(open_study(tmp_path, {"model": http_entry(adapter, server.url)}), first=1)
    [request] = [event for event in ran.events() if event["event"] == "request"]
    apart = {"messages", "tools", "system"}
    received = {name: value for name, value in server.requests[0].body.items() if name not in apart}
    assert request["settings"] == received
    assert received["temperature"] == request["temperature"] == 0.0
    assert "max_tokens" in received


def test_events_come_in_the_order_of_the_loop(ran: Ran) -> None:
    kinds = [event["event"] for event in ran.events()]
    assert kinds == [
        *("episode", "opening"),
        *("request", "attempt", "attempt", "answer"),
        *("request", "attempt", "answer", "result", "result"),
        *("request", "attempt", "answer", "result", "result"),
        *("request", "attempt", "answer", "result", "result"),
        "end",
    ]


def test_the_identity_says_what_was_run(ran: Ran) -> None:
    head, job = ran.events()[0], ran.jobs[0]
    assert (head["episode_id"], head["run_seed"], head["attempt"]) == (job.episode_id, job.episode.run_seed, 1)
    assert (head["variant_id"], head["instance_seed"]) == (job.variant.variant_id, job.instance.seed)
    assert (head["model"], head["model_id"], head["adapter_version"]) == ("model", "some-model", "openai/2")
    assert head["scaffold"] == ran.study.manifest.scaffold.model_dump(mode="json")
    assert (head["scaffold_version"], head["git_sha"]) == (SCAFFOLD_VERSION, "0" * 40)
    assert head["started_at"].endswith("+00:00")


def test_hostile_text_survives_and_breaks_no_line(ran: Ran) -> None:
    data = ran.path().read_bytes()
    assert data.isascii()
    assert not any(byte < 32 and byte != 10 for byte in data)
    events = ran.events()
    assert data.count(b"\n") == len(events)
    answers, results = of_kind(events, "answer"), of_kind(events, "result")
    assert answers[0]["text"] == HOSTILE
    assert json.loads(answers[1]["calls"][1]["raw_arguments"]) == {HOSTILE: HOSTILE}
    assert answers[1]["calls"][1]["arguments"] == {HOSTILE: HOSTILE}
    assert json.loads(answers[2]["calls"][1]["raw_arguments"]) == {"sql": HOSTILE}
    assert [result["is_error"] for result in results] == [False, True, True, True, False, True]
    assert of_kind(events, "end")[0]["outcome"] == "completed"


def test_the_requests_together_hold_the_whole_conversation_as_it_was_sent(ran: Ran, server: AnsweringServer) -> None:
    events = ran.events()
    requests = of_kind(events, "request")
    assert [event["step"] for event in requests] == [1, 2, 3, 4]
    for event in requests:
        check_conversation(conversation_of(events, event["step"]))
    bodies = [request.content for request in server.requests[1:]]
    assert server.requests[0].content == bodies[0], "a retry sends the same bytes"
    canonical = [json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode() for body in bodies]
    assert [hashlib.sha256(body).hexdigest() for body in canonical] == [event["body_sha256"] for event in requests]
    last = conversation_of(events)
    assert [message.role for message in last] == [
        *("system", "user", "assistant", "user"),
        *("assistant", "tool", "assistant", "tool"),
    ]
    sent = json.loads(bodies[-1])["messages"]
    assert [message["role"] for message in sent] == [
        *("system", "user", "assistant", "user"),
        *("assistant", "tool", "tool", "assistant", "tool", "tool"),
    ]


def test_what_is_shown_to_the_model_is_what_the_events_say(ran: Ran) -> None:
    events = ran.events()
    shown = conversation_of(events)
    turns = [message for message in shown if isinstance(message, AssistantMessage)]
    answers = [event for event in of_kind(events, "answer") if event["step"] < 4]
    assert [(turn.text, [dict(call) for call in turn.calls]) for turn in turns] == [
        (event["text"], event["calls"]) for event in answers
    ]
    told = [answer for message in shown if isinstance(message, ToolMessage) for answer in message.answers]
    results = [event for event in of_kind(events, "result") if event["step"] < 4]
    assert told == [
        Answer(call_id=event["call_id"], content=event["content"], is_error=event["is_error"]) for event in results
    ]


def test_the_end_sums_up(ran: Ran) -> None:
    end, attempts = ran.end, of_kind(ran.events(), "attempt")
    assert (end["tokens_in"], end["tokens_cached"], end["tokens_out"]) == (4000, 3200, 400)
    assert end["cost_usd"] == pytest.approx(4 * (200 * 3.0 + 800 * 0.3 + 100 * 15.0) / 1e6)
    assert end["cost_usd"] == pytest.approx(sum(event["cost_usd"] for event in attempts))
    assert end["http_attempts"] == len(attempts) == 5
    assert end["trajectory_length"] == 4


def test_the_marker_holds_the_hash_of_the_file(ran: Ran) -> None:
    marker = ran.marker()
    assert marker == {
        "sha256": hashlib.sha256(ran.path().read_bytes()).hexdigest(),
        "outcome": "completed",
        "kind": None,
        "attempt": 1,
        "spent_usd": ran.end["cost_usd"],
    }


def test_what_was_recorded_can_be_read_before_the_end(tmp_path: Path) -> None:
    writer = TranscriptWriter(tmp_path / "a" / "x.jsonl")
    writer.record("one", value=1)
    writer.flush()
    assert read_transcript(writer.path) == [{"event": "one", "value": 1}]
    writer.abandon()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_json_cannot_say_is_refused(tmp_path: Path, number: float) -> None:
    writer = TranscriptWriter(tmp_path / "x.jsonl")
    with pytest.raises(ValueError, match="Out of range"):
        writer.record("one", value=number)
    writer.abandon()


def test_a_cut_off_transcript_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"event":"episode"}\n{"event":"op')
    with pytest.raises(StoreError, match=r"x\.jsonl: line 2 is not JSON"):
        read_transcript(path)


def test_a_missing_transcript_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"gone\.jsonl"):
        read_transcript(tmp_path / "gone.jsonl")


class FullDisk:
    """A file on a disk without space."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        self.closed = True
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_named_and_closing_does_not_hide_it(tmp_path: Path) -> None:
    writer = TranscriptWriter(tmp_path / "x.jsonl")
    writer.abandon()
    full: Any = FullDisk()
    writer._file = full
    with pytest.raises(StoreError, match=r"x\.jsonl: no space left"):
        writer.record("one")
    writer.abandon()
    assert full.closed


@pytest.mark.parametrize("line", ["[]", "5", "null", '"episode"'])
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"event":"episode"}\n' + line + "\n")
    with pytest.raises(StoreError, match=r"x\.jsonl: line 2 is no JSON object"):
        read_transcript(path)


def test_a_line_nested_without_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("[" * 100_000)
    with pytest.raises(StoreError, match=r"x\.jsonl: line 1 is not JSON"):
        read_transcript(path)
