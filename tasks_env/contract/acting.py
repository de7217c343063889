"""What happens in a family's worlds: references, isolation, states, verdicts, and calls of any kind."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from tasks_env.canonical import canonical_json
from tasks_env.contract.promises import told
from tasks_env.contract.subject import Subject
from tasks_env.errors import ToolError
from tasks_env.families import SecondOpinion
from tasks_env.proofs import inconsistency
from tasks_env.seeding import derive
from tasks_env.session import TOOL_OUTPUT_CHARS, Session, render, verify
from tasks_env.tools import check_arguments, integers_as_such
from tasks_env.types import FinalState, Instance, JsonObject, ToolCall, ToolSpec

CALLS = 40
"""Calls of any kind for each instance."""
CALLS_AFTER_END = 3
"""So many calls after the closing one; then a fresh world is opened."""
SLACK_CHARS = 2000
"""What a result may be longer than the bound on tool output: an error's frame, a note, the word that it was cut."""
ODD_TEXTS = (
    "",
    " ",
    "/",
    "..",
    "//a",
    "\x00",
    "\n",
    "a" * 3000,
    "e\u0301",
    "\u202e",
    "\ud800",
    "{tool:x}",
    "%s",
    "'; --",
    "-0",
)
ODD_NUMBERS = (0, -1, 1, 2, 5.0, 0.5, -0.0, 2**31, 2**63, 10**30, 1e308, 5e-324, float("nan"), float("inf"))
ODD_VALUES: tuple[Any, ...] = (*ODD_TEXTS, *ODD_NUMBERS, None, True, [], {}, [[]], [None], {"a": 1})


def reference(subject: Subject) -> Iterator[str]:
    """The reference meets no error, ends the episode with its last call and no earlier, and reads no truth."""
    for instance in subject.instances:
        plan = subject.family.reference(instance)
        session, results = subject.played(instance, plan)
        errors = [
            f"{call.name}: {result.content}" for call, result in zip(plan, results, strict=True) if result.is_error
        ]
        if errors:
            yield f"{instance.instance_id}: {errors[0]}"
        if [number for number, result in enumerate(results) if result.ends_episode] != [len(plan) - 1]:
            yield f"{instance.instance_id}: not the last call, and it alone, ends the episode"
        if not session.verdict().passed:
            yield f"{instance.instance_id}: it does not pass"
        blind = instance.model_copy(update={"truth": {}})
        try:
            if subject.family.reference(blind) != plan:
                yield f"{instance.instance_id}: it changes when the truth is taken away"
        except Exception as error:  # noqa: BLE001 - a plan that misses the truth breaks somehow
            yield f"{instance.instance_id}: it cannot do without the truth: {told(error)}"
        try:
            if not subject.family.second_opinion(blind)(session.final_state()):
                yield f"{instance.instance_id}: the second opinion changes when the truth is taken away, or is wrong"
        except Exception as error:  # noqa: BLE001 - as above
            yield f"{instance.instance_id}: the second opinion cannot do without the truth: {told(error)}"


def isolation(subject: Subject) -> Iterator[str]:
    """What happens in one world reaches neither the instance nor another world, and a state is a copy."""
    for instance in subject.instances:
        before = instance.model_dump_json()
        other = Session(instance, render(instance))
        untouched = canonical_json(other.final_state().data)
        # Two plans: what one of them leaves may lie in a shared place from earlier on.
        for plan in (
            subject.family.mistake(instance, derive(subject.seed, "isolation")),
            subject.family.reference(instance),
        ):
            subject.played(instance, plan)
            if canonical_json(other.final_state().data) != untouched:
                yield f"{instance.instance_id}: playing in one world changes another that was opened before"
        if instance.model_dump_json() != before:
            yield f"{instance.instance_id}: playing changes the instance"
        if canonical_json(Session(instance, render(instance)).final_state().data) != untouched:
            yield f"{instance.instance_id}: playing in one world changes those that are opened after it"
        world = subject.family.open(instance)
        state = world.state()
        kept = copy.deepcopy(state)
        _overwrite(state)
        if world.state() != kept:
            yield f"{instance.instance_id}: changing what state() gave changes the world"


def json_states(subject: Subject) -> Iterator[str]:
    """States are JSON: read back, they are the same."""
    for instance in subject.instances:
        world = subject.family.open(instance)
        steps: list[ToolCall | None] = [None, *subject.family.reference(instance)]
        for step in steps:
            where = "at the start" if step is None else f"after {step.name}"
            if step is not None:
                world.call(step.name, step.arguments)
            state = world.state()
            try:
                again = json.loads(canonical_json(state))
            except (TypeError, ValueError) as error:
                yield f"{instance.instance_id}, {where}: {told(error)}"
                continue
            if again != state:
                yield f"{instance.instance_id}, {where}: it is another one after a trip through JSON"


def verdicts(subject: Subject) -> Iterator[str]:
    """A verdict contradicts neither itself nor its repetition, and is the same on what was read from JSON."""
    for instance in subject.instances:
        for name, calls, state in subject.states(instance):
            where = f"{instance.instance_id}, after {name}"
            before = (instance.model_dump_json(), state.model_dump_json())
            verdict = verify(instance, calls, state)
            problem = inconsistency(verdict)
            if problem:
                yield f"{where}: {'passed' if verdict.passed else 'failed'}, but {problem}"
            if verify(instance, calls, state) != verdict:
                yield f"{where}: the second time it is another one"
            if (instance.model_dump_json(), state.model_dump_json()) != before:
                yield f"{where}: judging changes the evidence"
            read = FinalState.model_validate(json.loads(canonical_json(state.model_dump(mode="json"))))
            if verify(Instance.model_validate_json(instance.model_dump_json()), calls, read) != verdict:
                yield f"{where}: read back from JSON, the evidence gives another verdict"


def any_call(subject: Subject) -> Iterator[str]:
    """Whatever is called, an answer comes back, bounded; nothing changes after the end; both judges agree."""
    examined = set()
    for instance in subject.instances:
        opinion = subject.family.second_opinion(instance)
        calls = list(_some_calls(subject, instance))
        if instance.difficulty not in examined:
            calls = [*_odd_calls(subject, instance), *calls]
            examined.add(instance.difficulty)
        session, before, after_end = Session(instance, render(instance)), "", 0
        for spec, arguments in calls:
            called = f"{spec.name}({str(arguments)[:160]})"
            yield from (f"{called}: {line}" for line in _direct(subject, instance, spec, arguments))
            try:
                result = session.call(spec.name, arguments)
            except Exception as error:  # noqa: BLE001 - the promise is that none comes out
                yield f"{called} {told(error)}"
                continue
            if len(result.content) > TOOL_OUTPUT_CHARS + SLACK_CHARS:
                yield f"{called} answers {len(result.content)} characters"
            state = session.final_state()
            now = canonical_json(state.data)
            if after_end and now != before:
                yield f"{called} changes the state after the task was handed in"
            elif now != before:
                yield from (f"after {called}, {line}" for line in _disagreement(instance, session, state, opinion))
            before = now
            after_end += session.submitted
            if after_end > CALLS_AFTER_END:
                session, before, after_end = Session(instance, render(instance)), "", 0


def _disagreement(instance: Instance, session: Session, state: FinalState, opinion: SecondOpinion) -> Iterator[str]:
    """What is wrong with the judgements of a state as an agent may leave it, handed in."""
    handed_in = state.model_copy(update={"submitted": True})
    for each in (state, handed_in):
        verdict = verify(instance, tuple(session.calls), each)
        if inconsistency(verdict):
            yield f"the verdict is inconsistent: {inconsistency(verdict)}"
        if verdict.passed != opinion(each):
            yield f"verifier and second opinion differ on {canonical_json(each.data)[:200]}"


def _odd_calls(subject: Subject, instance: Instance) -> Iterator[tuple[ToolSpec, JsonObject]]:
    """Every tool as the reference calls it, each of its arguments in turn replaced by every odd value, and left out."""
    usual = {call.name: call.arguments for call in subject.family.reference(instance)}
    rng = derive(subject.seed, "odd calls", instance.instance_id)
    texts = _texts_of([instance.spec, instance.world])
    for spec in subject.family.tools():
        arguments = usual.get(spec.name) or _arguments(spec, texts, rng)
        for name in spec.parameters["properties"]:
            yield from ((spec, {**arguments, name: value}) for value in ODD_VALUES)
            yield spec, {each: value for each, value in arguments.items() if each != name}
        yield spec, arguments


def _some_calls(subject: Subject, instance: Instance) -> Iterator[tuple[ToolSpec, JsonObject]]:
    """Calls with arguments that mostly fit, in any order; the closing tool only among the later ones."""
    rng = derive(subject.seed, "any call", instance.instance_id)
    texts = _texts_of([instance.spec, instance.world, [c.arguments for c in subject.family.reference(instance)]])
    specs = subject.family.tools()
    for number in range(CALLS):
        spec = rng.choice(specs if number > CALLS // 2 else specs[:-1] or specs)
        yield spec, _arguments(spec, texts, rng)


def _direct(subject: Subject, instance: Instance, spec: ToolSpec, arguments: JsonObject) -> Iterator[str]:
    """A call that fits the schema, put to a world of its own: an error names one of the tool's arguments or none."""
    try:
        check_arguments(spec, arguments)
    except ToolError:
        return
    try:
        subject.family.open(instance).call(spec.name, integers_as_such(spec, arguments))
    except ToolError as error:
        if error.argument is not None and error.argument not in spec.parameters["properties"]:
            yield f"its error names the argument {error.argument!r}, which the tool does not have"
        if not error.message.strip():
            yield "its error says nothing"


def _arguments(spec: ToolSpec, texts: list[str], rng: random.Random) -> JsonObject:
    """Mostly of the right types; optional ones are left out half of the time, required ones rarely."""
    required = set(spec.parameters.get("required", []))
    return {
        name: _value(schema, texts, rng)
        for name, schema in spec.parameters["properties"].items()
        if rng.random() < (0.97 if name in required else 0.5)
    }


def _value(schema: dict[str, Any], texts: list[str], rng: random.Random) -> Any:
    if rng.random() < 0.15:
        return rng.choice(ODD_VALUES)
    kind = schema.get("type")
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if kind == "array":
        return [_value(schema["items"], texts, rng) for _ in range(rng.randint(0, 4))]
    if kind == "integer":
        return rng.choice([rng.randint(-3, 40), *ODD_NUMBERS]) if rng.random() < 0.4 else rng.randint(0, 20)
    if kind == "number":
        return rng.choice([rng.random() * 100, *ODD_NUMBERS])
    if kind == "boolean":
        return rng.random() < 0.5
    return rng.choice(ODD_TEXTS) if rng.random() < 0.3 else rng.choice(texts)


def _texts_of(value: Any) -> list[str]:
    """Every text in a JSON value: names, paths, cells, right arguments."""
    found: set[str] = set()
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            found.add(each)
        elif isinstance(each, dict):
            found.update(each)
            pending += each.values()
        elif isinstance(each, list | tuple):
            pending += each
    return sorted(found) or [""]


def _overwrite(value: Any) -> None:
    """Change every container of a JSON value in place."""
    for each in list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()):
        _overwrite(each)
    if isinstance(value, dict):
        value["overwritten"] = 1
    elif isinstance(value, list):
        value.append("overwritten")
