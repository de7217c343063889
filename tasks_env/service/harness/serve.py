"""Serve one submission on a Unix socket: `serve.py TREE SOCKET CACHE SITE…`.

What is installed is imported before the submission, and from its ordinary caches. The submission's own modules are
compiled from their source: bytecode that lies about in its tree, or beside it, is never looked at.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

NOT_COMPILED = 3
"""Exit code where a module does not compile."""
APPLICATION = ("app.main", "app")
TESTS = "tests"


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


def main(tree: str, socket: str, cache: str, *sites: str) -> int:
    """Serve until killed. Returns the exit code of what cannot be served."""
    sys.path.extend(sites)
    fastapi = importlib.import_module("fastapi")
    importlib.import_module("fastapi.responses")
    uvicorn = importlib.import_module("uvicorn")
    if not compiled(Path(tree)):
        return NOT_COMPILED
    sys.pycache_prefix, sys.dont_write_bytecode = cache, True
    sys.argv = ["uvicorn"]
    os.chdir(tree)
    sys.path.insert(0, tree)
    module, name = APPLICATION
    application = getattr(importlib.import_module(module), name)
    if not isinstance(application, fastapi.FastAPI):
        print(f"{module}.{name} is no FastAPI application", file=sys.stderr, flush=True)
        return 1
    uvicorn.run(application, uds=socket, log_level="warning", access_log=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
