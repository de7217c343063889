"""inspect_ai: .eval and .json logs, by its own reader (optional extra `inspect`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from flows.importers.importer import Choices, Episode, Importer, ImportProblem
from flows.importers.scale import verdict
from tasks_env.canonical import content_hash

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partial, incorrect, no answer: what inspect_ai's own accuracy makes of them."""
_LIMITS = {"context": "context_overflow", "token": "truncated"}
"""Every other limit (messages, time, cost ...) is a step cap."""
_STOPS = {"content_filter": "refused", "max_tokens": "truncated", "model_length": "context_overflow"}
_UNREAD = {"events", "store", "attachments", "timelines"}
"""Fields of a sample that nothing is taken from, and that make logs large."""
_SHOWN = {"id", "epoch", "target", "choices", "metadata", "uuid", "sandbox", "turn_count"}
"""Fields of a sample that a column can be taken from, beside those of the log."""
_NO_OUTCOME = {
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections", "adaptive_connections"),
    *("seed", "cache", "cache_prompt", "batch", "extra_headers", "modalities", "logprobs", "top_logprobs"),
}
"""Settings of the model's calls in which runs of one cell may differ."""


class InspectImporter(Importer):
    """The task is the family, the sample the instance, the epoch a run; tool calls are the trajectory."""

    name: ClassVar[str] = "inspect"
    reads: ClassVar[str] = "inspect_ai: .eval and .json logs (needs the extra `inspect`)"
    patterns: ClassVar[tuple[str, ...]] = ("*.eval", "*.json")

    def episodes(self, files: Sequence[Path], choices: Choices, note: Callable[[str], None]) -> Iterator[Episode]:
        for path, header in _latest(files, note):
            yield from _of_log(path, header, choices, note)


def _latest(files: Sequence[Path], note: Callable[[str], None]) -> list[tuple[Path, Any]]:
    """The logs in the order of their creation; of a task that was retried, the last attempt alone."""
    headers = [(path, _read(path, header_only=True)) for path in files]
    headers.sort(key=lambda pair: (str(pair[1].eval.created), pair[1].eval.task_id, str(pair[0])))
    last = {header.eval.task_id: path for path, header in headers}
    for path, header in headers:
        if last[header.eval.task_id] != path:
            note(f"{path.name}: left out, since {last[header.eval.task_id].name} is a later attempt at the same run")
    return [(path, header) for path, header in headers if last[header.eval.task_id] == path]


def _of_log(path: Path, header: Any, choices: Choices, note: Callable[[str], None]) -> Iterator[Episode]:
    log = _read(path)
    samples = log.samples or []
    planned = (header.eval.dataset.samples or 0) * (header.eval.config.epochs or 1)
    if header.results is not None and header.results.total_samples:
        planned = header.results.total_samples
    if header.status != "success" or len(samples) < planned:
        note(f"{path.name}: the run ended as {header.status}, with {len(samples)} of {planned or 'unknown'} samples")
    if samples and not any(sample.scores or sample.error for sample in samples):
        raise ImportProblem(path, "samples", "scores", "no sample has any: give them some with `inspect score`")
    names = dict.fromkeys(name for sample in samples for name in sample.scores or ())
    if len(names) > 1 and choices.metric is None:
        note(f"{path.name}: scorer {next(iter(names))} decides, of {', '.join(names)} (--metric)")
    shared, settings = _fields(header), _settings(header)
    with_tools = any(message.role == "assistant" and message.tool_calls for s in samples for message in s.messages)
    for sample in samples:
        fields = {**shared, **sample.model_dump(mode="json", include=_SHOWN)}
        at = Episode({}, path, f"sample {sample.id}, epoch {sample.epoch}", fields)
        yield Episode(
            {
                "model": header.eval.model,
                "family": header.eval.task,
                "instance_id": str(sample.id),
                **_judged(sample, choices, at),
                **_effort(sample),
                **(_trajectory(sample) if with_tools else {}),
                "started_at": _moment(sample.started_at or header.eval.created),
                "git_sha": header.eval.revision.commit if header.eval.revision else None,
                "adapter_version": _version(header),
            },
            path,
            at.place,
            fields,
            settings,
        )


def _read(path: Path, header_only: bool = False) -> Any:
    try:
        from inspect_ai.log import read_eval_log  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportProblem(
            path, "file", "format", "needs inspect_ai's own reader: pip install 'agent-bench-stability[inspect]'"
        ) from None
    try:
        return read_eval_log(str(path), header_only=header_only, exclude_fields=_UNREAD)
    except Exception as error:  # noqa: BLE001 - another package's reader may raise anything for a damaged log
        text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ImportProblem(path, "file", "format", f"inspect_ai cannot read it as a log: {text}") from None


def _fields(header: Any) -> dict[str, Any]:
    log = header.eval
    calls = log.model_generate_config.model_dump(mode="json", exclude_none=True)
    names = ("task", "task_version", "task_args", "model", "solver", "run_id", "created", "tags")
    return {**{name: getattr(log, name) for name in names}, "generate": calls}


def _settings(header: Any) -> dict[str, Any]:
    """What could change an outcome, as far as the log knows it."""
    log = header.eval
    calls = log.model_generate_config.model_dump(mode="json", exclude_none=True)
    limits = {name: value for name, value in log.config.model_dump(mode="json").items() if name.endswith("_limit")}
    return {
        "task_args": dict(log.task_args),
        "task_version": log.task_version,
        "solvers": [[step.solver, step.params] for step in header.plan.steps],
        "generate": {name: value for name, value in calls.items() if name not in _NO_OUTCOME},
        "limits": limits,
    }


def _judged(sample: Any, choices: Choices, at: Episode) -> dict[str, Any]:
    """Verdict, partial score and how the episode ended. A sample without a score was let down by infrastructure."""
    score = _score(sample, choices, at)
    if score is None:
        kind = "error" if sample.error else "no_score"
        return {"infra_error": True, "failure_class": kind}
    limit = sample.limit.type if sample.limit else None
    stop = sample.output.stop_reason if sample.output and sample.output.choices else None
    outcome = _LIMITS.get(limit, "step_cap") if limit else _STOPS.get(str(stop), "completed")
    return {"partial_score": score, "outcome": outcome}


def _score(sample: Any, choices: Choices, at: Episode) -> float | None:
    """The score that decides, on its own scale, of which letters and words are shares; null if there is none."""
    scores = {name: score.value for name, score in (sample.scores or {}).items()}
    if not scores:
        return None
    value, name = _chosen(scores, choices.metric, at)
    low, high = choices.scale.low, choices.scale.high
    if isinstance(value, str):
        word = verdict(value)
        if value in _GRADES or word is not None:
            return low + _GRADES.get(value, float(bool(word))) * (high - low)
        try:
            value = float(value)
        except ValueError:
            raise at.problem(f"scores.{name}", f"expected C, P, I, N or a number, got {value!r:.60}") from None
    if isinstance(value, bool):
        return high if value else low
    return None if value is None or math.isnan(value) else float(value)


def _chosen(scores: Mapping[str, Any], metric: str | None, at: Episode) -> tuple[Any, str]:
    """The value that `metric` names: a scorer, or `scorer.key` of one that gives several."""
    name = metric if metric is not None else next(iter(scores))
    value, found = scores.get(name), name in scores
    if not found:
        for scorer, parts in scores.items():
            if isinstance(parts, Mapping) and name.startswith(f"{scorer}.") and name[len(scorer) + 1 :] in parts:
                value, found = parts[name[len(scorer) + 1 :]], True
    known = [
        each
        for scorer, value in scores.items()
        for each in ([f"{scorer}.{key}" for key in value] if isinstance(value, Mapping) else [scorer])
    ]
    if not found:
        raise at.problem(f"scores.{name}", f"there is no such score; there are {', '.join(known)}")
    if isinstance(value, Mapping | list):
        raise at.problem(
            f"scores.{name}", f"has several values, {value!r:.60}; choose one with --metric ({', '.join(known)})"
        )
    return value, name


def _effort(sample: Any) -> dict[str, Any]:
    usage = list((sample.model_usage or {}).values())

    def total(*names: str) -> Any:
        found = [getattr(model, name, None) for model in usage for name in names]
        known = [value for value in found if value is not None]
        return sum(known) if known else None

    costs = [getattr(model, "total_cost", None) for model in usage]
    return {
        "tokens_in": total("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write"),
        "tokens_cached": total("input_tokens_cache_read"),
        "tokens_out": total("output_tokens"),
        "tokens_reasoning": total("reasoning_tokens"),
        "cost_usd": sum(costs) if costs and None not in costs else None,
        "steps_used": sum(message.role == "assistant" and message.source != "input" for message in sample.messages),
        "attempts": 1 + len(sample.error_retries or ()),
        "wall_clock_s": sample.total_time,
    }


def _trajectory(sample: Any) -> dict[str, Any]:
    names = [
        call.function for message in sample.messages if message.role == "assistant" for call in message.tool_calls or ()
    ]
    return {"trajectory_hash": content_hash(names), "trajectory_length": len(names)}


def _moment(value: Any) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)


def _version(header: Any) -> str | None:
    version = (header.eval.packages or {}).get("inspect_ai")
    return f"inspect_ai {version}" if version else None
