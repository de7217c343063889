"""Where the hosts of submissions are forked: `nursery.py LINK SITE…`, with the framework imported once.

LINK is the descriptor of a Unix socket. For each line of JSON on it, which comes with five descriptors, a child is
forked that has nothing of this process but its imports, gives up what `confined` says, and serves one submission as
`serve` does; the answer is a line with the child's id. No line of any submission runs here, and no child's runs in
another's. Once LINK is closed, everything ends.

    confined       configuration of `confined`, without a command
    environment    all of it
    tree, private  of the submission
    descriptors    standard input, output, status of `confined`, events of `serve`, and where its exit code is told
"""

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent))
import confined  # type: ignore[import-not-found]
import serve  # type: ignore[import-not-found]

sys.path.pop(0)
del sys.modules["confined"], sys.modules["serve"]  # a submission may have modules of these names

DESCRIPTORS = 5


def main(link: str, *sites: str) -> int:
    """Fork hosts until nobody asks for more."""
    sys.path.extend(sites)
    serve.import_what_is_shared()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    with socket.socket(fileno=int(link)) as asked:
        while True:
            either: list[Any] = [asked, woken]
            ready, _, _ = select.select(either, [], [])
            if woken in ready:
                os.read(woken, 4096)
                _reap(running)
            if asked in ready:
                request = _request(asked)
                if request is None:
                    break
                child, told = _fork(*request)
                running[child] = told
                asked.sendall(f"{child}\n".encode("ascii"))
    for child in running:
        os.killpg(child, signal.SIGKILL)
    return 0


def _request(asked: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next request with its descriptors; null once the link is closed."""
    size = array.array("i").itemsize
    line, descriptors = b"", array.array("i")
    while not line.endswith(b"\n"):
        data, ancillary, _, _ = asked.recvmsg(65536, socket.CMSG_LEN(DESCRIPTORS * size))
        if not data:
            return None
        for _, _, packed in ancillary:
            descriptors.frombytes(packed[: len(packed) - len(packed) % size])
        line += data
    return json.loads(line), list(descriptors)


def _fork(config: dict[str, Any], descriptors: list[int]) -> tuple[int, int]:
    """The new child, once it leads a session of its own, and the descriptor on which its exit code is to be told."""
    ready, leads = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()
        os.write(leads, b".")
        _become_host(config, descriptors)
    os.close(leads)
    os.read(ready, 1)
    os.close(ready)
    *given, told = descriptors
    for descriptor in given:
        os.close(descriptor)
    return child, told


def _become_host(config: dict[str, Any], descriptors: list[int]) -> NoReturn:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        reading, printing, status, events, _ = descriptors
        for place, descriptor in enumerate((reading, printing, printing)):
            os.dup2(descriptor, place)
        last = 2
        for descriptor in (*sorted((status, events)), os.sysconf("SC_OPEN_MAX")):
            os.closerange(last + 1, descriptor)
            last = descriptor
        os.environ.clear()
        os.environ.update(config["environment"])
        os.chdir(config["private"])
        code = confined.main(
            {**config["confined"], "status": status}, lambda: serve.host(config["tree"], config["private"], events)
        )
    finally:
        os._exit(code & 0xFF)


def _reap(running: dict[int, int]) -> None:
    """Take leave of the children that ended, and tell how."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        told = running.pop(child)
        os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode("ascii"))
        os.close(told)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
