"""Which episodes there are of those that there should be: by the grid, or, without one, by what other models have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from flows.analysis.inputs import Inputs
from flows.stats.cells import UNPAIRED_AXES

COVERAGE_COLUMNS = {
    "model": "model of the grid, or of the rows",
    "cell_id": "cell of the grid, or of the rows",
    "planned": "episodes that the grid spells out; without a grid, one for each task that any model has in the cell's "
    "family, times the most runs of a task in the cell",
    "scored": "episodes with a verdict",
    "infra_error": "episodes that infrastructure let down",
    "malformed_calls": "tool calls whose arguments were no JSON object, where they were counted; null: nowhere",
    "state": "complete, partial, missing, all infra_error, or unsupported",
    "reason": "why a cell cannot be run, where it cannot",
}


def coverage(inputs: Inputs) -> pd.DataFrame:
    """One row per (model, cell): planned and scored episodes, and whether the cell is whole."""
    by_cell = inputs.frame.groupby(["model", "cell_id"])
    counts, malformed = by_cell["infra_error"].agg(["size", "sum"]), by_cell["malformed_calls"].sum(min_count=1)
    rows: list[dict[str, Any]] = []
    planned: Iterable[Mapping[str, Any]] | None = inputs.metadata.get("planned")
    for cell in _expected(inputs.frame) if planned is None else planned:
        key = (cell["model"], cell["cell_id"])
        size, infra = (int(counts.loc[key, name]) for name in ("size", "sum")) if key in counts.index else (0, 0)
        if size == 0:
            state = "missing"
        elif infra == size:
            state = "all infra_error"
        else:
            state = "complete" if size - infra == cell["episodes"] else "partial"
        rows.append(
            {
                "model": cell["model"],
                "cell_id": cell["cell_id"],
                "planned": cell["episodes"],
                "scored": size - infra,
                "infra_error": infra,
                "malformed_calls": malformed.get(key),
                "state": state,
                "reason": None,
            }
        )
    rows += [
        {**cell, "planned": 0, "scored": 0, "infra_error": 0, "malformed_calls": None, "state": "unsupported"}
        for cell in inputs.metadata.get("unsupported", [])
    ]
    frame = pd.DataFrame(rows, columns=list(COVERAGE_COLUMNS))
    texts = dict.fromkeys(("model", "cell_id", "state", "reason"), "str")
    return frame.astype({**texts, "malformed_calls": "Int64"})


def _expected(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """What a complete table would hold: every model in every cell of any, each on every task of the family and
    difficulty (new instances: of the level) that any has, as often as the task that was run most often there."""
    tasks: dict[str, int] = {}
    for _, own in frame.groupby(["family", "difficulty"], sort=True):
        shared = int(own.loc[~own["axis"].isin(UNPAIRED_AXES), "instance_id"].nunique())
        for (cell, axis), rows in own.groupby(["cell_id", "axis"], sort=True):
            tasks[str(cell)] = int(rows["instance_id"].nunique()) if axis in UNPAIRED_AXES else shared
    runs = frame.groupby(["cell_id", "model", "instance_id"], sort=True).size()
    most = runs.groupby(level=["cell_id", "model"]).max().unstack("model")
    for cell, by_model in most.sort_index().iterrows():
        for model, times in by_model.fillna(by_model.max()).items():
            yield {"model": str(model), "cell_id": str(cell), "episodes": tasks[str(cell)] * int(times)}
