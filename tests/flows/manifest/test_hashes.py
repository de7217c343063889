"""What the two hashes cover: everything, and what can change an outcome."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flows.manifest import hashes, load_manifest, manifest_hash, scientific_hash
from tests.flows.small_study import write_manifest

ROOT = Path(__file__).parents[3]
SERVED = {"grid/models": ["steady", "served", "cool"]}

OUTCOME_STAYS: dict[str, dict[str, Any]] = {
    "cap": {"budget/cap_usd": 500.0},
    "disk budget": {"budget/disk_gb": 1.0},
    "rate limit": {"models/served/limits": {"requests_per_minute": 10}},
    "token rate": {"models/served/limits": {"tokens_per_minute": 10}},
    "concurrency of a model": {"models/served/limits": {"concurrent_episodes": 2}},
    "timeout": {"models/served/limits": {"timeout_s": 5}},
    "price": {"models/served/pricing/input": 7.0},
    "price of a scripted agent": {"models/steady/pricing/output": 7.0},
    "name of the key's variable": {"models/served/api_key_env": "ANOTHER_KEY"},
    "retry": {"retry/http_attempts": 9, "retry/max_wait_s": 3.0, "retry/episode_attempts": 1},
    "execution": {"execution": {"tracking": "per_cell", "concurrent_episodes": 3}},
    "analysis": {"analysis/resamples": 5000},
    "expectation": {"expectation/steps": 9},
    "root": {"root": "elsewhere"},
    "name of the study": {"study": "renamed"},
    "model outside the grid": {
        "models/spare": {"adapter": "scripted", "pass_rate": {"easy": 0.1}, "pricing": {"input": 0.0, "output": 0.0}}
    },
}

OUTCOME_MAY_CHANGE: dict[str, dict[str, Any]] = {
    "seed": {"seed": 8},
    "instances": {"grid/instances": 3},
    "axes": {"grid/axes/paraphrase": ["p2"]},
    "run seeds": {"grid/runs/others": 2},
    "models of the grid": {"grid/models": ["steady", "served"]},
    "step cap": {"scaffold/step_cap": 11},
    "output limit": {"scaffold/max_output_tokens": 300},
    "worked example": {"scaffold/worked_example": True},
    "decoding": {"decoding": {"baseline_temperature": 0.1}},
    "decoding left to the provider": {"decoding": {"baseline_temperature": "provider_default"}},
    "family parameter": {"families/query/easy/rows": 9},
    "model id": {"models/served/model": "another-model"},
    "address": {"models/served/base_url": "http://127.0.0.1:10/v1"},
    "adapter": {"models/served/adapter": "anthropic"},
    "capabilities": {"models/served/capabilities": {"parallel_tool_calls": True}},
    "temperature not accepted": {"models/served/capabilities": {"temperature": False}},
    "context length": {"models/served/limits": {"context_tokens": 4096}},
    "malformed patterns": {"models/served/malformed_patterns": [{"status": 500, "body": "cannot parse"}]},
    "error model": {"models/steady/pass_rate/easy": 0.6},
}


def both(folder: Path, changes: dict[str, Any]) -> tuple[str, str]:
    manifest = load_manifest(write_manifest(folder, {**SERVED, **changes}))
    return manifest_hash(manifest), scientific_hash(manifest)


@pytest.mark.parametrize("name", OUTCOME_STAYS)
def test_what_cannot_change_an_outcome_keeps_the_scientific_hash(tmp_path: Path, name: str) -> None:
    whole, scientific = both(tmp_path, {})
    other_whole, other_scientific = both(tmp_path, OUTCOME_STAYS[name])
    assert other_scientific == scientific
    assert other_whole != whole


@pytest.mark.parametrize("name", OUTCOME_MAY_CHANGE)
def test_what_can_change_an_outcome_changes_both_hashes(tmp_path: Path, name: str) -> None:
    whole, scientific = both(tmp_path, {})
    other_whole, other_scientific = both(tmp_path, OUTCOME_MAY_CHANGE[name])
    assert other_scientific != scientific
    assert other_whole != whole


@pytest.mark.parametrize("constant", ["SCAFFOLD_VERSION", "PERTURBATIONS_VERSION"])
def test_code_versions_are_part_of_the_scientific_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, constant: str
) -> None:
    _, scientific = both(tmp_path, {})
    monkeypatch.setattr(hashes, constant, "another")
    assert both(tmp_path, {})[1] != scientific


def test_hashes_are_of_what_is_meant_not_of_how_it_is_written(tmp_path: Path) -> None:
    """A number with or without a fraction, a default spelt out, another order of keys: the same study."""
    plain = both(tmp_path, {})
    assert both(tmp_path, {"budget/cap_usd": 100, "budget/disk_gb": 5}) == plain
    assert both(tmp_path, {"families/query/easy/null_share": 0}) == plain
    assert both(tmp_path, {"decoding": {"baseline_temperature": -0.0}}) == plain
    assert both(tmp_path, {"scaffold/nudge": False}) == plain


def test_seed_option_and_seed_of_the_manifest_hash_alike(tmp_path: Path) -> None:
    by_file = both(tmp_path, {"seed": 11})
    manifest = load_manifest(write_manifest(tmp_path, SERVED), seed=11)
    assert (manifest_hash(manifest), scientific_hash(manifest)) == by_file


def test_hashes_are_sixteen_hex_digits(tmp_path: Path) -> None:
    for value in both(tmp_path, {}):
        assert len(value) == 16
        int(value, 16)


def test_hashes_are_equal_across_processes_and_hash_seeds(tmp_path: Path) -> None:
    path = write_manifest(tmp_path, SERVED)
    program = (
        "import sys; from pathlib import Path\n"
        "from flows.manifest import load_manifest, manifest_hash, scientific_hash\n"
        "m = load_manifest(Path(sys.argv[1])); print(manifest_hash(m), scientific_hash(m))"
    )
    expected = " ".join(both(tmp_path, {}))
    for hash_seed, locale in (("0", "C"), ("4711", "C.UTF-8")):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "LC_ALL": locale, "TZ": "Asia/Tokyo"}
        printed = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert printed.stdout.strip() == expected
