"""Under other names, nothing that an agent reads gives an original name away.

The rule. Data are exempt: what stands in the task's spec, world or truth, what the agent itself typed, and the values
of an enumeration. In everything else (prompt, descriptions, results, errors, notes)

    a tool's name and a name of several words (`list_tables`, `other_table`, `submit`) never occurs as a whole word;
    an argument's name that is an ordinary word (`path`, `table`) never stands where it would be read as a name: as a
    key of a schema, in quotes or backticks, after "argument" or in the list after "arguments:", before "=" or "(".
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import JsonValue

from tasks_env.families import FAMILIES, family
from tasks_env.seeding import derive
from tasks_env.session import Session, play, render
from tasks_env.types import Instance, JsonObject, ToolSpec, Variant
from tests.tasks_env.perturbations.draws import drawn_instance
from tests.tasks_env.perturbations.preservation import CELLS, presented
from tests.tasks_env.shelves import Shelves

TASKS = 12
BAD_CALLS = 40
_WORD = re.compile(r"[A-Za-z0-9_]+")
_ARGUMENT_LIST = re.compile(r"arguments?:? ((?:['\"`]?[a-z0-9_]+['\"`]?(?:, )?)+)")


def leaks(text: str, specs: tuple[ToolSpec, ...], exempt: set[str]) -> set[str]:
    """The canonical names that `text` gives away."""
    tools = {spec.name for spec in specs}
    arguments = {name for spec in specs for name in spec.parameters["properties"]}
    telling = {name for name in tools | arguments if name in tools or "_" in name}
    found = {word for word in words(text) if word in telling}
    for name in arguments - telling:
        as_a_name = rf"(['\"`])\b{name}\b\1|\b{name}(\(| ?=(?!=))"
        if re.search(as_a_name, text) or any(name in words(each) for each in _ARGUMENT_LIST.findall(text)):
            found.add(name)
    return found - exempt


def data_words(instance: Instance) -> set[str]:
    """Every word of the task's data, and the values of enumerations. Keys of a spec are structure, not data."""
    enums: list[Any] = [
        schema.get("enum", schema.get("items", {}).get("enum", []))
        for spec in family(instance.family).tools()
        for schema in spec.parameters["properties"].values()
    ]
    named = [list(value) for value in instance.world.values() if isinstance(value, dict)]
    return {
        word for text in strings([instance.spec, instance.world, instance.truth, named, enums]) for word in words(text)
    }


def strings(value: JsonValue) -> Iterator[str]:
    """The texts of a JSON value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


def words(value: JsonValue) -> list[str]:
    """The words of a text, or of everything in a JSON value."""
    return _WORD.findall(value if isinstance(value, str) else json.dumps(value))


def texts(instance: Instance, variant: Variant, rng: random.Random) -> Iterator[tuple[str, set[str]]]:
    """All that an agent reads in right, wrong and clumsy episodes, each with the words that it typed itself."""
    yield variant.prompt, set()
    for spec in variant.tools:
        yield f"{spec.name}\n{spec.description}", set()
        for name, schema in spec.parameters["properties"].items():
            yield f'"{name}": {schema["description"]}', set()
    chosen = family(instance.family)
    for plan in (chosen.reference(instance), chosen.mistake(instance, rng)):
        session = Session(instance, variant)
        for call, result in zip(plan, play(session, plan), strict=True):
            yield result.content, set(words(call.arguments))
        # Whatever is called after the end.
        for call, result in zip(plan, play(session, plan), strict=True):
            yield result.content, set(words(call.arguments))
    session = Session(instance, variant)
    for _ in range(BAD_CALLS):
        spec = rng.choice(variant.tools)
        arguments = clumsy(spec, rng, instance)
        yield session.call(spec.name, arguments).content, set(words(arguments))
    yield session.call("no_such_tool", {}).content, set()


def clumsy(spec: ToolSpec, rng: random.Random, instance: Instance) -> JsonObject:
    """Arguments of which some are missing, unknown, of the wrong type or out of place, and some are right."""
    known: list[Any] = [
        *words(instance.world)[:40],
        "/",
        "/nowhere/x.txt",
        "SELECT nothing",
        "",
        "*",
    ]
    arguments: JsonObject = {}
    for name, schema in spec.parameters["properties"].items():
        if rng.random() < 0.1:
            continue
        right: Any = rng.choice(known)
        kind = schema["type"]
        if "enum" in schema:
            right = rng.choice(schema["enum"])
        elif kind == "array":
            items = schema["items"].get("enum", known)
            right = [rng.choice(items) for _ in range(rng.randint(0, 3))]
        elif kind == "integer":
            right = rng.choice([0, 1, 3, 10**6])
        elif kind == "boolean":
            right = rng.random() < 0.5
        arguments[name] = (
            right if rng.random() < 0.85 else rng.choice([None, 7, -1, 2.5, True, [], {}, [[]], "x" * 999])
        )
    if rng.random() < 0.1:
        arguments["surprise"] = 1
    return arguments


@pytest.mark.parametrize("level", CELLS["tool_names"])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_nothing_that_an_agent_reads_gives_an_original_name_away(name: str, level: str) -> None:
    specs = family(name).tools()
    errors = 0
    for number in range(TASKS):
        instance = drawn_instance(name, number)
        data, rng = data_words(instance), derive(number, "clumsy", level)
        variant = presented(instance, "tool_names", level, number)
        for phrasing in family(name).phrasings:
            worded = variant.presentation.model_copy(update={"phrasing": phrasing})
            prompt = render(instance, worded).prompt
            assert leaks(prompt, specs, data) == set(), prompt
        for text, typed in texts(instance, variant, rng):
            errors += text.startswith("error")
            assert "{tool:" not in text
            assert "{arg:" not in text
            assert leaks(text, specs, data | typed) == set(), text
    assert errors > TASKS * 8


def test_the_rule_sees_a_leak_where_there_is_one() -> None:
    specs = Shelves().tools()
    assert leaks("Call list_shelves first, then submit.", specs, set()) == {"list_shelves", "submit"}
    assert leaks("error in argument 'shelf': missing", specs, set()) == {"shelf"}
    assert leaks("this tool's arguments: a2, shelf", specs, set()) == {"shelf"}
    assert leaks("write_count(shelf=3)", specs, set()) == {"write_count", "shelf"}
    assert leaks("Items on a shelf; the work was submitted.", specs, set()) == set()
    assert leaks("Items on 'shelf'", specs, {"shelf"}) == set()
