"""Prefect's settings, made before Prefect is first imported: it reads them then. What the user has set stays."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from flows.files import make_room

API_URL = "PREFECT_API_URL"
EMBEDDED = "AGENT_BENCH_EMBEDDED_SERVER"
"""Set while the study's own server is the one that is reported to."""

DATABASE_BYTES = 2_000_000
"""What the server's database takes before anything is in it."""

_QUIET = {
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_CLI_PROMPT": "false",
}
_SERVER = {
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
}
_EMBEDDED = {
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
    "PREFECT_UI_ENABLED": "false",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
}


def quiet(environ: MutableMapping[str, str]) -> None:
    """Leave the console to the study."""
    for name, value in _QUIET.items():
        environ.setdefault(name, value)


def embed(root: Path, address: str, environ: MutableMapping[str, str]) -> None:
    """Report to the study's own server at `address`, with Prefect's state under `root` and nowhere else.

    Raises:
        StoreError: the root cannot be written, or has no room for the server's database.
    """
    home = (root / ".prefect").resolve()
    make_room(home, DATABASE_BYTES)  # the server does not make its own home, and dies without a word for want of room
    environ.setdefault("PREFECT_HOME", str(home))
    for name, value in (_SERVER | _EMBEDDED).items():
        environ.setdefault(name, value)
    environ[API_URL] = f"{address}/api"
    environ[EMBEDDED] = "1"


def stand(home: Path, port: int, environ: MutableMapping[str, str]) -> None:
    """Be a server that people watch at this port of the loopback interface, with all its state in `home`.

    Raises:
        StoreError: `home` cannot be written, or has no room for the server's database.
    """
    make_room(home, DATABASE_BYTES)
    for name, value in (_QUIET | _SERVER).items():
        environ.setdefault(name, value)
    environ["PREFECT_HOME"] = str(home)
    environ.setdefault("PREFECT_UI_STATIC_DIRECTORY", str(home / "ui"))  # else into the installed package
    environ["PREFECT_SERVER_API_PORT"] = str(port)
    environ[API_URL] = f"http://127.0.0.1:{port}/api"  # what the pages in the browser ask


def report(root: Path, environ: MutableMapping[str, str]) -> None:
    """Report to the server that the user named, and keep what this process keeps for itself under `root`."""
    environ.setdefault("PREFECT_RESULTS_LOCAL_STORAGE_PATH", str((root / ".prefect" / "storage").resolve()))


def be_worker(home: Path, environ: MutableMapping[str, str]) -> None:
    """Be a worker with all its state in `home`: it says what it does, and the server keeps what its runs say."""
    environ["PREFECT_HOME"] = str(home)
    for name in ("PREFECT_SERVER_ANALYTICS_ENABLED", "DO_NOT_TRACK", "PREFECT_CLI_PROMPT"):
        environ.setdefault(name, _QUIET[name])


def reported_to(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that say to which server this process reports; for `report_as` in a process elsewhere."""
    return {name: environ[name] for name in (API_URL, EMBEDDED) if name in environ}


def report_as(variables: Mapping[str, str], environ: MutableMapping[str, str] = os.environ) -> None:
    """Report to the server that another process reports to, and treat it as that one does."""
    for name in (API_URL, EMBEDDED):
        environ.pop(name, None)
    environ.update(variables)


def labels(*names: str, environ: Mapping[str, str] = os.environ) -> set[str]:
    """Tags of a task, where somebody can see them.

    Every tagged task asks the server for a place under each tag's limit before and after it runs: on the embedded
    server, which nobody watches, that costs more than the task.
    """
    return set() if EMBEDDED in environ else set(names)
