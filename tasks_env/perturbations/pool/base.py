"""What an irrelevant tool is, and the few things that several of them need."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date

from tasks_env.seeding import derive_seed
from tasks_env.tools import parameter
from tasks_env.types import JsonObject, ToolSpec

_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True)
class Distractor:
    """A tool that works and never helps."""

    spec: ToolSpec
    answer: Callable[[JsonObject], str]
    """The reply to arguments that fit the schema: a pure function, which raises nothing."""


def date_parameter(description: str) -> dict[str, object]:
    """The schema of a calendar date as text."""
    return parameter("string", f"{description}, as YYYY-MM-DD.", maxLength=10)


def parse_date(text: object) -> date | None:
    """The calendar date, or None where `text` is not one."""
    if not isinstance(text, str) or not _ISO_DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def bad_date(text: object) -> str:
    """What to say about a date that is none."""
    return f"Not a calendar date: {text}. Expected the form YYYY-MM-DD."


def fold(text: object) -> str:
    """The form in which words are looked up."""
    return " ".join(str(text).split()).casefold()


def not_found(kind: str, asked: object, known: Iterable[str]) -> str:
    """What to say about a name outside a table."""
    return f"No {kind} called {asked}. Available: {', '.join(sorted(known))}."


def number(value: object) -> float:
    """A JSON number as a float; the schemas bound it."""
    return float(value) if isinstance(value, int | float) else math.nan


def plain(value: float, decimals: int) -> str:
    """Fixed decimals without trailing zeros: 12.5, 3, 0.001."""
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def fraction(*labels: str | int) -> float:
    """A number in [0, 1) that depends on the labels alone."""
    return (derive_seed(0, "pool", *labels) >> 10) / 2**53


def choice(options: tuple[str, ...], *labels: str | int) -> str:
    """One of `options`, by the labels alone."""
    return options[derive_seed(0, "pool", *labels) % len(options)]
