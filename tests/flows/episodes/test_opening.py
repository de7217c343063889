"""How conversations begin: the same for every model, under the variant's own names."""

from __future__ import annotations

import json

import pytest

from flows.episodes.opening import SYSTEM_PROMPT, opening_messages, worked_example
from flows.manifest import Scaffold
from flows.models.conversation import check_conversation
from flows.models.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from tasks_env import Instance, Presentation, Session, generate_instance, render
from tasks_env.families import family
from tasks_env.perturbations import perturbation
from tests.flows.episodes.support import FAMILIES, SCAFFOLD

PLAIN = Scaffold.model_validate(SCAFFOLD)
SHOWING = Scaffold.model_validate({**SCAFFOLD, "worked_example": True})


def instance_of(name: str) -> Instance:
    return generate_instance(name, family(name).demonstration, 11)


def presentations(instance: Instance) -> list[Presentation]:
    opaque, synonyms, distracting = (
        perturbation(axis).present([instance], level, 3)[0]
        for axis, level in (("tool_names", "opaque"), ("tool_names", "synonyms"), ("distractors", "5"))
    )
    return [Presentation(), opaque, synonyms, distracting]


@pytest.mark.parametrize("name", FAMILIES)
def test_without_an_example_there_are_the_instructions_and_the_task(name: str) -> None:
    instance = instance_of(name)
    variant = render(instance)
    opening = opening_messages(instance, variant, PLAIN)
    assert opening == [SystemMessage(text=SYSTEM_PROMPT.format(step_cap=4)), UserMessage(text=variant.prompt)]
    assert "You have 4 turns." in SYSTEM_PROMPT.format(step_cap=4)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_example_is_a_solved_task_under_the_variants_names(name: str) -> None:
    instance = instance_of(name)
    for shown in presentations(instance):
        variant = render(instance, shown)
        opening = opening_messages(instance, variant, SHOWING)
        check_conversation(opening)
        assert opening[-1] == UserMessage(text=variant.prompt)
        example = opening[1:-1]
        assert example == worked_example(name, variant, PLAIN.tool_output_chars)
        assert example[0] != opening[-1], "the example is another task than the one to solve"
        offered = {tool.name: set(tool.parameters["properties"]) for tool in variant.tools}
        calls = [call for message in example if isinstance(message, AssistantMessage) for call in message.calls]
        answers = [answer for message in example if isinstance(message, ToolMessage) for answer in message.answers]
        assert calls
        for call in calls:
            assert call.arguments is not None
            assert set(call.arguments) <= offered[call.name]
            assert json.loads(call.raw_arguments) == call.arguments
        assert not any(answer.is_error or answer.content.startswith("error") for answer in answers)
        closing = shown.naming.tools.get(family(name).closing_tool, family(name).closing_tool)
        assert [call.name == closing for call in calls] == [False] * (len(calls) - 1) + [True]


@pytest.mark.parametrize("name", FAMILIES)
def test_showing_the_example_does_not_touch_the_episodes_world(name: str) -> None:
    instance = instance_of(name)
    variant = render(instance)
    before = Session(instance, variant).final_state()
    opening_messages(instance, variant, SHOWING)
    assert Session(instance, variant).final_state() == before
    assert not before.submitted
