"""From what a source knows of an episode to a row of the results schema. Every format is a function to these parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.errors import StudyError
from flows.results import COLUMNS, INFRA_ERROR
from tasks_env.canonical import content_hash

UNKNOWN = "unknown"
_STAND_INS: dict[str, Any] = {
    "instance_seed": 0,
    "steps_used": 0,
    "attempts": 1,
    "git_sha": UNKNOWN,
    "manifest_hash": UNKNOWN,
    "scientific_hash": UNKNOWN,
    "adapter_version": UNKNOWN,
    "scaffold_version": UNKNOWN,
    "started_at": datetime(1970, 1, 1, tzinfo=UTC),
    "wall_clock_s": 0.0,
}
"""Columns that may not be null and that no analysis reads: what stands there when the source lacks them."""
_KEY = ("model", "family", "difficulty", "axis", "level", "instance_id")


class ImportProblem(StudyError):
    """One paragraph that names file, place and field."""

    exit_code = 2

    def __init__(self, path: Path, place: str, field: str, problem: str) -> None:
        super().__init__(f"{path}, {place}, {field}: {problem}")


@dataclass(frozen=True)
class Episode:
    """What a source says of one episode, by column of the results schema, and where it says so."""

    values: Mapping[str, Any]
    path: Path
    place: str

    def problem(self, field: str, problem: str) -> ImportProblem:
        """A mistake in this episode."""
        return ImportProblem(self.path, self.place, field, problem)


def result_rows(episodes: Iterable[Episode], benchmark: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of the schema, and the columns that the source lacks altogether.

    An episode without a run seed gets the next number of its instance in its cell, in the order of the source.

    Raises:
        ImportProblem: a needed value is missing, or two episodes are the same run.
    """
    rows, known = [], set[str]()
    for episode, values in _numbered(list(episodes)):
        known |= {name for name, value in values.items() if value is not None}
        infra = bool(values.get("infra_error"))
        passed = None if infra else values.get("passed")
        if passed is None and not infra:
            raise episode.problem("passed", "is missing, and the episode is not marked as infra_error")
        row = {
            **dict.fromkeys(COLUMNS),
            **_STAND_INS,
            **{name: value for name, value in values.items() if value is not None},
            "benchmark": benchmark,
            "infra_error": infra,
            "passed": passed,
            "partial_score": None if infra else values.get("partial_score"),
            "usage_known": values.get("tokens_in") is not None and values.get("tokens_out") is not None,
        }
        row["outcome"] = INFRA_ERROR if infra else values.get("outcome") or "completed"
        failed = UNKNOWN if infra else "wrong_answer" if row["outcome"] == "completed" else row["outcome"]
        row["failure_class"] = None if passed else values.get("failure_class") or failed
        row["cell_id"] = "-".join(str(row[name]) for name in ("family", "difficulty", "axis", "level"))
        row["episode_id"] = content_hash([benchmark, *(row[name] for name in _KEY), row["run_seed"]])[:16]
        rows.append(row)
    return rows, [name for name in COLUMNS if name not in known and name not in _DERIVED]


_DERIVED = {"benchmark", "episode_id", "cell_id", "run_seed", "infra_error", "outcome", "failure_class", "usage_known"}


def _numbered(episodes: list[Episode]) -> Iterator[tuple[Episode, dict[str, Any]]]:
    counts: dict[tuple[str, ...], int] = {}
    seen: dict[tuple[Any, ...], Episode] = {}
    for episode in episodes:
        values = {"difficulty": "none", "axis": "none", "level": "baseline", **episode.values}
        for name in _KEY:
            if not isinstance(values.get(name), str) or not values[name]:
                raise episode.problem(name, "is missing")
        if (values["axis"] == "none") != (values["level"] == "baseline"):
            raise episode.problem("level", f"axis {values['axis']!r} does not go with level {values['level']!r}")
        key = tuple(values[name] for name in _KEY)
        counts[key] = counts.get(key, 0) + 1
        if values.get("run_seed") is None:
            values["run_seed"] = counts[key]
        run = (*key, values["run_seed"])
        if run in seen:
            first = seen[run]
            raise episode.problem("run_seed", f"the same run is already in {first.path}, {first.place}")
        seen[run] = episode
        yield episode, values
