"""The results row: one per episode, one schema for the study, the sister benchmarks and imported logs.

Columns that a source lacks are null; each analysis says what it needs. `COLUMNS` documents every column and
`SCHEMA` guards every table that is written or read.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd
import pandera.pandas as pa

from flows.outcomes import INFRA_ERROR as INFRA_ERROR
from flows.outcomes import OUTCOMES as OUTCOMES

SCHEMA_VERSION = 1

NO_START = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands in `started_at` where an imported source does not say when an episode started."""


class Column(NamedTuple):
    """One column: pandas dtype, whether null is allowed, meaning."""

    dtype: str
    nullable: bool
    meaning: str


COLUMNS: dict[str, Column] = {
    "benchmark": Column("str", False, "which benchmark the row belongs to: `stability`, or an imported one's name"),
    "episode_id": Column("str", False, "hash of the cell, the run seed and everything that could change the outcome"),
    "model": Column("str", False, "the manifest's name of the model entry"),
    "family": Column("str", False, "task family"),
    "difficulty": Column("str", False, "difficulty level within the family"),
    "axis": Column("str", False, "perturbation axis; `none` for the baseline"),
    "level": Column("str", False, "level of the axis; `baseline` for the baseline"),
    "cell_id": Column("str", False, "`<family>-<difficulty>-<axis>-<level>`"),
    "instance_id": Column("str", False, "the instance: pairs a perturbed episode with its baseline"),
    "variant_id": Column("str", True, "the instance as the cell showed it"),
    "instance_seed": Column("int64", False, "seed that generated the instance"),
    "run_seed": Column("int64", False, "replicate number within instance and cell, from 1"),
    "conversation_id": Column(
        "str",
        True,
        "the conversation in which several tasks were met, whose context each carries to the next; null where the "
        "episode was a conversation of its own",
    ),
    "conversation_position": Column("Int64", True, "place of the task in that conversation, from 1; null likewise"),
    "passed": Column("boolean", True, "the verdict; null for infra_error"),
    "partial_score": Column("Float64", True, "0 to 1, family-specific; null for infra_error"),
    "steps_used": Column("int64", False, "model calls answered in the last attempt"),
    "outcome": Column("str", False, "how the episode ended: " + ", ".join(OUTCOMES)),
    "failure_class": Column(
        "str", True, "null if passed; else the outcome, `wrong_answer`, or the kind of infra_error"
    ),
    "infra_error": Column("bool", False, "infrastructure or verifier failed: excluded from pass rates, always counted"),
    "attempts": Column("int64", False, "recorded attempts at the episode, this one included"),
    "tokens_in": Column("Int64", True, "input tokens, cached ones included; null if unknown"),
    "tokens_cached": Column("Int64", True, "input tokens read from the provider's cache; null if unknown"),
    "tokens_out": Column("Int64", True, "output tokens, reasoning included; null if unknown"),
    "tokens_reasoning": Column("Int64", True, "output tokens spent on reasoning; null if unknown"),
    "usage_known": Column("bool", False, "whether every answer carried its usage"),
    "cost_usd": Column("Float64", True, "price of all answers of the last attempt; null if usage is unknown"),
    "trajectory_hash": Column("str", True, "hash of the sequence of tool names, mapped back to canonical ones"),
    "trajectory_length": Column("Int64", True, "number of tool calls"),
    "malformed_calls": Column(
        "Int64",
        True,
        "tool calls whose arguments were no JSON object (broken off, no JSON, no object, a key twice) and which were "
        "answered with an error; null where nobody counted",
    ),
    "git_sha": Column("str", False, "commit of the code that ran the episode, `-dirty` if sources differed"),
    "manifest_hash": Column("str", False, "hash of the whole resolved manifest at run time"),
    "scientific_hash": Column("str", False, "hash of what can change an outcome, at run time"),
    "adapter_version": Column("str", False, "adapter and its version"),
    "scaffold_version": Column("str", False, "version of the agent scaffold"),
    "started_at": Column(
        "datetime64[us, UTC]", False, "start of the last attempt, UTC; 1970-01-01 where an imported source does not say"
    ),
    "wall_clock_s": Column("float64", False, "duration of the last attempt in seconds"),
}

LATER_COLUMNS = ("conversation_id", "conversation_position", "malformed_calls")
"""Columns that a row or file may lack, since they came when there were such already: they are null there."""

WALL_CLOCK_COLUMNS = ("started_at", "wall_clock_s")
"""The only columns in which two runs of the same study may differ."""

SORT_KEY = [
    "benchmark",
    "model",
    "family",
    "difficulty",
    "axis",
    "level",
    "instance_id",
    "run_seed",
    "episode_id",
]


def _checks(name: str) -> list[pa.Check]:
    if name == "outcome":
        return [pa.Check.isin(OUTCOMES)]
    if name == "partial_score":
        return [pa.Check.in_range(0, 1)]
    if name in ("run_seed", "attempts", "conversation_position"):
        return [pa.Check.ge(1)]
    if name in ("steps_used", "trajectory_length", "malformed_calls") or name.startswith("tokens_"):
        return [pa.Check.ge(0)]
    if name in ("cost_usd", "wall_clock_s"):
        return [pa.Check.ge(0), pa.Check.lt(float("inf"))]
    return []


SCHEMA = pa.DataFrameSchema(
    {name: pa.Column(column.dtype, nullable=column.nullable, checks=_checks(name)) for name, column in COLUMNS.items()},
    checks=[
        pa.Check(
            lambda frame: frame["passed"].isna() == frame["infra_error"],
            error="passed is null exactly when infra_error",
        ),
        pa.Check(
            lambda frame: (frame["outcome"] == INFRA_ERROR) == frame["infra_error"],
            error="outcome is infra_error exactly when infra_error is set",
        ),
        pa.Check(
            lambda frame: frame["partial_score"].isna() | ~frame["infra_error"],
            error="an infra_error has no partial_score",
        ),
        pa.Check(
            lambda frame: frame["failure_class"].isna() | ~frame["passed"].fillna(False),
            error="a passed episode has no failure_class",
        ),
        pa.Check(
            lambda frame: frame["conversation_id"].isna() == frame["conversation_position"].isna(),
            error="a conversation_id comes with a conversation_position",
        ),
    ],
    unique=["benchmark", "episode_id"],
    strict=True,
    ordered=True,
)


def results_frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a validated table, sorted by `SORT_KEY`.

    Raises:
        pandera.errors.SchemaErrors: a value breaks the schema; the error lists each failing column and case.
        KeyError: a row lacks a column that is not one of `LATER_COLUMNS`.
        ValueError, TypeError: a value does not fit the column's type.
    """
    lacking = dict.fromkeys(LATER_COLUMNS)
    cells = [[row[name] for name in COLUMNS] for row in ({**lacking, **row} for row in rows)]
    frame = pd.DataFrame(cells, columns=list(COLUMNS))
    frame = frame.astype({name: column.dtype for name, column in COLUMNS.items()})
    frame = frame.sort_values(SORT_KEY, kind="stable", ignore_index=True)
    return SCHEMA.validate(frame, lazy=True)
