"""The first and last lines of a transcript: which episode it is, where its task stood, how it came out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from flows.episodes.job import Task
from flows.episodes.transcript import TRANSCRIPT_VERSION
from flows.manifest import SCAFFOLD_VERSION, Manifest
from flows.provenance import Provenance
from tasks_env.canonical import content_hash


def episode_event(task: Task, manifest: Manifest, origin: Provenance, started_at: datetime) -> dict[str, object]:
    """Fields of the event `episode`."""
    episode, variant = task.job.episode, task.job.variant
    return {
        "transcript_version": TRANSCRIPT_VERSION,
        "episode_id": episode.episode_id,
        "attempt": task.attempt,
        "model": episode.model,
        "model_id": getattr(manifest.models[episode.model], "model", None),
        "cell_id": episode.cell.id,
        "family": variant.family,
        "difficulty": variant.difficulty,
        "axis": variant.axis,
        "level": variant.level,
        "instance_id": variant.instance_id,
        "instance_seed": variant.instance_seed,
        "variant_id": variant.variant_id,
        "run_seed": episode.run_seed,
        "temperature": episode.temperature,
        "scaffold": manifest.scaffold.model_dump(mode="json"),
        "scaffold_version": SCAFFOLD_VERSION,
        "adapter_version": task.adapter.version,
        "git_sha": origin.git_sha,
        "manifest_hash": origin.manifest_hash,
        "scientific_hash": origin.scientific_hash,
        "started_at": started_at.isoformat(timespec="microseconds"),
    }


def conversation_event(task: Task, tasks: Sequence[Task]) -> dict[str, object]:
    """Fields of the event `conversation`."""
    episode = task.job.episode
    return {
        "conversation_id": episode.conversation_id,
        "conversation_position": episode.conversation_position,
        "tasks": [{"instance_id": one.job.episode.instance_id, "episode_id": one.job.episode_id} for one in tasks],
    }


def end_event(task: Task) -> dict[str, object]:
    """Fields of the event `end`."""
    ending, spending = task.ending, task.account.spending
    return {
        "outcome": ending.outcome,
        "kind": ending.kind,
        "detail": ending.detail,
        "steps": ending.steps,
        "final_state": task.final_state.model_dump(mode="json"),
        "calls": [vars(call) for call in task.session.calls] if task.session else [],
        "trajectory_hash": content_hash(list(ending.trajectory), 16),
        "trajectory_length": len(ending.trajectory),
        "tokens_in": spending.total("input_total"),
        "tokens_cached": spending.total("input_cached"),
        "tokens_out": spending.total("output_total"),
        "tokens_reasoning": spending.total("output_reasoning"),
        "usage_known": spending.known,
        "cost_usd": spending.spent_usd if spending.known else None,
        "http_attempts": spending.http_attempts,
        "wall_clock_s": round(task.seconds, 6),
    }
