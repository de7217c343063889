"""Starting the local model's server for as long as a block runs, and stopping it whatever happens in there."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from flows.errors import StudyError
from flows.local_model.server import KEY_VARIABLE, READY
from flows.local_model.weights import require_extra

STOP_SECONDS = 5.0
"""How long the server may take to end before it is killed."""
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


class ServerNotReady(StudyError):
    """The local model's server ended or stayed silent instead of becoming ready."""

    def __init__(self, problem: str, log: Path) -> None:
        super().__init__(f"the local model's server {problem}; the end of its log ({log}):\n{_tail(log)}")


@contextmanager
def running_server(
    log: Path,
    *,
    threads: int = 1,
    slots: int = 1,
    context_tokens: int = 8192,
    prompt_cache: bool = False,
    api_key: str | None = None,
    ready_within_s: float = 120,
) -> Iterator[str]:
    """The base address of a server that runs while the block does, on a free port of the loopback interface.

    The address has no version prefix and serves both adapters.

    Args:
        log: File that gets everything the server prints; its folder is made.
        threads: Threads of computation.
        slots: Requests answered at a time; more than one costs repeatability.
        context_tokens: Per slot.
        prompt_cache: Read only what a prompt adds to the one before it: several times faster in a long conversation,
            at some cost in repeatability.
        api_key: Asked of every request if given.
        ready_within_s: Limit for loading the model.

    Raises:
        ConfigurationError: the extra `local` is not installed.
        ServerNotReady: no READY within the limit, with the end of the log.
    """
    require_extra()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as log_file:
        copier: threading.Thread | None = None
        process = _start(threads, slots, context_tokens, prompt_cache, api_key)
        try:
            announced: queue.SimpleQueue[str | None] = queue.SimpleQueue()
            assert process.stdout is not None
            copier = threading.Thread(target=_copy, args=(process.stdout, log_file, announced), daemon=True)
            copier.start()
            yield _address(announced, log, ready_within_s)
        finally:
            _stop(process)
            if copier is not None:
                copier.join(STOP_SECONDS)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def _start(
    threads: int, slots: int, context_tokens: int, prompt_cache: bool, api_key: str | None
) -> subprocess.Popen[bytes]:
    environment = {key: value for key, value in os.environ.items() if key != KEY_VARIABLE}
    environment |= {"OMP_WAIT_POLICY": "passive", "PYTHONUNBUFFERED": "1"}
    if api_key is not None:
        environment[KEY_VARIABLE] = api_key
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "flows.local_model.server", "--with-parent"),
            *("--threads", str(threads), "--slots", str(slots), "--context-tokens", str(context_tokens)),
            *(("--prompt-cache",) if prompt_cache else ()),
        ],
        # Never written to: its end tells the server that this process is gone, however it went.
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=_PACKAGE_ROOT,
        # Ctrl-C at a terminal reaches this process alone, which stops the server in its own time.
        start_new_session=True,
    )


def _copy(source: IO[bytes], log: IO[bytes], announced: queue.SimpleQueue[str | None]) -> None:
    """Stream the server's output to the log; put its address, then null at the end, into `announced`."""
    prefix = f"{READY} ".encode()
    for line in source:
        log.write(line)
        log.flush()
        if line.startswith(prefix):
            announced.put(line[len(prefix) :].decode("ascii", errors="replace").strip())
    announced.put(None)


def _address(announced: queue.SimpleQueue[str | None], log: Path, limit_s: float) -> str:
    try:
        address = announced.get(timeout=limit_s)
    except queue.Empty:
        raise ServerNotReady(f"was not ready within {limit_s:g} s", log) from None
    if address is None:
        raise ServerNotReady("ended before it was ready", log)
    return address


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])
