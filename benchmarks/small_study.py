"""A study of one cell in a folder of its own, and its stage `run` in a process of its own.

    python benchmarks/small_study.py FOLDER OPTIONS     the child: runs the stage, prints one line of JSON

The episodes are those of `query` at its easy difficulty: four model calls (list_tables, describe_table, run_query,
submit), each with its tool run; the scripted agent repeats the first call in one episode out of five.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

CELL = "query-easy-none-baseline"
CALLS = 4
INSTANCES = 20
"""Instances of the set: episodes are run seeds of the same few, so that memory is the engine's own."""
PRICING = {"input": 1e-6, "output": 1e-6}


def write_study(
    folder: Path, episodes: int, *, tracking: str = "per_cell", at_once: int = 32, url: str | None = None
) -> Path:
    """The manifest of a study with about `episodes` in its one cell: of the scripted agent, or of a model at `url`."""
    from ruamel.yaml import YAML

    shipped = YAML(typ="safe").load((ROOT / "experiments.yaml").read_text(encoding="utf-8"))
    kept = ("schema_version", "study", "seed", "scaffold", "retry", "expectation")
    agent: dict[str, Any] = {"adapter": "scripted", "pass_rate": {"easy": 1.0}}
    if url is not None:
        agent = {"adapter": "openai", "model": "served", "base_url": url}
    document = {name: shipped[name] for name in kept} | {
        "root": "out",
        "families": {"query": {"easy": shipped["families"]["query"]["easy"]}},
        "models": {"agent": {**agent, "pricing": PRICING, "limits": {"concurrent_episodes": at_once}}},
        "grid": {
            "models": ["agent"],
            "families": {"query": ["easy"]},
            "axes": {"order": ["shuffled"]},
            "instances": INSTANCES,
            "runs": {"baseline": max(2, round(episodes / INSTANCES)), "order": 2, "others": 1},
        },
        "budget": {"cap_usd": 1000.0, "disk_gb": 20.0},
        "execution": {"tracking": tracking, "concurrent_episodes": at_once, "concurrent_cells": 1},
        "profiles": {"full": {}},
    }
    folder.mkdir(parents=True)
    path = folder / "experiments.yaml"
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def run_stage(
    folder: Path, episodes: int, *, tracking: str = "per_cell", at_once: int = 32, url: str | None = None,
    prefect: bool = True,
) -> dict[str, float]:  # fmt: skip
    """Write a study to `folder` and run its episodes in a new process.

    Args:
        prefect: Through the stage's flow, with Prefect's server; otherwise the engine below it alone.

    Returns:
        episodes, wall_s, cpu_s (of the study's process, without Prefect's server), rss_mib at the end of the stage,
        disk_bytes of the transcripts with their markers; steps, tokens_in and tokens_out of an episode on average.
    """
    manifest = write_study(folder, episodes, tracking=tracking, at_once=at_once, url=url)
    command = [sys.executable, str(Path(__file__).resolve()), str(manifest), *(["--prefect"] if prefect else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the study failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _child(manifest: Path, prefect: bool) -> None:
    from flows.context import Options, open_study
    from flows.grid import instance_set_keys
    from flows.sets import materialize_instances, materialize_variants

    options = Options(manifest=str(manifest), cell=CELL)
    study = open_study(options)
    for key in instance_set_keys(study.manifest, study.cells):
        materialize_instances(study.store, study.manifest, key)
    for cell in study.cells:
        materialize_variants(study.store, study.manifest, cell)
    _ = study.provenance  # asks git, once per invocation
    wall, cpu = _with_prefect(options) if prefect else _engine_alone(study)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # before this benchmark itself looks at every episode
    [cell] = study.cells
    finished = study.finished("agent", cell)
    outcomes = {marker["outcome"] for marker in finished.values()}
    if outcomes - {"completed"} or len(finished) != len(study.episodes("agent", cell)):
        raise SystemExit(f"{len(finished)} episodes finished, outcomes {outcomes}")
    folder = study.store.episodes("agent", cell.id)
    ends = [json.loads(path.read_bytes().splitlines()[-1]) for path in sorted(folder.glob("*.jsonl"))[:200]]
    print(
        json.dumps(
            {
                "episodes": len(finished),
                "wall_s": wall,
                "cpu_s": cpu,
                "rss_mib": peak / (1024 if sys.platform == "linux" else 2**20),
                "disk_bytes": sum(path.stat().st_size for path in folder.iterdir()),
                **{name: sum(end[name] for end in ends) / len(ends) for name in ("steps", "tokens_in", "tokens_out")},
            }
        )
    )


def _with_prefect(options: Any) -> tuple[float, float]:
    from flows.orchestration import run_to_end, serving

    async def measured() -> tuple[float, float]:
        from flows.study import timed

        wall, cpu = time.perf_counter(), time.process_time()
        await timed("run", options)
        return time.perf_counter() - wall, time.process_time() - cpu

    from flows.context import open_study

    with serving(open_study(options).store.root) as server:
        import flows.study  # noqa: F401 - Prefect's import is no part of the figures

        server.wait()
        # As in a study, whose earlier stages have asked before: the first answer takes the server over a second.
        urllib.request.urlopen(f"{server.address}/api/admin/version").read()
        return run_to_end(measured())


def _engine_alone(study: Any) -> tuple[float, float]:
    import asyncio
    import io

    from flows.campaign import Campaign
    from flows.console import Console

    async def everything() -> tuple[float, float]:
        campaign = Campaign(study, Console(io.StringIO()))
        wall, cpu = time.perf_counter(), time.process_time()
        jobs = [job for model, cell in study.work for job in campaign.jobs(model, cell)]
        await asyncio.gather(*map(campaign.attempt_repeatedly, jobs))
        figures = time.perf_counter() - wall, time.process_time() - cpu
        await campaign.close()
        return figures

    return asyncio.run(everything())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--prefect", action="store_true")
    arguments = parser.parse_args()
    _child(arguments.manifest, arguments.prefect)
