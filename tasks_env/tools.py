"""Tool specifications and the checking of arguments: an invalid call is data for the agent."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import JsonValue

from tasks_env.canonical import canonical_json
from tasks_env.errors import ToolError
from tasks_env.types import JsonObject, ToolSpec


def parameter(kind: str, description: str, **keywords: Any) -> dict[str, Any]:
    """The JSON Schema of one argument: `parameter("integer", "How many rows.", minimum=1)`."""
    return {"type": kind, "description": description, **keywords}


def tool(name: str, description: str, required: dict[str, Any], optional: dict[str, Any] | None = None) -> ToolSpec:
    """A specification with its required and optional arguments, each made by `parameter`."""
    return ToolSpec(
        name=name,
        description=description,
        parameters={
            "type": "object",
            "properties": {**required, **(optional or {})},
            "required": list(required),
            "additionalProperties": False,
        },
    )


@lru_cache(maxsize=512)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema))


def check_arguments(spec: ToolSpec, arguments: JsonObject) -> None:
    """Validate `arguments` against the tool's schema.

    Raises:
        ToolError: says which argument is wrong, what was expected, and which arguments the tool has.
    """
    properties = spec.parameters["properties"]
    for name in arguments:
        if name not in properties:
            known = ", ".join(properties) or "none"
            raise ToolError(f"unknown argument {name[:100]!r}; this tool's arguments: {known}")
    for name in spec.parameters.get("required", []):
        if name not in arguments:
            raise ToolError(f"missing; expected {_expected(properties[name])}", argument=name)
    for name, value in arguments.items():
        if not all(map(_is_exchangeable, value if isinstance(value, list) else [value])):
            raise ToolError("expected finite numbers and text that UTF-8 can encode", argument=name)
    problem = best_match(_validator(canonical_json(spec.parameters)).iter_errors(arguments))
    if problem is not None:
        path = [str(part) for part in problem.absolute_path]
        message = f"expected {_expected(properties[path[0]])}; {problem.message[:300]}" if path else problem.message
        raise ToolError(message[:500], argument=path[0] if path else None)


def integers_as_such(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """Valid arguments with 5.0 turned into 5 where the schema says integer: JSON Schema takes both."""
    properties = spec.parameters["properties"]
    return {name: _as_integer(properties[name], value) for name, value in arguments.items()}


def _as_integer(schema: dict[str, Any], value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_as_integer(schema.get("items", {}), item) for item in value]
    if isinstance(value, float) and schema.get("type") == "integer":
        return int(value)
    return value


def _is_exchangeable(value: JsonValue) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return True


def _expected(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    kind = schema["type"]
    if isinstance(kind, list):
        return " or ".join(_expected({**schema, "type": each}) for each in kind)
    if kind == "array":
        return f"an array of {schema['items']['type']}s"
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
