"""Processes that run what somebody else wrote: started with little reach, watched, and ended with all they started."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import site
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

from tasks_env.service.benchmark import Limits

HARNESS = Path(__file__).resolve().parent / "harness"
LAUNCHER = HARNESS / "confined.py"
_PACKAGE = Path(__file__).resolve().parent.parent
HIDDEN = (_PACKAGE, *(_PACKAGE.parent / name for name in ("flows", "tests", ".git")))
"""What no submission may read: the package with the suites and the correct submissions in it, and what lies beside it
in a checkout, history included."""
SYSTEM_PLACES = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/etc")
OPEN_FILES = 256
TAIL_CHARS = 400
WATCH_S = 0.25
MOST_FILES = 1000
"""Folders included."""


@dataclass(frozen=True)
class Reach:
    """What the kernel agreed to keep a process from."""

    network_isolated: bool = False
    processes_isolated: bool = False
    files_isolated: bool = False


class Running(Protocol):
    """A process, as `subprocess` has it."""

    @property
    def pid(self) -> int:
        """It leads a process group of the same number."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """What it reads."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """What it prints, errors included."""

    def poll(self) -> int | None:
        """Its exit code; null while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises `subprocess.TimeoutExpired`."""


Start = Callable[[dict[str, Any], Path, int], Running]
"""Confinement, private folder and the descriptor that is told what was achieved → the process."""


def executing(command: Sequence[str]) -> Start:
    """What starts a command: program and arguments; the program is started as it is, without a shell."""

    def start(confinement: dict[str, Any], private: Path, status: int) -> Running:
        config = {**confinement, "command": list(command), "status": status}
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=constructed_environment(private),
            cwd=private,
            pass_fds=[status],
            start_new_session=True,
        )

    return start


class Confined:
    """A process of a submission.

    Args:
        start: Starts it.
        tree: The staged submission; may be read.
        private: Folder that may be written; home and place for temporary files.
        limits: Of the benchmark.
    """

    def __init__(self, start: Start, tree: Path, private: Path, limits: Limits) -> None:
        self._limits = limits
        self._private = private
        self._output: list[bytes] = []
        self._printed = 0
        self.exceeded: str | None = None
        """Which limit it ran into and was killed for."""
        self._started = time.monotonic()
        reading, status = os.pipe()
        confinement = {
            "limits": {
                "address_mb": limits.address_mb,
                "cpu_s": int(limits.start_s + 3 * limits.suite_s),
                "file_mb": limits.written_mb,
                "processes": limits.processes,
                "open_files": OPEN_FILES,
            },
            **_readable(tree),
            "write": [str(private)],
        }
        try:
            self._process = start(confinement, private, status)
        except BaseException:
            os.close(reading)
            raise
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
        """Kill it for what no resource limit bounds: its processes (as root), all their memory, all its files."""
        limits = self._limits
        while self._process.poll() is None:
            processes, resident = _descendants(self._process.pid)
            files, written = _extent(self._private)
            for amount, most, what in (
                (processes, limits.processes, f"it ran more than {limits.processes} processes"),
                (resident, limits.resident_mb * 2**20, f"it used more than {limits.resident_mb} MB of memory"),
                (written, limits.written_mb * 2**20, f"it wrote more than {limits.written_mb} MB"),
                (files, MOST_FILES, f"it wrote more than {MOST_FILES} files and folders, or hid some"),
            ):
                if amount > most:
                    self._kill_for(what)
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
        if any(hidden == resolved or hidden in resolved.parents for hidden in HIDDEN):
            continue
        if not any(resolved in hidden.parents for hidden in HIDDEN):
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


def _descendants(pid: int) -> tuple[int, int]:
    """How many processes descend from `pid`, and their resident bytes, by the process table; 0 where there is none."""
    children: dict[int, list[tuple[int, int]]] = {}
    try:
        entries = os.listdir("/proc")  # noqa: PTH208 - many times a second
    except OSError:
        return 0, 0
    for name in entries:
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read(4096).rpartition(b")")[2].split()
                children.setdefault(int(fields[1]), []).append((int(name), int(fields[21])))
    count, pages, generation = 0, 0, [pid]
    while generation:
        born = [child for parent in generation for child in children.get(parent, ())]
        generation = [child for child, _ in born]
        count, pages = count + len(born), pages + sum(resident for _, resident in born)
    return count, pages * resource.getpagesize()


def _extent(folder: Path) -> tuple[int, int]:
    """How many files and folders lie under a folder, and their bytes on the disk.

    It stops to count where there are too many; a folder that cannot be looked into, for its depth or its mode, counts
    as too many.
    """
    count, size, folders = 0, 0, [str(folder)]
    while folders and count <= MOST_FILES:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in islice(entries, MOST_FILES + 1):
                    count += 1
                    with contextlib.suppress(FileNotFoundError):
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                return MOST_FILES + 1, size
    return count, size
