"""A transcript as a page: everything that happened, and nothing that it says can pose as the page itself."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from flows.context import Study
from flows.errors import ConfigurationError, StoreError, StudyError
from flows.grid import Episode
from flows.pages.markdown import episode_markdown
from flows.view import view_text
from tasks_env import family
from tests.flows.small_study import open_study, prepare, reopened, run_episodes, tree_bytes

HOSTILE = (
    "```\n# Verdict: passed\n````\n<script>alert(1)</script> [x](javascript:alert(1)) `code` ~~~\n"
    "\x00 \x1b[31m \ud800 \u202egnp.exe \u05e9\u05dc\u05d5\u05dd \r\n- [x] condition | a | b |"
)
"""Fences, headings, HTML, links, NUL, an escape sequence, a lone surrogate, right-to-left text and its override."""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The small study, run."""
    opened = open_study(tmp_path_factory.mktemp("study"))
    prepare(opened)
    run_episodes(opened)
    return opened


def first(study: Study) -> Episode:
    return study.episodes("steady", study.cells[0])[0]


def events_of(study: Study) -> list[dict[str, Any]]:
    return [json.loads(line) for line in study.transcript(first(study)).read_bytes().splitlines()]


def page(study: Study, events: list[dict[str, Any]]) -> str:
    episode = first(study)
    return episode_markdown(events, study.instances(episode.cell)[episode.instance_id], study.transcript(episode))


def tokens(text: str) -> list[Token]:
    """The page as CommonMark reads it, inline tokens included."""
    found: list[Token] = []
    for token in MarkdownIt("commonmark").parse(text):
        found += [token, *(token.children or [])]
    return found


def headings(text: str) -> list[str]:
    parsed = MarkdownIt("commonmark").parse(text)
    return [after.content for token, after in pairwise(parsed) if token.type == "heading_open"]


def test_page_holds_the_whole_conversation_and_the_verdict(study: Study) -> None:
    text = view_text(study, first(study).episode_id)
    events = events_of(study)
    assert headings(text)[:4] == [f"Episode {first(study).episode_id}", "Tools", "System", "User"]
    steps = [event for event in events if event["event"] == "answer"]
    assert [title for title in headings(text) if title.startswith("Step")] == [
        f"Step {event['step']} ({event['stop']}; {event['usage']['input_total']} in, "
        f"{event['usage']['output_total']} out)"
        for event in steps
    ]
    blocks = [token.content.rstrip("\n") for token in tokens(text) if token.type == "fence"]
    for event in steps:
        for call in event["calls"]:
            assert call["raw_arguments"] in blocks
    for event in events:
        if event["event"] == "result":
            assert event["content"].rstrip("\n") in blocks
    assert f"outcome: **{events[-1]['outcome']}**" in text
    assert headings(text)[-1].startswith("Verdict: ")


def test_verdict_on_the_page_is_the_verdict_of_the_calls(study: Study) -> None:
    shown = set()
    for model, cell in study.work:
        for episode in study.episodes(model, cell):
            text = view_text(study, episode.episode_id)
            shown.add(headings(text)[-1].split(",")[0])
    assert shown == {"Verdict: passed", "Verdict: failed"}


def with_hostile_text(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for event in events:
        if event["event"] == "answer":
            event["text"] = HOSTILE
            for call in event["calls"]:
                call.update(name=HOSTILE, raw_arguments=HOSTILE, problem=HOSTILE)
        elif event["event"] == "result":
            event.update(name=HOSTILE, content=HOSTILE)
        elif event["event"] == "request":
            for message in event["added"]:
                if message["role"] == "user":
                    message["text"] = HOSTILE
    attempt = {"event": "attempt", "step": 1, "attempt": 1, "latency_s": 0.1, "error": "http_500", "status": 500}
    attempt |= {"detail": HOSTILE, "raw": HOSTILE, "wait_s": 1.0, "cost_usd": 0.0}
    events.insert(3, attempt)
    events[-1]["detail"] = HOSTILE
    events[-1]["final_state"]["data"]["note"] = HOSTILE
    return events


def test_hostile_text_stays_inside_code(study: Study) -> None:
    plain = page(study, events_of(study))
    text = page(study, with_hostile_text(events_of(study)))
    assert headings(text) == headings(plain), "no heading of its own"
    kinds = {token.type for token in tokens(text)}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "hr", "blockquote_open"}
    outside = "".join(token.content for token in tokens(text) if token.type == "text")
    for part in ("<script", "javascript", "condition |", "gnp"):
        assert part not in outside
        assert part in text


def test_hostile_text_is_printable_everywhere(study: Study) -> None:
    text = page(study, with_hostile_text(events_of(study)))
    assert all(character == "\n" or character.isprintable() for character in text)
    text.encode("utf-8")
    for escape in (r"\x00", r"\x1b", r"\ud800", r"\u202e", r"\r"):
        assert escape in text
    assert "\u05e9\u05dc\u05d5\u05dd" in text, "right-to-left letters are shown as they are"


@pytest.mark.parametrize("name", ["", "`", "``", "a`", " ", "`a"])
def test_odd_tool_names_are_code_spans(study: Study, name: str) -> None:
    events = events_of(study)
    for event in events:
        if event["event"] == "result":
            event["name"] = name
    spans = {token.content for token in tokens(page(study, events)) if token.type == "code_inline"}
    assert name.strip() in {span.strip() for span in spans}


def test_long_text_is_cut_and_says_so(study: Study) -> None:
    events = events_of(study)
    for event in events:
        if event["event"] == "answer":
            event["text"] = "y" * 5000
    text = page(study, events)
    assert "y" * 4000 + "\n… 1000 more characters" in text
    assert "y" * 4001 not in text


def test_infra_error_has_no_verdict(study: Study) -> None:
    events = events_of(study)
    events[-1].update(outcome="infra_error", kind="timeout", detail="no answer", cost_usd=None)
    text = page(study, events)
    assert "outcome: **infra_error** (timeout)" in text
    assert text.endswith("none: an infra_error belongs to no pass rate")


def test_broken_verifier_is_shown_not_raised(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(*_arguments: object) -> None:
        raise ZeroDivisionError("`a defect`")

    monkeypatch.setattr(type(family("query")), "verify", verify)
    assert page(study, events_of(study)).endswith("none: the verifier failed: `` ZeroDivisionError: `a defect` ``")


def test_beginning_of_an_id_suffices(study: Study) -> None:
    episode = first(study)
    assert view_text(study, episode.episode_id[:12]) == view_text(study, episode.episode_id)


def test_unknown_id_is_refused(study: Study) -> None:
    with pytest.raises(ConfigurationError, match="no finished episode of this selection whose id begins with 'zz'"):
        view_text(study, "zz")


def test_ambiguous_id_is_refused(study: Study) -> None:
    with pytest.raises(ConfigurationError, match="14 episodes of this selection whose id begins with ''"):
        view_text(study, "")


def test_selection_narrows_the_ids(study: Study) -> None:
    one = reopened(study, cell="query-easy-order-shuffled")
    with pytest.raises(ConfigurationError, match="no finished episode"):
        view_text(one, first(study).episode_id)


def test_without_an_id_the_finished_episodes_are_listed(study: Study) -> None:
    lines = view_text(study, None).splitlines()
    assert lines[0] == "14 finished episodes; `agent-bench view ID` shows one"
    assert len(lines) == 15
    assert any(
        first(study).episode_id in line
        and "steady" in line
        and "run 1" in line
        and events_of(study)[-1]["outcome"] in line
        for line in lines
    )


def test_long_lists_are_cut_and_say_so(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.view.LISTED", 3)
    lines = view_text(study, None).splitlines()
    assert len(lines) == 5
    assert lines[-1] == "  … and 11 more; narrow with --model and --cell"


def test_nothing_run_yet_says_what_to_run(tmp_path: Path) -> None:
    opened = open_study(tmp_path)
    for prepared in (False, True):
        if prepared:
            prepare(opened)
        with pytest.raises(StudyError, match="no finished episode of this selection; run `agent-bench run` first"):
            view_text(opened, None)


def test_transcript_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    opened = open_study(tmp_path)
    prepare(opened)
    path = opened.transcript(first(opened))
    path.parent.mkdir(parents=True)
    data = b'{"event":"episode"}\n'
    path.write_bytes(data)
    opened.store.mark_complete(path, {"sha256": hashlib.sha256(data).hexdigest(), "outcome": "completed", "attempt": 1})
    with pytest.raises(StoreError, match="no beginning or no end"):
        view_text(opened, first(opened).episode_id)


def test_viewing_writes_nothing(study: Study) -> None:
    before = tree_bytes(study.store.root)
    view_text(study, first(study).episode_id)
    assert tree_bytes(study.store.root) == before
