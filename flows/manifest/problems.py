"""Validation errors of the manifest as sentences: field path, what was expected there, what was found."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from flows.manifest.schema import Manifest

ADAPTER_TAGS = ("openai", "anthropic", "scripted")
"""Pydantic puts the chosen adapter into the path of an error in a model entry; the file has no such level."""

_KINDS: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
    type(None): "null",
    dict: "a mapping",
    list: "a list",
}


def listing(path: Path, problems: Sequence[str]) -> str:
    """All problems of one file as one message."""
    if len(problems) == 1:
        return f"{path}: {problems[0]}"
    return f"{path}: {len(problems)} problems:\n" + "\n".join(f"  {problem}" for problem in problems)


def problem_of(detail: ErrorDetails) -> str:
    """One of pydantic's errors as `<field path>: <what is wrong>`."""
    parts = _field_path(detail["loc"])
    where = ".".join(parts)
    kind = detail["type"]
    if kind == "extra_forbidden":
        return f"{where}: unknown key{hint(parts[-1], _siblings(parts))}"
    if kind == "missing":
        return f"{where}: missing; expected {_expected_at(parts)}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        found = f", got {detail['ctx']['tag']!r}" if kind == "union_tag_invalid" else ", which is missing"
        return f"{where}.adapter: expected one of {', '.join(ADAPTER_TAGS)}{found}"
    if kind in ("model_type", "dict_type"):
        message = "expected a mapping"
    else:
        message = detail["msg"].removeprefix("Value error, ").replace("Input should be ", "expected ")
    found = "" if isinstance(detail["input"], dict | BaseModel) else f", got {_shortened(detail['input'])}"
    return f"{where}: {message}{found}"


def unknown_names(where: str, names: Iterable[str], known: Iterable[str]) -> list[str]:
    """A problem for each of `names` that is not among `known`, with the nearest one or all of them."""
    known = sorted(known)
    return [
        f"{where}: unknown name {name!r}" + (hint(name, known) or f"; known: {', '.join(known)}")
        for name in names
        if name not in known
    ]


def hint(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing where nothing resembles `name`."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def _field_path(location: tuple[int | str, ...]) -> list[str]:
    parts = [str(part) for part in location]
    if len(parts) > 2 and parts[0] == "models" and parts[2] in ADAPTER_TAGS:
        del parts[2]
    return parts


def _siblings(parts: Sequence[str]) -> list[str]:
    """The keys that the section at `parts[:-1]` knows."""
    return [name for section in _sections_at(parts[:-1]) for name in section.model_fields]


def _expected_at(parts: Sequence[str]) -> str:
    for section in _sections_at(parts[:-1]):
        if parts[-1] in section.model_fields:
            return _described(section.model_fields[parts[-1]].annotation)
    return "a value"


def _sections_at(parts: Sequence[str]) -> list[type[BaseModel]]:
    """The sections that may stand at a path; names that the user chose and list indices lead no deeper."""
    sections: list[type[BaseModel]] = [Manifest]
    for part in parts:
        inner = [
            found
            for section in sections
            if part in section.model_fields
            for found in _sections_in(section.model_fields[part].annotation)
        ]
        sections = inner or sections
    return sections


def _sections_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for argument in get_args(annotation) for section in _sections_in(argument)]


def _described(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _described(get_args(annotation)[0])
    if origin is Literal:
        return " or ".join(repr(value) for value in get_args(annotation))
    if origin in (Union, types.UnionType):
        return " or ".join(_described(argument) for argument in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "a mapping"
    return _KINDS.get(origin or annotation, str(annotation))


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
