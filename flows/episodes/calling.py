"""One model call with everything around it: pace, attempts by the manifest's policy, price, budget, transcript."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from flows.episodes.pacing import Pace, Sleep
from flows.episodes.pricing import call_bound, price
from flows.episodes.transcript import TranscriptWriter
from flows.manifest import Pricing, Retry, Scaffold
from flows.models.adapter import Adapter, ModelCallError, TransientError
from flows.models.messages import Completion, Message, Usage
from tasks_env.types import ToolSpec

POSSIBLY_BILLED = frozenset({"timeout", "connection_lost", "bad_answer"})
"""Kinds of transient failure after which the provider may have worked, and charged, all the same."""


@dataclass
class Spending:
    """Sums over one attempt at an episode."""

    usages: list[Usage] = field(default_factory=list)
    spent_usd: float = 0.0
    unknown_usd: float = 0.0
    """Upper bound of the calls whose usage nobody said."""
    http_attempts: int = 0

    @property
    def known(self) -> bool:
        """Whether every billed call said its usage."""
        return self.unknown_usd == 0

    def total(self, name: str) -> int:
        """Sum of one field of `Usage`."""
        return sum(getattr(usage, name) for usage in self.usages)


class BudgetSpent(ModelCallError):
    """Another attempt at a call that may have been billed does not fit under the cap."""


class ModelCaller:
    """Asks one model on behalf of one episode.

    Args:
        adapter: Makes single attempts.
        retry: The manifest's policy.
        pace: The model's rate limits.
        extend: Reserves more money; returns whether it fits under the cap.
        rng: Jitter of the waits.
    """

    def __init__(
        self,
        adapter: Adapter,
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
        self.spending = Spending()
        self._adapter = adapter
        self._pricing = pricing
        self._bound = call_bound(pricing, scaffold)
        self._retry = retry
        self._pace = pace
        self._transcript = transcript
        self._extend = extend
        self._rng = rng
        self._sleep = sleep

    async def ask(
        self,
        step: int,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        temperature: float | None,
        request_bytes: int,
    ) -> Completion:
        """One answer, after as many attempts as the policy allows.

        Raises:
            ModelCallError: the last attempt's failure.
        """
        expected_tokens = request_bytes // 4
        for attempt in range(1, self._retry.http_attempts + 1):
            await self._pace.before_request(expected_tokens)
            self.spending.http_attempts += 1
            started = time.monotonic()
            try:
                completion = await self._adapter.complete(messages, tools, temperature)
            except ModelCallError as error:
                wait = self._wait(error, attempt)
                self._transcript.record(
                    "attempt",
                    step=step,
                    attempt=attempt,
                    latency_s=round(time.monotonic() - started, 6),
                    error=error.kind,
                    status=error.status,
                    detail=error.detail,
                    wait_s=wait,
                )
                if error.kind in POSSIBLY_BILLED:
                    self.spending.unknown_usd += self._bound
                if wait is None:
                    raise
                if error.kind in POSSIBLY_BILLED and not self._extend(self._bound):
                    raise BudgetSpent("budget", "the cap leaves no room to repeat the call") from error
                await self._sleep(wait)
                continue
            self._book(step, attempt, time.monotonic() - started, completion, expected_tokens)
            return completion
        raise AssertionError("the last attempt returns or raises")

    def _book(self, step: int, attempt: int, latency: float, completion: Completion, expected_tokens: int) -> None:
        usage = completion.usage
        cost = None if usage is None else price(usage, self._pricing)
        if usage is None or cost is None:
            self.spending.unknown_usd += self._bound
        else:
            self.spending.usages.append(usage)
            self.spending.spent_usd += cost
        self._pace.after_request(expected_tokens, usage.input_total + usage.output_total if usage else None)
        self._transcript.record(
            "attempt", step=step, attempt=attempt, latency_s=round(latency, 6), error=None, cost_usd=cost
        )

    def _wait(self, error: ModelCallError, attempt: int) -> float | None:
        """Seconds before the next attempt; null if there is none."""
        if not isinstance(error, TransientError) or attempt == self._retry.http_attempts:
            return None
        if error.wait_s is not None:
            return error.wait_s if error.wait_s <= self._retry.max_wait_s else None
        backoff = self._retry.first_wait_s * self._retry.multiplier ** (attempt - 1)
        return min(self._retry.max_wait_s, backoff) * self._rng.uniform(0.5, 1.0)
