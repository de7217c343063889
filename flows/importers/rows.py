"""From what a source knows of an episode to a row of the results schema."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flows.importers.fields import listed
from flows.importers.importer import Episode
from flows.results import COLUMNS, INFRA_ERROR, NO_START
from flows.stats.cells import ALL, MEAN_LEVEL
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
    "started_at": NO_START,
    "wall_clock_s": 0.0,
}
"""Columns that may not be null and that no analysis reads: what stands there when the source lacks them."""
_KEY = ("model", "family", "difficulty", "axis", "level", "instance_id")
_CELL = _KEY[:-1]
_HINTS = {
    "model": "name it with --set model=NAME, or the field that holds it with --map model=FIELD",
    "instance_id": "name the field that holds it with --map instance_id=FIELD",
    "family": "name it with --set family=NAME, or the field that holds it with --map family=FIELD",
}
_DERIVED = {
    *("benchmark", "episode_id", "cell_id", "run_seed", "infra_error", "outcome", "failure_class", "usage_known"),
    *("difficulty", "axis", "level", "variant_id", "instance_seed", "conversation_id", "conversation_position"),
    *("manifest_hash", "scientific_hash"),
}
"""Columns whose lack takes no analysis away."""

Row = dict[str, Any]


def result_rows(
    episodes: Iterable[Episode], benchmark: str, known: Sequence[Row] = (), ignored: Collection[str] = ()
) -> tuple[list[Row], list[str]]:
    """Rows of the schema, and the columns that the source lacks altogether.

    An episode without a run seed gets the next number of its instance in its cell, in the order of the source; run
    seeds that count from 0 count from 1.

    Args:
        known: Rows that the new ones are added to.
        ignored: Settings in which runs of one cell may differ.

    Raises:
        ImportProblem: a needed value is missing, two episodes are the same run, or episodes of one cell were run
            under different settings.
    """
    rows, seen = [], set[str]()
    for episode, values in _numbered(list(episodes), benchmark, known, ignored):
        seen |= {name for name, value in values.items() if value is not None}
        infra = bool(values.get("infra_error"))
        passed = None if infra else values.get("passed")
        if passed is None and not infra:
            raise episode.problem(
                "passed",
                "is missing: name the field that holds it with --map passed=FIELD, or a score's with "
                "--map partial_score=FIELD; an episode without a verdict is marked by the column infra_error"
                + listed(episode),
            )
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
        row["outcome"] = INFRA_ERROR if infra else _outcome(values.get("outcome"))
        failed = UNKNOWN if infra else "wrong_answer" if row["outcome"] == "completed" else row["outcome"]
        row["failure_class"] = None if passed else values.get("failure_class") or failed
        row["cell_id"] = "-".join(str(row[name]) for name in ("family", "difficulty", "axis", "level"))
        row["episode_id"] = content_hash([benchmark, *(row[name] for name in _KEY), row["run_seed"]])[:16]
        rows.append(row)
    return rows, [name for name in COLUMNS if name not in seen and name not in _DERIVED]


def _outcome(outcome: Any) -> Any:
    return "completed" if outcome in (None, INFRA_ERROR) else outcome


def _numbered(
    episodes: list[Episode], benchmark: str, known: Sequence[Row], ignored: Collection[str]
) -> Iterator[tuple[Episode, Row]]:
    """Every episode with its key complete and its run numbered."""
    from_zero = any(episode.values.get("run_seed") == 0 for episode in episodes)
    counts: dict[tuple[str, ...], int] = {}
    seen: dict[tuple[Any, ...], str] = {}
    for row in known:
        key = tuple(row[name] for name in _KEY)
        counts[key] = max(counts.get(key, 0), row["run_seed"])
        seen[(*key, row["run_seed"])] = "the results that these are added to"
    settings: dict[tuple[str, ...], tuple[Episode, Mapping[str, Any]]] = {}
    for episode in episodes:
        values = {"family": benchmark, "difficulty": "none", "axis": "none", "level": "baseline", **episode.values}
        key = _checked_key(episode, values)
        cell = key[:-1]
        if cell not in settings:
            settings[cell] = episode, _flat(episode.settings)
        elif episode.settings is not settings[cell][0].settings:
            _check_settings(episode, *settings[cell], ignored)
        counts[key] = counts.get(key, 0) + 1
        given = values.get("run_seed")
        values["run_seed"] = counts[key] if given is None else given + from_zero
        run = (*key, values["run_seed"])
        if run in seen:
            raise episode.problem("run_seed", f"the same run ({values['run_seed']}) is already in {seen[run]}")
        seen[run] = f"{episode.path}, {episode.place}"
        yield episode, values


def _checked_key(episode: Episode, values: Mapping[str, Any]) -> tuple[str, ...]:
    for name in _KEY:
        if not isinstance(values.get(name), str) or not values[name]:
            hint = _HINTS.get(name, "leave the column out, or fill it")
            raise episode.problem(name, f"is missing: {hint}{listed(episode)}")
        if values[name] == (MEAN_LEVEL if name == "level" else ALL) and name in _CELL:
            raise episode.problem(name, f"{values[name]!r} means an average in every table; give it another name")
    if (values["axis"] == "none") != (values["level"] == "baseline"):
        raise episode.problem(
            "level",
            f"axis {values['axis']!r} does not go with level {values['level']!r}: the unperturbed task has axis none "
            "and level baseline, which --baseline says of a level's own name; every other has an axis and a level",
        )
    return tuple(values[name] for name in _KEY)


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def _check_settings(episode: Episode, first: Episode, expected: Mapping[str, Any], ignored: Collection[str]) -> None:
    own = _flat(episode.settings)
    for name in dict.fromkeys([*expected, *own]):
        if own.get(name) != expected.get(name) and name not in ignored:
            raise episode.problem(
                name,
                f"{own.get(name)!r:.80} here, {expected.get(name)!r:.80} in {first.path.name}, of the same model and "
                "task: they would count as runs of one cell. Tell them apart by a level (--map level=FIELD, or an "
                "import of its own with --set axis=… --set level=… --add), leave one out, or, if it cannot matter, "
                f"--ignore {name}",
            )
