"""Conversations of several tasks from start to marker: money, broken and interrupted ones, and what is run again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flows.campaign_summary import halt_error, summary_lines
from flows.context import Study
from flows.episodes.job import CONVERSATION_BROKEN
from flows.episodes.ledger import Ledger
from flows.episodes.pricing import episode_bound
from flows.errors import RunHalted
from flows.grid import conversations_of
from flows.results import INFRA_ERROR
from flows.scoring import pending_episodes, row_for
from tests.flows.episodes.answering import AnsweringServer, said
from tests.flows.episodes.support import of_kind, run_study, scripted_entry
from tests.flows.episodes.test_carried import SUBMIT, carried, ends, events_of, first_conversation, over_http, prompts
from tests.flows.models.fault_server import Received, Reply

SUBMITTED = Reply(body=said("openai", SUBMIT))
GONE = Reply(404, {"error": {"message": "gone"}})


def task_usd(study: Study) -> float:
    """Upper bound of one task of the only model."""
    (entry,) = study.manifest.models.values()
    return episode_bound(entry.pricing, study.manifest.scaffold)


def finished(study: Study) -> set[str]:
    """Episodes of the only cell of the only model that count as done."""
    ((model, cell),) = study.work
    return set(study.finished(model, cell))


def story(study: Study, episodes: Any) -> list[Any]:
    """The transcripts without what the clock says, and the commit."""
    clock = ("started_at", "latency_s", "wall_clock_s", "git_sha", "manifest_hash", "scientific_hash")
    return [
        [{name: value for name, value in event.items() if name not in clock} for event in events]
        for events in events_of(study, episodes)
    ]


# --- infrastructure -----------------------------------------------------------------------------------------------


def test_a_break_in_one_task_breaks_the_conversation_and_counts_none_of_its_tasks(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = over_http(tmp_path, server, tasks=4)
    server.script(SUBMITTED, SUBMITTED, GONE)
    ran = run_study(study, first=1)
    together = first_conversation(study)
    assert ends(study, together) == [
        (INFRA_ERROR, CONVERSATION_BROKEN, 1),
        (INFRA_ERROR, CONVERSATION_BROKEN, 1),
        (INFRA_ERROR, "http_404", 0),
        (INFRA_ERROR, CONVERSATION_BROKEN, 0),
    ]
    details = [events[-1]["detail"] for events in events_of(study, together)]
    assert details == [
        "had ended as completed: infra_error (http_404) in task 3 of 4",
        "had ended as completed: infra_error (http_404) in task 3 of 4",
        "gone",
        "not met: infra_error (http_404) in task 3 of 4",
    ]
    rows = [row_for(study.instances(e.cell)[e.instance_id], study.transcript(e)) for e in together]
    assert [(row["passed"], row["failure_class"]) for row in rows] == [
        (None, CONVERSATION_BROKEN),
        (None, CONVERSATION_BROKEN),
        (None, "http_404"),
        (None, CONVERSATION_BROKEN),
    ]
    assert ran.campaign.tally.infra_errors == 4
    assert (ran.campaign.tally.planned, ran.campaign.tally.finished) == (8, 4)
    assert len(server.requests) == 3


def test_a_broken_conversation_is_attempted_again_as_a_whole_from_its_first_task(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = over_http(tmp_path, server, tasks=3, retry={"episode_attempts": 2})
    server.script(SUBMITTED, GONE, SUBMITTED, SUBMITTED, SUBMITTED)
    ran = run_study(study, first=1)
    together = first_conversation(study)
    assert ends(study, together) == [("completed", None, 1)] * 3
    stated = [message["content"] for message in server.requests[2].body["messages"] if message["role"] == "user"]
    assert stated == prompts(study, together)[:1], "nothing of the broken conversation is carried on"
    assert [events[0]["attempt"] for events in events_of(study, together)] == [2, 2, 2]
    for episode in together:
        kept = study.transcript(episode).with_suffix(".attempt-1.jsonl")
        assert json.loads(kept.read_text().splitlines()[-1])["outcome"] == INFRA_ERROR
    assert (ran.campaign.tally.infra_errors, ran.campaign.tally.completed) == (0, 3)
    totals = ran.campaign.ledger.totals()
    assert totals.reserved == 0
    booked = [events[-1]["cost_usd"] for events in events_of(study, together)]
    assert totals.spent == pytest.approx(sum(booked) + booked[0]), "the answer before the break was paid for too"


def test_a_refused_key_in_a_later_task_halts_and_marks_nothing(server: AnsweringServer, tmp_path: Path) -> None:
    study = over_http(tmp_path, server, tasks=3)
    server.script(SUBMITTED, Reply(401, {"error": {"message": "bad key"}}))
    ran = run_study(study)
    assert isinstance(halt_error(ran.campaign), RunHalted)
    assert [study.store.marker(study.transcript(episode)) for episode in first_conversation(study)] == [None] * 3
    assert len(server.requests) == 2
    assert ran.campaign.ledger.totals().reserved == 0
    assert ran.campaign.ledger.totals().spent > 0
    assert "model query-tiny: none-baseline 6/6" in str(halt_error(ran.campaign))


# --- interruption -------------------------------------------------------------------------------------------------

RUN = """
import asyncio, io, sys
from flows.campaign import Campaign
from flows.console import Console
from flows.context import Options, Study
study = Study(Options(manifest=sys.argv[1], cell="query-tiny-none-baseline"))
campaign = Campaign(study, Console(io.StringIO()), {})
(pair,) = study.work
async def go():
    await asyncio.gather(*map(campaign.attempt_repeatedly, campaign.jobs(*pair)))
asyncio.run(go())
"""


def test_a_conversation_killed_in_its_middle_is_met_again_from_its_first_task(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = over_http(tmp_path / "killed", server, tasks=3)
    server.script(*[SUBMITTED] * 4, Reply(body=said("openai", SUBMIT), delay_s=60))
    with subprocess.Popen([sys.executable, "-c", RUN, str(study.manifest_path)]) as other:
        deadline = time.monotonic() + 60
        while (len(server.requests) < 5 or len(finished(study)) < 3) and time.monotonic() < deadline:
            assert other.poll() is None
            time.sleep(0.01)
        other.send_signal(signal.SIGKILL)
    first, second = conversations_of(study.episodes("model", study.cells[0]))
    held = Ledger(study.store.ledger, 1e9).totals()
    assert held.spent > 0
    assert list(held.abandoned().values()) == [pytest.approx(task_usd(study))] * 2, "the tasks that were not over"
    assert finished(study) == {episode.episode_id for episode in first}
    assert [e for _, pending in pending_episodes(study, []) for e in pending] == list(first)

    server.script(*[SUBMITTED] * 3)
    ran = run_study(study)
    assert ran.output.splitlines() == [f"skip model {e.cell.id} {e.episode_id}: complete" for e in first]
    assert [job.conversation[0].episode for job in ran.jobs] == [second[0]]
    assert [e[0]["attempt"] for e in events_of(study, second)] == [1, 1, 1], "an interrupted attempt is none"

    undisturbed = over_http(tmp_path / "undisturbed", server, tasks=3)
    server.script(*[SUBMITTED] * 6)
    run_study(undisturbed)
    everything = study.episodes("model", study.cells[0])
    assert undisturbed.episodes("model", undisturbed.cells[0]) == everything
    assert story(study, everything) == story(undisturbed, everything)


def test_markers_of_a_conversation_vouch_only_all_together(tmp_path: Path) -> None:
    study = carried(tmp_path, {"agent": scripted_entry()}, 3, instances=6, scaffold={"step_cap": 12})
    run_study(study)
    (cell,) = study.cells
    torn, *whole = conversations_of(study.episodes("agent", cell))
    study.transcript(torn[2]).with_suffix("._COMPLETE").unlink()
    kept = [study.transcript(episode).read_bytes() for conversation in whole for episode in conversation]
    before = story(study, torn)
    assert [e.episode_id for _, pending in pending_episodes(study, []) for e in pending] == [
        episode.episode_id for conversation in whole for episode in conversation
    ]
    again = run_study(study)
    assert [job.episode for job in again.jobs] == [torn[0]]
    assert again.campaign.tally.completed == again.campaign.tally.planned == 12
    assert [study.transcript(episode).read_bytes() for conversation in whole for episode in conversation] == kept
    after = story(study, torn)
    assert [events[1:] for events in after] == [events[1:] for events in before], "the same conversation once more"
    assert run_study(study).jobs == []


def test_complete_conversations_are_skipped_with_a_line_for_each_task(tmp_path: Path) -> None:
    study = carried(tmp_path, {"agent": scripted_entry()}, 4, instances=6, scaffold={"step_cap": 12})
    first = run_study(study)
    assert [len(job.conversation) for job in first.jobs] == [4, 4, 2, 2], "the last conversation is shorter"
    second = run_study(study)
    assert second.jobs == []
    assert second.output.splitlines() == [
        f"skip agent {task.episode.cell.id} {task.episode_id}: complete"
        for job in first.jobs
        for task in job.conversation
    ]
    assert (second.campaign.tally.skipped, second.campaign.tally.planned) == (12, 12)
    assert second.campaign.tally.outcomes == first.campaign.tally.outcomes


def test_a_set_that_grows_meets_again_only_the_conversation_that_was_short(tmp_path: Path) -> None:
    models, caps = {"agent": scripted_entry()}, {"step_cap": 12}
    small = carried(tmp_path, models, 4, instances=6, scaffold=caps)
    run_study(small)
    (cell,) = small.cells
    old = small.episodes("agent", cell)
    grown = carried(tmp_path, models, 4, instances=9, scaffold=caps)
    new = grown.episodes("agent", cell)
    assert set(old) <= set(new), "no episode is another one for what comes after it"
    ran = run_study(grown)
    assert [len(job.conversation) for job in ran.jobs] == [4, 4, 1, 1]
    assert ran.campaign.tally.skipped == 8
    assert ran.campaign.tally.completed == 18


# --- money --------------------------------------------------------------------------------------------------------


def test_the_whole_conversation_is_reserved_before_it_starts_and_each_task_booked_when_it_ends(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = over_http(tmp_path, server, tasks=3)
    held: list[tuple[int, float]] = []
    ledger = Ledger(study.store.ledger, 1e9)

    def respond(_request: Received) -> Reply:
        totals = ledger.totals()
        held.append((len(totals.open), totals.reserved))
        return SUBMITTED

    server.answer_with(respond)
    run_study(study, first=1)
    bound = task_usd(study)
    assert [number for number, _ in held] == [3, 2, 1]
    assert [usd for _, usd in held] == [pytest.approx(bound * number) for number in (3, 2, 1)]
    lines = [json.loads(line) for line in study.store.ledger.read_text().splitlines()]
    together = first_conversation(study)
    assert [line["op"] for line in lines] == ["reserve"] * 3 + ["settle"] * 3
    assert [line["episode"] for line in lines[:3]] == [episode.episode_id for episode in together]
    spent = [events[-1]["cost_usd"] for events in events_of(study, together)]
    assert [line["spent_usd"] for line in lines[3:]] == spent
    assert all(usd > 0 for usd in spent)


@pytest.mark.parametrize(("conversations", "started"), [(0.99, 0), (1.0, 1), (1.99, 1), (2.0, 2)])
def test_no_conversation_starts_that_might_not_fit_under_the_cap_to_its_end(
    server: AnsweringServer, tmp_path: Path, conversations: float, started: int
) -> None:
    def study_under(cap: float) -> Study:
        return over_http(tmp_path, server, tasks=3, budget={"cap_usd": cap})

    cap = conversations * 3 * task_usd(study_under(1.0)) * (1 + 1e-9)
    study = study_under(cap)
    # Answers without usage stay booked at a call's bound, so that nothing of a reservation is given back but calls.
    unknown = said("openai", SUBMIT)
    unknown["usage"] = None
    server.answer_with(lambda _request: Reply(body=unknown))
    ran = run_study(study)
    whole = [summary for summary in ran.summaries if summary]
    assert len(whole) >= started
    assert (len(whole) == 0) is (started == 0)
    totals = ran.campaign.ledger.totals()
    assert totals.committed <= cap
    assert ran.campaign.capped is (len(whole) < len(ran.jobs))
    assert len(server.requests) == 3 * len(whole), "those that started were finished"
    if not whole:
        assert "0 of 6 episodes completed" in "\n".join(summary_lines(ran.campaign))


def test_no_task_costs_more_than_its_bound_whatever_it_carries_even_if_every_byte_were_a_token(
    tmp_path: Path,
) -> None:
    caps = {"step_cap": 12, "conversation_bytes": 7_000}
    study = carried(tmp_path, {"agent": scripted_entry()}, 6, instances=12, scaffold=caps)
    pricing, bound = study.manifest.models["agent"].pricing, task_usd(study)
    run_study(study)
    outcomes: Counter[str] = Counter()
    for events in events_of(study, study.episodes("agent", study.cells[0])):
        sent = [event for event in of_kind(events, "request") if event["bytes"] <= 7_000]
        tokens = sum(event["bytes"] for event in sent)
        worst = tokens * pricing.input + len(sent) * study.manifest.scaffold.max_output_tokens * pricing.output
        assert events[-1]["cost_usd"] <= worst / 1e6 <= bound
        outcomes[events[-1]["outcome"]] += 1
    assert outcomes["completed"] > 0
    assert outcomes["context_overflow"] > 0, "the context was carried to where it no longer fits"


@pytest.mark.parametrize("cap", [1.0, 1.7, 2.6])
def test_whatever_breaks_in_a_conversation_the_cap_holds(server: AnsweringServer, tmp_path: Path, cap: float) -> None:
    bound = task_usd(over_http(tmp_path, server, tasks=2))
    retry = {"http_attempts": 4, "episode_attempts": 2}
    study = over_http(tmp_path, server, tasks=2, instances=6, retry=retry, budget={"cap_usd": cap * 2 * bound})
    faults = [
        SUBMITTED,
        Reply(502, {"error": {"message": "lost"}}),
        SUBMITTED,
        Reply(body="<html>"),
        SUBMITTED,
        GONE,
        SUBMITTED,
        SUBMITTED,
    ]
    server.answer_with(lambda _request: faults[len(server.requests) % len(faults)])
    ran = run_study(study)
    totals = ran.campaign.ledger.totals()
    assert totals.committed <= study.manifest.budget.cap_usd * (1 + 1e-12)
    assert totals.reserved == 0
    assert any(ran.summaries)
