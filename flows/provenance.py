"""Where results come from: the commit, whether what matters differed from it, and the manifest's hashes."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from flows.manifest import Manifest, manifest_hash, scientific_hash

SOURCES = ("flows", "tasks_env", "pyproject.toml", "requirements.lock", "HYPOTHESES.md")
"""What can change a result, beside the manifest."""
CODE = Path(__file__).resolve().parent.parent
_HOOK_VARIABLES = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE")


@dataclass(frozen=True)
class Provenance:
    """What every results row records of its origin."""

    git_sha: str
    """Commit, `-dirty` if sources, manifest, lock or hypotheses differ from it; `unknown` outside a repository."""
    manifest_hash: str
    scientific_hash: str


def provenance(manifest: Manifest, manifest_path: Path) -> Provenance:
    """As of now."""
    return Provenance(
        git_sha=git_sha(manifest_path.resolve()),
        manifest_hash=manifest_hash(manifest),
        scientific_hash=scientific_hash(manifest),
    )


def git_sha(manifest_path: Path, code: Path = CODE) -> str:
    """The commit that the code is at, `-dirty` where what can change a result differs from it.

    Args:
        manifest_path: Absolute. A manifest that the commit does not hold counts as a difference.
        code: The folder that the packages lie in. `unknown` unless its repository tracks them: an installed package
            may lie inside the repository of something else.
    """
    head = _git(code, "rev-parse", "HEAD")
    if head is None or not _git(code, "ls-files", "--", *SOURCES):
        return "unknown"
    tracked = _git(code, "ls-files", "--", str(manifest_path))
    status = _git(code, "status", "--porcelain", "--untracked-files=normal", "--", *SOURCES, str(manifest_path))
    clean = bool(tracked) and status is not None and not status.strip()
    return head.strip() if clean else f"{head.strip()}-dirty"


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints, null if it fails. It takes no lock and heeds no variable that a hook has set."""
    command = ["git", "-C", str(folder), "--no-optional-locks", "--literal-pathspecs", *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES}
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env=environment)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 else None
