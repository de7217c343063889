"""Start a command with as little reach as this machine allows: `confined.py CONFIG`, a JSON object.

    command      what to start
    limits       address_mb, cpu_s, file_mb, processes, open_files
    read         files and folders that may be read and executed
    listed       folders whose entries may be listed, and nothing else of them
    write        folders that may be read and written
    status       descriptor that is told what was achieved, as a JSON object, before the command starts

Everything here is a request to the kernel that may be refused; each refusal is told, none is fatal. On Linux: a user,
network, process, IPC, host-name and mount namespace of its own, every mount read-only but the folders that may be
written (Landlock alone would let it change modes and times of files), Landlock for what may be read, for TCP and for
signals, no new privileges, resource limits. Elsewhere: resource limits.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import resource
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any

NEW_USER, NEW_NET, NEW_PID, NEW_IPC, NEW_UTS = 0x10000000, 0x40000000, 0x20000000, 0x08000000, 0x04000000
NEW_MOUNT = 0x00020000
BIND, RECURSIVE, PRIVATE = 0x1000, 0x4000, 0x40000
MOUNT_SETATTR = 442
AT_FDCWD, AT_RECURSIVE, READ_ONLY = -100, 0x8000, 1
NOBODY = 65534
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""Landlock's system calls, the same numbers on every architecture."""
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Landlock version → all rights about files; from 5 on they stay the same."""
TCP_RIGHTS = 3
SCOPES = 3
"""Abstract Unix sockets and signals, to processes outside."""


def main(config: dict[str, Any], then: Callable[[], int] | None = None) -> int:
    """Start the command, or, with as little reach, `then`. Returns only in a process that waits for a command, with its
    exit code, or once `then` does.
    """
    status = {"network_isolated": False, "processes_isolated": False, "files_isolated": False}
    apart = False
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if libc is not None:
        status["network_isolated"], status["processes_isolated"] = _namespaces(libc)
        apart = status["network_isolated"]
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if status["processes_isolated"]:
            child = os.fork()
            if child:
                os.close(config["status"])
                return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        unwritable = apart and _read_only(libc, config["write"])
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        status["files_isolated"] = _landlock(libc, config) and unwritable
    _limit(config["limits"], apart)
    with os.fdopen(config["status"], "w") as pipe:
        json.dump(status, pipe)
    if then is not None:
        return then()
    return os.execv(config["command"][0], config["command"])


def _namespaces(libc: Any) -> tuple[bool, bool]:
    """Enter new namespaces. Returns whether network and processes are apart."""
    user, group = os.geteuid(), os.getegid()
    for flags in (NEW_NET | NEW_PID | NEW_IPC | NEW_UTS | NEW_MOUNT, NEW_NET | NEW_PID, NEW_NET):
        if libc.unshare(NEW_USER | flags) == 0:
            # Not as root: so the command has no capability, in whatever namespace.
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{NOBODY} {user} 1"),
                ("gid_map", f"{NOBODY} {group} 1"),
            ):
                with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - written in one call
                    file.write(text)
            return bool(flags & NEW_NET), bool(flags & NEW_PID)
    return False, False


def _read_only(libc: Any, writable: list[str]) -> bool:
    """Make every mount read-only but those folders. Returns whether that holds; not in the machine's namespace."""
    if libc.mount(None, b"/", None, ctypes.c_ulong(RECURSIVE | PRIVATE), None) != 0:
        return False
    for path in writable:
        if libc.mount(path.encode(), path.encode(), None, ctypes.c_ulong(BIND), None) != 0:
            return False
    if not _set_read_only(libc, "/", AT_RECURSIVE, True):
        return False
    held = all(_set_read_only(libc, path, 0, False) for path in writable)
    os.chdir(os.getcwd())  # noqa: PTH109 - from the mount below to the one above it
    return held


def _set_read_only(libc: Any, path: str, flags: int, to: bool) -> bool:
    attributes = struct.pack("=4Q", READ_ONLY if to else 0, 0 if to else READ_ONLY, 0, 0)
    arguments = (ctypes.c_uint(flags), attributes, ctypes.c_size_t(len(attributes)))
    return bool(libc.syscall(MOUNT_SETATTR, AT_FDCWD, path.encode(), *arguments) == 0)


def _landlock(libc: Any, config: dict[str, Any]) -> bool:
    """Forbid all files but those of the configuration. Returns whether that holds."""
    libc.syscall.restype = ctypes.c_long
    version = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    handled = FILE_RIGHTS[min(version, 5)]
    words = [handled, TCP_RIGHTS if version >= 4 else 0, SCOPES if version >= 6 else 0]
    count = _words(version)
    attributes = struct.pack(f"={count}Q", *words[:count])
    ruleset = libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    rules = [(path, EXECUTE | READ_FILE | READ_DIR) for path in config["read"]]
    rules += [(path, READ_DIR) for path in config["listed"]]
    rules += [(path, handled & ~EXECUTE) for path in config["write"]]
    rules += [(path, READ_FILE | WRITE_FILE) for path in ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")]
    if not all(_allow(libc, ruleset, path, rights) for path, rights in rules):
        return False
    held = libc.syscall(RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return bool(held)


def _words(version: int) -> int:
    """How many words the attributes of a ruleset have."""
    return 3 if version >= 6 else 2 if version >= 4 else 1


def _allow(libc: Any, ruleset: int, path: str, rights: int) -> bool:
    """Add a rule; a path that does not exist needs none."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        allowed = rights if os.path.isdir(path) else rights & OF_FILES  # noqa: PTH112 - no import for one look
        rule = struct.pack("=Qi", allowed, place)
        return bool(libc.syscall(ADD_RULE, ruleset, 1, rule, 0) == 0)
    finally:
        os.close(place)


def _limit(limits: dict[str, int], apart: bool) -> None:
    """Set resource limits; one that the system does not know, or that is lower already, is left.

    Args:
        apart: Whether there is a user namespace. Only there, and since Linux 5.14, processes are counted by namespace;
            elsewhere a limit would count all that the user runs.
    """
    wanted = {
        "RLIMIT_AS": limits["address_mb"] * 2**20,
        "RLIMIT_CPU": limits["cpu_s"],
        "RLIMIT_FSIZE": limits["file_mb"] * 2**20,
        "RLIMIT_NPROC": limits["processes"],
        "RLIMIT_NOFILE": limits["open_files"],
        "RLIMIT_CORE": 0,
    }
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if not apart or release is None or (int(release[1]), int(release[2])) < (5, 14):
        del wanted["RLIMIT_NPROC"]
    for name, value in wanted.items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        _, hard = resource.getrlimit(number)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(number, (value, value))
        except (OSError, ValueError):
            continue


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
