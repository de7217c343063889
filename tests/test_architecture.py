"""Imports of the study flow one way, Prefect stays in the verbs, HTTP in the models, writing in the store."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import flows

ROOT = Path(flows.__file__).parent
LAYERS = (
    {"errors", "outcomes", "owners", "results", "console", "files", "orchestration", "turns"},
    {"manifest"},
    {"grid", "provenance", "models", "local_model", "store"},
    {"sets", "results_file", "stats"},
    {"context", "preregistration", "episodes", "report"},
    {"analysis", "bookkeeping", "calibration", "campaign", "campaign_summary", "continuity"},
    {"importers", "plan", "power", "readiness", "scoring", "status", "verify", "watching"},
    {"pages"},
    {"view", "replay", "local_study", "service"},
    {"generate", "perturb", "run", "score", "analyze"},
    {"study"},
    {"cli"},
)
"""From the bottom up; a component imports from its own layer or below. Verbs stand above nouns."""
VERBS = {"generate", "perturb", "run", "score", "analyze", "study"}
LAZILY_UPWARD = {("flows.study", "flows.cli.main"), ("flows.analyze", "flows.cli.main")}
"""`python -m flows.study` is the command line's `study`, and `python -m flows.analyze` its `analyze`."""


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(ROOT.rglob("*.py")):
        parts = ["flows", *path.relative_to(ROOT).with_suffix("").parts]
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(dotted: str) -> int:
    component = dotted.split(".")[1]
    return next(number for number, names in enumerate(LAYERS) if component in names)


def test_every_component_has_a_layer() -> None:
    listed = {name for names in LAYERS for name in names}
    found = {name.split(".")[1] for name, _ in modules() if name != "flows"}
    assert found == listed


def test_imports_flow_one_way() -> None:
    upward = [
        (name, target)
        for name, path in modules()
        if name != "flows"
        for target in imported(path)
        if target.startswith("flows.") and layer(target) > layer(name)
    ]
    assert set(upward) == LAZILY_UPWARD


def test_only_verbs_and_their_orchestration_import_prefect() -> None:
    users = {name.split(".")[1] for name, path in modules() if any(t.startswith("prefect") for t in imported(path))}
    assert users == VERBS | {"orchestration"}


def test_only_models_import_an_http_client() -> None:
    users = {name.split(".")[1] for name, path in modules() if any(t.startswith("aiohttp") for t in imported(path))}
    assert users == {"models"}


def test_only_one_module_opens_files_for_writing() -> None:
    """The local model's server log is the one file outside a study's tree."""
    writers = set()
    for name, path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            modes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            writes = node.func.attr == "open" and any(set(mode) & set("wax+") for mode in modes if len(mode) < 4)
            if writes or node.func.attr in {"write_text", "write_bytes"}:
                writers.add(name.split(".")[1])
    assert writers == {"files", "local_model"}
