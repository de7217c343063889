"""Small results tables, spelled out: one string of outcomes per instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from flows.results import results_frame

Cell = tuple[str, str, str, str, str]
"""Model, family, difficulty, axis, level."""

BASE = ("none", "baseline")


def cell(model: str = "m", axis: str = "none", level: str = "baseline", family: str = "tabular") -> Cell:
    """A cell of difficulty easy."""
    return (model, family, "easy", axis, level)


def episodes(cells: Mapping[Cell, Sequence[str]], cost: float | None = 0.01) -> pd.DataFrame:
    """A table valid in the results schema.

    Args:
        cells: Cell -> one string per instance, in order: a character per run, `1` pass, `0` fail, `x` an
            infrastructure error; an empty string leaves the instance out. Instances of a resampled cell get ids of
            their own.
        cost: Cost of every episode.
    """
    rows: list[dict[str, Any]] = []
    for (model, family, difficulty, axis, level), instances in cells.items():
        sample = f"-{level}" if axis == "resample" else ""
        for number, runs in enumerate(instances):
            for run, outcome in enumerate(runs, start=1):
                infra = outcome == "x"
                passed = None if infra else outcome == "1"
                rows.append(
                    {
                        "benchmark": "stability",
                        "episode_id": f"{model}/{family}/{difficulty}/{axis}/{level}/{number}/{run}",
                        "model": model,
                        "family": family,
                        "difficulty": difficulty,
                        "axis": axis,
                        "level": level,
                        "cell_id": f"{family}-{difficulty}-{axis}-{level}",
                        "instance_id": f"{family}-{difficulty}{sample}-{number:04d}",
                        "variant_id": f"{family}-{difficulty}{sample}-{number:04d}-{axis}-{level}",
                        "instance_seed": number,
                        "run_seed": run,
                        "passed": passed,
                        "partial_score": None if passed is None else float(passed),
                        "steps_used": 3,
                        "outcome": "infra_error" if infra else "completed",
                        "failure_class": None if passed else ("server_error" if infra else "wrong_answer"),
                        "infra_error": infra,
                        "attempts": 1,
                        "tokens_in": 100,
                        "tokens_cached": 0,
                        "tokens_out": 10,
                        "tokens_reasoning": 0,
                        "usage_known": cost is not None,
                        "cost_usd": cost,
                        "trajectory_hash": f"t{outcome}",
                        "trajectory_length": 2,
                        "git_sha": "0" * 40,
                        "manifest_hash": "m",
                        "scientific_hash": "s",
                        "adapter_version": "test/1",
                        "scaffold_version": "1",
                        "started_at": pd.Timestamp("2026-01-01T00:00:00Z"),
                        "wall_clock_s": 1.0,
                    }
                )
    return results_frame(rows)


def row_of(table: pd.DataFrame, **labels: Any) -> pd.Series:
    """The only row with these labels."""
    chosen = table
    for name, value in labels.items():
        chosen = chosen[chosen[name] == value]
    assert len(chosen) == 1, f"{len(chosen)} rows have {labels}"
    return chosen.iloc[0]
