"""Whole cells on a Dask cluster: one task each, by prefect-dask, which costs a quarter of a second a task.

A worker that dies takes its cell with it; Dask gives the cell to another one, which goes on where the first stopped,
since the cell's lock died with its holder and what was finished is on the shared disk.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flows.errors import ConfigurationError, StudyError
from flows.orchestration.settings import API_URL
from flows.orchestration.sharing import is_shared

if TYPE_CHECKING:
    from prefect import Task

Ship = Callable[["Task[..., Any]", dict[str, Any]], Awaitable[Any]]
"""Carries out a task with these parameters on a worker; returns what it returned."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")

_LOOK_EVERY_S = 0.05


class WorkerLost(StudyError):
    """Workers died with a cell again and again."""

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(
            f"{what} was lost on the cluster ({problem}); look at the workers' memory and logs, then run again: "
            "finished episodes are kept"
        )


@asynccontextmanager
async def cluster(workers: int | None, address: str | None) -> AsyncIterator[Ship]:
    """Connect to the scheduler at `address`, or start `workers` processes here and end them with the block.

    Raises:
        ConfigurationError: the extra `dask` is missing, the scheduler does not answer, or its workers cannot reach the
            server that this process reports to.
    """
    if address and urlsplit(address).hostname not in LOOPBACK and not is_shared():
        raise ConfigurationError(
            f"execution.cluster: the workers of {address} cannot reach the Prefect server that a study brings "
            f"along; start one by `agent-bench server` where they can, and set {API_URL}"
        )
    try:
        prefect_dask = importlib.import_module("prefect_dask")
    except ImportError as error:
        raise ConfigurationError(
            f"execution.cluster needs the extra `dask` ({error}); install it by `pip install --no-deps "
            "--require-hashes -r requirements-dask.lock`, or take the section out of the manifest"
        ) from None
    here = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "processes": True,
        "host": "127.0.0.1",
        "dashboard_address": None,
        "preload": "flows.orchestration.undisturbed",
        "silence_logs": logging.CRITICAL,
    }
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the console is the study's
    given = {"address": address} if address else {"cluster_kwargs": here}
    runner = prefect_dask.DaskTaskRunner(**given)
    with ExitStack() as stack:
        stack.enter_context(runner)
        try:
            await asyncio.to_thread(lambda: runner.client)
        except OSError as error:
            raise ConfigurationError(
                f"execution.cluster: nobody answers at {address} ({type(error).__name__}); start a scheduler there by "
                "`dask scheduler`, and workers by `dask worker`"
            ) from None

        async def ship(work: Task[..., Any], parameters: dict[str, Any]) -> Any:
            future = runner.submit(work, parameters)
            try:
                while not future.wrapped_future.done():
                    await asyncio.sleep(_LOOK_EVERY_S)
            except asyncio.CancelledError:
                future.wrapped_future.cancel()
                raise
            lost = future.wrapped_future.exception()
            if lost is not None:
                raise WorkerLost(str(parameters["cell_id"]), " ".join(f"{type(lost).__name__}: {lost}"[:500].split()))
            future.wait()
            return await future.state.result()

        try:
            yield ship
        finally:
            await asyncio.to_thread(stack.close)
