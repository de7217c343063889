"""New dependencies, wherever they are brought in: declared, imported without being declared, or copied into the tree.

Names are compared, not versions: a pin of what is there already is a change of a file, and judged as such.
"""

from __future__ import annotations

import ast
import configparser
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from tasks_env.service.trees import Files, Tree

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_MANIFESTS = (
    re.compile(r"requirements[^/]*\.(txt|in)|constraints[^/]*\.txt"),
    re.compile(r"pyproject\.toml|setup\.(cfg|py)|Pipfile(\.lock)?|environment\.ya?ml|conda[^/]*\.ya?ml"),
    re.compile(r"(poetry|uv|pdm|pylock[^/]*)\.(lock|toml)|tox\.ini|noxfile\.py|package(-lock)?\.json|Dockerfile[^/]*"),
)
_VENDORED_FOLDER = re.compile(
    r"_?vendor(ed)?|third[_-]?party|site-packages|dist-packages|node_modules|wheels?|.*\.(dist-info|egg-info|egg)"
)
_ARCHIVE = re.compile(r".*\.(whl|egg|zip|pyz|tar|tgz|gz|bz2|xz|7z)")
_COMMENT = re.compile(r"(^|\s)#.*")
LONGEST_CHAIN = 100
"""Names joined by dots. Parsers of Python and TOML take time and memory that grow with the square of them."""


def new_dependencies(
    baseline: Files, tree: Tree, *, manifests: Sequence[str], importable: Sequence[str], own: Sequence[str]
) -> list[str]:
    """One line for each dependency that the baseline does not have; empty if there is none.

    Args:
        manifests: The files in which the baseline declares dependencies.
        importable: Modules of the declared dependencies, and of what they always bring along.
        own: Top-level modules of the service.
    """
    return [
        *_declared(baseline, tree, manifests),
        *_in_other_manifests(baseline, tree, manifests),
        *_imported(baseline, tree, {*importable, *own}),
        *_vendored(baseline, tree, own),
    ]


def declared_names(path: str, content: bytes) -> set[str] | None:
    """The distributions that a manifest names, in normal form; null if it cannot be read."""
    name, text = PurePosixPath(path).name, content.decode("utf-8", "replace")
    reader = next((read for ending, read in _READERS if name.endswith(ending)), None)
    if reader is None or any(line.count(".") > LONGEST_CHAIN for line in text.splitlines()):
        return None
    try:
        return {re.sub(r"[-_.]+", "-", each).lower() for each in reader(text)}
    except (ValueError, TypeError, AttributeError, configparser.Error, RecursionError):
        return None


def _declared(baseline: Files, tree: Tree, manifests: Sequence[str]) -> Iterator[str]:
    for path in manifests:
        content = tree.files.get(path)
        if content is not None and content != baseline.get(path):
            yield from _added(baseline, path, content, "changed so that its dependencies cannot be read")


def _in_other_manifests(baseline: Files, tree: Tree, manifests: Sequence[str]) -> Iterator[str]:
    """Manifests that the baseline does not have, or had for something else."""
    for path, content in sorted(tree.files.items()):
        if path in manifests or content == baseline.get(path):
            continue
        if any(pattern.fullmatch(PurePosixPath(path).name) for pattern in _MANIFESTS):
            yield from _added(baseline, path, content, "another place to declare dependencies")


def _added(baseline: Files, path: str, content: bytes, unreadable: str) -> Iterator[str]:
    """The names that a manifest declares now and did not before, or `unreadable` where that cannot be said."""
    before = declared_names(path, baseline[path]) if path in baseline else set()
    after = declared_names(path, content)
    if after is None or before is None:
        yield f"{path}: {unreadable}"
    else:
        yield from (f"{path}: {name}" for name in sorted(after - before))


def _imported(baseline: Files, tree: Tree, known: set[str]) -> Iterator[str]:
    told = set()
    for path, content in sorted(tree.files.items()):
        if not path.endswith(".py") or content == baseline.get(path):
            continue
        if _has_long_chain(content.decode("utf-8", "replace")):
            yield f"{path}: more than {LONGEST_CHAIN} names joined by dots, so its imports cannot be read"
            continue
        for module in sorted(_top_level_imports(content)):
            if module not in known and module not in sys.stdlib_module_names and module not in told:
                told.add(module)
                yield f"{path}: imports {module}, which nothing declares"


def _has_long_chain(text: str) -> bool:
    """Whether more than `LONGEST_CHAIN` names stand one after the other with nothing but dots and space between."""
    names = 0
    for part in text.split("."):
        names = names + 1 if part.strip(" \t\f\r\n\\").isidentifier() else 0
        if names > LONGEST_CHAIN:
            return True
    return False


def _top_level_imports(content: bytes) -> set[str]:
    """Top-level modules that a source imports, by statement or by a literal name; none if it does not compile."""
    try:
        nodes = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call) and node.args and _called(node.func) in ("import_module", "__import__"):
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                found.add(argument.value.split(".")[0])
    return found - {""}


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _vendored(baseline: Files, tree: Tree, own: Sequence[str]) -> Iterator[str]:
    packages = {path.split("/")[0] for path in tree.paths if path.count("/") == 1 and path.endswith("/__init__.py")}
    for package in sorted(packages - {*own}):
        yield f"{package}/: a package that does not belong to the service"
    told = set()
    for path in sorted(tree.paths - set(baseline)):
        parts = PurePosixPath(path).parts
        folder = next((part for part in parts[:-1] if _VENDORED_FOLDER.fullmatch(part.lower())), None)
        if folder is not None and folder not in told:
            told.add(folder)
            yield f"{path}: in {folder}/, a place for copies of other projects"
        elif _ARCHIVE.fullmatch(parts[-1].lower()):
            yield f"{path}: an archive"


def _requirements(text: str) -> Iterator[str]:
    for line in text.splitlines():
        stripped = _COMMENT.sub("", line).strip()
        if stripped.startswith("-"):
            if not stripped.startswith(("-c", "--hash", "--index-url", "-i ")):
                yield stripped.split()[-1]
        elif stripped:
            yield from _leading(stripped)


def _leading(requirement: str) -> Iterator[str]:
    match = _NAME.match(requirement)
    if match is None:
        raise ValueError(f"{requirement!r} is no requirement")
    yield match[1]


def _pyproject(text: str) -> Iterator[str]:
    document = tomllib.loads(text)
    project = document.get("project", {})
    lists = [project.get("dependencies", []), document.get("build-system", {}).get("requires", [])]
    lists += list(project.get("optional-dependencies", {}).values())
    lists += list(document.get("dependency-groups", {}).values())
    tools = document.get("tool", {})
    lists += list(tools.get("pdm", {}).get("dev-dependencies", {}).values())
    lists.append(tools.get("uv", {}).get("dev-dependencies", []))
    for requirements in lists:
        for requirement in requirements:
            if isinstance(requirement, str):
                yield from _leading(requirement)
    poetry = tools.get("poetry", {})
    tables: list[dict[str, Any]] = [poetry.get("dependencies", {}), poetry.get("dev-dependencies", {})]
    tables += [group.get("dependencies", {}) for group in poetry.get("group", {}).values()]
    for table in tables:
        yield from (name for name in table if name != "python")


def _setup_cfg(text: str) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    listed = [
        parser.get("options", key, fallback="") for key in ("install_requires", "setup_requires", "tests_require")
    ]
    if parser.has_section("options.extras_require"):
        listed += [value for _, value in parser.items("options.extras_require")]
    for lines in listed:
        for line in re.split(r"[\n;]", lines):
            if line.strip():
                yield from _leading(line)


_READERS: tuple[tuple[str, Callable[[str], Iterator[str]]], ...] = (
    ("pyproject.toml", _pyproject),
    ("setup.cfg", _setup_cfg),
    (".txt", _requirements),
    (".in", _requirements),
)
