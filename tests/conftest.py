"""What several test files share: one Prefect server for the whole run, and small studies on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from flows.orchestration import serving

ROOT = Path(__file__).resolve().parent.parent

SMALL_GRID = {
    "models": ["scripted-strong", "scripted-weak"],
    "families": {"tabular": ["easy"], "filesys": ["easy"], "query": ["easy"]},
    "axes": {"tool_names": ["opaque"], "order": ["shuffled"]},
    "instances": 2,
}


@pytest.fixture(scope="session")
def prefect_api_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the one Prefect server that every flow of the test run reports to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PREFECT_API_URL", raising=False)
        with serving(tmp_path_factory.mktemp("prefect")) as server:
            server.wait()
            yield os.environ["PREFECT_API_URL"]


@pytest.fixture
def study_environment(prefect_api_url: str) -> dict[str, str]:
    """The environment of a command in a process of its own that reports to the test run's server."""
    return {**os.environ, "PREFECT_API_URL": prefect_api_url}


def small_manifest(folder: Path, grid: dict[str, Any] | None = None, **sections: dict[str, Any]) -> Path:
    """The shipped manifest with the smoke profile cut to a small grid; `sections` override others of the profile."""
    yaml = YAML()
    document = yaml.load((ROOT / "experiments.yaml").read_text(encoding="utf-8"))
    smoke = document["profiles"]["smoke"]
    smoke["grid"] = {**smoke["grid"], **SMALL_GRID, **(grid or {})}
    smoke["analysis"] = {"resamples": 200}
    for name, values in sections.items():
        smoke[name] = {**smoke.get(name, {}), **values}
    path = folder / "experiments.yaml"
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(document, file)
    (folder / "HYPOTHESES.md").write_text((ROOT / "HYPOTHESES.md").read_text(encoding="utf-8"), encoding="utf-8")
    return path
