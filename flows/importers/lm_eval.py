"""lm-evaluation-harness: the samples_<task>_<time>.jsonl files that `--log_samples` writes, a folder per model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from flows.importers.importer import Choices, Episode, Importer, ImportProblem
from flows.importers.tables import json_lines, read_text

_NAME = re.compile(r"^samples_(?P<task>.+?)(_(?P<time>\d{4}-\d{2}-\d{2}T[\d.:-]+))?\.jsonl$")
_SETTINGS = ("model_args", "gen_kwargs")
_NAMING = frozenset({"peft", "delta", "pretrained", "model", "path", "engine"})
"""Model arguments that lm-eval takes a model's name from; without one it draws a name, often the same for all."""
_RUN_SETTINGS = ("system_instruction_sha", "fewshot_as_multiturn", "chat_template_sha")


class LmEvalImporter(Importer):
    """The task is the family, the document the instance; model and settings come from the results file beside it."""

    name: ClassVar[str] = "lm-eval"
    reads: ClassVar[str] = "lm-evaluation-harness: samples_*.jsonl of --log_samples, with results_*.json beside them"
    patterns: ClassVar[tuple[str, ...]] = ("samples_*.jsonl",)

    def episodes(self, files: Sequence[Path], choices: Choices, note: Callable[[str], None]) -> Iterator[Episode]:
        for path in files:
            yield from _of_file(path, choices, note)


def _of_file(path: Path, choices: Choices, note: Callable[[str], None]) -> Iterator[Episode]:
    found = _NAME.match(path.name)
    if found is None:
        raise ImportProblem(path, "name", "task", "expected samples_<task>_<time>.jsonl")
    task = found["task"]
    run = _run(path, found["time"])
    settings = _settings(run, task)
    if _is_drawn(run):
        settings["run"] = found["time"]
        note(
            f"{path.name}: the run names no model, so that lm-eval drew the name {run['model_name']}; "
            "--set model=NAME says which it was"
        )
    origin = _origin(run)
    higher = (run.get("higher_is_better") or {}).get(task) or {}
    records = list(json_lines(path))
    extraction = _filter(path, records, choices)
    metric: str | None = None
    for place, record in records:
        if str(record.get("filter", "none")) != extraction:
            continue
        at = Episode({}, path, place, record)
        if record.get("doc_id") is None:
            raise at.problem("doc_id", "is missing")
        if metric is None:
            metric = _metric(at, choices.metric)
            if higher.get(metric) is False and choices.scale.high > choices.scale.low:
                raise at.problem(
                    metric, "the less of it the better, as lm-eval says; --range WORST:BEST turns it round"
                )
            _tell(path, records, metric, extraction, choices, note)
        yield Episode(
            {
                "model": str(run.get("model_name") or path.parent.name),
                "family": task,
                "instance_id": str(record["doc_id"]),
                "partial_score": _score(at, metric),
                **origin,
            },
            path,
            place,
            record,
            settings,
        )


def _run(path: Path, time: str | None) -> Mapping[str, Any]:
    """The results file of the same run; empty if there is none, or it is none of lm-eval's."""
    beside = path.with_name(f"results_{time}.json")
    if time is None or not beside.is_file():
        return {}
    try:
        found = json.loads(read_text(beside))
    except ValueError as error:
        raise ImportProblem(beside, "file", "format", f"is not JSON: {error}") from None
    return found if isinstance(found, dict) else {}


def _origin(run: Mapping[str, Any]) -> dict[str, Any]:
    """When the run started and what made it, as far as its results file says."""
    date, version = run.get("date"), run.get("lm_eval_version")
    return {
        "started_at": datetime.fromtimestamp(date, UTC) if isinstance(date, int | float) else None,
        "adapter_version": f"lm-eval {version}" if version else None,
    }


def _is_drawn(run: Mapping[str, Any]) -> bool:
    """Whether lm-eval drew the model's name for want of one, so that two models may share it."""
    arguments = (run.get("config") or {}).get("model_args")
    pairs = arguments if isinstance(arguments, Mapping) else str(arguments or "").split(",")
    given = {str(pair).partition("=")[0].strip() for pair in pairs}
    return bool(run.get("model_name")) and not _NAMING & given


def _settings(run: Mapping[str, Any], task: str) -> dict[str, Any]:
    """What could change an outcome: the prompt itself is known by the task's name."""
    config, of_task = run.get("config") or {}, (run.get("configs") or {}).get(task) or {}
    return {
        **{name: config.get(name) for name in _SETTINGS if name in config},
        **{name: run.get(name) for name in _RUN_SETTINGS if name in run},
        **{name: of_task.get(name) for name in ("num_fewshot", "doc_to_text", "generation_kwargs") if name in of_task},
    }


def _filter(path: Path, records: Sequence[tuple[str, Mapping[str, Any]]], choices: Choices) -> str:
    names = dict.fromkeys(str(record.get("filter", "none")) for _, record in records)
    if choices.filter is not None and choices.filter not in names and names:
        raise ImportProblem(
            path, "line 1", "filter", f"there is no filter {choices.filter!r}; there are {', '.join(names)}"
        )
    return choices.filter or next(iter(names), "none")


def _metric(at: Episode, chosen: str | None) -> str:
    """The metric that decides: the chosen one, else the first that gives each document a number."""
    listed = [str(name) for name in at.fields.get("metrics") or ()]
    usable = [name for name in listed if isinstance(at.fields.get(name), bool | int | float)]
    if chosen is not None and chosen not in at.fields:
        raise at.problem(chosen, f"there is no such metric; there are {', '.join(listed) or 'none'}")
    if chosen is None and not usable:
        raise at.problem(
            "metrics",
            f"none gives each document a number ({', '.join(listed) or 'there is none'}), so nothing passes or fails; "
            "leave this file out, or name a field with --metric",
        )
    return chosen or usable[0]


def _score(at: Episode, metric: str) -> float:
    value = at.fields.get(metric)
    if not isinstance(value, bool | int | float):
        raise at.problem(
            metric, f"expected a number for each document, got {value!r:.60}; choose another with --metric"
        )
    return float(value)


def _tell(
    path: Path,
    records: Sequence[tuple[str, Mapping[str, Any]]],
    metric: str,
    extraction: str,
    choices: Choices,
    note: Callable[[str], None],
) -> None:
    """The choices that were made for the person."""
    names = dict.fromkeys(str(record.get("filter", "none")) for _, record in records)
    others = [name for name in records[0][1].get("metrics") or () if name != metric]
    if others and choices.metric is None:
        note(f"{path.name}: {metric} decides, of {', '.join([metric, *others])} (--metric)")
    if len(names) > 1 and choices.filter is None:
        note(f"{path.name}: filter {extraction} counts, of {', '.join(names)} (--filter)")
    answers = max((len(found) for found in records[0][1].get("resps") or () if isinstance(found, list)), default=1)
    if answers > 1:
        note(
            f"{path.name}: each document was answered {answers} times, of which lm-eval made one verdict: "
            "one run, and no repetitions"
        )
