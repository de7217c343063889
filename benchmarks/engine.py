"""Figures of the run stage, each an option; without any, all that take minutes at most.

    python -m venv /tmp/inspect
    /tmp/inspect/bin/pip install --require-hashes --requirement benchmarks/requirements.txt
    python benchmarks/engine.py --speed --inspect-python /tmp/inspect/bin/python

Wall time depends on what else the machine does, so CPU time of the measured process stands beside it, and figures to be
compared are taken in turns, in one run on one machine. The median of the rounds is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from small_study import CALLS, CELL, ROOT, run_stage, write_study

HERE = Path(__file__).resolve().parent
Figures = dict[str, float]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speed", action="store_true", help="episodes per second, against inspect_ai if it is there")
    parser.add_argument("--latency", action="store_true", help="wall time against a slow server")
    parser.add_argument("--memory", action="store_true", help="memory and disk at few and at many episodes")
    parser.add_argument("--startup", action="store_true", help="time of agent-bench --help")
    parser.add_argument("--episodes", type=int, default=400, help="of --speed and --latency (default %(default)s)")
    parser.add_argument("--at-once", type=int, default=32, help="concurrent episodes (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default %(default)s)")
    parser.add_argument("--of", help="rows of --speed by their first words, `;` between them (default all)")
    parser.add_argument("--inspect-python", help="an interpreter that has inspect_ai")
    parser.add_argument("--latency-s", type=float, default=0.2, help="of the slow server (default %(default)s)")
    parser.add_argument("--memory-at", default="1000,20000", help="episodes of --memory (default %(default)s)")
    arguments = parser.parse_args()
    chosen = [name for name in ("speed", "latency", "memory", "startup") if getattr(arguments, name)]
    for name in chosen or ["speed", "latency", "startup"]:
        print(
            f"{name}: load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs, {time.strftime('%F %T')}",
            flush=True,
        )
        with tempfile.TemporaryDirectory(prefix="agent-bench-") as folder:
            {"speed": speed, "latency": latency, "memory": memory, "startup": startup}[name](arguments, Path(folder))


def speed(arguments: argparse.Namespace, folder: Path) -> None:
    """Episodes per second by tracking, and of inspect_ai by logging; ratios to inspect_ai's default."""
    episodes, at_once = arguments.episodes, arguments.at_once
    runs: dict[str, Callable[[Path], Figures]] = {}
    if arguments.inspect_python:
        shape = _recorded_shape(folder / "shape")
        for logging in ("default", "minimal"):
            command = [arguments.inspect_python, str(HERE / "inspect_episodes.py"), str(shape), str(episodes)]
            runs[f"inspect_ai, {logging} logging"] = lambda place, command=command, logging=logging: _json_of(
                [*command, str(at_once), logging, str(place)]
            )
    for name, tracking, prefect in (
        ("per_cell", "per_cell", True),
        ("per_episode", "per_episode", True),
        ("engine without Prefect", "per_cell", False),
    ):
        runs[name] = lambda place, tracking=tracking, prefect=prefect: run_stage(
            place, episodes, tracking=tracking, at_once=at_once, prefect=prefect
        )
    wanted = tuple(filter(None, (arguments.of or "").split(";")))
    runs = {name: run for name, run in runs.items() if not wanted or name.startswith(wanted)}
    taken: dict[str, list[Figures]] = {name: [] for name in runs}
    for number in range(arguments.rounds):
        for name, run in runs.items():
            taken[name].append(run(folder / f"{name.replace(' ', '-')}-{number}"))
    print(f"{'':<30} {'episodes/s':>11} {'ratio':>7} {'CPU ms/episode':>15} {'ratio':>7}")
    base: dict[str, float] = {}
    for name, rounds in taken.items():
        rate, cpu = _median(rounds, "episodes", "wall_s"), 1000 / _median(rounds, "episodes", "cpu_s")
        base = base or {"rate": rate, "cpu": cpu}
        print(
            f"{name:<30} {rate:>11.1f} {rate / base['rate']:>6.1f}x {cpu:>15.1f} {base['cpu'] / cpu:>6.1f}x", flush=True
        )
    steps = [figures["steps"] for rounds in taken.values() for figures in rounds if "steps" in figures]
    print(f"model calls per episode: {CALLS} in inspect_ai, {statistics.mean(steps):.2f} here; {at_once} at once")


def latency(arguments: argparse.Namespace, folder: Path) -> None:
    """Wall time of whole waves of concurrent episodes against what the server's waits alone would take."""
    at_once, wait = arguments.at_once, arguments.latency_s
    episodes = max(1, arguments.episodes // at_once) * at_once
    for number in range(arguments.rounds):
        with subprocess.Popen(
            [sys.executable, str(HERE / "slow_server.py"), str(wait)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as server:  # fmt: skip
            assert server.stdout is not None
            assert server.stdin is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            figures = run_stage(folder / str(number), episodes, at_once=at_once, url=url)
            server.stdin.close()
        ideal = figures["episodes"] / at_once * CALLS * wait
        print(
            f"{figures['episodes']:.0f} episodes, {at_once} at once, {1000 * wait:.0f} ms: {figures['wall_s']:.2f} s, "
            f"{100 * (figures['wall_s'] / ideal - 1):+.1f}% to the ideal {ideal:.2f} s; CPU "
            f"{1000 * figures['cpu_s'] / figures['episodes']:.1f} ms/episode, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def memory(arguments: argparse.Namespace, folder: Path) -> None:
    """Memory at the end of the stage and disk per episode, beside what `plan` projects for such episodes."""
    from flows.episodes.disk import transcript_bytes
    from flows.manifest import Expectation, Pricing, ScriptedModel

    first = 0.0
    agent = ScriptedModel(adapter="scripted", pass_rate={"easy": 1.0}, pricing=Pricing(input=0.0, output=0.0))
    for episodes in map(int, arguments.memory_at.split(",")):
        figures = run_stage(folder / str(episodes), episodes, at_once=arguments.at_once)
        first = first or figures["rss_mib"]
        expected = Expectation(
            steps=figures["steps"],
            tokens_in=figures["tokens_in"],
            tokens_out=figures["tokens_out"],
            seconds_per_step=1.0,
            source="measured",
        )
        print(
            f"{figures['episodes']:.0f} episodes: {figures['rss_mib']:.0f} MiB "
            f"({100 * (figures['rss_mib'] / first - 1):+.1f}%); "
            f"{figures['disk_bytes'] / figures['episodes']:.0f} bytes on disk per episode, projected "
            f"{transcript_bytes(expected, agent):.0f}; "
            f"{figures['episodes'] / figures['wall_s']:.1f} episodes/s, "
            f"CPU {1000 * figures['cpu_s'] / figures['episodes']:.1f} ms/episode, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def startup(arguments: argparse.Namespace, folder: Path) -> None:
    """Wall and CPU time of a process that prints the help."""
    del folder
    command = [sys.executable, "-c", "import sys; from flows.cli import main; sys.exit(main(['--help']))"]
    walls, cpus = [], []
    for _ in range(10 * arguments.rounds):
        before, started = os.times(), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        walls.append(time.perf_counter() - started)
        after = os.times()
        cpus.append(after.children_user + after.children_system - before.children_user - before.children_system)
    print(
        f"agent-bench --help: {statistics.median(walls):.3f} s, CPU {statistics.median(cpus):.3f} s, fastest "
        f"{min(walls):.3f} s"
    )


def _recorded_shape(folder: Path) -> Path:
    """One episode of ours as data: what the agent was told, what it called, what came back."""
    import asyncio
    import io

    from flows.campaign import Campaign
    from flows.console import Console
    from flows.context import Options, Study
    from flows.episodes.transcript import read_transcript
    from flows.grid import instance_set_keys
    from flows.sets import materialize_instances, materialize_variants

    study = Study(Options(manifest=str(write_study(folder, 40)), cell=CELL))
    for key in instance_set_keys(study.manifest, study.cells):
        materialize_instances(study.store, study.manifest, key)
    [cell] = study.cells
    materialize_variants(study.store, study.manifest, cell)

    async def episodes() -> list[Path]:
        campaign = Campaign(study, Console(io.StringIO()))
        jobs = campaign.jobs("agent", cell)
        for job in jobs:
            await campaign.attempt_repeatedly(job)
        return [study.transcript(job.episode) for job in jobs]

    for path in asyncio.run(episodes()):
        events = read_transcript(path)
        results = [event for event in events if event["event"] == "result"]
        if len(results) == CALLS and len({event["name"] for event in results}) == CALLS:
            break
    else:
        raise SystemExit("no episode has the plain shape")
    [opening] = [event for event in events if event["event"] == "opening"]
    first = next(event for event in events if event["event"] == "request")["added"]
    shape = {
        "system": first[0]["text"],
        "prompt": first[1]["text"],
        "tools": opening["tools"],
        "calls": [[event["name"], event["call"]["arguments"]] for event in results],
        "results": {event["name"]: event["content"] for event in results},
    }
    path = folder / "shape.json"
    path.write_text(json.dumps(shape), encoding="utf-8")
    return path


def _json_of(command: list[str]) -> Figures:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[1]} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _median(rounds: list[Figures], numerator: str, denominator: str) -> float:
    return statistics.median(figures[numerator] / figures[denominator] for figures in rounds)


if __name__ == "__main__":
    main()
