"""Episodes from start to marker: interruption, resumption, further attempts, and what is left booked."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from flows.campaign import Campaign
from flows.console import Console
from flows.context import Study
from flows.episodes.ledger import Ledger
from flows.episodes.pricing import call_bound, episode_bound
from flows.episodes.transcript import TranscriptWriter, read_transcript
from flows.errors import CellLocked, StoreError
from flows.store import Store
from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import FAMILIES, http_entry, of_kind, open_study, run_study, scripted_entry
from tests.flows.models.fault_server import Reply

SUBMIT = Turn(calls=(("submit", {"answer": "4"}),))


def submitted(**fields: Any) -> Reply:
    """An answer that hands something in."""
    return Reply(body=said("openai", SUBMIT), **fields)


def story(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events without what the clock says."""
    clock = ("started_at", "latency_s", "wall_clock_s")
    return [{name: value for name, value in event.items() if name not in clock} for event in events]


def study_over_http(tmp_path: Path, server: AnsweringServer, **sections: Any) -> Study:
    return open_study(tmp_path, {"model": http_entry("openai", server.url)}, **sections)


def bounds(study: Study) -> tuple[float, float]:
    """Upper bounds of a call and of an episode of the only model."""
    (entry,) = study.manifest.models.values()
    return (
        call_bound(entry.pricing, study.manifest.scaffold),
        episode_bound(entry.pricing, study.manifest.scaffold),
    )


def test_finished_episodes_are_skipped_with_a_line_each_and_left_as_they_are(tmp_path: Path) -> None:
    study = open_study(tmp_path, {"agent": scripted_entry()}, families=["query", "filesys"])
    first = run_study(study)
    files = {path: path.read_bytes() for path in study.store.runs.rglob("*") if path.is_file()}
    second = run_study(study)
    assert len(first.jobs) == 4
    assert second.jobs == []
    assert second.output.splitlines() == [
        f"skip agent {job.episode.cell.id} {job.episode_id}: complete" for job in first.jobs
    ]
    assert {path: path.read_bytes() for path in study.store.runs.rglob("*") if path.is_file()} == files
    assert (second.campaign.tally.skipped, second.campaign.tally.finished, second.campaign.tally.planned) == (4, 4, 4)
    assert second.campaign.tally.outcomes == first.campaign.tally.outcomes


@pytest.mark.parametrize("left", [b"", b'{"event":"episode"}\n{"event":"ope', None])
def test_an_attempt_without_a_marker_is_discarded_and_done_again(tmp_path: Path, left: bytes | None) -> None:
    study = open_study(tmp_path, {"agent": scripted_entry()})
    before = run_study(study, first=1)
    path, told = before.path(), story(before.events())
    path.with_suffix("._COMPLETE").unlink()
    if left is not None:
        path.write_bytes(left)
    again = run_study(study, first=1)
    assert [job.episode_id for job in again.jobs] == [before.jobs[0].episode_id]
    assert again.events()[0]["attempt"] == 1, "an interrupted attempt is none"
    assert again.marker() is not None
    assert sorted(entry.name for entry in path.parent.iterdir()) == sorted(
        [path.name, path.with_suffix("._COMPLETE").name]
    )
    assert story(again.events()) == told


def test_no_episode_costs_more_than_its_bound_even_if_every_byte_were_a_token(tmp_path: Path) -> None:
    settings = {"step_cap": 12, "worked_example": True}
    study = open_study(tmp_path, {"agent": scripted_entry()}, families=FAMILIES, instances=3, scaffold=settings)
    pricing, (_, bound) = study.manifest.models["agent"].pricing, bounds(study)
    ran = run_study(study)
    assert len(ran.jobs) == 18
    for index in range(len(ran.jobs)):
        events = ran.events(index)
        requests = of_kind(events, "request")
        tokens = sum(event["bytes"] for event in requests)
        worst = tokens * pricing.input + len(requests) * study.manifest.scaffold.max_output_tokens * pricing.output
        assert 0 < events[-1]["cost_usd"] < worst / 1e6 <= bound


def test_a_marker_without_its_transcript_vouches_for_nothing(tmp_path: Path) -> None:
    study = open_study(tmp_path, {"agent": scripted_entry()})
    before = run_study(study, first=1)
    before.path().unlink()
    again = run_study(study, first=1)
    assert again.jobs == before.jobs
    assert again.marker() is not None


def test_an_infra_error_is_attempted_again_and_its_transcript_kept(server: AnsweringServer, tmp_path: Path) -> None:
    study = study_over_http(tmp_path, server)
    server.script(Reply(404, {"error": {"message": "first"}}))
    first = run_study(study, first=1)
    path, kept = first.path(), first.path().read_bytes()
    server.script(Reply(404, {"error": {"message": "second"}}))
    second = run_study(study, first=1)
    assert second.output == "", "it is not complete, so nothing is skipped"
    kept_second = path.read_bytes()
    server.script(submitted())
    third = run_study(study, first=1)
    assert third.marker() is not None
    assert [ran.summaries[0].outcome for ran in (first, second, third) if ran.summaries[0]] == [
        "infra_error",
        "infra_error",
        "completed",
    ]
    assert path.with_suffix(".attempt-1.jsonl").read_bytes() == kept
    assert path.with_suffix(".attempt-2.jsonl").read_bytes() == kept_second
    assert (third.marker() or {})["attempt"] == third.events()[0]["attempt"] == 3
    assert read_transcript(path.with_suffix(".attempt-2.jsonl"))[0]["attempt"] == 2
    assert run_study(study, first=1).jobs != first.jobs
    reservations = [json.loads(line) for line in study.store.ledger.read_text().splitlines()]
    assert [entry["attempt"] for entry in reservations if entry["op"] == "reserve"][:3] == [1, 2, 3]


def test_attempts_within_one_run_follow_the_policy(server: AnsweringServer, tmp_path: Path) -> None:
    study = study_over_http(tmp_path, server, retry={"episode_attempts": 3})
    server.script(Reply(404, {"error": {"message": "no"}}), Reply(404, {"error": {"message": "no"}}), submitted())
    ran = run_study(study, first=1)
    assert ran.summaries[0] is not None
    assert (ran.summaries[0].outcome, ran.events()[0]["attempt"]) == ("completed", 3)
    assert ran.campaign.tally.infra_errors == 0
    assert ran.campaign.tally.finished == 1


def test_an_earlier_infra_error_that_could_not_be_attempted_again_still_counts(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = study_over_http(tmp_path, server)
    server.script(Reply(404, {"error": {"message": "no"}}))
    run_study(study, first=1)

    def stop(campaign: Campaign) -> None:
        campaign.capped = True

    again = run_study(study, before=stop)
    assert again.summaries == [None, None]
    assert (again.campaign.tally.infra_errors, again.campaign.tally.completed) == (1, 0)
    assert again.campaign.tally.dead_cells() == [("model", study.cells[0].id)]


def test_cancelling_leaves_no_marker_and_books_the_call_in_flight_as_unknown(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = study_over_http(tmp_path, server)
    server.answer_with(
        lambda request: (
            Reply(body=said("openai", Turn(calls=(("list_tables", {}),))))
            if b'"assistant"' not in request.content
            else submitted(delay_s=30)
        )
    )
    call, _ = bounds(study)

    async def interrupted() -> Campaign:
        campaign = Campaign(study, Console(io.StringIO()), {})
        job = campaign.jobs("model", study.cells[0])[0]
        task = asyncio.create_task(campaign.attempt(job))
        while len(server.requests) < 2:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await campaign.close()
        return campaign

    campaign = asyncio.run(interrupted())
    totals = campaign.ledger.totals()
    assert totals.spent == pytest.approx((200 * 3.0 + 800 * 0.3 + 100 * 15.0) / 1e6)
    assert totals.unknown == pytest.approx(call)
    assert totals.reserved == 0
    folder = study.store.episodes("model", study.cells[0].id)
    assert list(folder.glob("*._COMPLETE")) == []
    settled = json.loads(study.store.ledger.read_text().splitlines()[-1])
    assert (settled["op"], settled["tokens_in"], settled["tokens_out"]) == ("settle", None, None)
    server.answer_with(lambda _request: submitted())
    again = run_study(study, first=1)
    assert again.end["outcome"] == "completed"
    assert again.events()[0]["attempt"] == 1


def test_cancelling_during_a_wait_books_nothing_that_is_not_in_flight(server: AnsweringServer, tmp_path: Path) -> None:
    study = study_over_http(tmp_path, server)
    server.script(Reply(503, {"error": {"message": "down"}}))
    waiting = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        waiting.set()
        await asyncio.sleep(60)

    async def interrupted() -> Campaign:
        campaign = Campaign(study, Console(io.StringIO()), {}, sleep)
        task = asyncio.create_task(campaign.attempt(campaign.jobs("model", study.cells[0])[0]))
        await waiting.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await campaign.close()
        return campaign

    totals = asyncio.run(interrupted()).ledger.totals()
    assert (totals.spent, totals.unknown, totals.reserved) == (0, 0, 0)


def test_a_full_disk_halts_the_run_and_leaves_no_marker_and_no_reservation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = open_study(tmp_path, {"agent": scripted_entry(limits={"concurrent_episodes": 1})})
    record = TranscriptWriter.record

    def full(self: TranscriptWriter, event: str, **fields: Any) -> None:
        if event == "end":
            raise StoreError(self.path, "no space left on the device")
        record(self, event, **fields)

    monkeypatch.setattr(TranscriptWriter, "record", full)
    ran = run_study(study)
    assert ran.summaries == [None, None]
    assert isinstance(ran.campaign.halted, StoreError)
    assert str(ran.path()) in str(ran.campaign.halted)
    assert not ran.path(1).exists(), "no further episode starts"
    assert ran.marker() is None
    totals = ran.campaign.ledger.totals()
    assert totals.reserved == 0
    assert totals.spent > 0, "what was spent stays spent"
    monkeypatch.undo()
    assert all(summary and summary.outcome for summary in run_study(study).summaries)


def test_a_marker_that_cannot_be_written_halts_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(tmp_path, {"agent": scripted_entry(limits={"concurrent_episodes": 1})})

    def full(_self: Store, path: Path, _content: Any) -> None:
        raise StoreError(path, "no space left on the device") from OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Store, "mark_complete", full)
    ran = run_study(study)
    assert isinstance(ran.campaign.halted, StoreError)
    assert (ran.marker(), ran.campaign.ledger.totals().reserved) == (None, 0)


def test_a_key_that_is_missing_halts_before_anything_is_set_aside_or_held(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = open_study(tmp_path, {"model": http_entry("openai", server.url, api_key_env="SOME_KEY")})
    server.script(Reply(404, {"error": {"message": "no"}}))
    before = run_study(study, first=1, environ={"SOME_KEY": "a-key-for-this-test"})
    kept = before.path().read_bytes()
    ran = run_study(study, environ={})
    assert "SOME_KEY" in str(ran.campaign.halted)
    assert ran.path().read_bytes() == kept
    assert ran.marker() == before.marker()
    assert ran.campaign.ledger.totals().reserved == 0
    assert len(server.requests) == 1


RUN = """
import asyncio, io, sys
from flows.campaign import Campaign
from flows.console import Console
from flows.context import Options, Study
study = Study(Options(manifest=sys.argv[1], cell="query-tiny-none-baseline"))
campaign = Campaign(study, Console(io.StringIO()), {})
(pair,) = study.work
async def go():
    with study.store.cell_lock(*(pair[0], pair[1].id)):
        await asyncio.gather(*map(campaign.attempt_repeatedly, campaign.jobs(*pair)))
asyncio.run(go())
"""


def test_a_killed_run_is_finished_by_the_next_one_and_its_money_stays_booked(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = open_study(tmp_path, {"model": http_entry("openai", server.url, limits={"concurrent_episodes": 1})})
    _, episode = bounds(study)
    server.script(submitted(), submitted(delay_s=60))
    manifest = str(study.manifest_path)
    with subprocess.Popen([sys.executable, "-c", RUN, manifest]) as other:
        deadline = time.monotonic() + 60
        folder = study.store.episodes("model", study.cells[0].id)
        while (len(server.requests) < 2 or not any(folder.glob("*._COMPLETE"))) and time.monotonic() < deadline:
            assert other.poll() is None
            time.sleep(0.01)
        with pytest.raises(CellLocked, match=f"process {other.pid}"), study.store.cell_lock("model", study.cells[0].id):
            raise AssertionError("two processes hold one cell")
        other.send_signal(signal.SIGKILL)
    with study.store.cell_lock("model", study.cells[0].id):
        server.script(submitted())
        ran = run_study(study)
    assert len(ran.jobs) == 1, "one was finished before the kill"
    assert ran.output.count("complete") == 1
    assert ran.end["outcome"] == "completed"
    assert len(of_kind(ran.events(), "episode")) == 1
    totals = ran.campaign.ledger.totals()
    assert list(totals.abandoned().values()) == [pytest.approx(episode)]
    assert totals.reserved == pytest.approx(episode)


def test_a_transcript_is_whole_on_the_disk_before_the_books_and_these_before_its_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    def tell(owner: type, name: str) -> None:
        inner = getattr(owner, name)

        def told(*arguments: Any) -> Any:
            result = inner(*arguments)
            happened.append(name)
            return result

        monkeypatch.setattr(owner, name, told)

    tell(TranscriptWriter, "close")
    tell(Ledger, "flush")
    tell(Store, "mark_complete")
    ran = run_study(open_study(tmp_path, {"agent": scripted_entry()}), first=1)
    assert ran.marker() is not None
    assert happened == ["flush", "close", "flush", "mark_complete"], "the first flush is the reservation's"
