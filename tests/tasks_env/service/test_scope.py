"""Which changes belong to the task."""

from __future__ import annotations

import pytest

from tasks_env.service.scope import lies_in, unrelated
from tasks_env.service.trees import Tree, changes

BASELINE = {"app/orders/a.py": b"1", "app/main.py": b"1", "tests/test_a.py": b"1", ".gitignore": b"*.log"}


def judged(
    files: dict[str, bytes], refused: dict[str, str] | None = None, scratch_counts: bool = True
) -> dict[str, str]:
    tree = Tree(files=files, refused=refused or {})
    return unrelated(
        changes(BASELINE, tree), tree, production=["app/orders/"], tests=["tests/"], scratch_counts=scratch_counts
    )


@pytest.mark.parametrize(
    ("path", "places", "inside"),
    [
        ("app/orders/a.py", ["app/orders/"], True),
        ("app/orders", ["app/orders/"], False),
        ("app/orders_extra/a.py", ["app/orders/"], False),
        ("pyproject.toml", ["pyproject.toml"], True),
        ("pyproject.toml.bak", ["pyproject.toml"], False),
    ],
)
def test_a_place_is_a_folder_or_one_file(path: str, places: list[str], inside: bool) -> None:
    assert lies_in(path, places) is inside


def test_what_was_asked_for_may_be_added_edited_and_removed() -> None:
    assert judged({**BASELINE, "app/orders/a.py": b"2", "app/orders/new.py": b"", "tests/test_b.py": b""}) == {}
    assert judged({path: content for path, content in BASELINE.items() if path != "app/orders/a.py"}) == {}


def test_a_test_of_the_baseline_may_be_edited_but_not_removed() -> None:
    assert judged({**BASELINE, "tests/test_a.py": b"2"}) == {}
    without = {path: content for path, content in BASELINE.items() if path != "tests/test_a.py"}
    assert judged(without) == {"tests/test_a.py": "a test of the baseline, removed"}


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("app/main.py", b"2", "edited"),
        (".gitignore", b"*.log\n*.sh", "edited"),
        ("run_tests.sh", b"", "added"),
        ("debug.log", b"", "added"),
        (".git/config", b"", "added"),
    ],
)
def test_everything_else_counts_whatever_gitignore_says(path: str, content: bytes, reason: str) -> None:
    assert judged({**BASELINE, path: content}) == {path: reason}


def test_scratch_files_can_be_let_pass_by_the_contract() -> None:
    assert judged({**BASELINE, "run_tests.sh": b""}, scratch_counts=False) == {}
    assert judged({**BASELINE, "app/main.py": b"2"}, scratch_counts=False) == {"app/main.py": "edited"}


def test_what_cannot_be_read_is_unrelated_even_where_changes_are_asked_for() -> None:
    found = judged(BASELINE, refused={"app/orders/link": "a symbolic link"}, scratch_counts=False)
    assert found == {"app/orders/link": "a symbolic link; not part of a reviewable change"}
