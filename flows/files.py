"""Writing files so that a kill, a full disk or another process leaves nothing half-written: the only module that does.

Whole files are replaced atomically; lines are appended whole, and a line that a crash tore is cut off before the
next one; locks die with their process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Literal

from flows.errors import CellLocked, StoreError

_ADVICE = {
    errno.ENOSPC: "no space left on the device; free some and run again, finished work is kept",
    errno.EDQUOT: "the disk quota is used up; free some and run again, finished work is kept",
    errno.EROFS: "the file system is read-only; choose a writable place for the study's root",
    errno.EACCES: "permission denied; make the study's root writable for this user",
    errno.EPERM: "operation not permitted; make the study's root writable for this user",
}


class storage:
    """Turn the operating system's refusal into an error that names the path and what to do.

    Not made from a generator: it guards every line that is written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Nothing is guarded but the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Raise `StoreError` in place of an `OSError`."""
        if isinstance(error, OSError):
            advice = _ADVICE.get(error.errno or 0, error.strerror or str(error))
            where = Path(error.filename) if isinstance(error.filename, str) else self._path
            raise StoreError(where, advice) from error


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step, flushed to the disk first. Raises `StoreError`."""
    with storage(path):
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with _open_in_folder(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_flushed(path: Path, data: bytes) -> None:
    """Write a whole file, flushed to the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def make_room(folder: Path, size: int) -> None:
    """Make a folder, and sure that a file of `size` bytes fits into it. Raises `StoreError`."""
    probe = folder / f".room.{os.getpid()}.tmp"
    with storage(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            write_flushed(probe, bytes(size))
        finally:
            probe.unlink(missing_ok=True)


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """A lock file held by this process. It dies with the process, so a kill leaves nothing to clean up.

    Raises:
        CellLocked: another process holds it; names `what` and its pid.
        StoreError: the lock file cannot be written.
    """
    with storage(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab+", buffering=0)
    with file:
        with storage(path):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CellLocked(what, _holder(file)) from None
            file.truncate(0)
            file.write(str(os.getpid()).encode("ascii"))
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                file.truncate(0)  # the next holder is not taken for this process before it has put its own pid there


def append_lines(path: Path, lines: Sequence[str]) -> None:
    """Append whole lines, flushed to the disk, after cutting off a torn last line. Raises `StoreError`."""
    if not lines:
        return
    with storage(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            cut_torn_tail(file)
            file.write("".join(line + "\n" for line in lines).encode("ascii"))
            file.flush()
            os.fsync(file.fileno())


def remove_temporaries(folder: Path) -> None:
    """Remove what writers that were killed left in a folder which no living process writes to. Raises `StoreError`."""
    with storage(folder):
        for path in folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)


def _write_whole(file: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _flush_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a new file in it survives a power cut; some file systems cannot."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def cut_torn_tail(file: IO[bytes] | io.FileIO) -> None:
    """Truncate a JSONL file after its last whole line."""
    size = file.seek(0, os.SEEK_END)
    position = size
    while position:
        start = max(0, position - 4096)
        file.seek(start)
        newline = file.read(position - start).rfind(b"\n")
        if newline >= 0:
            position = start + newline + 1
            break
        position = start
    if position != size:
        file.truncate(position)


def _holder(file: IO[bytes]) -> str:
    """The pid in a lock file. Its holder writes it right after it has locked, so it may take a moment to appear."""
    for _ in range(20):
        file.seek(0)
        text = file.read().decode("ascii", "replace").strip()
        if text:
            return text
        time.sleep(0.01)
    return "unknown"


def _open_in_folder(path: Path, mode: Literal["wb", "ab+"], buffering: int = -1) -> IO[bytes]:
    """Open a file to write to; its folder is made if it is not there, which is nearly always."""
    try:
        return path.open(mode, buffering)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open(mode, buffering)


class LineFile:
    """A new file of lines, hashed as they are written. Every method but `abandon` raises `StoreError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._hash = hashlib.sha256()
        self._storage = storage(path)
        with self._storage:
            self._file = _open_in_folder(path, "wb")

    def append(self, line: str) -> None:
        """Write one line of ASCII text."""
        data = line.encode("ascii") + b"\n"
        self._hash.update(data)
        with self._storage:
            self._file.write(data)

    def flush(self) -> None:
        """Let others see what was written."""
        with self._storage:
            self._file.flush()

    def close(self) -> str:
        """Flush to the disk. Returns the SHA-256 of all bytes."""
        with storage(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        return self._hash.hexdigest()

    def abandon(self) -> None:
        """Close without vouching for anything; nothing happens after `close`."""
        # A full disk refuses the buffered rest once more; whoever abandons knows.
        with contextlib.suppress(OSError):
            self._file.close()


class SharedLines:
    """A file of lines that several processes read and append to, one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: IO[bytes] | None = None
        self._close: weakref.finalize[..., object] | None = None
        self._among_threads = threading.Lock()
        self._pid = os.getpid()
        self._file: IO[bytes] | None = None
        """While locked."""
        self._read_to = 0
        self._flushed_to = 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the file against every other process and thread. Raises `StoreError`."""
        if self._pid != os.getpid():
            self._part_from_parent()
        with storage(self.path), self._among_threads:
            file = self._lock()
            self._file = file
            try:
                yield
            finally:
                self._file = None
                fcntl.flock(file, fcntl.LOCK_UN)

    def _part_from_parent(self) -> None:
        """Open the file anew after a fork: a lock is held by both processes that share what one of them opened."""
        self._among_threads, self._pid, self._opened, self._file = threading.Lock(), os.getpid(), None, None

    def _lock(self) -> IO[bytes]:
        """The file at the path, locked: the one that is open, unless another one lies there now, or none."""
        while True:
            file = self._opened or self._open()
            fcntl.flock(file, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                    return file
            fcntl.flock(file, fcntl.LOCK_UN)
            self._opened = None

    def _open(self) -> IO[bytes]:
        if self._close is not None:
            self._close()
        # Unbuffered: what a full disk refused must not be written after all when the file is closed.
        self._opened = _open_in_folder(self.path, "ab+", buffering=0)
        self._close = weakref.finalize(self, self._opened.close)
        return self._opened

    def news(self) -> list[bytes]:
        """The whole lines that were appended since the last look. Only while locked.

        Raises:
            StoreError: what was there at the last look is no longer there.
        """
        file = self._held()
        if os.fstat(file.fileno()).st_size == self._read_to:  # which is always the end of a whole line
            return []
        cut_torn_tail(file)
        if file.seek(0, os.SEEK_END) < self._read_to:
            raise StoreError(self.path, "was cut or replaced while it was in use; put it back and run again")
        file.seek(self._read_to)
        lines = file.read().splitlines()
        self._read_to = file.tell()
        return lines

    def append(self, *lines: str, durable: bool) -> None:
        """Append lines of ASCII text, all of them or none; only while locked, after `news`.

        Args:
            durable: Flush them to the disk, and with them all lines before.
        """
        file = self._held()
        data = "".join(line + "\n" for line in lines).encode("ascii")
        try:
            _write_whole(file, data)
            if durable:
                self._to_disk(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):  # a disk that also refuses this leaves lines that `news` will tell
                file.truncate(self._read_to)
            raise
        self._read_to += len(data)
        if durable:
            self._flushed_to = self._read_to

    def flush(self) -> None:
        """Flush what was appended to the disk, unless that has happened since; needs no lock. Raises `StoreError`."""
        written = self._read_to
        if written <= self._flushed_to:
            return
        with storage(self.path), self.path.open("rb") as file:
            self._to_disk(file.fileno())
        self._flushed_to = max(written, self._flushed_to)

    def _to_disk(self, descriptor: int) -> None:
        os.fsync(descriptor)
        if self._flushed_to == 0:  # it may be a new file
            _flush_folder(self.path.parent)

    def whole_lines(self) -> Iterator[bytes]:
        """All whole lines, one at a time: a run's memory must not grow with what it has booked.

        Changes and locks nothing; a missing file has no lines. Raises `StoreError`.
        """
        with storage(self.path):
            try:
                file = self.path.open("rb")
            except FileNotFoundError:
                return
            with file:
                for line in file:
                    if line.endswith(b"\n"):
                        yield line[:-1]

    def _held(self) -> IO[bytes]:
        if self._file is None:
            raise RuntimeError(f"{self.path} is not locked")
        return self._file
