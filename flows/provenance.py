"""Where results come from: the commit, whether what matters differed from it, and the manifest's hashes."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from flows.manifest import Manifest, manifest_hash, scientific_hash

SOURCES = ("flows", "tasks_env", "pyproject.toml", "requirements.lock", "HYPOTHESES.md")


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


def git_sha(manifest_path: Path) -> str:
    """The commit that the code is at, `-dirty` where what can change a result differs from it."""
    code = Path(__file__).resolve().parent.parent
    head = _git(code, "rev-parse", "HEAD")
    if head is None:
        return "unknown"
    status = _git(code, "status", "--porcelain", "--", *SOURCES, str(manifest_path))
    return f"{head.strip()}-dirty" if status is None or status.strip() else head.strip()


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=30, check=False
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 else None
