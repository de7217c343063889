"""Imports of the environment flow one way, and none leads out of it to the flows or the network."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import tasks_env.errors

ROOT = Path(tasks_env.errors.__file__).parent
LAYERS = (
    {"canonical", "errors", "identity", "seeding", "types"},
    {"naming", "tools"},
    {"families"},
    {"generation", "perturbations"},
    {"session"},
)
"""From the bottom up. An unlisted component, such as the package itself, stands above all of them."""
OUTSIDE = {
    "flows",
    "prefect",
    "httpx",
    "requests",
    "aiohttp",
    "urllib3",
    "socket",
    "ssl",
    "http",
    "ftplib",
    "smtplib",
}
BY_SOCKET_PAIR = {"tasks_env.service.nursery", "tasks_env.service.harness.nursery"}
"""Modules that hand descriptors to a process of their own, for which there is nothing but a pair of sockets."""
SHOWN_BY_FAMILIES = {"tasks_env.families.family"}
"""What a perturbation may know of families: the look-up through which it reads a tool list."""


def modules() -> list[tuple[str, Path]]:
    """Dotted name and file of every module of the package."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = ["tasks_env", *path.relative_to(ROOT).with_suffix("").parts]
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


def imported(name: str, path: Path) -> Iterator[str]:
    """Dotted names that a module imports, wherever in its body; `from a import b` gives `a.b`."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def component(dotted: str) -> str:
    """The part of the package that a dotted name belongs to."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else ""


def layer(dotted: str) -> int:
    part = component(dotted)
    return next((i for i, names in enumerate(LAYERS) if part in names), len(LAYERS))


def test_the_walk_sees_the_package() -> None:
    names = {name for name, _ in modules()}
    assert {f"tasks_env.{part}" for names_in_layer in LAYERS for part in names_in_layer} <= names
    seen = {target for name, path in modules() for target in imported(name, path)}
    assert {"json", "tasks_env.types.Instance", "tasks_env.perturbations.distractors.distractor"} <= seen


def test_nothing_leads_to_the_flows_or_the_network() -> None:
    offences = [
        f"{name} imports {target}"
        for name, path in modules()
        for target in imported(name, path)
        if target.split(".")[0] in OUTSIDE or target.startswith("urllib.request")
        if not (target == "socket" and name in BY_SOCKET_PAIR)
    ]
    assert offences == []


def test_imports_go_down_the_layers_only() -> None:
    offences = [
        f"{name} imports {target}"
        for name, path in modules()
        for target in imported(name, path)
        if target.split(".")[0] == "tasks_env"
        and component(target) != component(name)
        and layer(target) >= layer(name)
        and layer(name) < len(LAYERS)
    ]
    assert offences == []


def test_a_perturbation_reads_tool_lists_and_nothing_else_of_a_family() -> None:
    known = {
        target
        for name, path in modules()
        if component(name) == "perturbations"
        for target in imported(name, path)
        if component(target) == "families" and target.startswith("tasks_env.")
    }
    assert known <= SHOWN_BY_FAMILIES
    readers = {
        (name, node.attr)
        for name, path in modules()
        if component(name) == "perturbations"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "family"
    }
    assert {attribute for _, attribute in readers} == {"tools"}


def test_families_do_not_import_one_another() -> None:
    offences = [
        f"{name} imports {target}"
        for name, path in modules()
        if component(name) == "families" and name.count(".") >= 2
        for target in imported(name, path)
        if target.startswith("tasks_env.families.") and target.split(".")[2] not in {name.split(".")[2], "base"}
    ]
    assert offences == []


def test_a_process_that_uses_the_environment_loads_no_orchestrator_and_no_client() -> None:
    code = "import sys, tasks_env.session; print(sorted({'flows', 'prefect', 'aiohttp'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
