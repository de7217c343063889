"""Registered hypotheses: the fenced yaml blocks of HYPOTHESES.md as data.

A block registers one hypothesis; the paragraphs before it are its registered text (blocks in a row share it).
Under the heading "Amendments", every block stands below a heading that carries an ISO date, and a block with
a registered id replaces that hypothesis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

MEAN = "mean"
"""The level that stands for the mean over the levels of an axis."""

DEFAULT_SMALLEST_EFFECT = 0.03


class HypothesisError(ValueError):
    """The text registers hypotheses wrongly; one line per mistake, each with its line number."""

    def __init__(self, mistakes: Sequence[tuple[int, str]]) -> None:
        super().__init__("\n".join(f"line {line}: {message}" for line, message in mistakes))
        self.mistakes = tuple(mistakes)


class Hypothesis(BaseModel):
    """One registered hypothesis about a difference of pass rates, perturbed minus baseline."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    axis: str = Field(min_length=1)
    level: str = Field(min_length=1)
    """A level of the axis, or `mean`."""
    kind: Literal["directional", "equivalence"]
    sign: Literal[-1, 1] | None = None
    """Direction of a directional hypothesis."""
    smallest_effect: float = Field(default=DEFAULT_SMALLEST_EFFECT, gt=0, lt=1)
    """Smallest difference of interest, as a fraction."""
    text: str = ""
    """The registered prose."""
    line: int = 0
    """Where the block begins."""
    amended: str | None = None
    """Date of the amendment that registers it, if one does."""

    @model_validator(mode="after")
    def _sign_belongs_to_direction(self) -> Hypothesis:
        if self.kind == "directional" and self.sign is None:
            raise ValueError("a directional hypothesis needs `sign: 1` or `sign: -1`")
        if self.kind == "equivalence" and self.sign is not None:
            raise ValueError("an equivalence hypothesis has no `sign`")
        return self

    def claim(self) -> tuple[object, ...]:
        """What is registered, wording aside: hypotheses of equal claims are the same one."""
        return tuple(getattr(self, key) for key in _REGISTERED_KEYS)


_REGISTERED_KEYS = ("id", "axis", "level", "kind", "sign", "smallest_effect")


@dataclass(frozen=True)
class Registration:
    """Hypotheses and the rows that they judge: those with from <= started_at < until (null: no bound)."""

    hypotheses: tuple[Hypothesis, ...]
    name: str = "unregistered"
    """Commit and hash of the text, or why there is none."""
    started_from: datetime | None = None
    started_until: datetime | None = None
    before_rows: bool | None = None
    """Whether the text was committed before the rows started; null if unknown."""

    def judges(self, frame: pd.DataFrame) -> pd.Series:
        """Whether this registration judges each row of a results table: boolean, with the table's index."""
        own = pd.Series(True, index=frame.index)
        if self.started_from is not None:
            own &= frame["started_at"] >= self.started_from
        if self.started_until is not None:
            own &= frame["started_at"] < self.started_until
        return own


@dataclass(frozen=True)
class _Block:
    line: int
    source: str
    text: str
    in_amendments: bool
    date: str | None


_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
_HEADING = re.compile(r"^ {0,3}(?P<marks>#{1,6})\s+(?P<title>.*?)\s*#*\s*$")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")


def _blocks(text: str) -> Iterator[_Block]:
    """Every fenced yaml block, with the prose before it and where it stands."""
    prose: list[str] = []
    shared = ""
    amendments_depth: int | None = None
    date: str | None = None
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        heading, fence = _HEADING.match(line), _FENCE.match(line)
        if heading is not None:
            depth = len(heading["marks"])
            if heading["title"].strip().casefold() == "amendments":
                amendments_depth, date = depth, None
            elif amendments_depth is not None and depth <= amendments_depth:
                amendments_depth, date = None, None
            found = _DATE.search(heading["title"])
            if amendments_depth is not None and found is not None:
                date = found.group()
            prose, shared = [], ""
        elif fence is None:
            prose.append(line)
        else:
            start, content = number, []
            while number < len(lines) and not _closes(lines[number], fence["fence"]):
                content.append(lines[number])
                number += 1
            if number == len(lines):
                raise HypothesisError([(start, "the fenced block is never closed")])
            number += 1
            if fence["info"].strip().casefold() in ("yaml", "yml"):
                shared = " ".join(" ".join(prose).split()) or shared
                yield _Block(start, "\n".join(content), shared, amendments_depth is not None, date)
                prose = []


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and set(stripped) == {fence[0]}


def _load(block: _Block) -> tuple[dict[str, Any], dict[str, int]]:
    """The block's mapping and the line of each key."""
    try:
        data = YAML(typ="safe", pure=True).load(block.source)
        lines = _key_lines(block)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = block.line + 1 + (mark.line if mark is not None else 0)
        problem = (error.problem or "not valid YAML").splitlines()[0]
        raise HypothesisError([(line, problem)]) from None
    except YAMLError as error:
        raise HypothesisError([(block.line, f"not valid YAML: {str(error).splitlines()[0]}")]) from None
    if not isinstance(data, dict):
        raise HypothesisError([(block.line, "the block must be a mapping of keys to values")])
    return {str(key): value for key, value in data.items()}, lines


def _key_lines(block: _Block) -> dict[str, int]:
    node = YAML(pure=True).compose(StringIO(block.source))
    if node is None or not hasattr(node, "value") or not isinstance(node.value, list):
        return {}
    pairs = [pair for pair in node.value if isinstance(pair, tuple)]
    return {str(key.value): block.line + 1 + int(key.start_mark.line) for key, _ in pairs}


def _hypothesis(block: _Block) -> Hypothesis:
    data, lines = _load(block)
    mistakes = [
        (lines.get(key, block.line), f"unknown key {key!r}; known: {', '.join(_REGISTERED_KEYS)}")
        for key in data
        if key not in _REGISTERED_KEYS
    ]
    if mistakes:
        raise HypothesisError(mistakes)
    if isinstance(data.get("smallest_effect"), int) and not isinstance(data["smallest_effect"], bool):
        data["smallest_effect"] = float(data["smallest_effect"])
    for key in ("axis", "level"):
        if isinstance(data.get(key), int | float):
            line = lines.get(key, block.line)
            raise HypothesisError([(line, f'{key}: quote it, `{key}: "{data[key]}"`; names are text')])
    try:
        return Hypothesis(**data, text=block.text, line=block.line, amended=block.date)
    except ValidationError as error:
        found = []
        for item in error.errors():
            key = str(item["loc"][0]) if item["loc"] else ""
            message = item["msg"].removeprefix("Value error, ")
            shown = f", got {item['input']!r}" if item["type"] not in ("missing", "value_error") else ""
            found.append((lines.get(key, block.line), f"{key + ': ' if key else ''}{message}{shown}"))
        raise HypothesisError(found) from None


def parse_hypotheses(text: str) -> tuple[Hypothesis, ...]:
    """The hypotheses in force, in the order of the text; an amended one keeps its place.

    Raises:
        HypothesisError: a block is not valid YAML, has unknown or missing keys or bad values, an id is
            registered twice, or an amendment has no date. All mistakes are listed.
    """
    found: dict[str, Hypothesis] = {}
    mistakes: list[tuple[int, str]] = []
    for block in _blocks(text):
        try:
            hypothesis = _hypothesis(block)
        except HypothesisError as error:
            mistakes.extend(error.mistakes)
            continue
        earlier = found.get(hypothesis.id)
        if block.in_amendments and block.date is None:
            mistakes.append((block.line, "an amendment stands below a heading with its date, like `### 2026-01-31`"))
        elif earlier is not None and not block.in_amendments:
            mistakes.append((block.line, f"{hypothesis.id} is registered already, on line {earlier.line}"))
        else:
            found[hypothesis.id] = hypothesis
    if mistakes:
        raise HypothesisError(mistakes)
    return tuple(found.values())
