"""Fields of a source as values of the schema's columns: looked up by name, read by type, or refused by name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from flows.importers.importer import Episode
from flows.importers.scale import verdict
from flows.results import COLUMNS, OUTCOMES

MAPPABLE = tuple(name for name in COLUMNS if name not in ("benchmark", "episode_id", "cell_id"))
"""Columns that a person may take from a field."""
_LARGEST = 2**63 - 1
_SHOWN = 20


def found_field(episode: Episode, name: str, column: str) -> Any:
    """The field called `name`; a dot leads into a nested one. Raises `ImportProblem` if there is none."""
    value: Any = episode.fields
    rest = name
    while True:
        if isinstance(value, Mapping):
            if rest in value:
                return value[rest]
            head, dot, rest = rest.partition(".")
            if dot and head in value:
                value = value[head]
                continue
        known = names_of(episode.fields)
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise episode.problem(name, f"there is no such field to take {column} from{hint}{listed(episode)}")


def listed(episode: Episode) -> str:
    """The fields of the source as the end of a message; the plain ones first, and not too many."""
    known = sorted(names_of(episode.fields), key=lambda each: (each.count("."), each))
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f" (fields there: {', '.join(known[:_SHOWN])}{more})" if known else ""


def names_of(fields: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The fields that `found_field` finds, nested ones by their full names."""
    names = []
    for key, value in fields.items():
        nested = isinstance(value, Mapping) and value
        names += names_of(value, f"{prefix}{key}.") if nested else [f"{prefix}{key}"]
    return names


def column_value(column: str, value: Any, episode: Episode, field: str) -> Any:
    """A field's value as one of the column; null where it is empty. Raises `ImportProblem`."""
    if value is None or value == "":
        return None
    found = _READERS[COLUMNS[column].dtype](value, episode, field)
    if column == "outcome" and found not in OUTCOMES:
        raise episode.problem(field, f"expected one of {', '.join(OUTCOMES)}, got {value!r:.60}")
    return found


def _text(value: Any, at: Episode, field: str) -> str:
    if isinstance(value, str | int | float | bool):
        return str(value)
    raise at.problem(field, f"expected text, got {value!r:.60}")


def _boolean(value: Any, at: Episode, field: str) -> bool:
    found = verdict(value)
    if found is None:
        raise at.problem(
            field,
            f"expected true or false, pass or fail, 1 or 0, got {value!r:.60}; a score with values between is taken "
            f"by --map partial_score={field}, and --pass-at says from where on it passes",
        )
    return found


def _number(value: Any, at: Episode, field: str) -> float:
    try:
        number = math.nan if isinstance(value, bool | list | dict) else float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise at.problem(field, f"expected a finite number (with a point, not a comma), got {value!r:.60}")
    return number


def _integer(value: Any, at: Episode, field: str) -> int:
    try:
        whole = int(value)  # a long one would lose digits as a float
    except (ValueError, TypeError, OverflowError):
        whole = -1
    if isinstance(value, bool) or not 0 <= whole <= _LARGEST or (isinstance(value, float) and whole != value):
        number = _number(value, at, field)
        if number != int(number) or not 0 <= number < _LARGEST:
            raise at.problem(field, f"expected a whole number from 0, got {value!r:.60}")
        return int(number)
    return whole


def _moment(value: Any, at: Episode, field: str) -> datetime:
    if isinstance(value, datetime):
        moment = value
    else:
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            raise at.problem(field, f"expected a date and time (ISO 8601), got {value!r:.60}") from None
    try:
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except OverflowError:
        raise at.problem(field, f"expected a date and time (ISO 8601), got {value!r:.60}") from None


_READERS: dict[str, Callable[[Any, Episode, str], Any]] = {
    "str": _text,
    "bool": _boolean,
    "boolean": _boolean,
    "float64": _number,
    "Float64": _number,
    "int64": _integer,
    "Int64": _integer,
    "datetime64[us, UTC]": _moment,
}
