"""Installed distributions on a folder of their own: what `importlib.metadata` finds there, no installer needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

GROUP = "agent_bench_stability.families"
LEDGER = {"ledger": "tests.tasks_env.stranger:Ledger"}


def install(
    folder: Path,
    points: Mapping[str, str],
    *,
    name: str = "ledger-tasks",
    version: str = "1.2",
    modules: Mapping[str, str] | None = None,
) -> Path:
    """A distribution that registers `points` (family → module:object); `modules` are files that it brings."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{family} = {target}" for family, target in points.items()]
    (metadata / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
    for module, text in (modules or {}).items():
        (folder / f"{module}.py").write_text(text)
    return folder
