"""What several test files share: one Prefect server for the whole run, and small studies on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from ruamel.yaml import YAML

from flows.orchestration import serving
from flows.orchestration.server import wait_until_ready
from flows.orchestration.settings import API_URL

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # no test fails because the machine is busy

ROOT = Path(__file__).resolve().parent.parent

SMALL_GRID = {
    "models": ["scripted-strong", "scripted-weak"],
    "families": {"tabular": ["easy"], "filesys": ["easy"], "query": ["easy"]},
    "axes": {"tool_names": ["opaque"], "order": ["shuffled"]},
    "instances": 2,
}


_CONTROLLER = pytest.StashKey[tuple[ExitStack, dict[str, str]]]()
"""On the process that hands tests out: the server's end, and the environment in which it is found."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One worker more than there are cores, since many tests wait: for servers, for processes, for time to pass."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + 1


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """One server for all workers of a parallel run; it makes ready while they collect."""
    stash = node.config.stash
    if _CONTROLLER not in stash:
        ending = ExitStack()
        home = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="agent-bench-prefect-")))
        environ = {name: value for name, value in os.environ.items() if name != API_URL}
        ending.enter_context(serving(home, environ))
        stash[_CONTROLLER] = ending, environ
    _, environ = stash[_CONTROLLER]
    node.workerinput["prefect"] = {name: value for name, value in environ.items() if os.environ.get(name) != value}


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server of a parallel run."""
    ending, _ = config.stash.get(_CONTROLLER, (None, {}))
    if ending is not None:
        ending.close()


@pytest.fixture(scope="session")
def prefect_api_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the one Prefect server that every flow of the test run reports to."""
    with pytest.MonkeyPatch.context() as patch:
        shared = getattr(request.config, "workerinput", {}).get("prefect")
        if shared:
            for name, value in shared.items():
                patch.setenv(name, value)
            wait_until_ready(os.environ[API_URL].removesuffix("/api"))
            yield os.environ[API_URL]
            return
        patch.delenv(API_URL, raising=False)
        with serving(tmp_path_factory.mktemp("prefect")) as server:
            server.wait()
            yield os.environ[API_URL]


@pytest.fixture
def study_environment(prefect_api_url: str) -> dict[str, str]:
    """The environment of a command in a process of its own that reports to the test run's server."""
    return {**os.environ, API_URL: prefect_api_url}


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
