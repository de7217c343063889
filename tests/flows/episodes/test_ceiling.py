"""The adaptive ceiling, by hand, against a simulated server, and against a real one that refuses over HTTP."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.episodes.calling import ModelCaller, Spending
from flows.episodes.ceiling import PROBE_ROUNDS, Ceiling, Places
from flows.episodes.pacing import Pace
from flows.episodes.transcript import TranscriptWriter
from flows.manifest import Pricing, Retry, Scaffold
from flows.models import Endpoint, open_adapter, open_client
from flows.models.adapter import Adapter, request_of
from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import RETRY, SCAFFOLD, http_entry, of_kind, open_study, run_study
from tests.flows.models.fault_server import Received, Reply
from tests.flows.models.support import conversation, entry


def answers(ceiling: Ceiling, number: int) -> None:
    for _ in range(number):
        ceiling.answered(ceiling.send())


def test_it_starts_at_the_manifests_ceiling_and_never_exceeds_it() -> None:
    ceiling = Ceiling(4)
    answers(ceiling, 1000)
    assert ceiling.now == 4


def test_a_refusal_halves_it_down_to_one() -> None:
    ceiling, seen = Ceiling(9), []
    for _ in range(5):
        ceiling.refused(ceiling.send())
        seen.append(ceiling.now)
    assert seen == [4, 2, 1, 1, 1]


def test_a_burst_of_refusals_is_one_decrease() -> None:
    ceiling = Ceiling(16)
    burst = [ceiling.send() for _ in range(16)]
    for number in burst[4:]:
        ceiling.refused(number)
    assert ceiling.now == 8


def test_answers_to_requests_from_before_the_fall_do_not_raise_it() -> None:
    ceiling = Ceiling(16)
    burst = [ceiling.send() for _ in range(16)]
    ceiling.refused(burst[15])
    for number in burst[:15]:
        ceiling.answered(number)
    answers(ceiling, 7)
    assert ceiling.now == 8
    answers(ceiling, 1)
    assert ceiling.now == 9


def test_a_round_of_answers_raises_it_by_one_and_more_slowly_next_to_what_was_refused() -> None:
    ceiling = Ceiling(8)
    ceiling.refused(ceiling.send())
    rounds = []
    while ceiling.now < 8:
        before, number = ceiling.now, 0
        while ceiling.now == before:
            answers(ceiling, 1)
            number += 1
        rounds.append(number / before)
    assert rounds == [1, 1, 1, PROBE_ROUNDS], "4, 5 and 6 at once, 7 only after many rounds"


def test_a_probe_that_is_refused_takes_back_one_step_alone() -> None:
    ceiling = Ceiling(8)
    ceiling.refused(ceiling.send())
    answers(ceiling, 4)
    assert ceiling.now == 5
    ceiling.refused(ceiling.send())
    assert ceiling.now == 4
    answers(ceiling, 4 * PROBE_ROUNDS - 1)
    assert ceiling.now == 4
    answers(ceiling, 1)
    assert ceiling.now == 5


def test_a_refused_size_is_forgotten_after_a_round_without_a_refusal() -> None:
    ceiling = Ceiling(64)
    ceiling.refused(ceiling.send())
    answers(ceiling, sum(range(32, 63)) + 63 * PROBE_ROUNDS)
    assert ceiling.now == 64
    answers(ceiling, 64)
    for size in (32, 16, 8, 4):
        ceiling.refused(ceiling.send())
        assert ceiling.now == size
    answers(ceiling, 10**5)
    assert ceiling.now == 64, "a server that has recovered is used in full again"


@given(st.integers(1, 40), st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=200))
def test_whatever_happens_it_stays_within_one_and_the_manifests_ceiling(
    most: int, events: Sequence[tuple[bool, int]]
) -> None:
    ceiling, sent = Ceiling(most), [0]
    for is_refusal, age in events:
        sent.append(ceiling.send())
        (ceiling.refused if is_refusal else ceiling.answered)(sent[-1 - min(age, len(sent) - 1)])
        assert 1 <= ceiling.now <= most


@pytest.mark.parametrize("capacity", [1, 3, 10, 31])
def test_a_server_that_takes_so_many_at_a_time_is_kept_at_that(capacity: int) -> None:
    """Time in ticks: a request takes one, a refusal none; after the start, all but the probes are taken."""
    ceiling = Ceiling(64)
    sizes, refusals = [], 0
    for tick in range(4000):
        batch = [ceiling.send() for _ in range(ceiling.now)]
        if tick > 400:
            sizes.append(min(len(batch), capacity))
            refusals += max(0, len(batch) - capacity)
        for number in batch[capacity:]:
            ceiling.refused(number)
        for number in batch[:capacity]:
            ceiling.answered(number)
    assert sum(sizes) / len(sizes) >= 0.95 * capacity
    assert refusals / len(sizes) <= 1.5 / PROBE_ROUNDS


def test_places_are_given_in_order_and_a_fallen_ceiling_lets_nobody_in() -> None:
    async def go() -> None:
        ceiling = Ceiling(4)
        places, entered = Places(ceiling), []

        async def enters(number: int, leaves: asyncio.Event) -> None:
            async with places:
                entered.append(number)
                await leaves.wait()

        events = [asyncio.Event() for _ in range(8)]
        tasks = [asyncio.create_task(enters(number, event)) for number, event in enumerate(events)]
        await asyncio.sleep(0)
        assert (entered, places.taken, places.locked()) == ([0, 1, 2, 3], 4, True)
        ceiling.refused(ceiling.send())
        for leaving in (1, 3):
            events[leaving].set()
            await asyncio.sleep(0.001)
            assert len(entered) == 4
        tasks[4].cancel()
        events[0].set()
        await asyncio.sleep(0.001)
        assert entered == [0, 1, 2, 3, 5], "one who gave up is passed over"
        for event in events:
            event.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (entered, places.taken, places.locked()) == ([0, 1, 2, 3, 5, 6, 7], 0, False)

    asyncio.run(go())


def test_a_place_that_comes_together_with_the_cancellation_is_not_lost() -> None:
    async def go() -> None:
        places = Places(Ceiling(1))
        await places.__aenter__()
        waiting = asyncio.create_task(places.__aenter__())
        await asyncio.sleep(0)
        await places.__aexit__(None, None, None)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(5), places:
            assert places.taken == 1

    asyncio.run(go())


CAPACITY, EPISODES, CALLS, LATENCY_S = 4, 16, 6, 0.1


class Crowded:
    """Takes `CAPACITY` requests at a time and refuses every further one."""

    def __init__(self, server: AnsweringServer, turn: Turn, adapter: str = "openai") -> None:
        self.server = server
        self.answer = said(adapter, turn)
        self.taken = self.refused = 0

    def __call__(self, _request: Received) -> Reply:
        if self.server.delayed >= CAPACITY:
            self.refused += 1
            return Reply(429, {"error": {"message": "too many concurrent requests", "type": "rate_limit_error"}})
        self.taken += 1
        return Reply(body=self.answer, delay_s=LATENCY_S)


def test_a_server_that_refuses_above_its_capacity_is_used_to_it_and_no_call_is_lost(
    server: AnsweringServer, tmp_path: Path
) -> None:
    crowded = Crowded(server, Turn("x"))
    server.answer_with(crowded)
    model = entry("openai", server.url, limits={"concurrent_episodes": EPISODES})

    async def episode(pace: Pace, adapter: Adapter, caller: ModelCaller) -> None:
        request = request_of(adapter, conversation(), (), 0.0)
        async with pace.episodes:
            for step in range(1, CALLS + 1):
                await caller.ask(step, request)

    async def go() -> tuple[int, int]:
        pace, spent = Pace(model), [Spending() for _ in range(EPISODES)]
        async with open_client() as client:
            adapter = open_adapter(model, Endpoint(server.url, None), 64, client)
            callers = [
                ModelCaller(
                    adapter,
                    spent[number],
                    pricing=Pricing(input=1.0, output=1.0),
                    scaffold=Scaffold.model_validate(SCAFFOLD),
                    retry=Retry.model_validate({**RETRY, "http_attempts": 6, "first_wait_s": 0.02}),
                    pace=pace,
                    transcript=TranscriptWriter(tmp_path / f"{number}.jsonl"),
                    extend=lambda _usd: True,
                    rng=random.Random(number),
                )
                for number in range(EPISODES)
            ]
            await asyncio.gather(*(episode(pace, adapter, caller) for caller in callers))
            return pace.ceiling.now, sum(one.http_attempts for one in spent)

    ceiling, attempts = asyncio.run(go())
    calls = EPISODES * CALLS
    assert crowded.taken == calls, "every call was answered, none twice"
    assert attempts == calls + crowded.refused == len(server.requests)
    assert crowded.refused <= calls / 4
    assert CAPACITY / 2 <= ceiling <= CAPACITY + 1, "the capacity is used, and little more is asked for"


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_a_run_against_such_a_server_has_no_infrastructure_errors(
    server: AnsweringServer, tmp_path: Path, adapter: str
) -> None:
    crowded = Crowded(server, Turn(calls=(("submit", {"answer": "4"}),)), adapter)
    server.answer_with(crowded)
    limits = {"concurrent_episodes": EPISODES}
    study = open_study(
        tmp_path, {"model": http_entry(adapter, server.url, limits=limits)}, instances=20, retry={"http_attempts": 6}
    )
    ran = run_study(study)
    assert [summary and summary.outcome for summary in ran.summaries] == ["completed"] * 40
    assert ran.campaign.tally.infra_errors == 0
    assert crowded.taken == 40
    assert 0 < crowded.refused <= 40
    attempts = [event for index in range(40) for event in of_kind(ran.events(index), "attempt")]
    assert len(attempts) == len(server.requests) == crowded.taken + crowded.refused, "each attempt is in a transcript"
    assert sum(event["status"] == 429 for event in attempts) == crowded.refused
