"""Trees that somebody else wrote: what is read, what is refused and why, and what counts as a change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tasks_env.service.trees import Bounds, Tree, changes, read_tree, remove_tree, tree_hash, write_tree

BOUNDS = Bounds(files=50, file_bytes=1000, total_bytes=5000)
CACHES = ("__pycache__",)


def test_a_tree_is_read_as_it_was_written(tmp_path: Path) -> None:
    files = {"a.txt": b"one", "app/b.py": b"", "app/deep/c.bin": bytes(range(256))}
    write_tree(tmp_path, files)
    assert read_tree(tmp_path, CACHES, BOUNDS) == Tree(files=files)


def test_caches_are_passed_over_wherever_they_are_and_nothing_else_is(tmp_path: Path) -> None:
    write_tree(
        tmp_path, {"app/__pycache__/x.pyc": b"x", "__pycache__/y": b"y", ".hidden/z": b"z", "__pycache__x/w": b"w"}
    )
    assert set(read_tree(tmp_path, CACHES, BOUNDS).files) == {".hidden/z", "__pycache__x/w"}


def test_links_are_named_and_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the answer")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").symlink_to(secret)
    (root / "folder").symlink_to(tmp_path)
    (root / "dangling").symlink_to("nowhere")
    tree = read_tree(root, CACHES, BOUNDS)
    assert tree.files == {}
    assert tree.refused == dict.fromkeys(["dangling", "file", "folder"], "a symbolic link")


def test_folders_count_as_entries(tmp_path: Path) -> None:
    for number in range(51):
        (tmp_path / f"{number:02}").mkdir()
    assert list(read_tree(tmp_path, CACHES, BOUNDS).refused) == ["50"]


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path, {"a/x": b"x", "b/y": b"y"})
    scan = os.scandir

    def scandir(path: str | Path) -> Any:
        if Path(path).name == "a":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr("tasks_env.service.trees.os.scandir", scandir)
    tree = read_tree(tmp_path, CACHES, BOUNDS)
    assert (tree.files, tree.refused) == ({"b/y": b"y"}, {"a": "a folder that cannot be read: Permission denied"})


def test_a_tree_of_any_depth_and_mode_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, {"a/b/c": b"", "locked/d": b""})
    (root / "outside").symlink_to(tmp_path)
    (root / "locked").chmod(0)
    here = os.open(root / "a", os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=here)
        inner = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (tmp_path / "kept").write_text("")
    remove_tree(root)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_cache_that_is_a_link_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").symlink_to("/etc")
    assert list(read_tree(tmp_path, CACHES, BOUNDS).refused) == ["__pycache__"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("big.txt", b"x" * 1001, "larger than 1000 bytes"),
        ("module.pyc", b"", "compiled code, which nobody can review"),
        ("module.SO", b"", "compiled code, which nobody can review"),
        ("line\nbreak", b"", "its name is not printable text"),
        ("n" * 241, b"", "its path is longer than 240 bytes"),
    ],
)
def test_a_file_that_cannot_be_reviewed_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert read_tree(tmp_path, CACHES, BOUNDS).refused == {name: reason}


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))).write_bytes(b"")
    assert list(read_tree(tmp_path, CACHES, BOUNDS).refused.values()) == ["its name is not printable text"]


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_tree(tmp_path, CACHES, BOUNDS).refused == {"pipe": "not a regular file"}


def test_a_file_of_a_gigabyte_costs_no_more_than_a_look(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(10**9)
    assert read_tree(tmp_path, CACHES, BOUNDS).refused == {"huge": "larger than 1000 bytes"}


def test_the_sum_of_sizes_is_bounded(tmp_path: Path) -> None:
    write_tree(tmp_path, {f"{number}.txt": b"x" * 900 for number in range(7)})
    tree = read_tree(tmp_path, CACHES, BOUNDS)
    assert len(tree.files) == 5
    assert set(tree.refused) == {"5.txt", "6.txt"}


def test_the_number_of_entries_is_bounded(tmp_path: Path) -> None:
    write_tree(tmp_path, {f"{number:03}": b"" for number in range(80)})
    tree = read_tree(tmp_path, CACHES, BOUNDS)
    assert len(tree.files) == 50
    assert "more than 50 entries" in tree.refused["050"]


def test_folders_are_bounded_in_depth(tmp_path: Path) -> None:
    write_tree(tmp_path, {"/".join("d" * 30): b"x"})
    [reason] = read_tree(tmp_path, CACHES, BOUNDS).refused.values()
    assert reason == "folders more than 20 deep"


def test_a_missing_root_is_the_callers_problem(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_tree(tmp_path / "none", CACHES, BOUNDS)


def test_the_hash_depends_on_every_path_and_byte() -> None:
    hashes = {tree_hash(each) for each in ({}, {"a": b""}, {"b": b""}, {"a": b"b"}, {"a": b"", "b": b""})}
    assert len(hashes) == 5
    assert tree_hash({"a": b"1", "b": b"2"}) == tree_hash({"b": b"2", "a": b"1"})


def test_changes_are_sorted_by_what_happened() -> None:
    baseline = {"same": b"1", "edited": b"1", "gone": b"1", "linked": b"1"}
    tree = Tree(files={"same": b"1", "edited": b"2", "new": b"1"}, refused={"linked": "a symbolic link", "odd": "odd"})
    found = changes(baseline, tree)
    assert (found.added, found.edited, found.removed) == (["new", "odd"], ["edited", "linked"], ["gone"])
    assert found.all == ["edited", "gone", "linked", "new", "odd"]
