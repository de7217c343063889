"""The ledger against the account of the server itself, where nothing dies: equal to the cent and the token."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.campaign_summary import summary_lines
from flows.context import Study
from flows.episodes.ledger import Ledger
from flows.episodes.pricing import ENVELOPE_TOKENS, call_bound, episode_bound
from flows.episodes.transcript import read_transcript
from tests.flows.chaos.model import BadDay, plans_of
from tests.flows.episodes.answering import AnsweringServer
from tests.flows.episodes.support import Ran, http_entry, open_study, run_study
from tests.flows.models.fault_server import Received, Reply

RETRY = {"http_attempts": 4, "first_wait_s": 0.004, "multiplier": 1.5, "max_wait_s": 0.05, "episode_attempts": 2}
WORKERS = 32


@pytest.fixture(scope="module")
def server() -> Iterator[AnsweringServer]:
    answering = AnsweringServer()
    with answering.running():
        yield answering


def wide_study(folder: Path, server: AnsweringServer, cap_usd: float, **sections: Any) -> Study:
    """Sixty-four episodes, half of them at once."""
    return open_study(
        folder,
        {"model": http_entry("openai", server.url, limits={"concurrent_episodes": WORKERS, "timeout_s": 60.0})},
        instances=32,
        execution={"concurrent_episodes": WORKERS},
        budget={"cap_usd": cap_usd},
        retry=RETRY,
        **sections,
    )


def play(
    server: AnsweringServer,
    study: Study,
    share: float,
    watch: Callable[[], None] | None = None,
    tokens_in: int | None = None,
) -> BadDay:
    """Let the server have such a day; `watch` sees every request before it is answered."""
    day = BadDay(plans_of(study), study.manifest.models["model"].pricing, 5, share, tokens_in=tokens_in)

    def respond(request: Received) -> Reply:
        if watch:
            watch()
        return day(request)

    server.answer_with(respond)
    return day


def entries(study: Study) -> list[dict[str, Any]]:
    return [json.loads(line) for line in study.store.ledger.read_text().splitlines()]


def history(study: Study) -> list[float]:
    """What was committed after every line of the ledger."""
    held: dict[str, float] = {}
    booked, committed = 0.0, []
    for entry in entries(study):
        if entry["op"] == "settle":
            held.pop(entry["id"])
            booked += entry["spent_usd"] + entry["unknown_usd"]
        elif entry["op"] != "cap":
            held[entry["id"]] = held.get(entry["id"], 0.0) + entry["usd"]
        committed.append(booked + sum(held.values()))
    return committed


def attempts_told(ran: Ran) -> int:
    """HTTP attempts in all transcripts, those of earlier attempts at an episode included."""
    paths = [path for path in ran.study.store.runs.rglob("*.jsonl") if path != ran.study.store.ledger]
    return sum(event["event"] == "attempt" for path in paths for event in read_transcript(path))


def test_every_request_that_the_server_counts_is_told_and_paid(server: AnsweringServer, tmp_path: Path) -> None:
    study = wide_study(tmp_path, server, 1000.0)
    day = play(server, study, 0.25)
    ran = run_study(study)
    account, totals = day.account, ran.campaign.ledger.totals()
    bound = call_bound(study.manifest.models["model"].pricing, study.manifest.scaffold)
    assert account.lost > 5
    assert account.refused > 5
    assert attempts_told(ran) == account.asked == len(account.served) + account.lost + account.refused
    assert totals.spent == pytest.approx(account.served_usd, rel=1e-9)
    assert totals.unknown == pytest.approx(account.lost * bound, rel=1e-9)
    assert totals.open == {}
    whole = [entry for entry in entries(study) if entry["op"] == "settle" and entry["tokens_in"] is not None]
    assert len(whole) > 20
    assert sum(entry["tokens_in"] for entry in whole) <= sum(each.input_total for each in account.served.values())


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_with_32_workers_and_a_cap_in_the_middle_it_is_never_exceeded_and_the_requests_stop(
    server: AnsweringServer, tmp_path: Path, share: float
) -> None:
    probe = wide_study(tmp_path / "probe", server, 1.0)
    bound = episode_bound(probe.manifest.models["model"].pricing, probe.manifest.scaffold)
    study = wide_study(tmp_path, server, WORKERS * bound)
    cap = study.manifest.budget.cap_usd
    at_once: list[int] = []
    ledger, turn = Ledger(study.store.ledger, cap), threading.Lock()

    def watch() -> None:
        with turn:
            totals = ledger.totals()
        at_once.append(len(totals.open))
        assert totals.committed <= cap

    # Every request is as long as it may be, so that two episodes cost about as much as one may.
    most = study.manifest.scaffold.conversation_bytes + ENVELOPE_TOKENS
    day = play(server, study, share, watch, most)
    ran = run_study(study)
    assert ran.campaign.capped
    assert max(at_once) >= WORKERS - 2, "they really were at work side by side"
    assert max(history(study)) <= cap
    assert max(history(study)) > cap - bound, "all that fits was used"
    finished = sum(summary is not None for summary in ran.summaries)
    assert WORKERS / 2 < finished < 64
    assert len([entry for entry in entries(study) if entry["op"] == "reserve"]) >= finished
    assert "PARTIAL: the cost cap is reached" in "\n".join(summary_lines(ran.campaign))
    asked = day.account.asked
    again = run_study(study)
    assert again.campaign.capped or again.jobs == []
    held_back = cap - ran.campaign.ledger.totals().committed
    assert held_back < bound
    assert day.account.asked == asked, "no further request is made"
