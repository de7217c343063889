"""The reference agent: plays the reference solution or a near miss, by chances that the manifest documents.

It is a model like any other to the scaffold (it acts through tool calls, is asked step by step and priced), but it
is opened per episode with the episode's context, which tells it the instance and the cell. What it does is drawn
from the episode's id, so that the same episode is the same on every machine, and another run seed is a new draw.

Known truth: the chance of passing is `pass_rate[difficulty] + effects[axis][level] + family_effects[family]` + the
instance's offset. The offset is uniform on ± `instance_spread`, the same for every scripted agent, so that some
instances are harder than others. An agent that does not pass plays the family's near miss; one failure in eight
ends without handing anything in, one in eight begins with a call whose arguments are no JSON. One episode in five
repeats its first look-around call, so that trajectories vary where outcomes do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from flows.manifest import ScriptedModel
from flows.models.adapter import EpisodeContext
from flows.models.messages import AssistantMessage, Call, Completion, Message, Stop, Usage
from tasks_env import Session, ToolCall, ToolSpec, family, play
from tasks_env.canonical import canonical_json
from tasks_env.naming import shown_arguments
from tasks_env.seeding import derive

_BYTES_PER_TOKEN = 4


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
    """One episode of a scripted agent."""

    version = "scripted/1"

    def __init__(self, entry: ScriptedModel, context: EpisodeContext) -> None:
        self._naming = context.variant.presentation.naming
        self._turn = 0
        self._plan = _plan(entry, context)

    def request_body(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], temperature: float | None
    ) -> JsonValue:
        """The conversation in the scaffold's own form."""
        return {
            "messages": [message.model_dump(mode="json") for message in messages],
            "tools": [tool.model_dump(mode="json") for tool in tools],
            "temperature": temperature,
        }

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], temperature: float | None
    ) -> Completion:
        """The plan's next step; tokens are counted as a quarter of the bytes."""
        planned = self._plan[self._turn] if self._turn < len(self._plan) else None
        self._turn += 1
        message = self._message(planned)
        size = len(canonical_json(self.request_body(messages, tools, temperature)))
        written = len(canonical_json(message.model_dump(mode="json")))
        return Completion(
            message=message,
            usage=Usage(input_total=1 + size // _BYTES_PER_TOKEN, output_total=1 + written // _BYTES_PER_TOKEN),
            stop=Stop.CALLS if message.calls else Stop.END,
            raw=None,
        )

    def _message(self, planned: ToolCall | str | None) -> AssistantMessage:
        if planned is None:
            return AssistantMessage(text="I have nothing more to do.")
        identity = f"call_{self._turn}"
        if isinstance(planned, str):
            problem = "the arguments are not a valid JSON object: they break off"
            call = Call(id=identity, name=planned, arguments=None, raw_arguments="{", problem=problem)
        else:
            arguments = shown_arguments(planned.arguments, self._naming)
            call = Call(
                id=identity,
                name=self._naming.tools.get(planned.name, planned.name),
                arguments=arguments,
                raw_arguments=canonical_json(arguments),
            )
        return AssistantMessage(calls=(call,))


def _plan(entry: ScriptedModel, context: EpisodeContext) -> list[ToolCall | str]:
    """Calls in canonical names; a bare tool name is a call with broken arguments."""
    rng = derive(0, "scripted", context.episode_id)
    chosen = family(context.variant.family)
    passes = rng.random() < chance_of_passing(entry, context)
    plan: list[ToolCall | str] = list(
        chosen.reference(context.instance) if passes else chosen.mistake(context.instance, rng)
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


def _solves(context: EpisodeContext, plan: Sequence[ToolCall | str]) -> bool:
    session = Session(context.instance, context.variant)
    play(session, tuple(step for step in plan if isinstance(step, ToolCall)))
    return session.verdict().passed
