"""inspect_ai: .eval and .json logs, by its own reader (optional extra `inspect`); .json logs also without it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.importers.rows import Episode, ImportProblem
from flows.importers.tables import read_text

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partial, incorrect, no answer."""
_LIMITS = {"context": "context_overflow", "token": "truncated"}


def read_inspect(path: Path, scorer: str | None = None) -> Iterator[Episode]:
    """Episodes of one log: the task is the family, the sample the instance, the epoch a run.

    A full score passes, less does not. A sample that ended in an error, or without a score, is an infra_error.

    Args:
        scorer: Whose score decides; null: the first.
    """
    log = _read(path)
    header = log.get("eval") or {}
    for field in ("task", "model"):
        if not isinstance(header.get(field), str):
            raise ImportProblem(path, "header", f"eval.{field}", "is missing: this is no inspect_ai log")
    for number, sample in enumerate(log.get("samples") or [], start=1):
        at = Episode({}, path, f"sample {number}")
        if not isinstance(sample, dict) or sample.get("id") is None:
            raise at.problem("id", "is missing")
        score = _score(sample, scorer, at)
        tokens = _tokens(sample.get("model_usage") or {})
        limit = (sample.get("limit") or {}).get("type")
        yield Episode(
            {
                "model": header["model"],
                "family": header["task"],
                "instance_id": str(sample["id"]),
                "infra_error": score is None,
                "passed": None if score is None else score == 1,
                "partial_score": score,
                "failure_class": None if score is not None else "error" if sample.get("error") else "no_score",
                "outcome": None if limit is None else _LIMITS.get(limit, "step_cap"),
                "steps_used": sum(
                    message.get("role") == "assistant" and message.get("source") != "input"
                    for message in sample.get("messages") or []
                ),
                "started_at": _moment(sample.get("started_at") or header.get("created"), at),
                "wall_clock_s": sample.get("total_time"),
                "git_sha": (header.get("revision") or {}).get("commit"),
                **tokens,
            },
            path,
            at.place,
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        from inspect_ai.log import read_eval_log  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        if path.suffix != ".json":
            raise ImportProblem(
                path, "file", "format", "needs inspect_ai's own reader: pip install 'agent-bench-stability[inspect]'"
            ) from None
        try:
            log = json.loads(read_text(path))
        except ValueError as error:
            raise ImportProblem(path, "file", "format", f"is not JSON: {error}") from None
    else:
        try:
            log = read_eval_log(str(path)).model_dump(mode="json")
        except Exception as error:  # noqa: BLE001 - another package's reader may raise anything for a damaged log
            text = " ".join(str(error).split())[:200]
            raise ImportProblem(path, "file", "format", f"inspect_ai cannot read it: {text}") from None
    if not isinstance(log, dict):
        raise ImportProblem(path, "file", "format", "expected a JSON object")
    return log


def _score(sample: Mapping[str, Any], scorer: str | None, at: Episode) -> float | None:
    scores = sample.get("scores") or {}
    if sample.get("error") or not scores:
        return None
    name = scorer or next(iter(scores))
    if name not in scores:
        raise at.problem(f"scores.{name}", f"there is no such scorer; there are {', '.join(scores)}")
    value = scores[name].get("value")
    number = _GRADES.get(value, value) if isinstance(value, str) else value
    if not isinstance(number, bool | int | float) or not 0 <= number <= 1:
        raise at.problem(f"scores.{name}.value", f"expected C, P, I, N or a number from 0 to 1, got {value!r:.60}")
    return float(number)


def _tokens(usage: Mapping[str, Mapping[str, Any]]) -> dict[str, int | None]:
    def total(*names: str) -> int | None:
        found = [model[name] for model in usage.values() for name in names if model.get(name) is not None]
        return sum(found) if found else None

    return {
        "tokens_in": total("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write"),
        "tokens_cached": total("input_tokens_cache_read"),
        "tokens_out": total("output_tokens"),
        "tokens_reasoning": total("reasoning_tokens"),
    }


def _moment(value: Any, at: Episode) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    except ValueError:
        raise at.problem("created", f"expected a date and time, got {value!r:.60}") from None
