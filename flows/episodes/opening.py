"""How every conversation begins: the same system prompt for all, a worked example if the manifest says so, the task."""

from __future__ import annotations

from functools import lru_cache

from flows.manifest import Scaffold
from flows.models.messages import (
    Answer,
    AssistantMessage,
    Call,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tasks_env import Instance, Session, Variant, family, generate_instance, render
from tasks_env.canonical import canonical_json
from tasks_env.naming import shown_arguments
from tasks_env.seeding import derive_seed

SYSTEM_PROMPT = (
    "You solve one task by calling tools. Read what each tool does before you call it, call one tool at a time, and "
    "look at its result before you go on. A tool that reports an error has changed nothing: read the error and try "
    "again. The task ends when you hand in your result with the tool that is meant for it; nothing else is seen. "
    "You cannot ask questions. You have {step_cap} turns."
)
SYSTEM_PROMPT_OF_SEVERAL = (
    "You solve tasks, one after another, by calling tools. Read what each tool does before you call it, call one tool "
    "at a time, and look at its result before you go on. A tool that reports an error has changed nothing: read the "
    "error and try again. A task ends when you hand in your result with the tool that is meant for it, or when its "
    "turns are used up; nothing else of it is seen. Then the next task may follow: it has a world of its own, and the "
    "tasks before it are over. You cannot ask questions. You have {step_cap} turns for each task."
)
"""Where context is carried from task to task; the same however many tasks a conversation has."""
REMINDER = (
    "Continue by calling a tool. The task ends only when you hand in your result with the tool that is meant for it."
)

_EXAMPLE_SEED = 20_111


def opening_messages(instance: Instance, variant: Variant, settings: Scaffold) -> list[Message]:
    """System prompt, worked example (if set) and the (first) task."""
    prompt = SYSTEM_PROMPT if settings.tasks_per_conversation == 1 else SYSTEM_PROMPT_OF_SEVERAL
    messages: list[Message] = [SystemMessage(text=prompt.format(step_cap=settings.step_cap))]
    if settings.worked_example:
        messages += worked_example(instance.family, variant, settings.tool_output_chars)
    return [*messages, UserMessage(text=variant.prompt)]


def worked_example(family_name: str, variant: Variant, max_output_chars: int) -> list[Message]:
    """The reference solution of the family's smallest task, shown as the variant shows its own task."""
    instance = _example_instance(family_name)
    session = Session(instance, render(instance, variant.presentation), max_output_chars)
    naming = variant.presentation.naming
    messages: list[Message] = [UserMessage(text=session.variant.prompt)]
    for number, step in enumerate(family(family_name).reference(instance), start=1):
        name = naming.tools.get(step.name, step.name)
        arguments = shown_arguments(step.arguments, naming)
        result = session.call(name, arguments)
        call = Call(id=f"example_{number}", name=name, arguments=arguments, raw_arguments=canonical_json(arguments))
        messages.append(AssistantMessage(calls=(call,)))
        messages.append(ToolMessage(answers=(Answer(call_id=call.id, content=result.content),)))
    return messages


@lru_cache(maxsize=32)
def _example_instance(family_name: str) -> Instance:
    chosen = family(family_name)
    seed = derive_seed(_EXAMPLE_SEED, "worked example", family_name)
    return generate_instance(family_name, chosen.demonstration, seed, difficulty="example", sample="example")
