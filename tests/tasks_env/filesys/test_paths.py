"""The rules of paths, against posixpath."""

from __future__ import annotations

import posixpath
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.errors import ToolError
from tasks_env.families.filesys.paths import names_folder, nearest, normal_path, shown
from tasks_env.naming import resolve
from tasks_env.types import Naming


@pytest.mark.parametrize(
    ("given_path", "normal"),
    [
        ("/", ""),
        ("//", ""),
        ("/a", "/a"),
        ("/a/", "/a"),
        ("//a///b.txt", "/a/b.txt"),
        ("/a/./b.txt", "/a/b.txt"),
        ("/a/../b.txt", "/b.txt"),
        ("/a/b/../../c.txt", "/c.txt"),
        ("/A/b.TXT", "/A/b.TXT"),
        ("/a/...", "/a/..."),
        ("/cafe\u0301/x", "/café/x"),
        ("/a b/ c", "/a b/ c"),
    ],
)
def test_paths_are_brought_to_one_form(given_path: str, normal: str) -> None:
    assert normal_path(given_path, "path") == normal


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "absolute"),
        ("a.txt", "absolute"),
        ("./a.txt", "absolute"),
        ("~/a.txt", "absolute"),
        ("/..", "above the root"),
        ("/a/../../b", "above the root"),
        ("/a\x00b", "control characters"),
        ("/a\nb", "control characters"),
        ("/a\u2028b", "control characters"),
        ("/a\\b", "backslashes"),
        ("/\ud800", "surrogates"),
        ("/" + "a" * 300, "at most 240"),
        ("/a" * 17, "at most 16 parts"),
    ],
)
def test_broken_paths_are_refused_with_the_rule_and_the_argument(path: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason) as caught:
        normal_path(path, "source")
    assert caught.value.argument == "source"
    assert len(caught.value.message) < 400
    caught.value.message.encode("utf-8")


@given(st.lists(st.sampled_from(["a", "b.txt", ".", "..", "", "É", "…"]), min_size=1, max_size=12))
def test_normal_form_is_that_of_posixpath_unless_it_leads_above_the_root(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    depth = 0
    escapes = False
    for part in parts:
        depth += {"": 0, ".": 0, "..": -1}.get(part, 1)
        escapes |= depth < 0
    if escapes:
        with pytest.raises(ToolError, match="above the root"):
            normal_path(path, "path")
        return
    wanted = posixpath.normpath("/" + path.lstrip("/"))
    assert normal_path(path, "path") == ("" if wanted == "/" else wanted)


@given(st.text(max_size=40))
def test_any_text_is_either_refused_or_has_a_stable_normal_form(text: str) -> None:
    try:
        normal = normal_path("/" + text, "path")
    except ToolError:
        return
    assert unicodedata.is_normalized("NFC", normal)
    assert not normal.endswith("/")
    assert normal_path(normal or "/", "path") == normal


def test_a_slash_or_dots_at_the_end_mean_a_folder() -> None:
    assert [names_folder(path) for path in ("/a/", "/a/.", "/a/..", "/", "/a", "/a/.b")] == [True] * 4 + [False] * 2


def test_what_an_agent_sent_is_quoted_cut_and_never_resolved() -> None:
    quoted = shown("/{tool:read_file}/{arg:path}" + "x" * 500)
    assert resolve(quoted, Naming(tools={"read_file": "GONE"}, arguments={"path": "GONE"})) == quoted
    assert len(quoted) < 160


def test_the_nearest_path_is_suggested() -> None:
    known = ["/notes/meeting.md", "/config/app.ini"]
    assert nearest("/notes/meetings.md", known) == "; did you mean '/notes/meeting.md'?"
    assert nearest("/conf/App.ini", known) == "; did you mean '/config/app.ini'?"
    assert nearest("/zzz", known) == ""
