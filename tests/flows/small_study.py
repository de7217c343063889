"""A study small enough to run whole in a test: one family, few axes, scripted and served models."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flows.campaign import Campaign
from flows.console import Console
from flows.context import Options, Study
from flows.grid import instance_set_keys
from flows.scoring import pending_episodes, row_for
from flows.sets import materialize_instances, materialize_variants

REMOVED = object()
"""As a value of `changed`: take the key away."""

_DOCUMENT: dict[str, Any] = {
    "schema_version": 1,
    "study": "small",
    "root": ".",
    "seed": 7,
    "families": {
        "query": {
            "easy": {
                "tables": 1,
                "rows": 8,
                "min_hops": 0,
                "max_hops": 0,
                "predicates": 1,
                "null_share": 0.0,
                "questions": ["count", "sum"],
            }
        }
    },
    "models": {
        "steady": {"adapter": "scripted", "pass_rate": {"easy": 0.5}, "pricing": {"input": 1.0, "output": 5.0}},
        "served": {
            "adapter": "openai",
            "model": "some-model",
            "base_url": "http://127.0.0.1:9/v1",
            "api_key_env": "SMALL_STUDY_KEY",
            "pricing": {"input": 2.0, "output": 8.0},
        },
        "cool": {
            "adapter": "anthropic",
            "model": "other-model",
            "base_url": "http://127.0.0.1:9",
            "pricing": {"input": 3.0, "output": 15.0},
            "capabilities": {"temperature": False},
        },
    },
    "grid": {
        "models": ["steady"],
        "families": {"query": ["easy"]},
        "axes": {"paraphrase": ["p1"], "resample": ["s1"], "temperature": ["0.7"], "order": ["shuffled"]},
        "instances": 2,
        "runs": {"baseline": 2, "order": 2, "others": 1},
    },
    "scaffold": {
        "step_cap": 10,
        "max_output_tokens": 256,
        "tool_output_chars": 4000,
        "calls_per_turn": 4,
        "conversation_bytes": 65536,
    },
    "retry": {
        "http_attempts": 2,
        "first_wait_s": 0.01,
        "multiplier": 2.0,
        "max_wait_s": 0.1,
        "episode_attempts": 2,
    },
    "budget": {"cap_usd": 100.0},
    "expectation": {"steps": 4, "tokens_in": 2000, "tokens_out": 100, "seconds_per_step": 2.0, "source": "a guess"},
    "analysis": {"resamples": 200},
    "profiles": {"full": {}, "more": {"root": ".more", "grid": {"instances": 3}}},
}


def document() -> dict[str, Any]:
    """A fresh copy of the small manifest's content."""
    return copy.deepcopy(_DOCUMENT)


def changed(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with other values at dotted paths; what is missing on the way is made."""
    result = copy.deepcopy(dict(content))
    for path, value in changes.items():
        *folders, last = path.split("/")
        place = result
        for folder in folders:
            place = place.setdefault(folder, {})
        if value is REMOVED:
            del place[last]
        else:
            place[last] = value
    return result


def write_manifest(folder: Path, changes: Mapping[str, Any] | None = None) -> Path:
    """The small manifest with `changes` (keys are paths with slashes) as a file. JSON is YAML."""
    path = folder / "experiments.yaml"
    path.write_text(json.dumps(changed(document(), changes or {}), indent=1), encoding="utf-8")
    return path


def open_study(folder: Path, changes: Mapping[str, Any] | None = None, **options: Any) -> Study:
    """The study of a manifest written to `folder`."""
    return Study(Options(manifest=str(write_manifest(folder, changes)), **options))


def reopened(study: Study, **options: Any) -> Study:
    """The same study as another invocation sees it."""
    return Study(study.options.model_copy(update=options))


def prepare(study: Study) -> None:
    """Its instances and variants."""
    for key in instance_set_keys(study.manifest, study.cells):
        materialize_instances(study.store, study.manifest, key)
    for cell in study.cells:
        materialize_variants(study.store, study.manifest, cell)


def run_episodes(study: Study) -> None:
    """Every unfinished episode."""

    async def everything() -> None:
        campaign = Campaign(study, Console(io.StringIO()))
        jobs = [job for model, cell in study.work for job in campaign.jobs(model, cell)]
        await asyncio.gather(*(campaign.attempt_repeatedly(job) for job in jobs))
        await campaign.close()

    asyncio.run(everything())


def score(study: Study) -> list[dict[str, Any]]:
    """Judge what is pending, add it to the journal. Returns the new rows."""
    rows = [
        row_for(study.instances(cell)[episode.instance_id], study.transcript(episode))
        for cell, episodes in pending_episodes(study, study.store.journal_rows())
        for episode in episodes
    ]
    study.store.append_rows(rows)
    return rows


def tree_bytes(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` with its content; folders as empty names ending in a slash, links as their targets."""

    def content(path: Path) -> bytes:
        if path.is_symlink():
            return os.fsencode(path.readlink())
        return b"" if path.is_dir() else path.read_bytes()

    return {
        str(path.relative_to(folder)) + ("/" if path.is_dir() else ""): content(path)
        for path in sorted(folder.rglob("*"))
    }
