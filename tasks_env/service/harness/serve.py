"""Serve one submission, each time afresh, in a process that `nursery` forked and `confined` confined.

What is installed is imported once and from its ordinary caches; then, for each line `start NAME` on standard input, a
child is forked that imports the submission and serves it on the socket PRIVATE/NAME/socket, and `end NAME` kills it.
No line of the submission runs before the fork, so each service is a fresh one. EVENTS is the descriptor of a pipe
that is told `NAME CODE` when a service ends by itself; the services do not inherit it.

The submission's own modules are compiled from their source: bytecode that lies about in its tree, or beside it, is
never looked at.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import NoReturn

NOT_COMPILED = 3
"""Exit code where a module does not compile."""
APPLICATION = ("app.main", "app")
TESTS = "tests"
REAP_S = 0.05


def compiled(tree: Path) -> bool:
    """Whether every module but the tests compiles; says which does not."""
    for path in sorted(tree.rglob("*.py")):
        if path.relative_to(tree).parts[0] == TESTS:
            continue
        try:
            compile(path.read_bytes(), str(path.relative_to(tree)), "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            print(f"{path.relative_to(tree)} does not compile: {error}", file=sys.stderr, flush=True)
            return False
    return True


def serve(tree: Path, private: Path) -> int:
    """Import the submission and serve it until killed. Returns the exit code of what cannot be served."""
    fastapi, uvicorn = importlib.import_module("fastapi"), importlib.import_module("uvicorn")
    if not compiled(tree):
        return NOT_COMPILED
    private.mkdir(mode=0o700)
    os.environ.update(HOME=str(private), TMPDIR=str(private))
    sys.pycache_prefix, sys.dont_write_bytecode = str(private / "cache"), True
    sys.argv = ["uvicorn"]
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    module, name = APPLICATION
    application = getattr(importlib.import_module(module), name)
    if not isinstance(application, fastapi.FastAPI):
        print(f"{module}.{name} is no FastAPI application", file=sys.stderr, flush=True)
        return 1
    uvicorn.run(application, uds=str(private / "socket"), log_level="warning", access_log=False)
    return 0


def become_service(tree: Path, private: Path, events: int) -> NoReturn:
    """Serve in this process, which has just been forked, and end with it."""
    os.close(events)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    code = 1
    try:
        code = serve(tree, private)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - whatever a submission raises
        traceback.print_exc(limit=-1)  # the end of it is what is kept
    finally:
        os._exit(code & 0xFF)


def import_what_is_shared() -> None:
    """Import what every service will, some of which framework and server import only once they are used; it stays."""
    gc.disable()
    names = "fastapi", "pydantic", "uvicorn", "fastapi.responses", "fastapi.exceptions", "pydantic.alias_generators"
    fastapi, pydantic, uvicorn, *_ = map(importlib.import_module, names)

    def endpoint(body: object) -> object:
        return body

    endpoint.__annotations__ = dict.fromkeys(("body", "return"), pydantic.create_model("Body", name=(str, ...)))
    application = fastapi.FastAPI()
    application.post("/")(endpoint)
    uvicorn.Config(application, log_level="warning", access_log=False).load()
    gc.freeze()
    gc.enable()


def host(tree: str, private: str, events: int) -> int:
    """Carry out commands until standard input ends."""
    running: dict[int, str] = {}
    while True:
        if select.select([0], [], [], REAP_S)[0]:
            line = _line()
            if not line:
                return 0
            command, _, name = line.partition(" ")
            if command == "start":
                child = os.fork()
                if not child:
                    become_service(Path(tree), Path(private) / name, events)
                running[child] = name
            for child in [pid for pid, other in running.items() if command == "end" and other == name]:
                del running[child]
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        _reap(running, events)


def _line() -> str:
    """One line of standard input, without a buffer that `select` would not see; empty at its end."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return ""
        line += byte
    return line.decode("ascii").strip()


def _reap(running: dict[int, str], events: int) -> None:
    """Take leave of every child that ended, and tell of the services among them."""
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not child:
            return
        if child in running:
            os.write(events, f"{running.pop(child)} {os.waitstatus_to_exitcode(status)}\n".encode("ascii"))
