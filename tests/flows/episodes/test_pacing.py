"""Rate limits: never more than the bucket and its refill, first come first served, estimates put right."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.episodes.pacing import Bucket, Pace
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


def test_a_model_without_limits_never_waits_and_one_with_limits_has_its_places() -> None:
    async def go() -> None:
        free = Pace(entry("openai"))
        for _ in range(1000):
            await free.before_request(10**9)
        free.after_request(1, None)
        limits = {"concurrent_episodes": 2, "requests_per_minute": 10, "tokens_per_minute": 100}
        paced = Pace(entry("openai", limits=limits))
        await paced.before_request(90)
        paced.after_request(90, 10)
        async with asyncio.timeout(5):
            await paced.before_request(90)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await paced.before_request(90)
        async with paced.episodes, paced.episodes:
            assert paced.episodes.locked()

    asyncio.run(go())
