"""Episodes as HTML: one file, no script, no request, and nothing that was said in an episode is markup on the page."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from flows.context import Study
from flows.pages.html import episode_html
from flows.pages.markdown import episode_markdown
from flows.pages.seen import look
from flows.view import audit_text, view_html
from tests.browser import CHROMIUM, chromium
from tests.flows.small_study import open_study, prepare, run_episodes, score, tree_bytes
from tests.flows.test_view import HOSTILE, events_of, first, with_hostile_text

MARKUP = "\"><img src=x onerror=alert(1)></pre></section><script>alert(1)</script>&amp;' style=x "


class Reader(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[tuple[str, str]] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {(tag, name) for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The small study, run."""
    opened = open_study(tmp_path_factory.mktemp("study"))
    prepare(opened)
    run_episodes(opened)
    return opened


def page(study: Study, events: list[dict[str, Any]]) -> str:
    episode = first(study)
    return episode_html(look(events, study.instances(episode.cell)[episode.instance_id], study.transcript(episode)))


def test_page_shows_task_calls_results_usage_verdict_and_difference(study: Study) -> None:
    read = Reader(view_html(study, first(study).episode_id))
    assert read.open == []
    events = events_of(study)
    for event in events:
        if event["event"] == "result":
            assert event["content"] in read.text
        if event["event"] == "answer":
            assert all(call["raw_arguments"] in read.text for call in event["calls"])
    task = next(m for e in events if e["event"] == "request" for m in e["added"] if m["role"] == "user")
    assert task["text"] in read.text
    for part in ("Verdict: failed", "answer_submitted", "Expected and produced", "Usage and attempts", "answered"):
        assert part in read.text
    truth = study.instances(first(study).cell)[first(study).instance_id].truth["answer"]
    assert f"-\xa0{truth}" in read.text
    assert f"tokens in {events[-1]['tokens_in']} " in read.text


def test_page_asks_for_nothing_and_runs_nothing(study: Study) -> None:
    text = view_html(study, None) + audit_text(study, 5, None, html=True)
    read = Reader(text)
    assert not set(read.tags) & {"script", "link", "img", "iframe", "object", "form", "base", "svg"}
    assert {name for _, name in read.attributes} <= {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
    } | {
        "href",
        "dir",
    }
    assert set(re.findall(r'href="(.)', text)) == {"#"}
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text


def test_hostile_text_is_no_markup_and_is_seen(study: Study) -> None:
    plain = Reader(page(study, with_hostile_text(events_of(study))))
    events = json.loads(json.dumps(with_hostile_text(events_of(study))).replace(json.dumps(HOSTILE)[1:-1], "HERE"))
    events = json.loads(json.dumps(events).replace("HERE", json.dumps(MARKUP + HOSTILE)[1:-1]))
    text = page(study, events)
    read = Reader(text)
    assert read.tags == plain.tags
    assert read.open == []
    assert MARKUP in read.text
    assert text.isascii()
    assert all(character == "\n" or character.isprintable() for character in text if character != "\t")
    for escape in (r"\x00", r"\x1b", r"\ud800", r"\u202e"):
        assert escape in read.text
    assert "\u05e9\u05dc\u05d5\u05dd" in read.text, "right-to-left letters are shown as they are"


def test_megabyte_results_are_cut_and_say_so(study: Study) -> None:
    events = events_of(study)
    for event in events:
        if event["event"] == "result":
            event["content"] = "<" * 3_000_000
    text = page(study, events)
    assert len(text) < 300_000
    assert "2996000 more characters" in text


def test_failed_attempts_show_with_status_wait_and_unknown_cost(study: Study) -> None:
    events = events_of(study)
    failed = {"event": "attempt", "step": 1, "attempt": 1, "latency_s": 0.5, "error": "http_503", "status": 503}
    events.insert(3, {**failed, "detail": "down", "raw": None, "wait_s": None, "cost_usd": None})
    events.insert(3, {**failed, "detail": "down", "raw": None, "wait_s": 2.5, "cost_usd": 0.0})
    text = Reader(page(study, events)).text
    assert "http_503 down" in text
    assert "next attempt after 2.5 s" in text
    assert "no further attempt" in text
    assert "unknown" in text


def test_states_that_cannot_be_compared_are_told_not_raised(study: Study) -> None:
    events = events_of(study)
    events[-1]["final_state"]["extra"] = 1
    episode = first(study)
    instance = study.instances(episode.cell)[episode.instance_id]
    assert "the states cannot be compared" in Reader(page(study, events)).text
    assert "the states cannot be compared" in episode_markdown(events, instance, study.transcript(episode))


@pytest.mark.parametrize("scored", [False, True])
def test_audit_draws_from_every_outcome_and_verdict_and_lays_each_beside_its_verdict(
    study: Study, scored: bool
) -> None:
    if scored:
        score(study)
    text = audit_text(study, 6, 1, html=True)
    read = Reader(text)
    assert read.open == []
    assert "Audit of 6 of 14 finished episodes, seed 1" in read.text
    assert text.count('<article class="pair"') == text.count('class="told"') == text.count('class="judged"') == 6
    kinds = {(e["outcome"], e["kind"]) for e in (events[-1] for events in _all_events(study))}
    assert len(kinds) > 1
    for outcome, _ in kinds:
        assert f"End: {outcome}" in read.text
    assert audit_text(study, 6, 1, html=True) == text
    assert audit_text(study, 6, 2, html=True) != text
    markdown = audit_text(study, 6, 1, html=False)
    assert markdown.startswith("# Audit of 6 of 14 finished episodes, seed 1\n")
    drawn = re.findall(r'id="([0-9a-f]{20})"', text)
    assert re.findall(r"^# Episode ([0-9a-f]{20})", markdown, flags=re.MULTILINE) == drawn
    assert markdown.count("\n- [ ] ") >= 6


def _all_events(study: Study) -> list[list[dict[str, Any]]]:
    return [
        [json.loads(line) for line in study.transcript(episode).read_bytes().splitlines()]
        for model, cell in study.work
        for episode in study.episodes(model, cell)
    ]


# --- the command line ---------------------------------------------------------------------------------------------


def test_command_prints_the_page_alone_or_writes_it(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree_bytes(study.store.root)
    manifest = ["--manifest", str(study.manifest_path)]
    assert main(["view", first(study).episode_id, "--html", *manifest]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("<!doctype html>")
    assert printed.endswith("</html>\n")
    target = tmp_path / "page.html"
    assert main(["view", "--audit", "3", "--html", "--out", str(target), *manifest]) == 0
    assert capsys.readouterr().out.startswith(f"written to {target}\n")
    assert Reader(target.read_text()).tags["article"] == 3
    assert tree_bytes(study.store.root) == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--audit-seed", "3"], "--audit-seed belongs to --audit"),
        (["abc", "--audit", "3"], "give an episode or --audit, not both"),
        (["--audit", "0"], "a whole number from 1"),
    ],
)
def test_mistakes_are_refused(
    study: Study, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["view", *arguments, "--manifest", str(study.manifest_path)])
    assert leaving.value.code == 2
    assert expected in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_named(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["view", "--html", "--manifest", str(study.manifest_path), "--out", "/proc/none/page.html"]
    assert main(arguments) == 1
    assert "agent-bench: /proc/none" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_lays_the_hostile_page_out_without_running_anything(study: Study, tmp_path: Path) -> None:
    events = with_hostile_text(events_of(study))
    events[-1]["detail"] = MARKUP
    path = tmp_path / "page.html"
    path.write_text(page(study, events), encoding="ascii")
    with chromium() as browser:
        opened = browser.open(path.as_uri())
        assert opened.requests == [path.as_uri()]
        laid_out = opened.evaluate("document.documentElement.outerHTML")
    seen = Reader(laid_out)
    assert "alert(1)" in seen.text
    assert not set(seen.tags) & {"script", "img"}
    assert seen.tags == Reader(path.read_text()).tags
