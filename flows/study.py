"""The whole study on one screen: five stages in order. `python -m flows.study` runs it."""

import sys

if __name__ == "__main__":
    # Prefect reads its settings when it is first imported, so the command line must come before it.
    from flows.cli import main

    sys.exit(main(["study", *sys.argv[1:]]))

import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from prefect import flow

from flows.analyze import analyze
from flows.console import Console
from flows.context import Options, open_study
from flows.errors import ConfigurationError, StudyError
from flows.generate import generate
from flows.orchestration import claim
from flows.perturb import perturb
from flows.readiness import check_models
from flows.run import run
from flows.score import score

Stage = Literal["generate", "perturb", "run", "score", "analyze"]

STAGES: dict[str, Callable[..., Awaitable[Any]]] = {
    "generate": generate,
    "perturb": perturb,
    "run": run,
    "score": score,
    "analyze": analyze,
}


class StageFailed(StudyError):
    """A stage could not do its work."""

    def __init__(self, stage: str, error: Exception) -> None:
        super().__init__(f"stage {stage!r} failed: {error}")
        self.stage = stage
        self.error = error
        self.exit_code = error.exit_code if isinstance(error, StudyError) else 1


@flow(name="study", flow_run_name="study {options.profile}")
async def study(
    options: Options, since: Stage = "generate", until: Stage = "analyze", strict: bool = False
) -> dict[str, float]:
    """Every stage from `since` to `until`; finished work is skipped. Returns seconds by stage.

    Args:
        options: Which study, and which part of it.
        since: First stage; what it reads must be there.
        until: Last stage.
        strict: Score only what replays.

    Raises:
        ConfigurationError: a model is not named, or its key is missing, and episodes are to be run.
        StageFailed: names the first stage that failed.
    """
    names = list(STAGES)
    chosen = names[names.index(since) : names.index(until) + 1]
    if not chosen:
        raise ConfigurationError(f"there is nothing to do from stage {since!r} until stage {until!r}; swap them")
    opened = open_study(options)
    await claim(opened.store.root, Console())
    if "run" in chosen:
        check_models(opened)
    return {name: await timed(name, options, strict) for name in chosen}


async def timed(name: str, options: Options, strict: bool = False) -> float:
    """Run one stage and print how long it took; `strict` is for `score`. Returns seconds. Raises `StageFailed`."""
    started = time.monotonic()
    try:
        await (STAGES[name](options, strict=True) if strict and name == "score" else STAGES[name](options))
    except Exception as error:
        raise StageFailed(name, error) from error
    seconds = time.monotonic() - started
    Console().line(f"stage {name}: {seconds:.2f} s")
    return seconds
