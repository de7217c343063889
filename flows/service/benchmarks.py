"""Benchmarks as the command line names them."""

from __future__ import annotations

from pathlib import Path

from flows.errors import ConfigurationError
from tasks_env.errors import UnknownName
from tasks_env.service.benchmark import LIBRARY, Benchmark, benchmark_ids, load_benchmark


def find_benchmark(identity: str, library: str | None) -> Benchmark:
    """The benchmark called `identity`.

    Raises:
        ConfigurationError: there is no such benchmark, or no such library.
        tasks_env.service.errors.EvidenceError: its contract is missing or malformed.
    """
    try:
        return load_benchmark(identity, _library(library))
    except UnknownName as error:
        raise ConfigurationError(f"--task: {error}") from None


def find_benchmarks(identity: str | None, library: str | None) -> list[Benchmark]:
    """The benchmark called `identity`, or all of them. Raises likewise."""
    ids = benchmark_ids(_library(library)) if identity is None else [identity]
    return [find_benchmark(each, library) for each in ids]


def _library(library: str | None) -> Path:
    if library is None:
        return LIBRARY
    folder = Path(library).resolve()
    if not benchmark_ids(folder):
        raise ConfigurationError(f"--library: {library} holds no benchmark: expected folders tasks/BE-<number>-<slug>/")
    return folder
