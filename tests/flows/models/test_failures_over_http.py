"""Every row of how a failed request is to be read, over real HTTP, through both adapters."""

from __future__ import annotations

import json
import pickle
import socket
import time
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import Any

import pytest

from flows.models.adapter import (
    AccessDenied,
    ContentFiltered,
    ContextOverflow,
    MalformedOutput,
    ModelCallError,
    RequestRejected,
    TransientError,
)
from flows.models.failures import DETAIL_CHARS
from tests.flows.models.fault_server import FaultServer, Reply
from tests.flows.models.support import ADAPTERS, KEY, complete, entry, plain_answer

pytestmark = pytest.mark.parametrize("adapter", ADAPTERS)


def failure(server: FaultServer, adapter: str, reply: Reply, **fields: Any) -> ModelCallError:
    server.script(reply)
    with pytest.raises(ModelCallError) as caught:
        complete(entry(adapter, server.url, **fields))
    assert len(server.requests) == 1, "retries belong to the scaffold"
    return caught.value


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_transient_statuses_are_worth_another_attempt(server: FaultServer, adapter: str, status: int) -> None:
    error = failure(server, adapter, Reply(status, said("try later", type="overloaded_error")))
    assert type(error) is TransientError
    assert (error.kind, error.status, error.detail, error.wait_s) == (
        f"http_{status}",
        status,
        "try later",
        None,
    )


@pytest.mark.parametrize("status", [400, 404, 405, 413, 418, 422, 301, 307])
def test_other_refusals_are_not(server: FaultServer, adapter: str, status: int) -> None:
    reply = Reply(status, said("no such thing"), {"location": f"{server.url}/elsewhere"})
    error = failure(server, adapter, reply)
    assert type(error) is RequestRejected
    assert error.kind == f"http_{status}"


@pytest.mark.parametrize("status", [401, 402, 403])
def test_refused_access_halts(server: FaultServer, adapter: str, status: int) -> None:
    assert type(failure(server, adapter, Reply(status, said("no")))) is AccessDenied


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, said("You exceeded your current quota", type="insufficient_quota", code="insufficient_quota")),
        (429, said("hard limit", type="requests", code="billing_hard_limit_reached")),
        (429, {"type": "error", "error": {"type": "billing_error", "message": "pay"}}),
        (429, {"error": "insufficient_quota"}),
        (
            400,
            {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
        ),
        (400, said("You have reached your specified API usage limits. You will regain access on 2026-04-01.")),
        (429, said("organization exceeded current quota", type="exceeded_current_quota_error")),
        (402, {"error": {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}}),
    ],
)
def test_exhausted_quota_halts(server: FaultServer, adapter: str, status: int, body: Any) -> None:
    assert type(failure(server, adapter, Reply(status, body))) is AccessDenied


def test_a_rate_limit_whose_message_links_to_billing_is_transient(server: FaultServer, adapter: str) -> None:
    body = said("Rate limit reached. Raise it at example.com/account/billing", type="tokens", code="rate_limit")
    assert type(failure(server, adapter, Reply(429, body))) is TransientError


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("too many tokens", type="invalid_request_error", code="context_length_exceeded")),
        (400, said("request (9 tokens) is too big", code=400, type="exceed_context_size_error", n_ctx=8)),
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}),
        (400, said("input length and `max_tokens` exceed context limit: 5 + 4 > 8")),
        (400, {"object": "error", "message": "This model's maximum context length is 8 tokens.", "code": 400}),
        (413, said("Prompt is too long")),
        (200, said("This endpoint's maximum context length is 8 tokens", code=400)),
        (400, said("This model's maximum prompt length is 8 but the request contains 9 tokens.")),
        (400, [said("The input token count (9) exceeds the maximum number of tokens allowed (8).", code=400)]),
        (400, said("Please reduce the length of the messages or completion.", code="context_length_exceeded")),
    ],
)
def test_a_full_context_is_an_outcome_of_its_own(server: FaultServer, adapter: str, status: int, body: Any) -> None:
    assert type(failure(server, adapter, Reply(status, body))) is ContextOverflow


@pytest.mark.parametrize("status", [200, 400])
def test_a_prompt_that_a_filter_refuses_is_a_refusal(server: FaultServer, adapter: str, status: int) -> None:
    body = said("The response was filtered due to the prompt", code="content_filter", param="prompt", status=400)
    assert type(failure(server, adapter, Reply(status, body))) is ContentFiltered


def test_an_error_in_a_list_is_read(server: FaultServer, adapter: str) -> None:
    error = failure(server, adapter, Reply(404, [said("model not found", code=404)]))
    assert (type(error), error.detail) == (RequestRejected, "model not found")


def test_a_request_that_is_too_large_in_bytes_is_not_a_full_context(server: FaultServer, adapter: str) -> None:
    body = said("Request exceeds the maximum size", type="request_too_large")
    assert type(failure(server, adapter, Reply(413, body))) is RequestRejected


@pytest.mark.parametrize(
    "body",
    [
        said("upstream is down", code=502),
        {"error": "upstream is down"},
        {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
        {"choices": None, "content": None},
        {"choices": [], "content": "text"},
        {"choices": [None], "content": [None]},
        {"choices": [{"message": None, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": 7}, "finish_reason": "stop"}]},
        {},
        [],
        None,
        "this is not JSON",
        "",
        '{"choices": [',
        "[" * 100_000,
        '{"a":' * 400 + "1" + "}" * 400,
    ],
)
def test_a_200_without_an_answer_is_transient(server: FaultServer, adapter: str, body: Any) -> None:
    reply = Reply(200, "null" if body is None else body)
    error = failure(server, adapter, reply)
    assert type(error) is TransientError
    assert error.kind in ("bad_answer", "error_in_answer")
    assert error.status == 200


@pytest.mark.parametrize(
    ("status", "advice", "kind"),
    [
        (400, "true", TransientError),
        (401, "true", TransientError),
        (500, "false", RequestRejected),
        (429, "false", RequestRejected),
        (403, "false", AccessDenied),
        (500, "maybe", TransientError),
    ],
)
def test_the_servers_own_word_on_retrying_decides_first(
    server: FaultServer, adapter: str, status: int, advice: str, kind: type[ModelCallError]
) -> None:
    error = failure(server, adapter, Reply(status, said("hm"), {"x-should-retry": advice}))
    assert type(error) is kind


PATTERNS = [
    {"status": 500, "body": "does not match the expected"},
    {"status": 500, "body": 'said "stop"'},
]


def test_a_server_error_that_the_manifest_knows_as_the_models_is_malformed_output(
    server: FaultServer, adapter: str
) -> None:
    body = said("The model's output does not match the expected format", code=500, type="server_error")
    error = failure(server, adapter, Reply(500, body), malformed_patterns=PATTERNS)
    assert type(error) is MalformedOutput
    quoted = failure(server, adapter, Reply(500, said('it said "stop" early')), malformed_patterns=PATTERNS)
    assert type(quoted) is MalformedOutput, "a pattern also fits the message behind its JSON escapes"


def test_patterns_bind_to_their_status_and_text(server: FaultServer, adapter: str) -> None:
    text = "does not match the expected"
    assert type(failure(server, adapter, Reply(502, text), malformed_patterns=PATTERNS)) is TransientError
    assert type(failure(server, adapter, Reply(500, "other"), malformed_patterns=PATTERNS)) is TransientError
    assert type(failure(server, adapter, Reply(500, text))) is TransientError


def test_advice_on_when_to_come_back_is_passed_on(server: FaultServer, adapter: str) -> None:
    def wait(status: int = 429, **headers: str) -> float | None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        error = failure(server, adapter, Reply(status, said("slow down"), named))
        assert isinstance(error, TransientError)
        return error.wait_s

    assert wait(retry_after_ms="1500", retry_after="9") == pytest.approx(1.5)
    assert wait(retry_after="2.5") == pytest.approx(2.5)
    assert wait(503, retry_after="7") == pytest.approx(7)
    assert wait(retry_after=formatdate(time.time() + 60, usegmt=True)) == pytest.approx(60, abs=5)
    assert wait(retry_after="soon") is None
    assert wait(retry_after="-3") is None
    assert wait(x_ratelimit_reset_tokens="1m2.5s") == pytest.approx(62.5)
    assert wait(500, x_ratelimit_reset_tokens="1m2.5s") is None
    assert wait(retry_after_ms="nan", retry_after="3") == pytest.approx(3)
    assert wait(529, retry_after="4") == pytest.approx(4)
    assert wait(200, retry_after="6") == pytest.approx(6), "an error in a success has its advice too"
    moment = datetime.now(UTC) + timedelta(seconds=30)
    reset = moment.isoformat(timespec="seconds")
    assert wait(
        anthropic_ratelimit_input_tokens_remaining="0", anthropic_ratelimit_input_tokens_reset=reset
    ) == pytest.approx(30, abs=5)


def test_silence_is_a_timeout(server: FaultServer, adapter: str) -> None:
    server.script(Reply(200, plain_answer(adapter), delay_s=2))
    with pytest.raises(TransientError, match=r"timeout: no complete answer within 0\.2 s") as caught:
        complete(entry(adapter, server.url, limits={"timeout_s": 0.2}))
    assert caught.value.kind == "timeout"


def test_an_answer_that_drips_past_the_limit_is_a_timeout(server: FaultServer, adapter: str) -> None:
    server.script(Reply(200, plain_answer(adapter), drip_s=0.05))
    started = time.monotonic()
    with pytest.raises(TransientError) as caught:
        complete(entry(adapter, server.url, limits={"timeout_s": 0.3}))
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < 3, "the limit holds for the whole attempt, not for each read"


def test_a_connection_that_was_never_made_is_told_from_one_that_was_lost(server: FaultServer, adapter: str) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(TransientError) as caught:
            complete(entry(adapter, f"http://127.0.0.1:{bound.getsockname()[1]}"))
    assert caught.value.kind == "connection"
    assert failure(server, adapter, Reply(close=True)).kind == "connection_lost"
    lost = failure(server, adapter, Reply(200, plain_answer(adapter), cut=20))
    assert type(lost) is TransientError
    assert lost.kind == "connection_lost"


def test_a_broken_compression_is_a_bad_answer(server: FaultServer, adapter: str) -> None:
    error = failure(server, adapter, Reply(200, b"not gzip", {"content-encoding": "gzip"}))
    assert (type(error), error.kind) == (TransientError, "bad_answer")


def test_an_endless_answer_is_not_read_to_its_end(
    server: FaultServer, adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.models.http.BODY_BYTES", 1000)
    error = failure(server, adapter, Reply(200, plain_answer(adapter, "x" * 2000)))
    assert (type(error), error.kind) == (TransientError, "bad_answer")


def test_bytes_that_are_not_utf8_do_not_break_the_reading(server: FaultServer, adapter: str) -> None:
    body = json.dumps(plain_answer(adapter, "MARK")).encode().replace(b"MARK", b"caf\xe9")
    server.script(Reply(200, body))
    assert complete(entry(adapter, server.url)).message.text == "caf\ufffd"


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_long_bodies_are_bounded_in_the_detail(server: FaultServer, adapter: str, status: int) -> None:
    error = failure(server, adapter, Reply(status, said("long " * 40_000)))
    assert len(error.detail) <= DETAIL_CHARS
    assert "\n" not in error.detail
    assert len(json.dumps(error.raw)) < 30_000


@pytest.mark.parametrize(
    "reply",
    [
        Reply(401, said(f"Incorrect API key provided: {KEY}")),
        Reply(400, f"bad header x-api-key: {KEY}"),
        Reply(500, said("x", echoed={"authorization": f"Bearer {KEY}"})),
        Reply(200, said(f"the key {KEY} has expired")),
        Reply(200, f"not JSON: {KEY}"),
        Reply(close=True),
        Reply(200, "{}", delay_s=2),
        Reply(200, "{}", {"content-length": "9"}, cut=1),
        Reply(200, b"no gzip", {"content-encoding": "gzip"}),
    ],
)
def test_the_key_is_in_the_request_and_nowhere_else(server: FaultServer, adapter: str, reply: Reply) -> None:
    error = failure(server, adapter, reply, limits={"timeout_s": 0.5})
    sent = server.requests[0]
    assert KEY in sent.headers["authorization" if adapter == "openai" else "x-api-key"]
    assert KEY.encode() not in sent.content
    assert KEY not in sent.path
    shown = [repr(error), str(error), repr(vars(error)), "".join(traceback.format_exception(error))]
    summaries = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), capture_locals=True)
    shown += [str(frame.locals) for frame in summaries if "/tests/" not in frame.filename]
    assert len(shown) > 6
    assert not [text for text in shown if KEY in text]
    assert error.__context__ is None, "the client's exceptions carry the request, headers included"
    assert error.__cause__ is None
    assert KEY.encode() not in pickle.dumps(error.args)


def test_without_a_key_no_header_is_sent(server: FaultServer, adapter: str) -> None:
    server.script(Reply(200, plain_answer(adapter)))
    complete(entry(adapter, server.url), key=None)
    assert not {"authorization", "x-api-key"} & server.requests[0].headers.keys()


def test_a_proxy_in_the_environment_is_not_used_for_loopback(
    server: FaultServer, adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    server.script(Reply(200, plain_answer(adapter)))
    assert complete(entry(adapter, server.url)).message.text == "Ochre."
