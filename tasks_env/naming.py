"""Names as an agent sees them: resolving placeholders and translating calls both ways."""

from __future__ import annotations

import re

from tasks_env.types import JsonObject, Naming, ToolSpec

_PLACEHOLDER = re.compile(r"\{(tool|arg):([A-Za-z0-9_]+)\}")


def resolve(text: str, naming: Naming) -> str:
    """`text` with every `{tool:NAME}` and `{arg:NAME}` replaced by the shown name."""

    def shown(match: re.Match[str]) -> str:
        names = naming.tools if match[1] == "tool" else naming.arguments
        return names.get(match[2], match[2])

    return _PLACEHOLDER.sub(shown, text)


def literal(text: str) -> str:
    """`text` with its braces escaped, so that `resolve` leaves it alone: an agent's own words inside a message."""
    return text.replace("{", "\\x7b")


def shown_spec(spec: ToolSpec, naming: Naming) -> ToolSpec:
    """A tool's specification under `naming`: name, argument names and the wording that mentions them.

    Raises:
        ValueError: `naming` shows two of the tool's arguments under one name.
    """
    schema = dict(spec.parameters)
    schema["properties"] = {
        naming.arguments.get(name, name): {**prop, "description": resolve(prop["description"], naming)}
        for name, prop in spec.parameters["properties"].items()
    }
    if len(schema["properties"]) < len(spec.parameters["properties"]):
        raise ValueError(f"two arguments of tool {spec.name!r} would be shown under one name")
    schema["required"] = [naming.arguments.get(name, name) for name in spec.parameters.get("required", [])]
    return ToolSpec(
        name=naming.tools.get(spec.name, spec.name),
        description=resolve(spec.description, naming),
        parameters=schema,
    )


def canonical_arguments(arguments: JsonObject, naming: Naming) -> JsonObject:
    """Shown argument names back to canonical ones."""
    canonical = {shown: name for name, shown in naming.arguments.items()}
    return {canonical.get(name, name): value for name, value in arguments.items()}


def shown_arguments(arguments: JsonObject, naming: Naming) -> JsonObject:
    """Canonical argument names to shown ones."""
    return {naming.arguments.get(name, name): value for name, value in arguments.items()}
