"""One model call: attempts by the policy, the server's advice, what is booked, what is logged."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.episodes.calling import POSSIBLY_BILLED, BudgetSpent, ModelCaller, Spending, possibly_billed
from flows.episodes.pacing import Pace, Sleep
from flows.episodes.pricing import call_bound
from flows.episodes.transcript import TranscriptWriter, read_transcript
from flows.manifest import Pricing, Retry, Scaffold
from flows.models import Endpoint, open_adapter, open_client
from flows.models.adapter import (
    AccessDenied,
    Adapter,
    ContentFiltered,
    ContextOverflow,
    MalformedOutput,
    ModelCallError,
    Request,
    RequestRejected,
    TransientError,
    request_of,
)
from flows.models.messages import AssistantMessage, Completion, Message, Stop, Usage
from tasks_env.types import ToolSpec
from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import RETRY, SCAFFOLD, Waits
from tests.flows.models.fault_server import Reply
from tests.flows.models.support import conversation, entry

PRICING = Pricing(input=3.0, output=15.0)
SETTINGS = Scaffold.model_validate(SCAFFOLD)
BOUND = call_bound(PRICING, SETTINGS)
ANSWER = Completion(
    message=AssistantMessage(text="x"), usage=Usage(input_total=100, output_total=10), stop=Stop.END, raw=None
)
COST = (100 * 3 + 10 * 15) / 1e6


REQUEST = Request([], {}, "." * 400)
"""Of 400 bytes, and of nothing else that a caller looks at."""


class Playing:
    """An adapter that answers with, or raises, what it is given, in order."""

    version = "openai/1"

    def __init__(self, *outcomes: Completion | BaseException) -> None:
        self.outcomes = list(outcomes)
        self.seen: list[Request] = []

    def request_body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], temperature: float | None) -> Any:
        raise NotImplementedError

    async def complete(self, request: Request) -> Completion:
        self.seen.append(request)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


class Asked:
    """One `ask` and what it left behind."""

    def __init__(
        self,
        adapter: Adapter,
        folder: Path,
        *,
        extend: Callable[[float], bool] = lambda _usd: True,
        seed: int = 1,
        pace: Pace | None = None,
        sleep: Sleep | None = None,
        **policy: Any,
    ) -> None:
        self.spending, self.waits, self.extended = Spending(), Waits(), list[float]()
        self.raised: BaseException | None = None
        self.completion: Completion | None = None
        self.pace = pace or Pace(entry("openai"))
        writer = TranscriptWriter(folder / "transcript.jsonl")

        def extending(usd: float) -> bool:
            self.extended.append(usd)
            return extend(usd)

        caller = ModelCaller(
            adapter,
            self.spending,
            pricing=PRICING,
            scaffold=SETTINGS,
            retry=Retry.model_validate({**RETRY, **policy}),
            pace=self.pace,
            transcript=writer,
            extend=extending,
            rng=random.Random(seed),
            sleep=sleep or self.waits,
        )
        try:
            self.completion = asyncio.run(caller.ask(1, REQUEST))
        except (ModelCallError, asyncio.CancelledError) as error:
            self.raised = error
        writer.close()
        self.attempts = read_transcript(folder / "transcript.jsonl")


def test_a_transient_failure_is_retried_and_both_attempts_are_logged(tmp_path: Path) -> None:
    asked = Asked(Playing(TransientError("http_503", "down", 503, {"error": "down"}), ANSWER), tmp_path)
    assert asked.raised is None
    first, second = asked.attempts
    assert (first["step"], first["attempt"], first["error"], first["status"]) == (1, 1, "http_503", 503)
    assert (first["detail"], first["raw"], first["cost_usd"]) == ("down", {"error": "down"}, 0.0)
    assert [first["wait_s"]] == asked.waits.asked
    assert (second["attempt"], second["error"]) == (2, None)
    assert second["cost_usd"] == pytest.approx(COST)
    assert (asked.spending.http_attempts, asked.spending.known) == (2, True)
    assert asked.spending.spent_usd == pytest.approx(COST)


def test_the_servers_advice_is_followed_exactly(tmp_path: Path) -> None:
    asked = Asked(Playing(TransientError("http_429", "slow", 429, wait_s=7.25), ANSWER), tmp_path)
    assert asked.waits.asked == [7.25]


def test_advice_beyond_the_ceiling_ends_the_attempt(tmp_path: Path) -> None:
    asked = Asked(Playing(TransientError("http_429", "slow", 429, wait_s=30.5), ANSWER), tmp_path)
    assert isinstance(asked.raised, TransientError)
    assert (asked.waits.asked, asked.attempts[0]["wait_s"], len(asked.attempts)) == ([], None, 1)


def test_advice_at_the_ceiling_is_followed(tmp_path: Path) -> None:
    asked = Asked(Playing(TransientError("http_429", "slow", 429, wait_s=30.0), ANSWER), tmp_path)
    assert asked.waits.asked == [30.0]


def test_without_advice_waits_grow_by_the_multiplier_up_to_the_ceiling_with_jitter(tmp_path: Path) -> None:
    errors = [TransientError("http_500", "", 500) for _ in range(7)]
    asked = Asked(Playing(*errors, ANSWER), tmp_path, http_attempts=8, first_wait_s=2.0, multiplier=3.0, max_wait_s=50)
    ceilings = [2.0, 6.0, 18.0, 50.0, 50.0, 50.0, 50.0]
    assert all(ceiling / 2 <= wait <= ceiling for wait, ceiling in zip(asked.waits.asked, ceilings, strict=True))
    assert len(set(asked.waits.asked)) == 7, "no two clients wait in step"


def test_jitter_is_drawn_from_the_given_generator(tmp_path: Path) -> None:
    waits = [
        Asked(Playing(TransientError("http_500", "", 500), ANSWER), tmp_path, seed=seed).waits.asked
        for seed in (1, 1, 2)
    ]
    assert waits[0] == waits[1] != waits[2]


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_when_attempts_run_out_the_last_failure_is_raised(tmp_path: Path, attempts: int) -> None:
    errors = [TransientError("http_500", f"number {number}", 500) for number in range(9)]
    asked = Asked(Playing(*errors), tmp_path, http_attempts=attempts)
    assert asked.raised is errors[attempts - 1]
    assert len(asked.attempts) == asked.spending.http_attempts == attempts
    assert [event["wait_s"] is None for event in asked.attempts] == [False] * (attempts - 1) + [True]


@pytest.mark.parametrize(
    "error",
    [
        MalformedOutput("http_500", "cannot parse", 500),
        ContextOverflow("http_400", "too long", 400),
        RequestRejected("http_404", "no such model", 404),
        AccessDenied("http_401", "bad key", 401),
    ],
    ids=lambda error: type(error).__name__,
)
def test_other_failures_are_asked_once_and_logged(tmp_path: Path, error: ModelCallError) -> None:
    asked = Asked(Playing(error, ANSWER), tmp_path)
    assert asked.raised is error
    assert (asked.waits.asked, len(asked.attempts)) == ([], 1)
    assert asked.attempts[0]["error"] == error.kind
    assert asked.spending.known is not isinstance(error, MalformedOutput)


def test_an_adapter_that_breaks_is_a_failed_call_with_its_own_kind(tmp_path: Path) -> None:
    asked = Asked(Playing(RecursionError("deep")), tmp_path)
    assert isinstance(asked.raised, ModelCallError)
    assert (asked.raised.kind, asked.raised.detail) == ("adapter_exception", "RecursionError: deep")
    assert (len(asked.attempts), asked.spending.unknown_usd) == (1, BOUND)


def test_a_call_that_may_have_been_billed_is_booked_as_unknown_and_its_repetition_reserved_first(
    tmp_path: Path,
) -> None:
    asked = Asked(Playing(TransientError("timeout", "late"), TransientError("timeout", "late"), ANSWER), tmp_path)
    assert asked.raised is None
    assert asked.extended == [BOUND, BOUND]
    assert (asked.spending.unknown_usd, asked.spending.unknown_calls) == (2 * BOUND, 2)
    assert asked.spending.total("input_total") is None
    assert [event["cost_usd"] for event in asked.attempts[:2]] == [None, None]


def test_a_last_attempt_that_may_have_been_billed_needs_no_further_money(tmp_path: Path) -> None:
    asked = Asked(Playing(TransientError("timeout", "late")), tmp_path, http_attempts=1)
    assert (asked.extended, asked.spending.unknown_usd) == ([], BOUND)


def test_where_the_cap_leaves_no_room_a_billed_call_is_not_repeated(tmp_path: Path) -> None:
    asked = Asked(Playing(TransientError("timeout", "late"), ANSWER), tmp_path, extend=lambda _usd: False)
    assert isinstance(asked.raised, BudgetSpent)
    assert (asked.raised.kind, asked.waits.asked) == ("budget", [])
    assert asked.spending.unknown_usd == BOUND


def test_a_call_cancelled_in_flight_is_booked_as_unknown(tmp_path: Path) -> None:
    asked = Asked(Playing(asyncio.CancelledError()), tmp_path)
    assert isinstance(asked.raised, asyncio.CancelledError)
    assert (asked.spending.unknown_usd, asked.spending.unknown_calls) == (BOUND, 1)


def test_a_free_call_of_unknown_usage_is_unknown_all_the_same() -> None:
    spending = Spending()
    spending.book_unknown(0.0)
    assert not spending.known
    assert spending.total("output_total") is None


def answer_that_costs(output: int) -> Completion:
    usage = Usage(input_total=0, output_total=output)
    return Completion(message=AssistantMessage(text="x"), usage=usage, stop=Stop.END, raw=None, status=200)


def test_an_answer_within_its_bound_needs_no_further_money(tmp_path: Path) -> None:
    bound_tokens = int(BOUND * 1e6 / 15)
    asked = Asked(Playing(answer_that_costs(bound_tokens)), tmp_path)
    assert (asked.raised, asked.extended) == (None, [])


def test_an_answer_that_costs_more_than_its_bound_is_booked_in_full_and_reserved_for(tmp_path: Path) -> None:
    """A server that ignores the output limit, or bills its reasoning on top of it."""
    usd = 1_000_000 * 15 / 1e6
    asked = Asked(Playing(answer_that_costs(1_000_000)), tmp_path)
    assert asked.raised is None
    assert asked.extended == [pytest.approx(usd - BOUND)]
    assert asked.spending.spent_usd == pytest.approx(usd)
    assert asked.spending.known


def test_where_the_cap_leaves_no_room_for_it_no_further_call_is_made(tmp_path: Path) -> None:
    asked = Asked(Playing(answer_that_costs(1_000_000)), tmp_path, extend=lambda _usd: False)
    assert isinstance(asked.raised, BudgetSpent)
    assert asked.spending.spent_usd == pytest.approx(15.0), "it was spent all the same"
    assert asked.attempts[0]["cost_usd"] == pytest.approx(15.0)


def test_a_filtered_conversation_is_a_refusal_and_neither_repeated_nor_billed(tmp_path: Path) -> None:
    raw: Any = {"error": {"code": "content_filter"}}
    asked = Asked(Playing(ContentFiltered("http_400", "filtered", 400, raw), ANSWER), tmp_path)
    assert asked.raised is None
    assert asked.completion is not None
    assert (asked.completion.stop, asked.completion.raw, asked.completion.usage) == (Stop.REFUSAL, raw, None)
    assert [(event["error"], event["status"], event["cost_usd"]) for event in asked.attempts] == [
        ("http_400", 400, 0.0)
    ]
    assert (asked.spending.known, asked.spending.http_attempts) == (True, 1)


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (TransientError("http_429", "", 429), 4),
        (TransientError("http_503", "", 503), 4),
        (TransientError("http_529", "", 529), 4),
        (TransientError("http_500", "", 500), 8),
        (TransientError("timeout", ""), 8),
        (RequestRejected("http_400", "", 400), 8),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_what_says_that_the_server_is_asked_too_much_lowers_the_ceiling(
    tmp_path: Path, error: ModelCallError, left: int
) -> None:
    assert Asked(Playing(error), tmp_path, http_attempts=1).pace.ceiling.now == left


def test_nothing_is_held_while_waiting_for_the_next_attempt(tmp_path: Path) -> None:
    """With one place, a call that waits for its second attempt lets another one through."""
    pace = Pace(entry("openai", limits={"concurrent_episodes": 1}))

    async def other(_seconds: float) -> None:
        async with asyncio.timeout(5), pace.request(1) as sending:
            sending.answered(None)

    asked = Asked(Playing(TransientError("http_500", "", 500), ANSWER), tmp_path, pace=pace, sleep=other)
    assert asked.raised is None


OPENAI_ERROR = {"error": {"message": "something"}}
FAULTS: dict[str, tuple[Reply, bool]] = {
    "timeout": (Reply(body="{}", delay_s=1.0), True),
    "connection_lost": (Reply(close=True), True),
    "connection_lost after some bytes": (Reply(body='{"id": "x"}', cut=4), True),
    "bad_answer": (Reply(body="<html>"), True),
    "bad_answer without choices": (Reply(body={"id": "x"}), True),
    "bad_answer cut compression": (Reply(body=b"x", headers={"content-encoding": "gzip"}), True),
    "error_in_answer": (Reply(body=OPENAI_ERROR), True),
    "http_500 malformed": (Reply(500, {"error": {"message": "cannot parse it"}}), True),
    "http_502": (Reply(502, OPENAI_ERROR), True),
    "http_504": (Reply(504, OPENAI_ERROR), True),
    "http_524": (Reply(524, OPENAI_ERROR), True),
    "http_400": (Reply(400, OPENAI_ERROR), False),
    "http_401": (Reply(401, OPENAI_ERROR), False),
    "http_408": (Reply(408, OPENAI_ERROR), False),
    "http_429": (Reply(429, OPENAI_ERROR), False),
    "http_500": (Reply(500, OPENAI_ERROR), False),
    "http_503": (Reply(503, OPENAI_ERROR), False),
    "http_529": (Reply(529, OPENAI_ERROR), False),
}
"""Kind (and what is meant) → what the server does, and whether the model may have worked for it."""


async def over_http(url: str) -> ModelCallError | None:
    patterns = [{"status": 500, "body": "cannot parse it"}]
    model = entry("openai", url, limits={"timeout_s": 0.3}, malformed_patterns=patterns)
    async with open_client() as client:
        try:
            adapter = open_adapter(model, Endpoint(url, None), 64, client)
            await adapter.complete(request_of(adapter, conversation(), (), None))
        except ModelCallError as error:
            return error
    return None


@pytest.mark.parametrize("fault", FAULTS)
def test_what_the_adapters_really_raise_is_booked_by_whether_the_model_may_have_worked(
    server: AnsweringServer, fault: str
) -> None:
    reply, billed = FAULTS[fault]
    server.script(reply)
    error = asyncio.run(over_http(server.url))
    assert error is not None
    assert error.kind == fault.split(" ")[0]
    assert possibly_billed(error) is billed


def test_a_server_that_is_not_there_has_billed_nothing() -> None:
    error = asyncio.run(over_http("http://127.0.0.1:9"))
    assert error is not None
    assert (error.kind, possibly_billed(error)) == ("connection", False)


def test_every_billed_kind_is_one_that_the_adapters_raise() -> None:
    raised = {fault.split(" ")[0] for fault, (_, billed) in FAULTS.items() if billed}
    assert raised >= POSSIBLY_BILLED


def test_an_answer_is_asked_over_http_with_the_policys_attempts(server: AnsweringServer, tmp_path: Path) -> None:
    server.script(
        Reply(429, OPENAI_ERROR, {"retry-after": "3"}), Reply(503, OPENAI_ERROR), Reply(body=said("openai", Turn("x")))
    )

    class Adapting(Playing):
        async def complete(self, _request: Request) -> Completion:
            async with open_client() as client:
                adapter = open_adapter(entry("openai", server.url), Endpoint(server.url, None), 64, client)
                return await adapter.complete(request_of(adapter, conversation(), (), None))

    asked = Asked(Adapting(), tmp_path)
    assert asked.raised is None
    assert asked.waits.asked[0] == 3.0
    assert 1.0 <= asked.waits.asked[1] <= 2.0
    assert [event["error"] for event in asked.attempts] == ["http_429", "http_503", None]
    assert [event["status"] for event in asked.attempts] == [429, 503, 200]
    assert all(event["latency_s"] > 0 for event in asked.attempts)
    assert len(server.requests) == 3
