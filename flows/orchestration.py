"""Prefect as this project uses it: its settings, and how plain functions become cached or retried tasks.

Every task is async: a sync task under an async flow brings a thread, an event loop and a client of its own, at five
times the CPU time.

`prepare_environment` must run before Prefect is first imported.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping, MutableMapping
from pathlib import Path
from typing import Any, TypeVar

from flows.errors import StudyError

T = TypeVar("T")

_QUIET = {
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_CLI_PROMPT": "false",
}
_EMBEDDED_SERVER = {
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
}


def prepare_environment(root: Path, environ: MutableMapping[str, str] = os.environ) -> None:
    """Settings for the embedded server and a quiet console; what the user has set stays.

    Without `PREFECT_API_URL` the study brings its own server on a free loopback port and keeps Prefect's state
    under `root`, so that it never touches other Prefect state of the user.
    """
    defaults = dict(_QUIET)
    if not environ.get("PREFECT_API_URL"):
        defaults |= _EMBEDDED_SERVER
        home = (root / ".prefect").resolve()
        home.mkdir(parents=True, exist_ok=True)  # the server does not make its own home
        defaults["PREFECT_HOME"] = str(home)
    for name, value in defaults.items():
        environ.setdefault(name, value)


def labels(*names: str, environ: Mapping[str, str] = os.environ) -> set[str]:
    """Tags of a task, where somebody can see them.

    Every tagged task asks the server for a place under each tag's limit before and after it runs: on the embedded
    server, which nobody watches, that costs more than the task.
    """
    return set(names) if environ.get("PREFECT_API_URL") else set()


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a flow from a command line.

    Raises:
        KeyboardInterrupt: the process was told to end, by Ctrl-C or by SIGTERM.
        StudyError: Prefect's embedded server did not start.
    """
    from prefect.exceptions import TerminationSignal

    try:
        return asyncio.run(work)
    except TerminationSignal as signal:
        raise KeyboardInterrupt from signal
    except RuntimeError as error:
        if "Prefect API server" not in str(error):
            raise
        raise StudyError(
            f"Prefect's embedded server did not start: {error} Try again on a less busy machine, or start one with "
            "`prefect server start` and point PREFECT_API_URL at it"
        ) from error
