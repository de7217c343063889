"""Processes that run what somebody else wrote: started with little reach, watched, and ended with all they started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import site
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tasks_env.service.benchmark import Limits

HARNESS = Path(__file__).resolve().parent / "harness"
HIDDEN = Path(__file__).resolve().parent.parent
"""What no submission may read: the package, with the suites and the correct submissions in it."""
SYSTEM_PLACES = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/etc", "/opt")
OPEN_FILES = 256
TAIL_CHARS = 400
WATCH_S = 0.25


@dataclass(frozen=True)
class Reach:
    """What the kernel agreed to keep a process from."""

    network_isolated: bool = False
    processes_isolated: bool = False
    files_isolated: bool = False


class Confined:
    """A process of a submission.

    Args:
        command: Program and arguments; the program is started as it is, without a shell.
        tree: The staged submission; may be read.
        private: Folder that may be written; home and place for temporary files.
        limits: Of the benchmark.
        inherited: Descriptors that the command gets.
    """

    def __init__(
        self, command: Sequence[str], tree: Path, private: Path, limits: Limits, inherited: Sequence[int] = ()
    ) -> None:
        self._limits = limits
        self._output: list[bytes] = []
        self._printed = 0
        self.exceeded: str | None = None
        """Which limit it ran into and was killed for."""
        self._started = time.monotonic()
        reading, status = os.pipe()
        config = {
            "command": list(command),
            "limits": {
                "address_mb": limits.address_mb,
                "cpu_s": int(limits.start_s + 3 * limits.suite_s),
                "file_mb": limits.written_mb,
                "processes": limits.processes,
                "open_files": OPEN_FILES,
            },
            **_readable(tree),
            "write": [str(private)],
            "status": status,
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(HARNESS / "confined.py"), json.dumps(config)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=constructed_environment(private),
                cwd=private,
                pass_fds=[status, *inherited],
                start_new_session=True,
            )
        finally:
            os.close(status)
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        self._input = self._process.stdin
        self._reader = threading.Thread(target=self._drain, args=[self._process.stdout], daemon=True)
        self._reader.start()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        self.reach = _reach(reading)

    def poll(self) -> int | None:
        """Its exit code; null while it runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Its exit code; null if it still runs after `seconds`."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def tell(self, line: str) -> None:
        """Write a line to its standard input; one that is gone does not hear it."""
        with contextlib.suppress(BrokenPipeError):
            self._input.write(f"{line}\n".encode("ascii"))
            self._input.flush()

    def end(self) -> None:
        """Kill it with everything that it started, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(timeout=5)
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    @property
    def tail(self) -> str:
        """The end of what it printed, on one line."""
        text = b"".join(self._output).decode("utf-8", "replace")
        return " ".join("".join(c if c.isprintable() else " " for c in text[-4 * TAIL_CHARS :]).split())[-TAIL_CHARS:]

    def _drain(self, pipe: IO[bytes]) -> None:
        """Take what it prints; kill it for printing too much."""
        with pipe:
            while chunk := os.read(pipe.fileno(), 65536):
                self._printed += len(chunk)
                if self._printed > self._limits.output_kb * 1000:
                    self._kill_for(f"it printed more than {self._limits.output_kb} kB")
                    return
                self._output.append(chunk)

    def _watch(self) -> None:
        """Kill it for having too many processes: as root, no resource limit counts them."""
        while self._process.poll() is None:
            if _descendants(self._process.pid) > self._limits.processes:
                self._kill_for(f"it ran more than {self._limits.processes} processes")
                return
            time.sleep(WATCH_S)

    def _kill_for(self, reason: str) -> None:
        self.exceeded = reason
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def constructed_environment(private: Path) -> dict[str, str]:
    """An environment made from nothing: no variable of ours reaches a submission, keys of models least of all."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(private),
        "TMPDIR": str(private),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def installed() -> list[str]:
    """Folders of installed distributions, as this process has them."""
    paths = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    return [path for path in dict.fromkeys(paths) if Path(path).is_dir()]


def _readable(tree: Path) -> dict[str, list[str]]:
    """What may be read, and what may only be listed: the interpreter, what is installed, the system's libraries, the
    staged tree, and never `HIDDEN`."""
    roots = [sys.prefix, sys.base_prefix, sys.exec_prefix, *installed(), *SYSTEM_PLACES]
    read, listed = _without_hidden(tuple(dict.fromkeys(roots)))
    scripts = [str(path) for path in HARNESS.iterdir() if path.suffix in (".py", ".ini")]
    return {"read": [*read, *scripts, str(tree)], "listed": listed}


def _without_hidden(roots: Sequence[str]) -> tuple[list[str], list[str]]:
    read: list[str] = []
    listed: list[str] = []
    for root in roots:
        resolved = Path(root).resolve()
        if resolved == HIDDEN or HIDDEN in resolved.parents:
            continue
        if resolved not in HIDDEN.parents:
            read.append(str(resolved))
            continue
        listed.append(str(resolved))
        inner_read, inner_listed = _without_hidden([str(path) for path in resolved.iterdir() if not path.is_symlink()])
        read += inner_read
        listed += inner_listed
    return read, listed


def _reach(reading: int) -> Reach:
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read(10_000)
    try:
        return Reach(**json.loads(told))
    except (ValueError, TypeError):
        return Reach()


def _descendants(pid: int) -> int:
    """How many processes descend from `pid`, by the process table; 0 where there is none to read."""
    children: dict[int, list[int]] = {}
    try:
        entries = os.listdir("/proc")  # noqa: PTH208 - many times a second
    except OSError:
        return 0
    for name in entries:
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                parent = int(file.read(4096).rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    count, generation = 0, [pid]
    while generation:
        generation = [child for parent in generation for child in children.get(parent, ())]
        count += len(generation)
    return count
