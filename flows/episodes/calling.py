"""One model call with everything around it: pace, attempts by the manifest's policy, price, budget, transcript."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from flows.episodes.pacing import Pace, Sleep
from flows.episodes.pricing import call_bound, price
from flows.episodes.transcript import TranscriptWriter
from flows.manifest import Pricing, Retry, Scaffold
from flows.models.adapter import Adapter, ContentFiltered, MalformedOutput, ModelCallError, Request, TransientError
from flows.models.messages import AssistantMessage, Completion, Stop, Usage

POSSIBLY_BILLED = frozenset(
    {"timeout", "connection_lost", "bad_answer", "error_in_answer", "http_502", "http_504", "http_524"}
)
"""Kinds of failure after which the model may have worked, and the provider charged, all the same.

A request that reached the server and whose answer was lost, broken, or given up on by a gateway. Not among them:
`connection` (nothing was sent) and what a server refuses by itself (4xx, 500, 503, 529)."""

TOO_MANY = frozenset({429, 503, 529})
"""Statuses by which a server says that it is asked too much: too many requests, slow down, overloaded."""

_BOUND_SLACK = 1 + 1e-9
"""Rounding of a price that just meets its bound."""


@dataclass
class Spending:
    """Sums over one attempt at an episode."""

    usages: list[Usage] = field(default_factory=list)
    spent_usd: float = 0.0
    unknown_usd: float = 0.0
    """Upper bound of the calls whose usage nobody said."""
    unknown_calls: int = 0
    """How many those are: where calls are free, their bound is no sign of them."""
    http_attempts: int = 0

    @property
    def known(self) -> bool:
        """Whether every call that may be billed said its usage."""
        return self.unknown_calls == 0

    def total(self, name: str) -> int | None:
        """Sum of one field of `Usage`; null if not every usage is known."""
        return sum(getattr(usage, name) for usage in self.usages) if self.known else None

    def book(self, usage: Usage, usd: float) -> None:
        """Add an answer with its price."""
        self.usages.append(usage)
        self.spent_usd += usd

    def book_unknown(self, usd: float) -> None:
        """Add a call that cost at most `usd`."""
        self.unknown_calls += 1
        self.unknown_usd += usd


class BudgetSpent(ModelCallError):
    """Another attempt at a call that may have been billed does not fit under the cap, or an answer that cost more
    than its bound does not."""


class AdapterCrash(ModelCallError):
    """An adapter broke where it should have classified: a defect of this package, not the agent's failure."""

    def __init__(self, error: Exception) -> None:
        super().__init__("adapter_exception", f"{type(error).__name__}: {error}"[:500])


def possibly_billed(error: ModelCallError) -> bool:
    """Whether the model may have worked before the failure: always where its own output broke the server."""
    return isinstance(error, MalformedOutput | AdapterCrash) or error.kind in POSSIBLY_BILLED


class ModelCaller:
    """Asks one model on behalf of one episode.

    Args:
        adapter: Makes single attempts.
        spending: Where every attempt is booked.
        retry: The manifest's policy.
        pace: The model's rate limits.
        extend: Reserves more money; returns whether it fits under the cap.
        rng: Jitter of the waits.
        sleep: Replaced in tests.
    """

    def __init__(
        self,
        adapter: Adapter,
        spending: Spending,
        *,
        pricing: Pricing,
        scaffold: Scaffold,
        retry: Retry,
        pace: Pace,
        transcript: TranscriptWriter,
        extend: Callable[[float], bool],
        rng: random.Random,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._adapter = adapter
        self._spending = spending
        self._pricing = pricing
        self._bound = call_bound(pricing, scaffold)
        self._retry = retry
        self._pace = pace
        self._transcript = transcript
        self._extend = extend
        self._rng = rng
        self._sleep = sleep

    async def ask(self, step: int, request: Request) -> Completion:
        """One answer, after as many attempts as the policy allows.

        Raises:
            ModelCallError: the last attempt's failure.
        """
        expected_tokens = request.size // 4
        for attempt in range(1, self._retry.http_attempts + 1):
            self._transcript.flush()
            async with self._pace.request(expected_tokens) as sending:
                started = time.monotonic()
                answer = await self._attempt(request)
                latency = time.monotonic() - started
                if isinstance(answer, Completion):
                    sending.answered(answer.usage.input_total + answer.usage.output_total if answer.usage else None)
                elif answer.status in TOO_MANY:
                    sending.refused()
            if isinstance(answer, Completion):
                self._book(answer, step, attempt, latency)
                return answer
            await self._recover(answer, step, attempt, latency)
            if isinstance(answer, ContentFiltered):
                return Completion(message=AssistantMessage(), usage=None, stop=Stop.REFUSAL, raw=answer.raw)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, request: Request) -> Completion | ModelCallError:
        self._spending.http_attempts += 1
        try:
            return await self._adapter.complete(request)
        except ModelCallError as error:
            return error
        except Exception as error:  # noqa: BLE001 - whatever an adapter lets through
            return AdapterCrash(error)
        except BaseException:
            # Cancelled in flight: the provider may charge for an answer that nobody will read.
            self._spending.book_unknown(self._bound)
            raise

    async def _recover(self, error: ModelCallError, step: int, attempt: int, latency: float) -> None:
        """Book and log a failed attempt and wait for the next one.

        Raises `error` if there is none, unless it is the provider's refusal, which is an answer.
        """
        wait = self._wait(error, attempt)
        billed = possibly_billed(error)
        self._transcript.record(
            "attempt",
            step=step,
            attempt=attempt,
            latency_s=round(latency, 6),
            error=error.kind,
            status=error.status,
            detail=error.detail,
            raw=error.raw,
            wait_s=wait,
            cost_usd=None if billed else 0.0,
        )
        if billed:
            self._spending.book_unknown(self._bound)
        if isinstance(error, ContentFiltered):
            return
        if wait is None:
            raise error
        if billed and not self._extend(self._bound):
            raise BudgetSpent("budget", f"after {error.kind}, the cap leaves no room to repeat the call") from error
        await self._sleep(wait)

    def _book(self, completion: Completion, step: int, attempt: int, latency: float) -> None:
        """Book and log an answer. Raises `BudgetSpent` where it cost more than its bound and the cap has no room."""
        usage = completion.usage
        cost = None if usage is None else price(usage, self._pricing)
        self._transcript.record(
            "attempt",
            step=step,
            attempt=attempt,
            latency_s=round(latency, 6),
            error=None,
            status=completion.status,
            cost_usd=cost,
        )
        if usage is None or cost is None:
            self._spending.book_unknown(self._bound)
            return
        self._spending.book(usage, cost)
        # Some providers bill more than the request's limits allow; what was reserved is then held for less.
        if cost > self._bound * _BOUND_SLACK and not self._extend(cost - self._bound):
            raise BudgetSpent("budget", f"an answer cost {cost:.6f} USD, over its bound; the cap leaves no room")

    def _wait(self, error: ModelCallError, attempt: int) -> float | None:
        """Seconds before the next attempt; null if there is none.

        The server's advice is followed as it stands, but never beyond the policy's ceiling: a server that asks for a
        longer wait would be asked too early by a shortened one, so the call is given up and the episode left to a
        later attempt. Without advice: exponential backoff up to the ceiling, of which a random half is taken away.
        """
        if not isinstance(error, TransientError) or attempt == self._retry.http_attempts:
            return None
        if error.wait_s is not None:
            return error.wait_s if error.wait_s <= self._retry.max_wait_s else None
        backoff = self._retry.first_wait_s * self._retry.multiplier ** (attempt - 1)
        return min(self._retry.max_wait_s, backoff) * self._rng.uniform(0.5, 1.0)
