"""What the disk is expected to take against what it takes: by family, by adapter, by steps, for a whole study."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from flows.context import Options, Study
from flows.episodes.disk import run_bytes, set_bytes, transcript_bytes
from flows.episodes.transcript import read_transcript
from flows.grid import instance_set_keys
from flows.manifest import Expectation
from flows.results_file import refresh_results
from flows.scoring import grid_episodes, latest_rows, results_metadata
from flows.sets import materialize_instances, materialize_variants
from tasks_env.families import family
from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import run_study
from tests.flows.models.fault_server import Received, Reply
from tests.flows.small_study import score

ROOT = Path(__file__).parents[3]
WITHIN = 0.15
WORDS = "Let me look at what is there before anything is changed. " * 10


def shipped(folder: Path, entry: Mapping[str, Any] | None, **grid: Any) -> Study:
    """A study of one agent (null: a scripted one) on the shipped families, with its sets."""
    document = YAML(typ="safe").load((ROOT / "experiments.yaml").read_text(encoding="utf-8"))
    if entry is not None:
        document["models"]["agent"] = {**entry, "pricing": {"input": 1.0, "output": 1.0}}
    model = "scripted-steady" if entry is None else "agent"
    changed = {"models": [model], "axes": {"order": ["shuffled"]}, "instances": 3, **grid}
    document["grid"] |= changed
    document["execution"]["tracking"] = "per_cell"
    document["budget"]["cap_usd"] = 10_000.0
    document["profiles"] = {"full": {}}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "experiments.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    study = Study(Options(manifest=str(path)))
    for key in instance_set_keys(study.manifest, study.cells):
        materialize_instances(study.store, study.manifest, key)
    for cell in study.cells:
        materialize_variants(study.store, study.manifest, cell)
    return study


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content or [])


def envelope(adapter: str, tokens_in: int, tokens_out: int) -> dict[str, Any]:
    """What the providers' own answers hold around the message, as long as theirs."""
    if adapter == "openai":
        return {
            "id": f"chatcmpl-{'x' * 29}",
            "created": 1_700_000_000,
            "system_fingerprint": f"fp_{'0' * 10}",
            "service_tier": "default",
            "usage": {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
                "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
                "completion_tokens_details": {
                    "reasoning_tokens": 0,
                    "audio_tokens": 0,
                    "accepted_prediction_tokens": 0,
                    "rejected_prediction_tokens": 0,
                },
            },
        }
    return {
        "id": f"msg_{'x' * 24}",
        "usage": {
            "input_tokens": tokens_in,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": tokens_out,
            "service_tier": "standard",
        },
    }


def play_references(server: AnsweringServer, study: Study, adapter: str, words: str) -> None:
    """Let the server solve every task, with so much text before each call; a token is 4 bytes."""
    plans = {
        variant.prompt: list(family(variant.family).reference(study.instances(cell)[variant.instance_id]))
        for cell in study.cells
        for variant in study.variants(cell)
    }

    def respond(request: Received) -> Reply:
        messages = request.body["messages"]
        texts = [text_of(message["content"]) for message in messages if message["role"] == "user"]
        plan = next(plans[text] for text in texts if text in plans)
        turn = sum(message["role"] == "assistant" for message in messages)
        answer = said(adapter, Turn(words, ((plan[turn].name, plan[turn].arguments),), number=turn))
        tokens_in, tokens_out = len(request.content) // 4, (len(words) + len(json.dumps(plan[turn].arguments))) // 4
        return Reply(body=answer | envelope(adapter, tokens_in, tokens_out))

    server.answer_with(respond)


def expectation(ends: list[dict[str, Any]]) -> Expectation:
    """What `plan` would be told of such episodes by somebody who knows."""
    return Expectation(
        steps=statistics.mean(end["steps"] for end in ends),
        tokens_in=statistics.mean(end["tokens_in"] for end in ends),
        tokens_out=statistics.mean(end["tokens_out"] for end in ends),
        seconds_per_step=1.0,
        source="measured",
    )


@pytest.mark.parametrize(
    ("adapter", "words"), [(None, ""), ("openai", ""), ("openai", WORDS), ("anthropic", ""), ("anthropic", WORDS)]
)
def test_a_transcript_is_as_long_as_projected_in_every_family(
    server: AnsweringServer, tmp_path: Path, adapter: str | None, words: str
) -> None:
    entry = adapter and {"adapter": adapter, "model": "some-model-2026", "base_url": server.url}
    study = shipped(tmp_path, entry or None)
    if adapter:
        play_references(server, study, adapter, words)
    ran = run_study(study)
    of_stratum: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = {}
    for job in ran.jobs:
        path, cell = study.transcript(job.episode), job.episode.cell
        size = path.stat().st_size
        of_stratum.setdefault((cell.family, cell.difficulty), []).append((size, read_transcript(path)[-1]))
    assert len(of_stratum) == 6
    [model] = study.models
    for stratum, found in of_stratum.items():
        assert {end["outcome"] for _, end in found} <= {"completed", "no_submission"}
        projected = transcript_bytes(expectation([end for _, end in found]), study.manifest.models[model])
        assert projected == pytest.approx(statistics.mean(size for size, _ in found), rel=WITHIN), stratum


def test_disk_of_an_episode_is_linear_in_its_steps(server: AnsweringServer, tmp_path: Path) -> None:
    """An agent that repeats itself until its turns are over, at 5, 20 and 80 of them."""
    server.answer_with(lambda _request: Reply(body=said("openai", Turn(WORDS, (("list_tables", {}),)))))
    entry = {"adapter": "openai", "model": "m", "base_url": server.url}
    sizes = {}
    for cap in (5, 20, 80):
        study = shipped(tmp_path / str(cap), entry, families={"query": ["easy"]}, instances=1)
        object.__setattr__(study.manifest.scaffold, "step_cap", cap)
        object.__setattr__(study.manifest.scaffold, "conversation_bytes", 10**6)
        ran = run_study(study, first=1)
        assert (ran.end["outcome"], ran.end["steps"]) == ("step_cap", cap)
        sizes[cap] = ran.path().stat().st_size
    assert (sizes[80] - sizes[20]) / 60 == pytest.approx((sizes[20] - sizes[5]) / 15, rel=0.01)


def test_a_whole_study_takes_what_is_projected(tmp_path: Path) -> None:
    study = shipped(tmp_path, None, instances=4, axes={"paraphrase": ["p1"], "distractors": ["5"], "resample": ["s1"]})
    ran = run_study(study)
    score(study)
    refresh_results(
        study.store.table,
        latest_rows(study.store.journal_rows(), grid_episodes(study)),
        results_metadata(study),
    )
    ends = [read_transcript(study.transcript(job.episode))[-1] for job in ran.jobs]
    object.__setattr__(study.manifest, "expectation", expectation(ends))
    [model] = study.models
    projected = run_bytes(study.manifest, {model: len(ran.jobs)}) + set_bytes(study.manifest, study.cells)
    assert projected == pytest.approx(study.store.disk_bytes(), rel=WITHIN)
