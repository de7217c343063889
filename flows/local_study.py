"""A real language model on this machine: its server for as long as the study runs, and its two adapters compared.

The local profile asks one model twice, through the OpenAI-compatible and through the Anthropic endpoint of one
server. What both adapters send must be equal once the provider's envelope is stripped; as the model is the same, so
should the scores be, up to the noise of so small a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flows.context import Study
from flows.episodes.transcript import read_transcript
from flows.grid import Episode, conversations_of
from flows.local_model.launcher import running_server
from flows.results_file import read_results
from flows.stats.head_to_head import head_to_head
from tasks_env.seeding import derive_seed

PROFILE = "local"
OPENAI_URL = "AGENT_BENCH_LOCAL_OPENAI_URL"
ANTHROPIC_URL = "AGENT_BENCH_LOCAL_ANTHROPIC_URL"
SLOTS = 2


@contextmanager
def local_endpoints(study: Study) -> Iterator[str]:
    """The server while the block runs, its two addresses in the environment. Gives the base address.

    Raises:
        ConfigurationError: the extra `local` is not installed.
        flows.local_model.launcher.ServerNotReady: it did not start.
    """
    with running_server(study.store.root / "server.log", threads=1, slots=SLOTS, prompt_cache=True) as address:
        os.environ[OPENAI_URL] = f"{address}/v1"
        os.environ[ANTHROPIC_URL] = address
        try:
            yield address
        finally:
            del os.environ[OPENAI_URL], os.environ[ANTHROPIC_URL]


@dataclass
class RequestComparison:
    """Requests of two models for the same variant and run seed, as long as both conversations went the same way."""

    pairs: int = 0
    """Conversations finished by both; with independent episodes, episodes."""
    compared: int = 0
    """Requests that followed the same history."""
    equal: int = 0
    """Of these: equal byte for byte without the provider's envelope."""
    same_to_the_end: int = 0
    """Episode pairs in which every answer was the same."""


def compare_requests(study: Study, first: str, second: str) -> RequestComparison:
    """Compare what two models of the study were sent, from the transcripts."""
    comparison = RequestComparison()
    for cell in study.cells:
        mine, theirs = (conversations_of(study.episodes(model, cell)) for model in (first, second))
        finished = {**study.finished(first, cell), **study.finished(second, cell)}
        for one, other in zip(mine, theirs, strict=True):
            if all(episode.episode_id in finished for episode in (*one, *other)):
                _compare(comparison, _requests(study, one), _requests(study, other))
    return comparison


def _compare(comparison: RequestComparison, one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    comparison.pairs += 1
    for mine, theirs in zip(one, other, strict=False):
        if _without_ids(mine["added"]) != _without_ids(theirs["added"]):
            return
        comparison.compared += 1
        comparison.equal += mine["normal_sha256"] == theirs["normal_sha256"]
    comparison.same_to_the_end += len(one) == len(other)


def _requests(study: Study, conversation: Sequence[Episode]) -> list[dict[str, Any]]:
    return [
        event
        for episode in conversation
        for event in read_transcript(study.transcript(episode))
        if event["event"] == "request"
    ]


def _without_ids(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of one step with the provider's own marks taken out: call ids, and what only it replays."""
    return [
        {
            **{key: value for key, value in message.items() if key not in ("replay", "calls", "answers")},
            "calls": [(call["name"], call["arguments"], call["problem"]) for call in message.get("calls", [])],
            "answers": [(answer["content"], answer["is_error"]) for answer in message.get("answers", [])],
        }
        for message in messages
    ]


def comparison_lines(study: Study) -> list[str]:
    """The table of the local study and the comparison of its two models, as text. Raises `StoreError`."""
    frame, metadata = read_results(study.store.table)
    first, second = study.manifest.grid.models[:2]
    lines = ["", f"{'model':16} {'family':8} {'cell':22} {'passed':>8} {'of':>4} {'infra':>6} {'steps':>6}"]
    grouped = frame.groupby(["model", "family", "axis", "level"], sort=True)
    for (model, family, axis, level), rows in grouped:
        scored = rows[~rows["infra_error"]]
        passed, steps = int(scored["passed"].sum()), float(rows["steps_used"].mean())
        name = "baseline" if axis == "none" else f"{axis} {level}"
        infra = int(rows["infra_error"].sum())
        lines.append(f"{model:16} {family:8} {name:22} {passed:8} {len(scored):4} {infra:6} {steps:6.1f}")
    requests = compare_requests(study, first, second)
    result = head_to_head(
        frame,
        first,
        second,
        seed=derive_seed(int(metadata["seed"]), "head to head"),
        resamples=study.manifest.analysis.resamples,
    )
    lines += [
        "",
        f"requests: {requests.equal} of {requests.compared} with the same history are equal byte for byte without the "
        f"provider's envelope ({requests.pairs} episode pairs, {requests.same_to_the_end} the same to the end)",
    ]
    if result.difference.value is None or result.first_rate is None or result.second_rate is None:
        return [*lines, f"scores: not comparable: {result.difference.reason}"]
    low, high = result.difference.interval(0.95)
    interval = (
        f"95% interval {100 * low:+.1f} to {100 * high:+.1f}" if low is not None and high is not None else "no interval"
    )
    lines.append(
        f"scores: {first} {100 * result.first_rate:.1f}%, {second} {100 * result.second_rate:.1f}%, difference "
        f"{100 * result.difference.value:+.1f} points, {interval} ({result.difference.method}, "
        f"{result.difference.n} instances)"
    )
    lines.append(
        f"so small a run finds a difference of {100 * result.detectable:.1f} points with 80% power at 5%"
        if result.detectable is not None
        else "no instance scored differently: the interval alone says what so small a run could have shown"
    )
    return lines
