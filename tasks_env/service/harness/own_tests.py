"""Run the tests that a submission brings along, in its own tree: `own_tests.py TREE CACHE LIST SITE…`.

LIST is a file with a JSON array of their paths. Whatever comes of it is the submission's own word: it is recorded, and
decides nothing.
"""

from __future__ import annotations

import json
import os
import sys


def main(tree: str, cache: str, listed: str, *sites: str) -> int:
    """Returns pytest's exit code."""
    sys.path.extend(sites)
    with open(listed, encoding="utf-8") as file:  # noqa: PTH123 - no import for one file
        files = json.load(file)
    import pytest

    sys.pycache_prefix, sys.dont_write_bytecode = cache, True
    os.chdir(tree)
    sys.path.insert(0, tree)
    return int(pytest.main(["--quiet", "-p", "no:cacheprovider", *files]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
