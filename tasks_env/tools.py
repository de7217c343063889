"""Tool specifications and the checking of arguments: an invalid call is data for the agent."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend
from pydantic import JsonValue

from tasks_env.canonical import canonical_json
from tasks_env.errors import ToolError
from tasks_env.types import JsonObject, ToolSpec

DEEPEST = 100
"""Levels of nesting in a call's arguments at most. Tools take flat ones; what is deeper could not even be recorded."""
_REASON_CHARS = 300
_REASON_END = 100


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


_UNDERSTOOD_OF_TOOLS = frozenset({"type", "properties", "required", "additionalProperties"})
_UNDERSTOOD = frozenset(
    {
        "type",
        "description",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "items",
        "minItems",
        "maxItems",
    }
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def _matches(pattern: str, text: str) -> bool:
    """`pattern` as JSON Schema means it: a `$` at its end is the end of the text, never before a last newline."""
    exact = pattern[:-1] + r"\Z" if pattern.endswith("$") and not pattern.endswith("\\$") else pattern
    return re.search(exact, text) is not None


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _matches(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_Validator: Any = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]


@lru_cache(maxsize=512)
def _validator(schema: str) -> Any:
    return _Validator(json.loads(schema))


def nested_too_deeply(arguments: JsonObject) -> bool:
    """Whether arrays or objects in the arguments lie more than `DEEPEST` levels deep."""
    layer: list[JsonValue] = [arguments]
    for _ in range(DEEPEST + 1):
        layer = [
            inner
            for value in layer
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not layer:
            return False
    return any(isinstance(value, dict | list) for value in layer)


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
    if spec.parameters.keys() <= _UNDERSTOOD_OF_TOOLS and all(
        _surely_fits(properties[name], value) for name, value in arguments.items()
    ):
        return
    problem = best_match(_validator(canonical_json(spec.parameters)).iter_errors(arguments))
    if problem is not None:
        path = [str(part) for part in problem.absolute_path]
        reason = _shortened(problem.message)
        message = f"expected {_expected(properties[path[0]])}; {reason}" if path else reason
        raise ToolError(message[:500], argument=path[0] if path else None)


def _surely_fits(schema: Any, value: JsonValue) -> bool:
    """Whether a plain value meets a schema of a few plain keywords; False: it may or may not.

    What nearly every call consists of is settled here; the validator, which is far slower, has the word on the rest.
    """
    if not isinstance(schema, dict) or not schema.keys() <= _UNDERSTOOD:
        return False
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if isinstance(value, str):
        return (
            "string" in kinds
            and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf)
            and ("enum" not in schema or value in schema["enum"])
            and ("pattern" not in schema or _matches(schema["pattern"], value))
        )
    if "enum" in schema:
        return False
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, int | float):
        fits = "number" in kinds or (isinstance(value, int) and "integer" in kinds)
        return fits and schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
    if isinstance(value, list):
        return (
            "array" in kinds
            and schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf)
            and all(_surely_fits(schema.get("items", {}), item) for item in value)
        )
    return False


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


def _shortened(message: str) -> str:
    """A message that begins with the agent's own value and ends with what is wrong with it: both stay."""
    if len(message) <= _REASON_CHARS:
        return message
    return f"{message[: _REASON_CHARS - _REASON_END]} … {message[-_REASON_END:]}"


def _is_exchangeable(value: JsonValue) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return value.isascii() or _SURROGATE.search(value) is None
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
