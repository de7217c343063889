"""Small studies: a manifest in a folder of its own, its sets, and runs of its episodes without orchestration."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from flows.campaign import Campaign
from flows.console import Console
from flows.context import Options, Study
from flows.episodes.runner import Job, Summary
from flows.episodes.transcript import read_transcript
from flows.grid import Cell, instance_set_keys
from flows.models.messages import Message
from flows.provenance import Provenance
from flows.sets import materialize_instances, materialize_variants
from tasks_env.families import family

MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])
FAMILIES = ("tabular", "filesys", "query")
PRICING = {"input": 3.0, "cached_input": 0.3, "cache_write": 3.75, "output": 15.0}
SCAFFOLD = {
    "step_cap": 4,
    "max_output_tokens": 256,
    "tool_output_chars": 2000,
    "calls_per_turn": 3,
    "conversation_bytes": 60_000,
    "nudge": True,
}
RETRY = {"http_attempts": 3, "first_wait_s": 1.0, "multiplier": 2.0, "max_wait_s": 30.0, "episode_attempts": 1}


def http_entry(adapter: str, url: str, **fields: Any) -> dict[str, Any]:
    """A manifest entry of a model behind `url`."""
    limits = {"timeout_s": 5.0, "concurrent_episodes": 8, **fields.pop("limits", {})}
    return {"adapter": adapter, "model": "some-model", "base_url": url, "pricing": PRICING, "limits": limits, **fields}


def scripted_entry(pass_rate: float = 0.6, **fields: Any) -> dict[str, Any]:
    """A manifest entry of a scripted agent."""
    return {"adapter": "scripted", "pass_rate": {"tiny": pass_rate}, "pricing": PRICING, **fields}


def open_study(
    folder: Path,
    models: Mapping[str, Any],
    *,
    families: Sequence[str] = ("query",),
    axes: Mapping[str, Any] | None = None,
    instances: int = 1,
    **sections: Any,
) -> Study:
    """A study with one difficulty, `tiny`, with its sets on disk; only baselines unless `axes` are given.

    `sections` override parts of the manifest.
    """
    document = {
        "schema_version": 1,
        "study": "small",
        "root": "out",
        "seed": 7,
        "models": dict(models),
        "families": {name: {"tiny": family(name).demonstration.model_dump(mode="json")} for name in families},
        "grid": {
            "models": list(models),
            "families": {name: ["tiny"] for name in families},
            "axes": dict(axes or {"order": ["shuffled"]}),
            "instances": instances,
            "runs": {"baseline": 2, "order": 2, "others": 1},
        },
        "scaffold": {**SCAFFOLD, **sections.pop("scaffold", {})},
        "retry": {**RETRY, **sections.pop("retry", {})},
        "budget": {"cap_usd": 1000.0, **sections.pop("budget", {})},
        "expectation": {"steps": 3, "tokens_in": 1, "tokens_out": 1, "seconds_per_step": 1, "source": "none"},
        "profiles": {"full": {}},
        **sections,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "experiments.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    study = Study(Options(manifest=str(path)))
    study.__dict__["provenance"] = Provenance(git_sha="0" * 40, manifest_hash="m", scientific_hash="s")
    study.cells = [cell for cell in study.cells if axes or cell.axis == "none"]
    for key in instance_set_keys(study.manifest, study.cells):
        materialize_instances(study.store, study.manifest, key)
    for cell in study.cells:
        materialize_variants(study.store, study.manifest, cell)
    return study


class Waits:
    """A sleep that keeps what it was asked and does not wait."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await asyncio.sleep(0)


@dataclass
class Ran:
    """What an invocation left behind."""

    study: Study
    campaign: Campaign
    summaries: list[Summary | None]
    jobs: list[Job]
    waits: list[float]
    output: str

    def path(self, index: int = 0) -> Path:
        return self.study.transcript(self.jobs[index].episode)

    def events(self, index: int = 0) -> list[dict[str, Any]]:
        return read_transcript(self.path(index))

    def marker(self, index: int = 0) -> dict[str, Any] | None:
        return self.study.store.marker(self.path(index))

    @property
    def end(self) -> dict[str, Any]:
        return self.events()[-1]


def run_study(
    study: Study,
    *,
    first: int | None = None,
    model: str | None = None,
    cell: Cell | None = None,
    environ: Mapping[str, str] | None = None,
    before: Callable[[Campaign], None] | None = None,
) -> Ran:
    """Run all unfinished episodes (of one model, of one cell), or the `first` ones of them, side by side."""
    waits, out = Waits(), io.StringIO()

    async def go() -> tuple[Campaign, list[Job], list[Summary | None]]:
        campaign = Campaign(study, Console(out), environ or {}, waits)
        if before:
            before(campaign)
        work = [pair for pair in study.work if pair[0] == (model or pair[0]) and pair[1] == (cell or pair[1])]
        jobs = [job for pair in work for job in campaign.jobs(*pair)][:first]
        try:
            return campaign, jobs, list(await asyncio.gather(*map(campaign.attempt_repeatedly, jobs)))
        finally:
            await campaign.close()

    campaign, jobs, summaries = asyncio.run(go())
    return Ran(study, campaign, summaries, jobs, waits.asked, out.getvalue())


def of_kind(events: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """The events called `kind`."""
    return [event for event in events if event["event"] == kind]


def conversation_of(events: Sequence[Mapping[str, Any]], step: int | None = None) -> list[Message]:
    """The conversation as a transcript tells it, up to the request of `step` or the last one."""
    added = [
        message
        for event in of_kind(events, "request")
        for message in event["added"]
        if step is None or event["step"] <= step
    ]
    return MESSAGES.validate_python(added)
