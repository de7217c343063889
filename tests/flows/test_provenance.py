"""The commit that results come from, and when it counts as dirty. Real repositories, no fakes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.manifest import manifest_hash, scientific_hash
from flows.provenance import git_sha, provenance
from tests.flows.small_study import open_study, tree_bytes

GIT = ["git", "-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false"]


def git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run([*GIT, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clean repository with the sources, a manifest and a paper."""
    root = tmp_path / "repository"
    for name in (
        "flows/a.py",
        "tasks_env/b.py",
        "pyproject.toml",
        "requirements.lock",
        "HYPOTHESES.md",
        "experiments.yaml",
        "paper.md",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / ".gitignore").write_text("ignored.yaml\n__pycache__/\n")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "start")
    return root


def sha(root: Path, manifest: str = "experiments.yaml") -> str:
    return git_sha(root / manifest, root)


def test_clean_repository_gives_its_commit(repository: Path) -> None:
    assert sha(repository) == git(repository, "rev-parse", "HEAD")


def edit(name: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_text("changed")


DIRTY: dict[str, Callable[[Path], object]] = {
    "source": edit("flows/a.py"),
    "environment's source": edit("tasks_env/b.py"),
    "new source": edit("flows/new.py"),
    "removed source": lambda root: (root / "tasks_env/b.py").unlink(),
    "staged source": lambda root: (edit("flows/a.py")(root), git(root, "add", "flows/a.py")),
    "manifest": edit("experiments.yaml"),
    "lock": edit("requirements.lock"),
    "project file": edit("pyproject.toml"),
    "hypotheses": edit("HYPOTHESES.md"),
}


@pytest.mark.parametrize("name", DIRTY)
def test_what_can_change_a_result_makes_it_dirty(repository: Path, name: str) -> None:
    DIRTY[name](repository)
    assert sha(repository) == git(repository, "rev-parse", "HEAD") + "-dirty"


@pytest.mark.parametrize("name", ["paper.md", "notes.txt", "results/analysis/table.csv", "flows/__pycache__/a.pyc"])
def test_unrelated_files_do_not(repository: Path, name: str) -> None:
    (repository / name).parent.mkdir(parents=True, exist_ok=True)
    (repository / name).write_text("changed")
    assert sha(repository) == git(repository, "rev-parse", "HEAD")


def test_manifest_that_the_commit_does_not_hold_makes_it_dirty(repository: Path, tmp_path: Path) -> None:
    for path in (repository / "other.yaml", repository / "ignored.yaml", tmp_path / "outside.yaml"):
        path.write_text("a manifest")
        assert git_sha(path, repository).endswith("-dirty"), path.name


def test_code_outside_any_repository_is_unknown(tmp_path: Path) -> None:
    assert git_sha(tmp_path / "experiments.yaml", tmp_path) == "unknown"


def test_package_installed_inside_another_repository_is_unknown(repository: Path) -> None:
    """The commit of whatever lies around an environment says nothing about the code in it."""
    installed = repository / ".venv" / "site-packages"
    (installed / "flows").mkdir(parents=True)
    (installed / "flows" / "a.py").write_text("")
    (repository / ".gitignore").write_text(".venv/\n")
    assert git_sha(repository / "experiments.yaml", installed) == "unknown"


def test_repository_without_a_commit_is_unknown(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert sha(tmp_path) == "unknown"


def test_without_git_it_is_unknown(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert sha(repository) == "unknown"


def test_variables_of_a_hook_do_not_mislead(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    expected = sha(repository)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert sha(repository) == expected


def test_looking_writes_nothing(repository: Path) -> None:
    os.utime(repository / "flows" / "a.py", (1, 1))  # a stale index entry, which plain `git status` would refresh
    before = tree_bytes(repository)
    sha(repository)
    assert tree_bytes(repository) == before


def test_manifest_name_is_taken_literally(repository: Path) -> None:
    (repository / "*.yaml").write_text("")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "odd name")
    (repository / "unrelated.yaml").write_text("")
    assert sha(repository, "*.yaml") == git(repository, "rev-parse", "HEAD")


def test_provenance_has_both_hashes(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    found = provenance(study.manifest, study.manifest_path)
    assert found.manifest_hash == manifest_hash(study.manifest)
    assert found.scientific_hash == scientific_hash(study.manifest)
    assert found == study.provenance
