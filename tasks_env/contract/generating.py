"""What a family generates: the same bytes everywhere, as JSON, and another task for another seed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from tasks_env.canonical import canonical_json, content_hash
from tasks_env.contract.subject import Subject
from tasks_env.families import Family, registered
from tasks_env.generation import generate_instance
from tasks_env.seeding import derive
from tasks_env.session import Session, play, render
from tasks_env.types import FinalState, Instance, ToolCall

CHILD_SECONDS = 300
_CHILD = (
    "import sys; from tasks_env.contract.generating import _print_fingerprint; _print_fingerprint(sys.stdin.read())"
)


def same_bytes(subject: Subject) -> Iterator[str]:
    """The same seed gives the same bytes, whatever the global generator says, and another seed another task."""
    kept = random.getstate()
    try:
        for instance in subject.instances:
            for number in (1, 2):
                random.seed(number)
                again = generate_instance(
                    instance.family, subject.params[instance.difficulty], instance.seed, difficulty=instance.difficulty
                )
                if canonical_json(again.model_dump(mode="json")) != canonical_json(instance.model_dump(mode="json")):
                    yield f"seed {instance.seed} of difficulty {instance.difficulty!r} gave two tasks"
                    break
            for what in ("reference", "mistake", "wordings", "near misses"):
                texts = set()
                for number in (1, 2):
                    random.seed(number)
                    texts.add(canonical_json(_derived(subject.family, instance)[what]))
                if len(texts) > 1:
                    yield f"{what} of {instance.instance_id} came out in two ways"
    finally:
        random.setstate(kept)
    for difficulty in subject.params:
        drawn = [each.instance_id for each in subject.instances if each.difficulty == difficulty]
        if len(drawn) > 1 and len(set(drawn)) == 1:
            yield f"difficulty {difficulty!r}: {len(drawn)} seeds gave one and the same task"


def same_bytes_elsewhere(subject: Subject) -> Iterator[str]:
    """A process with another hash seed, locale and time zone makes the same bytes.

    Only for a family whose class can be imported and made without arguments; any other is left to `same_bytes`.
    """
    kind = type(subject.family)
    if not _importable(kind):
        return
    order = {
        "module": kind.__module__,
        "class": kind.__qualname__,
        "params": {name: params.model_dump(mode="json") for name, params in subject.params.items()},
        "seeds": [[each.difficulty, each.seed] for each in subject.instances],
    }
    surroundings = {"PYTHONHASHSEED": "4242", "LC_ALL": "C", "LANG": "C", "TZ": "Asia/Kathmandu"}
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps(order),
        env={**os.environ, **surroundings, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=CHILD_SECONDS,
    )
    if done.returncode != 0:
        yield f"another process failed: {(done.stderr.strip().splitlines() or ['(nothing said)'])[-1]}"
    elif done.stdout.strip() != _fingerprint(subject.family, subject.instances):
        yield "another process, with another PYTHONHASHSEED, locale and time zone, made other bytes"


def json_instances(subject: Subject) -> Iterator[str]:
    """An instance read back from JSON, where keys are sorted, is the same, worded, solved and answered alike."""
    for instance in subject.instances:
        text = canonical_json(instance.model_dump(mode="json"))
        again = Instance.model_validate(json.loads(text))
        if again != instance or canonical_json(again.model_dump(mode="json")) != text:
            yield f"{instance.instance_id} is another one after a trip through JSON"
        elif canonical_json(_derived(subject.family, again)) != canonical_json(_derived(subject.family, instance)):
            yield f"{instance.instance_id}: read from JSON, it is worded or solved otherwise, as by a dict's order"
        elif _answers(subject, again) != _answers(subject, instance):
            yield f"{instance.instance_id}: read from JSON, its tools answer otherwise, as by a dict's order"


def _answers(subject: Subject, instance: Instance) -> list[str]:
    _, results = subject.played(instance, subject.family.reference(instance))
    return [result.content for result in results]


def _derived(family: Family[Any], instance: Instance) -> Mapping[str, Any]:
    """What a family makes from an instance without any agent."""
    plan = family.reference(instance)
    return {
        "reference": [call.model_dump(mode="json") for call in plan],
        "mistake": [call.model_dump(mode="json") for call in family.mistake(instance, derive(0, "mistake"))],
        "wordings": [family.prompt(instance, phrasing) for phrasing in family.phrasings],
        "near misses": [
            proposal.model_dump(mode="json")
            for proposal in family.near_misses(instance, _right(instance, plan), derive(0, "near misses"))
        ],
    }


def _right(instance: Instance, plan: tuple[ToolCall, ...]) -> FinalState:
    session = Session(instance, render(instance))
    play(session, plan)
    return session.final_state()


def _fingerprint(family: Family[Any], instances: list[Instance]) -> str:
    tools = [spec.model_dump(mode="json") for spec in family.tools()]
    return content_hash([tools, [[each.model_dump(mode="json"), dict(_derived(family, each))] for each in instances]])


def _importable(kind: type[Any]) -> bool:
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is not kind or kind.__module__ == "__main__":
        return False
    try:
        kind()
    except TypeError:
        return False
    return True


def _print_fingerprint(order: str) -> None:
    """What the other process does: make the same instances anew, print their fingerprint."""
    wanted = json.loads(order)
    kind: Any = import_module(wanted["module"])
    for name in wanted["class"].split("."):
        kind = getattr(kind, name)
    family = kind()
    with registered(family):
        instances = [
            generate_instance(family.name, wanted["params"][difficulty], seed, difficulty=difficulty)
            for difficulty, seed in wanted["seeds"]
        ]
        print(_fingerprint(family, instances))
