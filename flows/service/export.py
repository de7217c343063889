"""`agent-bench service export`: what an agent gets, on the disk."""

from __future__ import annotations

from pathlib import Path

from flows.console import Console
from flows.errors import ConfigurationError
from flows.files import write_atomically
from tasks_env.service.benchmark import Benchmark
from tasks_env.service.family import exported


def export(benchmark: Benchmark, folder: Path, console: Console) -> None:
    """Write the service to `folder`, and the task to `folder`.md beside it, where it is no part of the change.

    Raises:
        ConfigurationError: `folder` is there already.
        StoreError: the disk refuses.
    """
    if folder.exists():
        raise ConfigurationError(f"{folder}: is there already; name a folder that does not exist yet")
    benchmark.check_evidence()
    for path, content in exported(benchmark).items():
        write_atomically(folder / path, content.encode())
    task = folder.with_name(f"{folder.name}.md")
    write_atomically(task, benchmark.prompt.encode())
    console.line(f"the service is in {folder}, the task in {task}")
    console.line(f"then: agent-bench service evaluate --task {benchmark.id} --submission {folder}")
