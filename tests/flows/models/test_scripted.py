"""The scripted agents: drawn from the episode's id as often as the manifest says, and nothing else is sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from scipy.stats import binom

from flows.manifest import ScriptedModel
from flows.models import anthropic, openai
from flows.models.adapter import request_of
from flows.models.envelope import normal_form, normalise
from flows.models.messages import (
    Answer,
    AssistantMessage,
    Call,
    Completion,
    Message,
    Stop,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from flows.models.scripted import ScriptedAdapter, chance_of_passing
from tasks_env import Instance, Presentation, Session, Variant, generate_instance, play, render
from tasks_env.canonical import canonical_json, content_hash
from tasks_env.families import family
from tasks_env.perturbations import perturbation
from tasks_env.seeding import derive
from tests.flows.models.support import entry

FAMILIES = ("tabular", "filesys", "query")
LIMIT = 512
PRICING = {"input": 1.0, "output": 5.0}


@dataclass(frozen=True)
class Context:
    """What a scripted agent may know."""

    episode_id: str
    instance: Instance
    variant: Variant


@dataclass(frozen=True)
class Played:
    """One whole conversation with an agent."""

    passed: bool
    submitted: bool
    completions: tuple[Completion, ...]
    bodies: tuple[Any, ...]
    trajectory: tuple[str, ...]


def model(pass_rate: float, **fields: Any) -> ScriptedModel:
    return ScriptedModel.model_validate(
        {"adapter": "scripted", "pass_rate": {"custom": pass_rate}, "pricing": PRICING, **fields}
    )


@cache
def instances(name: str, count: int = 6) -> tuple[Instance, ...]:
    return tuple(generate_instance(name, family(name).demonstration, seed) for seed in range(count))


def context(instance: Instance, number: int, axis: str = "none", level: str = "baseline") -> Context:
    shown = Presentation() if axis == "none" else perturbation(axis).present([instance], level, 1)[0]
    variant = render(instance, shown, axis=axis, level=level)
    return Context(content_hash(["an episode", number], 20), instance, variant)


def answered(adapter: ScriptedAdapter, *asked: Any) -> Completion:
    """The agent's answer, without an event loop: it never waits."""
    try:
        adapter.complete(request_of(adapter, *asked)).send(None)
    except StopIteration as finished:
        completion: Completion = finished.value
        return completion
    raise AssertionError("a scripted agent waited for something")


def played(chosen: ScriptedModel, about: Context, steps: int = 20) -> Played:
    """Talk with the agent until it hands in or falls silent, as a scaffold would."""
    adapter = ScriptedAdapter(chosen, about, LIMIT)
    session = Session(about.instance, about.variant)
    tools = about.variant.tools
    messages: list[Message] = [SystemMessage(text="Work."), UserMessage(text=about.variant.prompt)]
    completions, bodies, trajectory = [], [], []
    for _ in range(steps):
        bodies.append(adapter.request_body(messages, tools, 0.0))
        completion = answered(adapter, messages, tools, 0.0)
        completions.append(completion)
        messages.append(completion.message)
        if not completion.tool_calls:
            break
        answers = []
        for call in completion.tool_calls:
            if call.arguments is None:
                answers.append(Answer(call_id=call.id, content=f"error: {call.problem}", is_error=True))
                continue
            result = session.call(call.name, call.arguments)
            trajectory.append(result.call.name if result.call else call.name)
            answers.append(Answer(call_id=call.id, content=result.content, is_error=result.is_error))
        messages.append(ToolMessage(answers=tuple(answers)))
        if session.submitted:
            break
    return Played(session.verdict().passed, session.submitted, tuple(completions), tuple(bodies), tuple(trajectory))


def within(passes: int, episodes: int, chance: float) -> bool:
    """Whether a right count of passes would be this far off less than once in a million times."""
    return bool(binom.ppf(5e-7, episodes, chance) <= passes <= binom.ppf(1 - 5e-7, episodes, chance))


# --- known truth --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_passes_come_as_often_as_the_manifest_says(name: str) -> None:
    chosen = model(0.62, instance_spread=0.1, family_effects={"filesys": -0.05}, effects={"order": {"shuffled": -0.2}})
    for axis, level, effect in (("none", "baseline", 0.0), ("order", "shuffled", -0.2)):
        episodes = [context(instance, 0, axis, level) for instance in instances(name)]
        expected = sum(chance_of_passing(chosen, about) for about in episodes) * 60
        passes = sum(
            played(chosen, Context(f"{number}", about.instance, about.variant)).passed
            for about in episodes
            for number in range(60)
        )
        mean = expected / (60 * len(episodes))
        assert mean == pytest.approx(0.62 + effect - 0.05 * (name == "filesys"), abs=0.1)
        assert within(passes, 60 * len(episodes), mean)


def test_the_bound_would_notice_an_error_of_a_few_points() -> None:
    """The draws of many more episodes, by the rule that the documentation gives, without playing them."""
    chosen = model(0.62)
    about = context(instances("query")[0], 0)
    chance = chance_of_passing(chosen, about)
    drawn = sum(derive(0, "scripted", content_hash(number, 20)).random() < chance for number in range(20_000))
    assert within(drawn, 20_000, 0.62)
    assert not within(drawn, 20_000, 0.60)
    assert not within(drawn, 20_000, 0.64)


def test_the_draw_is_the_documented_one() -> None:
    chosen = model(0.5)
    for name in FAMILIES:
        for number in range(40):
            about = context(instances(name)[number % 6], number)
            expected = derive(0, "scripted", about.episode_id).random() < chance_of_passing(chosen, about)
            assert played(chosen, about).passed is expected


def test_chances_add_up_by_hand() -> None:
    instance = instances("tabular")[0]
    chosen = model(0.6, effects={"order": {"shuffled": -0.25}}, family_effects={"tabular": 0.125})
    assert chance_of_passing(chosen, context(instance, 1)) == 0.725
    assert chance_of_passing(chosen, context(instance, 1, "order", "shuffled")) == 0.475
    spread = model(0.6, instance_spread=0.2)
    offset = derive(0, "scripted offset", instance.instance_id).uniform(-1, 1) * 0.2
    assert chance_of_passing(spread, context(instance, 1)) == 0.6 + offset
    assert chance_of_passing(spread, context(instance, 2)) == chance_of_passing(spread, context(instance, 1))


def test_offsets_are_spread_over_the_instances_with_mean_zero() -> None:
    chosen = model(0.5, instance_spread=0.2)
    about = context(instances("query")[0], 0)
    offsets = [
        chance_of_passing(
            chosen, Context("e", about.instance.model_copy(update={"instance_id": f"i{number}"}), about.variant)
        )
        - 0.5
        for number in range(2000)
    ]
    assert min(offsets) < -0.19
    assert max(offsets) > 0.19
    assert abs(sum(offsets)) / 2000 < 0.015


@pytest.mark.parametrize("name", FAMILIES)
def test_an_agent_that_always_passes_does_and_one_that_never_does_never_does(name: str) -> None:
    for number in range(40):
        about = context(instances(name)[number % 6], number)
        assert played(model(1.0), about).passed
        assert not played(model(0.0), about).passed


@pytest.mark.parametrize(
    ("axis", "level"), [("tool_names", "opaque"), ("tool_names", "synonyms"), ("distractors", "5")]
)
@pytest.mark.parametrize("name", FAMILIES)
def test_the_same_holds_under_other_names_and_with_more_tools(name: str, axis: str, level: str) -> None:
    for number in range(12):
        about = context(instances(name)[number % 6], number, axis, level)
        right, wrong = played(model(1.0), about), played(model(0.0), about)
        assert (right.passed, wrong.passed) == (True, False)
        plain = played(model(1.0), context(instances(name)[number % 6], number))
        assert right.trajectory == plain.trajectory, "names alone do not change what the agent does"


@pytest.mark.parametrize("name", FAMILIES)
def test_every_mistake_of_every_family_fails(name: str) -> None:
    for instance in instances(name, 12):
        for number in range(20):
            session = Session(instance, render(instance))
            play(session, family(name).mistake(instance, derive(number, "a mistake")))
            assert not session.verdict().passed


def test_failures_and_detours_come_in_the_documented_shares() -> None:
    failures = [played(model(0.0), context(instances("query")[number % 6], number)) for number in range(300)]
    passes = [played(model(1.0), context(instances("query")[number % 6], number)) for number in range(300)]
    broken = sum(run.completions[0].tool_calls[0].arguments is None for run in failures)
    silent = sum(not run.submitted for run in failures)
    assert within(broken, 300, 0.125)
    assert within(silent, 300, 0.125)
    assert all(run.submitted and run.completions[0].tool_calls[0].arguments is not None for run in passes)
    repeated = sum(run.trajectory[:1] == run.trajectory[1:2] for run in passes)
    assert within(repeated, 300, 0.2)


# --- draws --------------------------------------------------------------------------------------------------------


def test_two_run_seeds_are_independent_draws() -> None:
    chosen, instance = model(0.5), instances("query")[0]
    pairs = Counter(
        tuple(played(chosen, context(instance, 2 * number + run)).passed for run in (0, 1)) for number in range(300)
    )
    for pair in ((True, True), (True, False), (False, True), (False, False)):
        assert within(pairs[pair], 300, 0.25)


def test_the_same_episode_is_the_same_again() -> None:
    for name in FAMILIES:
        about = context(instances(name)[0], 3)
        assert played(model(0.5), about) == played(model(0.5), about)


PLAY = """
import json, sys
from tests.flows.models.test_scripted import FAMILIES, context, instances, model, played
from tasks_env.canonical import content_hash
runs = [played(model(0.5), context(instances(name)[n % 6], n)) for name in FAMILIES for n in range(8)]
print(content_hash([[c.model_dump(mode="json") for c in run.completions] for run in runs]))
"""


@pytest.mark.slow
def test_the_same_episode_is_the_same_in_another_process() -> None:
    said = set()
    for seed, zone in (("0", "UTC"), ("4242", "Asia/Tokyo")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}
        ran = subprocess.run([sys.executable, "-c", PLAY], capture_output=True, text=True, check=True, env=environment)
        said.add(ran.stdout)
    assert len(said) == 1


# --- what is sent -------------------------------------------------------------------------------------------------


def test_the_body_is_what_both_providers_would_be_sent_and_nothing_else() -> None:
    for name in FAMILIES:
        for number in range(12):
            about = context(instances(name)[number % 6], number, "tool_names", "opaque")
            run = played(model(0.5), about)
            messages: list[Message] = [SystemMessage(text="Work."), UserMessage(text=about.variant.prompt)]
            session = Session(about.instance, about.variant)
            for body, completion in zip(run.bodies, run.completions, strict=True):
                arguments = (LIMIT, messages, about.variant.tools, 0.0)
                sent = {
                    "openai": openai.request_body(entry("openai"), *arguments),
                    "anthropic": anthropic.request_body(entry("anthropic"), *arguments),
                }
                for provider, theirs in sent.items():
                    assert canonical_json(normalise(theirs, provider)) == canonical_json(normalise(body, "scripted"))
                messages.append(completion.message)
                answers = [
                    Answer(call_id=call.id, content=f"error: {call.problem}", is_error=True)
                    if call.arguments is None
                    else Answer(
                        call_id=call.id,
                        content=(result := session.call(call.name, call.arguments)).content,
                        is_error=result.is_error,
                    )
                    for call in completion.tool_calls
                ]
                if answers:
                    messages.append(ToolMessage(answers=tuple(answers)))


def test_no_context_reaches_a_body() -> None:
    about = context(instances("query")[0], 5)
    for rate in (0.0, 1.0):
        told = json.dumps(played(model(rate), about).bodies)
        for secret in (about.episode_id, about.instance.instance_id, about.variant.variant_id, str(rate)):
            assert f'"{secret}"' not in told


def growing_conversations() -> Iterator[list[Message]]:
    """Conversations in the ways that a scaffold lets them grow, step by step, the first ones with an example."""

    def exchange(number: int, calls: int) -> list[Message]:
        made = tuple(
            Call(id=f"{number}.{n}", name="look it up!", arguments={"n": n}, raw_arguments=json.dumps({"n": n}))
            for n in range(calls)
        )
        answers = tuple(Answer(call_id=call.id, content=f"é {call.id}", is_error=True) for call in made)
        return [AssistantMessage(text="\ud800" * number, calls=made), ToolMessage(answers=answers)]

    messages: list[Message] = [SystemMessage(text="Work."), UserMessage(text="An example."), *exchange(1, 2)]
    messages.append(UserMessage(text="The task."))
    yield list(messages)
    for number in range(2, 6):
        messages += exchange(number, number - 1)
        yield list(messages)
    messages += [AssistantMessage(text="Hm."), UserMessage(text="Go on.")]
    yield list(messages)
    messages += [*exchange(7, 1), *exchange(8, 2)]
    yield list(messages)


def sizes_and_bodies(adapter: ScriptedAdapter, messages: Sequence[Message], tools: Any) -> tuple[int, str]:
    usage = answered(adapter, messages, tools, 0.7).usage
    assert usage is not None
    return usage.input_total, canonical_json(adapter.request_body(messages, tools, 0.7))


def test_a_body_that_grows_with_the_conversation_is_the_one_made_at_once() -> None:
    about = context(instances("query")[0], 1)
    growing = ScriptedAdapter(model(1.0), about, LIMIT)
    for messages in growing_conversations():
        whole = canonical_json(normal_form(messages, about.variant.tools, 0.7, LIMIT))
        fresh = ScriptedAdapter(model(1.0), about, LIMIT)
        for adapter in (growing, fresh):
            tokens, body = sizes_and_bodies(adapter, messages, about.variant.tools)
            assert body == whole
            assert tokens == 1 + len(whole) // 4


def test_another_conversation_starts_afresh() -> None:
    about = context(instances("query")[0], 1)
    adapter = ScriptedAdapter(model(1.0), about, LIMIT)
    conversations = list(growing_conversations())
    tools = about.variant.tools
    for messages in [conversations[3], conversations[0], [*conversations[0][:-1], UserMessage(text="Another.")]]:
        assert adapter.request_body(messages, tools, 0.0) == normal_form(messages, tools, 0.0, LIMIT)
        assert adapter.request_body(messages, tools[:1], None) == normal_form(messages, tools[:1], None, LIMIT)


def test_a_body_once_given_stays_as_it_is() -> None:
    about = context(instances("query")[0], 1)
    adapter = ScriptedAdapter(model(1.0), about, LIMIT)
    first, second, *_ = growing_conversations()
    body = adapter.request_body(first, about.variant.tools, 0.0)
    before = canonical_json(body)
    adapter.request_body(second, about.variant.tools, 0.0)
    assert canonical_json(body) == before


def test_an_invalid_conversation_is_refused_as_by_the_other_adapters() -> None:
    about = context(instances("query")[0], 1)
    adapter = ScriptedAdapter(model(1.0), about, LIMIT)
    with pytest.raises(ValueError, match="opens with a user message"):
        adapter.request_body([SystemMessage(text="Work.")], (), None)
    first, second, *_ = growing_conversations()
    adapter.request_body(first, (), None)
    with pytest.raises(ValueError, match="not answered"):
        adapter.request_body([*second[:-1], UserMessage(text="Now?")], (), None)


def test_every_answer_says_its_tokens_and_stop() -> None:
    for run in (played(model(rate), context(instances("filesys")[0], 7)) for rate in (0.0, 1.0)):
        for body, completion in zip(run.bodies, run.completions, strict=True):
            assert completion.usage is not None
            assert completion.usage.input_total == 1 + len(canonical_json(body)) // 4
            assert completion.usage.output_total > 1
            assert completion.stop is (Stop.CALLS if completion.tool_calls else Stop.END)
