"""Whether the ledger, scoring and the analysis cost the same per row however many rows there are.

    python benchmarks/growth.py [--ledger] [--journal] [--scoring] [--analyze]      without any, all

CPU time stands beside wall time, which depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

OPERATIONS = 200


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", action="store_true", help="time per operation by lines of the ledger")
    parser.add_argument("--journal", action="store_true", help="time per row of the journal and of results.parquet")
    parser.add_argument("--scoring", action="store_true", help="time per scored episode by rows of the journal")
    parser.add_argument("--analyze", action="store_true", help="time and memory of `agent-bench analyze`")
    parser.add_argument("--sizes", default="1000,10000,100000", help="lines, or rows (default %(default)s)")
    parser.add_argument("--rows", type=int, default=100_000, help="of --analyze (default %(default)s)")
    parser.add_argument("--resamples", type=int, default=10_000, help="of --analyze (default %(default)s)")
    arguments = parser.parse_args()
    figures = {"ledger": ledger, "journal": journal, "scoring": scoring}
    names = [*figures, "analyze"]
    sizes = [int(size) for size in arguments.sizes.split(",")]
    for name in [name for name in names if getattr(arguments, name)] or names:
        print(
            f"{name}: load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs, {time.strftime('%F %T')}",
            flush=True,
        )
        with tempfile.TemporaryDirectory(prefix="agent-bench-") as folder:
            if name == "analyze":
                analyze(Path(folder), arguments.rows, arguments.resamples)
                continue
            for size in sizes:
                figures[name](Path(folder) / str(size), size)


def ledger(folder: Path, lines: int) -> None:
    """One process's operations on a ledger that holds so many lines already."""
    from flows.episodes.ledger import Ledger

    folder.mkdir()
    path = folder / "ledger.jsonl"
    with path.open("w", encoding="ascii") as file:
        for number in range(lines // 2):
            file.write(json.dumps(_reservation(number)) + "\n")
            file.write(json.dumps(_settlement(number)) + "\n")
    book = Ledger(path, 1e9)
    first = _timed(lambda: _episode(book, 0))
    pairs = _timed(lambda: [_episode(book, number) for number in range(OPERATIONS)])
    print(
        f"  {lines:>7} lines: opening {1e6 * first[1] / lines:.1f} us CPU per line there; then per operation "
        f"{_micro(pairs, 2 * OPERATIONS)}",
        flush=True,
    )


def _episode(book: Any, number: int) -> None:
    reservation = book.reserve(0.01, model="agent", cell="cell", episode=f"{number:020x}", attempt=1)
    book.settle(reservation, spent_usd=0.001, unknown_usd=0.0, tokens_in=1000, tokens_out=20)


def _reservation(number: int) -> dict[str, Any]:
    return {
        "op": "reserve", "id": f"{number:032x}", "usd": 0.01, "model": "agent", "cell": "cell",
        "episode": f"{number:020x}", "attempt": 1, "pid": 1, "at": "2026-01-01T00:00:00.000+00:00",
    }  # fmt: skip


def _settlement(number: int) -> dict[str, Any]:
    return {
        "op": "settle", "id": f"{number:032x}", "spent_usd": 0.001, "unknown_usd": 0.0, "tokens_in": 1000,
        "tokens_out": 20,
    }  # fmt: skip


def journal(folder: Path, rows: int) -> None:
    """Appending to a journal that holds so many rows, reading it, its compaction, and a table that is up to date."""
    from flows.results_file import refresh_results
    from flows.scoring import latest_rows
    from flows.store import Store

    store = Store(folder)
    made = list(_rows(rows))
    store.append_rows(made)
    appended = _timed(lambda: [store.append_rows([row]) for row in made[:OPERATIONS]])
    ids = [row["episode_id"] for row in made]
    read = _timed(store.journal_rows)
    latest = latest_rows(store.journal_rows(), ids)
    written = _timed(lambda: refresh_results(store.table, latest, {"study": "growth"}))
    again = _timed(lambda: refresh_results(store.table, latest, {"study": "growth"}))
    print(
        f"  {rows:>7} rows: append {_micro(appended, OPERATIONS)}; per row: read {_micro(read, rows)}, compact "
        f"{_micro(written, rows)}, up to date {_micro(again, rows)}",
        flush=True,
    )


def scoring(folder: Path, rows: int) -> None:
    """Scoring episodes that are new to a journal of so many rows: once per call, and for each of them."""
    from small_study import CELL, write_study

    from flows.context import Options, Study
    from flows.grid import instance_set_keys
    from flows.scoring import pending_episodes, row_unless_set_aside
    from flows.sets import materialize_instances, materialize_variants

    study = Study(Options(manifest=str(write_study(folder, OPERATIONS)), cell=CELL))
    for key in instance_set_keys(study.manifest, study.cells):
        materialize_instances(study.store, study.manifest, key)
    for cell in study.cells:
        materialize_variants(study.store, study.manifest, cell)
    _run_episodes(study)
    study.store.append_rows(list(_rows(rows)))

    found: list[Any] = []
    once = _timed(lambda: found.extend(pending_episodes(study, study.store.journal_rows())))
    [(cell, episodes)] = found
    instances = study.instances(cell)

    def judge_all() -> None:
        judged = [row_unless_set_aside(instances[each.instance_id], study.transcript(each)) for each in episodes]
        study.store.append_rows([row for row in judged if row is not None])

    each = _timed(judge_all)
    if len(study.store.journal_rows()) != rows + len(episodes):
        raise SystemExit("not every episode was scored")
    print(
        f"  {rows:>7} rows: looking for what is new {_micro(once, rows)} per row there; then per scored episode "
        f"{_micro(each, len(episodes))}",
        flush=True,
    )


def _run_episodes(study: Any) -> None:
    """Every episode of the study, without Prefect."""
    import asyncio
    import io

    from flows.campaign import Campaign
    from flows.console import Console

    async def everything() -> None:
        campaign = Campaign(study, Console(io.StringIO()))
        jobs = [job for model, cell in study.work for job in campaign.jobs(model, cell)]
        await asyncio.gather(*map(campaign.attempt_repeatedly, jobs))
        await campaign.close()

    asyncio.run(everything())


def analyze(folder: Path, rows: int, resamples: int) -> None:
    """`agent-bench analyze` on a synthetic table of four models and the whole grid."""
    from ruamel.yaml import YAML

    from flows.context import Options, Study
    from flows.results_file import write_results
    from flows.scoring import results_metadata

    manifest = YAML(typ="safe").load((ROOT / "experiments.yaml").read_text(encoding="utf-8"))
    profile = manifest["profiles"]["smoke"]
    per_instance = 90 * len(profile["grid"]["models"])
    profile["grid"]["instances"] = round(rows / per_instance)
    profile["analysis"]["resamples"] = resamples
    # Under a name of its own: the smoke profile's stages run those before them too.
    manifest["profiles"] = {"growth": profile}
    path = folder / "experiments.yaml"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    shutil.copy(ROOT / "HYPOTHESES.md", folder)
    study = Study(Options(manifest=str(path), profile="growth"))
    made = [
        {**row, "started_at": datetime.fromisoformat(row["started_at"])}
        for model, cell in study.work
        for row in _cell_rows(study, model, cell)
    ]
    write_results(study.store.table, made, results_metadata(study))
    print(f"  {len(made)} rows, {resamples} resamples, {study.store.table.stat().st_size / 1e6:.1f} MB", flush=True)
    del made
    command = [sys.executable, "-c", "import sys; from flows.cli import main; sys.exit(main(sys.argv[1:]))"]
    command += ["analyze", "--manifest", str(path), "--profile", "growth"]
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"analyze failed:\n{output[-2000:]}")
    peak = usage.ru_maxrss / (1024 if sys.platform == "linux" else 2**20)
    print("\n".join(f"  {line}" for line in output.splitlines() if line.startswith("stage")))
    print(
        f"  the whole command {time.perf_counter() - started:.1f} s, CPU {usage.ru_utime + usage.ru_stime:.1f} s, "
        f"peak memory {peak:.0f} MiB",
        flush=True,
    )


def _cell_rows(study: Any, model: str, cell: Any) -> Iterator[dict[str, Any]]:
    """A synthetic result per instance and run seed: a known chance by model and level, instances easier or harder."""
    from flows.grid import runs_of

    entry = study.manifest.models[model]
    chance = entry.pass_rate[cell.difficulty] + entry.effects.get(cell.axis, {}).get(cell.level, 0.0)
    for number in range(study.manifest.grid.instances):
        instance = f"{cell.family}-{cell.difficulty}-{_digest(cell.sample, number, cell.family, cell.difficulty)}"
        offset = random.Random(instance).uniform(-0.1, 0.1)
        for run in range(1, runs_of(study.manifest, cell) + 1):
            key = _digest(model, cell.id, instance, run)
            yield {
                **_row(key, random.Random(key).random() < chance + offset),
                "model": model, "cell_id": cell.id, "family": cell.family, "difficulty": cell.difficulty,
                "axis": cell.axis, "level": cell.level, "instance_id": instance, "run_seed": run,
                "instance_seed": int(_digest(instance)[:8], 16), "variant_id": _digest(cell.id, instance)[:16],
                "temperature": 0.7 if cell.axis == "temperature" else 0.0,
            }  # fmt: skip


def _rows(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield _row(_digest(number), number % 3 > 0)


def _row(key: str, passed: bool) -> dict[str, Any]:
    return {
        "benchmark": "stability", "episode_id": key, "conversation_id": None, "conversation_position": None,
        "model": "agent", "model_id": None, "cell_id": "query-easy-none-baseline", "family": "query",
        "difficulty": "easy", "axis": "none", "level": "baseline", "instance_id": f"query-easy-{key}",
        "instance_seed": int(key[:8], 16), "variant_id": key[:16], "run_seed": 1, "temperature": 0.0,
        "passed": passed, "partial_score": float(passed), "steps_used": 4, "outcome": "completed",
        "failure_class": None if passed else "wrong_answer", "infra_error": False, "attempts": 1, "tokens_in": 4000,
        "tokens_cached": 0, "tokens_out": 100, "tokens_reasoning": 0, "usage_known": True, "cost_usd": 0.001,
        "trajectory_hash": key[:16], "trajectory_length": 4, "malformed_calls": 0,
        "git_sha": "0" * 40, "manifest_hash": "0" * 64,
        "scientific_hash": "0" * 64, "adapter_version": "scripted/2", "scaffold_version": "1",
        "started_at": datetime(2026, 1, 1, tzinfo=UTC).isoformat(), "wall_clock_s": 1.5, "transcript": key,
    }  # fmt: skip


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def _micro(taken: tuple[float, float], count: int) -> str:
    return f"{1e6 * taken[1] / count:.1f} us CPU ({1e6 * taken[0] / count:.1f} wall)"


if __name__ == "__main__":
    main()
