"""How fast the environment generates and judges: `python benchmarks/environment.py [--count N]`.

For every family and difficulty of the manifest: instances generated a second, and verdicts a second on the final
states that the reference solutions reach. Rates are per second of this process's CPU time, on one core; those per
second of wall time stand beside them. Of `--rounds` rounds the fastest counts, since what else a machine does only
makes a round slower. A child process generates and keeps `--memory-count` instances of tabular easy and reports its
peak memory.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tasks_env import Instance, Session, family, generate_instance, play, render, validated_params
from tasks_env.session import verify
from tasks_env.types import FinalState

MANIFEST = Path(__file__).resolve().parent.parent / "experiments.yaml"
STATES = 200
"""Final states that the verdicts are taken on, over and over."""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", type=Path, default=MANIFEST)
    parser.add_argument("--count", type=int, default=1000, help="instances and verdicts of a round (default 1000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-count", type=int, default=10_000, help="instances held at once (default 10000)")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    families = YAML(typ="safe").load(arguments.manifest.read_text(encoding="utf-8"))["families"]
    if arguments.memory_of:
        name, difficulty = arguments.memory_of.split("/")
        print(_peak_mib(name, difficulty, families[name][difficulty], arguments.memory_count))
        return
    print(f"{'family':<10} {'difficulty':<12} {'instances/s':>12} {'(wall)':>9} {'verdicts/s':>12} {'(wall)':>9}")
    for name, difficulties in families.items():
        for difficulty, params in difficulties.items():
            print(
                f"{name:<10} {difficulty:<12} {_rates(name, difficulty, params, arguments.count, arguments.rounds)}",
                flush=True,
            )
    command = [sys.executable, __file__, "--manifest", str(arguments.manifest), "--memory-of", "tabular/easy"]
    command += ["--memory-count", str(arguments.memory_count)]
    peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    print(f"{arguments.memory_count} instances of tabular easy: peak memory {peak} MiB, the interpreter included")


def _rates(name: str, difficulty: str, params: dict[str, Any], count: int, rounds: int) -> str:
    valid = validated_params(name, params)
    instances: list[Instance] = []

    def generate(number: int) -> None:
        seeds = range(number * count, (number + 1) * count)
        instances.extend(generate_instance(name, valid, seed, difficulty=difficulty) for seed in seeds)

    generated = _fastest(generate, count, rounds)
    states = [(instance, _final_state(instance)) for instance in instances[:STATES]]

    def judge(_: int) -> None:
        for number in range(count):
            instance, state = states[number % len(states)]
            if not verify(instance, (), state).passed:
                raise RuntimeError(f"{instance.instance_id}: the reference does not pass")

    return f"{generated} {_fastest(judge, count, rounds)}"


def _final_state(instance: Instance) -> FinalState:
    session = Session(instance, render(instance))
    play(session, family(instance.family).reference(instance))
    return session.final_state()


def _fastest(work: Callable[[int], None], count: int, rounds: int) -> str:
    """Repetitions a second of CPU time and of wall time, each of its fastest round."""
    times = []
    for number in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        work(number)
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    cpu, wall = (min(of_a_kind) for of_a_kind in zip(*times, strict=True))
    return f"{count / cpu:>12,.0f} {count / wall:>9,.0f}"


def _peak_mib(name: str, difficulty: str, params: dict[str, Any], count: int) -> int:
    valid = validated_params(name, params)
    held = [generate_instance(name, valid, seed, difficulty=difficulty) for seed in range(count)]
    if len(held) != count:
        raise RuntimeError("instances are missing")
    # Linux reports KiB, macOS bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 1024**2)


if __name__ == "__main__":
    main()
