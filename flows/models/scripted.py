"""The reference agent: plays the reference solution or a near miss, by chances that the manifest documents.

It is a model like any other to the scaffold (it acts through tool calls, is asked step by step and priced), but it
is opened per episode with the episode's context, which tells it the instance and the cell. What it does is drawn
from the episode's id, so that the same episode is the same on every machine, and another run seed is a new draw.
Where tasks share a conversation there is one per task, which knows its own task alone.

Known truth: the chance of passing is `pass_rate[difficulty] + effects[axis][level] + family_effects[family]` + the
instance's offset. The offset is uniform on ± `instance_spread`, the same for every scripted agent, so that some
instances are harder than others. An agent that does not pass plays the family's near miss; one failure in eight
ends without handing anything in, one in eight begins with a call whose arguments are no JSON. One episode in five
repeats its first look-around call, so that trajectories vary where outcomes do not.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

from pydantic import JsonValue

from flows.manifest import ScriptedModel
from flows.models.adapter import Request
from flows.models.conversation import taken_ids
from flows.models.envelope import normal_form
from flows.models.messages import AssistantMessage, Call, Completion, Message, Stop, Usage, UserMessage
from tasks_env import Instance, Session, ToolCall, ToolSpec, Variant, family, play
from tasks_env.canonical import canonical_json
from tasks_env.identity import Same
from tasks_env.naming import shown_arguments
from tasks_env.seeding import derive
from tasks_env.types import JsonObject, Naming

_BYTES_PER_TOKEN = 4
_OPENER = UserMessage(text="-")


class EpisodeContext(Protocol):
    """What the scripted agent may know of the episode; no part of it reaches a request body."""

    @property
    def episode_id(self) -> str:
        """All draws derive from it."""

    @property
    def instance(self) -> Instance:
        """The task, with its reference solution."""

    @property
    def variant(self) -> Variant:
        """How the episode's cell shows it."""


def chance_of_passing(entry: ScriptedModel, context: EpisodeContext) -> float:
    """The documented probability for this episode's cell and instance."""
    variant = context.variant
    offset = derive(0, "scripted offset", context.instance.instance_id).uniform(-1, 1) * entry.instance_spread
    return (
        entry.pass_rate[variant.difficulty]
        + entry.effects.get(variant.axis, {}).get(variant.level, 0.0)
        + entry.family_effects.get(variant.family, 0.0)
        + offset
    )


class ScriptedAdapter:
    """One episode of a scripted agent.

    Args:
        entry: Its error model.
        context: The episode.
        max_output_tokens: Ceiling of each answer; it is only said, the agent's answers are short.
        parallel_calls: False asks for one tool call per turn, which is all that the agent ever makes.

    Raises:
        GenerationError: the family finds no mistake for the instance.
    """

    version = "scripted/2"

    def __init__(
        self, entry: ScriptedModel, context: EpisodeContext, max_output_tokens: int, parallel_calls: bool = True
    ) -> None:
        self._naming = context.variant.presentation.naming
        self._turn = 0
        self._taken: set[str] = set()
        self._plan = _plan(entry, context)
        self._request = _GrowingRequest(max_output_tokens, parallel_calls)

    def request_body(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], temperature: float | None
    ) -> JsonObject:
        """The request's normal form: what an adapter sends that has no provider's envelope."""
        return self._request.body(messages, tools, temperature)

    async def complete(self, request: Request) -> Completion:
        """The plan's next step; tokens are counted as a quarter of the bytes, and one more."""
        planned = self._plan[self._turn] if self._turn < len(self._plan) else None
        if self._turn == 0:
            self._taken = taken_ids(request.messages)
        self._turn += 1
        message = self._message(planned)
        written = len(message.text) + sum(len(call.name) + len(call.raw_arguments) for call in message.calls)
        return Completion(
            message=message,
            usage=Usage(input_total=1 + request.size // _BYTES_PER_TOKEN, output_total=1 + written // _BYTES_PER_TOKEN),
            stop=Stop.CALLS if message.calls else Stop.END,
            raw=None,
        )

    def _message(self, planned: ToolCall | str | None) -> AssistantMessage:
        if planned is None:
            return AssistantMessage(text="I have nothing more to do.")
        identity = self._free_id()
        if isinstance(planned, ToolCall):
            return _turn(Same(planned), Same(self._naming), identity)
        problem = "the arguments are not a valid JSON object: they break off"
        call = Call(id=identity, name=planned, arguments=None, raw_arguments="{", problem=problem)
        return AssistantMessage(calls=(call,))

    def _free_id(self) -> str:
        """`call_<turn>`, or the next number that no call of an earlier task has."""
        number = self._turn
        while (identity := f"call_{number}") in self._taken:
            number += 1
        self._taken.add(identity)
        return identity


def _plan(entry: ScriptedModel, context: EpisodeContext) -> list[ToolCall | str]:
    """Calls in canonical names; a bare name, as it is shown, is a call of that tool with broken arguments."""
    rng = derive(0, "scripted", context.episode_id)
    chosen = family(context.variant.family)
    passes = rng.random() < chance_of_passing(entry, context)
    plan: list[ToolCall | str] = list(
        _reference(Same(context.instance)) if passes else chosen.mistake(context.instance, rng)
    )
    if rng.random() < 0.2:
        plan.insert(0, plan[0])
    if not passes:
        manner = rng.random()
        if manner < 0.125:
            return plan[:-1] if len(plan) > 1 and not _solves(context, plan[:-1]) else [plan[0]]
        if manner < 0.25:
            first = context.variant.tools[0].name
            return [first, *plan]
    return plan


@lru_cache(maxsize=512)
def _reference(instance: Same[Instance]) -> tuple[ToolCall, ...]:
    """The instance's reference solution: the same in every episode, and often all that an episode takes to plan."""
    return family(instance.value.family).reference(instance.value)


@lru_cache(maxsize=4096)
def _turn(planned: Same[ToolCall], naming: Same[Naming], identity: str) -> AssistantMessage:
    """The turn that makes a call: the same in every episode that plays the instance's reference solution."""
    name, arguments = planned.value.name, shown_arguments(planned.value.arguments, naming.value)
    shown = naming.value.tools.get(name, name)
    call = Call(id=identity, name=shown, arguments=arguments, raw_arguments=canonical_json(arguments))
    return AssistantMessage(calls=(call,))


def _solves(context: EpisodeContext, plan: Sequence[ToolCall | str]) -> bool:
    session = Session(context.instance, context.variant)
    play(session, tuple(step for step in plan if isinstance(step, ToolCall)))
    return session.verdict().passed


class _GrowingRequest:
    """`normal_form` for a conversation that grows from step to step, at the price of what is new.

    An episode asks for it at every step; doing the whole conversation again would be most of an episode's cost.
    """

    def __init__(self, max_output_tokens: int, parallel_calls: bool) -> None:
        self._max_output_tokens = max_output_tokens
        self._parallel_calls = parallel_calls
        self._tools: Sequence[ToolSpec] = ()
        self._temperature: float | None = None
        self._messages: list[Message] = []
        self._frame: JsonObject = {}
        self._turns: list[JsonValue] = []
        self._calls = 0

    def body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], temperature: float | None) -> JsonObject:
        """Equal to `normal_form` of the same arguments. Raises `ValueError` for an invalid conversation."""
        known = len(self._messages)
        begun = all(map(operator.is_, self._messages, messages)) and 0 < known <= len(messages)
        if not (begun and tools is self._tools and temperature == self._temperature):
            form = normal_form(messages, tools, temperature, self._max_output_tokens, self._parallel_calls)
            self._tools, self._temperature, self._messages = tools, temperature, list(messages)
            self._frame, self._turns, self._calls = {**form, "messages": []}, [], 0
            self._append(form)
        elif len(messages) > known:
            # Whole exchanges have the form of a conversation of their own, but for the count of calls.
            self._append(normal_form([_OPENER, *messages[known:]], (), None, 0), after=1)
            self._messages += messages[known:]
        return {**self._frame, "messages": list(self._turns)}

    def _append(self, form: JsonObject, after: int = 0) -> None:
        turns = cast(list[dict[str, Any]], form["messages"])[after:]
        for turn in turns:
            for item in [*turn.get("calls", ()), *turn.get("answers", ())]:
                item["call"] += self._calls
        self._calls += sum(len(turn.get("calls", ())) for turn in turns)
        self._turns += turns
