"""lm-evaluation-harness: the samples_<task>_<time>.jsonl files that `--log_samples` writes, a folder per model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from flows.importers.rows import Episode, ImportProblem
from flows.importers.tables import read_text

_NAME = re.compile(r"^samples_(?P<task>.+?)(_\d{4}-\d{2}-\d{2}T[\d.:-]+)?\.jsonl$")


def read_lm_eval(path: Path, metric: str | None = None) -> Iterator[Episode]:
    """Episodes of one samples file: the file names the task, its folder the model, `doc_id` the instance.

    A metric of 1 passes, less does not; of several filters' records the first filter's count.

    Args:
        metric: Which metric decides; null: the first that the record lists.
    """
    found = _NAME.match(path.name)
    if found is None:
        raise ImportProblem(path, "name", "task", "expected samples_<task>_<time>.jsonl")
    chosen: str | None = None
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        at = Episode({}, path, f"line {number}")
        try:
            record = json.loads(line)
        except ValueError as error:
            raise at.problem("row", f"is not JSON: {error}") from None
        if not isinstance(record, dict) or "doc_id" not in record:
            raise at.problem("doc_id", "is missing")
        filtered = str(record.get("filter", "none"))
        chosen = chosen or filtered
        if filtered != chosen:
            continue
        name = metric or next(iter(record.get("metrics") or ()), None)
        if name is None:
            raise at.problem("metrics", "lists no metric; name one with --metric")
        value = record.get(name)
        if isinstance(value, bool):
            value = float(value)
        if not isinstance(value, int | float) or not 0 <= value <= 1:
            raise at.problem(str(name), f"expected a number from 0 to 1, got {value!r:.60}; see --metric")
        yield Episode(
            {
                "model": path.parent.name,
                "family": found["task"],
                "instance_id": f"{found['task']}-{record['doc_id']}",
                "passed": value == 1,
                "partial_score": float(value),
            },
            path,
            at.place,
        )
