"""New dependencies: declared, imported, or copied into the tree."""

from __future__ import annotations

import pytest

from tasks_env.service.dependencies import declared_names, new_dependencies
from tasks_env.service.trees import Tree

MANIFEST = b'[project]\nname = "x"\ndependencies = ["fastapi", "Pydantic_Core>=2"]\n'
BASELINE = {"pyproject.toml": MANIFEST, "app/__init__.py": b"", "app/main.py": b"import fastapi\n", "tests/t.py": b""}


def found(changed: dict[str, bytes]) -> list[str]:
    return new_dependencies(
        BASELINE,
        Tree(files={**BASELINE, **changed}),
        manifests=["pyproject.toml"],
        importable=["fastapi", "pytest"],
        own=["app", "tests"],
    )


def test_the_baseline_has_none() -> None:
    assert found({}) == []


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("app/main.py", b"import " + b".".join([b"a"] * 60_000), "more than 100 names joined by dots"),
        ("app/main.py", b"import " + b".\\\n".join([b"a"] * 60_000), "more than 100 names joined by dots"),
        ("pyproject.toml", b".".join([b"a"] * 60_000) + b" = 1", "cannot be read"),
        ("pyproject.toml", b'"a b" .' * 30_000 + b"c = 1", "cannot be read"),
    ],
)
def test_what_would_take_a_parser_gigabytes_is_not_parsed(path: str, content: bytes, said: str) -> None:
    [line] = found({path: content})
    assert said in line


@pytest.mark.parametrize(
    "manifest",
    [
        b'[project]\ndependencies = ["fastapi", "pydantic-core", "requests>=2; python_version > \'3\'"]\n',
        b'[project]\ndependencies = ["fastapi"]\n[project.optional-dependencies]\nx = ["Requests [socks]"]\n',
        b'[project]\ndependencies = ["fastapi"]\n[dependency-groups]\ndev = ["requests"]\n',
        b'[project]\ndependencies = ["fastapi"]\n[build-system]\nrequires = ["requests"]\n',
        b'[tool.poetry.dependencies]\npython = "^3.11"\nrequests = "*"\n',
        b'[tool.poetry.group.dev.dependencies]\nrequests = {version = "*"}\n',
        b'[tool.uv]\ndev-dependencies = ["requests"]\n',
    ],
)
def test_a_name_that_was_not_declared_is_one(manifest: bytes) -> None:
    assert found({"pyproject.toml": manifest}) == ["pyproject.toml: requests"]


def test_another_version_or_spelling_of_a_known_name_is_none() -> None:
    assert found({"pyproject.toml": b'[project]\ndependencies = ["FastAPI==0.115", "pydantic.core"]\n'}) == []


@pytest.mark.parametrize(
    "manifest", [b"[project\n", b'[project]\ndependencies = "x"\nname = [1', b"[project]\ndependencies = [[1]"]
)
def test_a_manifest_that_can_no_longer_be_read_counts_as_one(manifest: bytes) -> None:
    assert found({"pyproject.toml": manifest}) == ["pyproject.toml: changed so that its dependencies cannot be read"]


@pytest.mark.parametrize(
    ("path", "content", "line"),
    [
        ("requirements.txt", b"requests==2\n# comment\n", "requirements.txt: requests"),
        ("requirements-dev.txt", b"-r other.txt\n", "requirements-dev.txt: other-txt"),
        ("sub/requirements.in", b"requests\n", "sub/requirements.in: requests"),
        ("setup.cfg", b"[options]\ninstall_requires =\n  requests\n", "setup.cfg: requests"),
        ("Pipfile", b"[packages]\n", "Pipfile: another place to declare dependencies"),
        ("environment.yml", b"", "environment.yml: another place to declare dependencies"),
        ("uv.lock", b"", "uv.lock: another place to declare dependencies"),
        ("package.json", b"{}", "package.json: another place to declare dependencies"),
    ],
)
def test_other_manifests_are_looked_at_too(path: str, content: bytes, line: str) -> None:
    assert found({path: content}) == [line]


@pytest.mark.parametrize(
    "source",
    [
        b"import requests\n",
        b"from requests.adapters import X\n",
        b"def late():\n    import requests as r\n",
        b"try:\n    import requests\nexcept ImportError:\n    requests = None\n",
        b"import importlib\nimportlib.import_module('requests.api')\n",
        b"x = __import__('requests')\n",
    ],
)
def test_an_import_that_nothing_declares_is_one(source: bytes) -> None:
    assert found({"app/new.py": source}) == ["app/new.py: imports requests, which nothing declares"]


@pytest.mark.parametrize(
    "source",
    [
        b"import fastapi.responses, json, app.main\n",
        b"from . import x\nfrom .y import z\n",
        b"import __future__\n",
        b"import (",
    ],
)
def test_declared_standard_own_and_relative_imports_are_none(source: bytes) -> None:
    assert found({"app/new.py": source}) == []


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("requests/__init__.py", "does not belong to the service"),
        ("app/_vendor/requests/__init__.py", "a place for copies"),
        ("third_party/x.py", "a place for copies"),
        ("app/x.dist-info/METADATA", "a place for copies"),
        ("wheels/x.whl", "a place for copies"),
        ("tests/data.zip", "an archive"),
    ],
)
def test_a_copy_of_somebody_elses_code_is_one(path: str, word: str) -> None:
    [line] = found({path: b""})
    assert word in line


def test_a_new_module_of_a_feature_and_a_scratch_script_are_none() -> None:
    assert found({"app/orders/rules.py": b"", "app/rules/__init__.py": b"", "run_tests.py": b"import app\n"}) == []


def test_a_file_that_is_no_manifest_has_no_names() -> None:
    assert declared_names("README.md", b"requests") is None
    assert declared_names("requirements.txt", b"??") is None
