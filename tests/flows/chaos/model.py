"""A model whose answers depend on the conversation alone, and the bad days of the server before it."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flows.context import Study
from flows.episodes.pricing import price
from flows.manifest import Pricing
from flows.models.messages import Usage
from tasks_env import ToolCall
from tasks_env.families import family
from tasks_env.seeding import derive
from tests.flows.models.fault_server import Received, Reply
from tests.flows.models.support import openai_answer, openai_call

MANNERS = ("right", "wrong", "broken_arguments", "words_first", "unknown_tool", "never_hands_in", "cut_short")
"""What an agent does with a task; drawn from the task's statement, so that every meeting of it goes alike."""

Plans = Mapping[str, Sequence[ToolCall]]


def plans_of(study: Study) -> dict[str, list[ToolCall]]:
    """Statement of a task → the calls with which it is met, right or wrong."""
    plans = {}
    for _, cell in study.work:
        for variant in study.variants(cell):
            instance, chosen = study.instances(cell)[variant.instance_id], family(variant.family)
            wrong = _manner(variant.prompt) == "wrong"
            rng = derive(0, "chaos", variant.instance_id)
            plans[variant.prompt] = list(chosen.mistake(instance, rng) if wrong else chosen.reference(instance))
    return plans


def answer_to(body: Mapping[str, Any], plans: Plans) -> dict[str, Any]:
    """The answer to a chat completions request, its usage included, without an id."""
    messages = body["messages"]
    # The task that was stated last: where context is carried, those before it are over.
    stated = max(number for number, message in enumerate(messages) if _states_a_task(message, plans))
    prompt = messages[stated]["content"]
    turn, manner = sum(message["role"] == "assistant" for message in messages[stated:]), _manner(prompt)
    message, finish = _turn(turn, manner, plans[prompt])
    usage = {
        "prompt_tokens": 1 + len(json.dumps(messages)) // 4,
        "completion_tokens": 1 + len(json.dumps(message)) // 4,
        "prompt_tokens_details": {"cached_tokens": 10 * turn},
    }
    return openai_answer(message, finish, usage=usage)


def _states_a_task(message: Mapping[str, Any], plans: Plans) -> bool:
    return message["role"] == "user" and message["content"] in plans


def _manner(prompt: str) -> str:
    return MANNERS[hashlib.sha256(prompt.encode()).digest()[0] % len(MANNERS)]


def _turn(turn: int, manner: str, plan: Sequence[ToolCall]) -> tuple[dict[str, Any], str]:
    """Message and finish reason of the agent's n-th turn, counted from 0."""
    identity = f"call_{turn}"
    if manner in ("broken_arguments", "words_first", "unknown_tool"):
        if turn == 0:
            opening: dict[str, tuple[dict[str, Any], str]] = {
                "broken_arguments": (_calls(openai_call('{"a": ', "submit", identity)), "tool_calls"),
                "words_first": ({"content": "I shall think \ud83e\udd14 about it."}, "stop"),
                "unknown_tool": (_calls(openai_call("{}", "no_such_tool", identity)), "tool_calls"),
            }
            return opening[manner]
        turn -= 1
    if manner == "cut_short":
        return {"content": "The result is"}, "length"
    step = plan[0] if manner == "never_hands_in" or turn >= len(plan) else plan[turn]
    return _calls(openai_call(json.dumps(step.arguments), step.name, identity)), "tool_calls"


def _calls(call: dict[str, Any]) -> dict[str, Any]:
    return {"content": None, "tool_calls": [call]}


@dataclass
class Account:
    """What a server knows it was asked and what it answered."""

    pricing: Pricing
    asked: int = 0
    served: dict[str, Usage] = field(default_factory=dict)
    """Whole answers: the answer's own id → its tokens."""
    lost: int = 0
    """Answers that the model worked out and that were broken or cut on their way."""
    refused: int = 0

    @property
    def served_usd(self) -> float:
        """Price of all whole answers."""
        return sum(price(usage, self.pricing) for usage in self.served.values())

    def note(self, answer: Mapping[str, Any]) -> None:
        """A whole answer."""
        usage = answer["usage"]
        self.served[answer["id"]] = Usage(
            input_total=usage["prompt_tokens"],
            input_cached=usage["prompt_tokens_details"]["cached_tokens"],
            output_total=usage["completion_tokens"],
        )


class BadDay:
    """Answers requests, or fails to, as a seed says.

    Args:
        share: Of the requests that meet a fault.
        delay_s: Longest wait of an ordinary answer.
        tokens_in: What every answer says it read; null: about what it really read.
    """

    def __init__(
        self,
        plans: Plans,
        pricing: Pricing,
        seed: int,
        share: float,
        delay_s: float = 0.006,
        tokens_in: int | None = None,
    ) -> None:
        self.account = Account(pricing)
        self._tokens_in = tokens_in
        self._plans = plans
        self._share = share
        self._delay_s = delay_s
        self._rng = random.Random(seed)

    def __call__(self, request: Received) -> Reply:
        self.account.asked += 1
        delay = self._rng.random() * self._delay_s
        if self._rng.random() < self._share:
            return self._fault(request, delay)
        answer = self._answer(request, "answer")
        self.account.note(answer)
        return Reply(body=answer, delay_s=delay)

    def _answer(self, request: Received, kind: str) -> dict[str, Any]:
        answer = {**answer_to(request.body, self._plans), "id": f"{kind}-{self.account.asked}"}
        if self._tokens_in is not None:
            answer["usage"]["prompt_tokens"] = self._tokens_in
        return answer

    def _fault(self, request: Received, delay: float) -> Reply:
        refusals = [
            Reply(429, {"error": {"message": "slow down"}}, {"retry-after-ms": "7"}, delay_s=delay),
            Reply(429, {"error": {"message": "slow down"}}, {"retry-after": "0.01"}, delay_s=delay),
            Reply(500, {"error": {"message": "oops"}}, delay_s=delay),
            Reply(529, {"error": {"message": "overloaded", "type": "overloaded_error"}}, delay_s=delay),
            Reply(503, "<html>down</html>", {"retry-after": "86400"}, delay_s=delay),
            Reply(404, {"error": {"message": "the model has gone away"}}, delay_s=delay),
        ]
        answer = self._answer(request, "lost")
        payload = json.dumps(answer)
        losses = [
            Reply(body=payload, cut=self._rng.randrange(len(payload)), delay_s=delay),
            Reply(close=True, delay_s=delay),
            Reply(body=payload[: self._rng.randrange(len(payload))], delay_s=delay),
            Reply(body="<html>all is well</html>", delay_s=delay),
            Reply(502, {"error": {"message": "bad gateway"}}, delay_s=delay),
        ]
        slow = Reply(body={**answer, "id": f"answer-{self.account.asked}"}, delay_s=10 * self._delay_s)
        fault = self._rng.choices([*refusals, *losses, slow], [2, 2, 2, 2, 0.3, 0.3, 1, 1, 1, 1, 1, 4])[0]
        if fault is slow:
            self.account.note(slow.body)
        elif any(fault is loss for loss in losses):
            self.account.lost += 1
        else:
            self.account.refused += 1
        return fault
