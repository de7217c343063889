"""Rate limits: never more than the bucket and its refill, first come first served, estimates put right."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.episodes.pacing import Bucket, Pace, paces, shared_limits
from flows.manifest import ScriptedModel
from tests.flows.models.support import entry


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.now += seconds

    def bucket(self, per_minute: float) -> Bucket:
        return Bucket(per_minute, self.clock, self.sleep)


def test_a_full_bucket_makes_nobody_wait_and_an_empty_one_for_the_refill() -> None:
    time = Time()

    async def go() -> None:
        bucket = time.bucket(60)
        for _ in range(60):
            await bucket.take(1)
        assert time.slept == []
        await bucket.take(1)
        assert time.slept == [pytest.approx(1.0)]
        await bucket.take(10)
        assert time.slept[1:] == [pytest.approx(10.0)]

    asyncio.run(go())


def test_more_than_the_bucket_holds_waits_for_a_full_bucket() -> None:
    time = Time()

    async def go() -> None:
        bucket = time.bucket(60)
        await bucket.take(60)
        await bucket.take(10_000)
        assert sum(time.slept) == pytest.approx(60.0)

    asyncio.run(go())


def test_estimates_are_put_right() -> None:
    time = Time()

    async def go() -> None:
        bucket = time.bucket(60)
        await bucket.take(30)
        bucket.adjust(25)
        await bucket.take(6)
        assert sum(time.slept) == pytest.approx(1.0), "it was 25 more than thought"
        bucket.adjust(-10_000)
        await bucket.take(60)
        assert sum(time.slept) == pytest.approx(1.0), "given back, but never above the size"
        await bucket.take(1)
        assert sum(time.slept) == pytest.approx(2.0)

    asyncio.run(go())


def test_places_are_given_in_the_order_of_asking() -> None:
    served = list[int]()

    async def go() -> None:
        bucket = Bucket(6000)
        await bucket.take(6000)

        async def asks(number: int, amount: float) -> None:
            await bucket.take(amount)
            served.append(number)

        await asyncio.gather(*(asks(number, amount) for number, amount in enumerate([15, 1, 5, 1])))

    asyncio.run(go())
    assert served == [0, 1, 2, 3], "a small request does not overtake a large one that waits"


def test_one_who_gives_up_waiting_takes_nothing_and_blocks_nobody() -> None:
    async def go() -> None:
        bucket = Bucket(600)
        await bucket.take(600)
        waiting = asyncio.create_task(bucket.take(500))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(5):
            await bucket.take(1)

    asyncio.run(go())


@given(st.integers(1, 600), st.lists(st.floats(0, 700), max_size=30))
def test_in_no_window_is_more_taken_than_the_size_and_the_refill(per_minute: int, amounts: list[float]) -> None:
    time, taken = Time(), list[tuple[float, float]]()

    async def go() -> None:
        bucket = time.bucket(per_minute)
        for amount in amounts:
            await bucket.take(amount)
            taken.append((time.now, min(amount, per_minute)))

    asyncio.run(go())
    for start, (began, _) in enumerate(taken):
        total = 0.0
        for ended, amount in taken[start:]:
            total += amount
            assert total <= per_minute + (ended - began) * per_minute / 60 + 1e-6


async def paced(pace: Pace, expected: int, actual: int | None = None) -> None:
    async with pace.request(expected) as sending:
        sending.answered(actual)


def test_a_model_without_limits_never_waits_and_one_with_limits_has_its_places() -> None:
    async def go() -> None:
        free = Pace(entry("openai"))
        for _ in range(1000):
            await paced(free, 10**9)
        limits = {"concurrent_episodes": 2, "requests_per_minute": 10, "tokens_per_minute": 100}
        pace = Pace(entry("openai", limits=limits))
        await paced(pace, 90, 10)
        async with asyncio.timeout(5):
            await paced(pace, 90)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await paced(pace, 90)
        async with pace.episodes, pace.episodes:
            assert pace.episodes.locked()

    asyncio.run(go())


def test_no_usage_that_a_server_makes_up_stops_the_run() -> None:
    time = Time()

    async def go() -> None:
        bucket = time.bucket(60)
        await bucket.take(10)
        bucket.adjust(10**30)
        async with asyncio.timeout(5):
            await bucket.take(1)
        assert sum(time.slept) <= 120

    asyncio.run(go())


def grid(*entries: Any) -> Any:
    return SimpleNamespace(models={str(number): one for number, one in enumerate(entries)})


def test_models_at_one_endpoint_share_its_allowances_and_the_smallest_holds() -> None:
    def limited(url: str, key: str | None = None, **limits: int) -> Any:
        return entry("openai", url, limits=limits, api_key_env=key)

    one, same = limited("http://a", requests_per_minute=90, tokens_per_minute=500), limited("http://a")
    slower, other_key = limited("http://a/", requests_per_minute=30), limited("http://a", "KEY")
    elsewhere = limited("http://b", requests_per_minute=90)
    of = paces(grid(one, same, slower, other_key, elsewhere), ["0", "1", "2", "3", "4"])
    assert list(of) == ["0", "1", "2", "3", "4"]
    assert of["0"].buckets is of["1"].buckets is of["2"].buckets
    assert len({id(pace.buckets) for pace in of.values()}) == 3
    assert len({id(pace.episodes) for pace in of.values()}) == 5, "the ceiling is each model's own"
    assert of["3"].buckets.requests is None

    async def go() -> None:
        for number in range(30):
            await paced(of[str(number % 3)], 1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await paced(of["0"], 1)
        await paced(of["4"], 1)

    asyncio.run(go())


def test_agents_without_an_endpoint_share_nothing() -> None:
    agent = ScriptedModel.model_validate(
        {
            "adapter": "scripted",
            "pass_rate": {"easy": 0.5},
            "pricing": {"input": 0.0, "output": 0.0},
            "limits": {"requests_per_minute": 5},
        }
    )
    of = paces(grid(agent, agent), ["0", "1"])
    assert of["0"].buckets is not of["1"].buckets


def test_a_request_holds_its_place_until_it_is_answered_and_frees_it_however_it_ends() -> None:
    async def go() -> None:
        pace = Pace(entry("openai", limits={"concurrent_episodes": 1, "tokens_per_minute": 60}))
        with pytest.raises(RuntimeError):
            async with pace.request(1):
                raise RuntimeError
        async with pace.request(60):
            waiting = asyncio.create_task(paced(pace, 1))
            await asyncio.sleep(0)
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        for_tokens = asyncio.create_task(paced(pace, 60))
        await asyncio.sleep(0)
        for_tokens.cancel()
        await asyncio.gather(for_tokens, return_exceptions=True)
        async with asyncio.timeout(5):
            await paced(pace, 0)

    asyncio.run(go())


def test_a_refusal_lowers_the_episodes_and_the_requests_in_flight_alike() -> None:
    async def go() -> None:
        pace = Pace(entry("openai", limits={"concurrent_episodes": 4}))
        async with pace.request(1) as sending:
            sending.refused()
        assert pace.ceiling.now == 2
        async with pace.episodes, pace.episodes:
            late = asyncio.create_task(pace.episodes.__aenter__())
            await asyncio.sleep(0)
            assert not late.done()
            for _ in range(2):
                await paced(pace, 1)
            async with asyncio.timeout(5):
                await late
            assert pace.ceiling.now == 3, "a round of answers let one more episode in"

    asyncio.run(go())


class Shared:
    """A server of shared limits that grants everything and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def acquire(self, name: str, units: int) -> None:
        self.asked.append((name, units))
        await asyncio.sleep(0)


def test_processes_share_a_limit_per_kind_and_endpoint_and_no_name_tells_of_the_environment() -> None:
    def limited(url: str | None, **fields: Any) -> Any:
        return entry("openai", url, limits={"requests_per_minute": 90, "tokens_per_minute": 500}, **fields)

    one, same = (
        limited("https://api.one.com/v1", api_key_env="KEY"),
        limited("https://api.one.com/v1/", api_key_env="KEY"),
    )
    other_key = limited("https://api.one.com/v1", api_key_env="OTHER")
    hidden = limited(None, base_url_env="THE_PLACE")
    limits = shared_limits(grid(one, same, other_key, hidden), ["0", "1", "2", "3"])
    assert len({limit.name for limit in limits}) == len(limits) == 6
    assert [limit.name.rpartition("-")[0] for limit in limits] == [
        "agent-bench-requests-api.one.com-v1",
        "agent-bench-tokens-api.one.com-v1",
    ] * 2 + ["agent-bench-requests-THE_PLACE", "agent-bench-tokens-THE_PLACE"]
    assert [(limit.per_minute, limit.grain) for limit in limits[:2]] == [(90, 1000), (500, 1)]
    assert shared_limits(grid(one), ["0"]) == limits[:2], "the same in every process"
    assert shared_limits(grid(entry("openai")), ["0"]) == []


def test_a_second_of_a_shared_limit_is_taken_at_a_time_and_what_was_estimated_wrong_is_made_good() -> None:
    async def go() -> None:
        shared = Shared()
        models = grid(entry("openai", limits={"requests_per_minute": 120, "tokens_per_minute": 6000}))
        pace = paces(models, ["0"], shared.acquire)["0"]
        requests, tokens = (limit.name for limit in shared_limits(models, ["0"]))
        async with pace.request(30) as sending:
            sending.answered(150)
        assert shared.asked == [(requests, 2000), (tokens, 100)]
        async with pace.request(30):
            pass
        assert shared.asked[2:] == [(tokens, 100)], "70 were left, 120 more were used"
        for _ in range(2):
            async with pace.request(20) as sending:
                sending.answered(20)
        assert shared.asked[3:] == [(requests, 2000), (tokens, 100)], "20 were left of the tokens"
        async with pace.request(10**9):
            pass
        assert shared.asked[5:] == [(requests, 2000), (tokens, 5920)], "a minute's worth in all, of which 80 were left"

    asyncio.run(go())


def test_without_a_shared_server_nobody_is_asked_and_agents_without_an_endpoint_never_ask() -> None:
    async def go() -> None:
        shared = Shared()
        agent = ScriptedModel.model_validate(
            {
                "adapter": "scripted",
                "pass_rate": {"easy": 0.5},
                "pricing": {"input": 0.0, "output": 0.0},
                "limits": {"requests_per_minute": 5},
            }
        )
        await paced(paces(grid(agent), ["0"], shared.acquire)["0"], 1)
        await paced(paces(grid(entry("openai", limits={"requests_per_minute": 5})), ["0"])["0"], 1)
        assert shared.asked == []

    asyncio.run(go())
