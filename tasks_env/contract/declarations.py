"""What a family says of itself: names, parameters, tools."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from tasks_env.canonical import canonical_json
from tasks_env.contract.promises import told
from tasks_env.contract.subject import Declared
from tasks_env.errors import ParameterError
from tasks_env.generation import validated_params
from tasks_env.types import Frozen, ToolSpec

FAMILY_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
PLACEHOLDER = re.compile(r"\{(tool|arg):([^{}]*)\}")
PHRASINGS = ("base", "p1", "p2", "p3", "p4", "p5")
SCALARS = {"string", "integer", "number", "boolean"}
NONSENSE: tuple[tuple[str, Any], ...] = (
    ("an object", {"nonsense": 1}),
    ("not a number", math.nan),
    ("infinity", math.inf),
    ("a million million", 10**12),
    ("minus a million million", -(10**12)),
)


def names(subject: Declared) -> Iterator[str]:
    """Name, version, wordings and operators have the form that manifests, axes and proofs expect."""
    family = subject.family
    for attribute in ("name", "version", "params", "demonstration", "closing_tool"):
        if not hasattr(family, attribute):
            yield f"{attribute} is missing"
    if not FAMILY_NAME.fullmatch(str(getattr(family, "name", "x"))):
        yield f"name {family.name!r}: lower-case letters, digits, _ . - are expected, as in a manifest"
    version = getattr(family, "version", 1)
    if type(version) is not int or version < 1:
        yield f"version {version!r}: a whole number from 1 is expected"
    missing = [name for name in PHRASINGS if name not in family.phrasings]
    if missing:
        yield f"phrasings lack {', '.join(missing)}, which the axis paraphrase shows"
    for noun in ("phrasings", "restatement_operators", "near_miss_operators"):
        listed = list(getattr(family, noun))
        if not listed:
            yield f"{noun} is empty"
        if len(set(listed)) < len(listed):
            yield f"{noun} lists a name twice"


def parameters(subject: Declared) -> Iterator[str]:
    """Every parameter is described; nonsense is refused with `ParameterError`; good ones pass through JSON."""
    family = subject.family
    if not (isinstance(family.params, type) and issubclass(family.params, Frozen)):
        yield f"params is {family.params!r}, not a subclass of tasks_env.types.Frozen"
        return
    if not isinstance(family.demonstration, family.params):
        yield "demonstration is not an instance of params"
        return
    yield from (
        f"{name!r} has no description" for name, field in family.params.model_fields.items() if not field.description
    )
    good = family.demonstration.model_dump(mode="json")
    for difficulty, given in {"demonstration": good, **subject.difficulties}.items():
        valid = validated_params(family.name, given)
        again = validated_params(family.name, valid.model_dump(mode="json"))
        if again != valid:
            yield f"{difficulty}: read back from JSON, the parameters are others"
    nonsense = [("an unknown parameter", {**good, "no such parameter": 1})]
    nonsense += [(f"{name!r} as {what}", {**good, name: value}) for name in good for what, value in NONSENSE]
    for what, given in nonsense:
        try:
            validated_params(family.name, given)
        except ParameterError:
            continue
        except Exception as error:  # noqa: BLE001 - the point is which exception comes out
            yield f"{what} {told(error)}, not ParameterError"
        else:
            yield f"{what} is accepted"


def tools(subject: Declared) -> Iterator[str]:
    """Names, flat schemas, descriptions; the closing tool is there and last; texts mention tools that exist."""
    family = subject.family
    specs = family.tools()
    if specs != family.tools():
        yield "tools() gives other tools each time"
    listed = [spec.name for spec in specs]
    if len(set(listed)) < len(listed):
        yield f"a name is listed twice: {', '.join(listed)}"
    if family.closing_tool not in listed:
        yield f"the closing tool {family.closing_tool!r} is missing"
    elif listed[-1] != family.closing_tool:
        yield f"the closing tool {family.closing_tool!r} is not the last one"
    arguments = {name for spec in specs for name in spec.parameters.get("properties", {})}
    for spec in specs:
        yield from (f"tool {spec.name!r}: {line}" for line in _spec_problems(spec))
        yield from (
            f"tool {spec.name!r}: {line}"
            for line in unknown_mentions(canonical_json(spec.parameters), listed, arguments)
        )
        yield from (f"tool {spec.name!r}: {line}" for line in unknown_mentions(spec.description, listed, arguments))


def unknown_mentions(text: str, tools: list[str], arguments: set[str]) -> Iterator[str]:
    """Placeholders that name no tool or argument."""
    for kind, name in PLACEHOLDER.findall(text):
        if name not in (tools if kind == "tool" else arguments):
            yield f"its text mentions {{{kind}:{name}}}, which does not exist"


def _spec_problems(spec: ToolSpec) -> Iterator[str]:
    if not TOOL_NAME.fullmatch(spec.name):
        yield "its name has other characters than letters, digits and _, or more than 64"
    if not spec.description.strip():
        yield "it has no description"
    schema = spec.parameters
    try:
        Draft202012Validator.check_schema(schema)
        canonical_json(schema)
    except (SchemaError, TypeError, ValueError) as error:
        yield f"its parameters are no JSON Schema: {' '.join(str(error).split())[:200]}"
        return
    properties = schema.get("properties")
    if (
        schema.get("type") != "object"
        or not isinstance(properties, dict)
        or schema.get("additionalProperties") is not False
    ):
        yield "its parameters are not what tasks_env.tools.tool makes: an object with properties and no additional ones"
        return
    required = schema.get("required", [])
    yield from (f"it requires {name!r}, which is no argument" for name in required if name not in properties)
    for name, argument in properties.items():
        if not TOOL_NAME.fullmatch(name):
            yield f"argument {name!r} has other characters than letters, digits and _, or more than 64"
        if not str(argument.get("description", "")).strip():
            yield f"argument {name!r} has no description"
        if not _is_flat(argument):
            yield f"argument {name!r} is not flat: a scalar or an array of scalars is expected"


def _is_flat(schema: dict[str, Any]) -> bool:
    kinds = schema.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds]
    if listed == ["array"]:
        items = schema.get("items")
        return isinstance(items, dict) and items.get("type") in SCALARS
    return bool(listed) and set(listed) <= {*SCALARS, "null"}
