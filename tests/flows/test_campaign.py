"""One invocation of run: stopping at the cap or at a refusal, counting, locks, and keys that leave no trace."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import math
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.campaign import Campaign, EpisodeFailed
from flows.campaign_summary import halt_error, remaining, summary_lines
from flows.console import Console
from flows.context import Study
from flows.episodes.ledger import Ledger
from flows.episodes.pricing import call_bound, episode_bound
from flows.errors import RunHalted, StudyError
from flows.readiness import check_models
from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import Ran, http_entry, open_study, run_study, scripted_entry
from tests.flows.models.fault_server import Received, Reply

SUBMIT = Turn(calls=(("submit", {"answer": "4"}),))
ANSWER_USD = (200 * 3.0 + 800 * 0.3 + 100 * 15.0) / 1e6


@pytest.fixture(scope="module")
def _running_server() -> Iterator[AnsweringServer]:
    answering = AnsweringServer()
    with answering.running():
        yield answering


@pytest.fixture
def server(_running_server: AnsweringServer) -> AnsweringServer:
    """A server without answers."""
    _running_server.script()
    return _running_server


def episode_usd(study: Study, model: str = "model") -> float:
    """Upper bound of one episode."""
    return episode_bound(study.manifest.models[model].pricing, study.manifest.scaffold)


def study_with_cap(tmp_path: Path, server: AnsweringServer, episodes: float, **fields: Any) -> Study:
    """Ten episodes of a model and a cap of so many episodes' upper bounds."""
    limits = {"concurrent_episodes": fields.pop("concurrent_episodes", 8)}
    models = {"model": http_entry("openai", server.url, limits=limits)}
    bound = episode_usd(open_study(tmp_path / "probe", models))
    return open_study(tmp_path, models, instances=5, budget={"cap_usd": episodes * bound}, **fields)


def committed(ran: Ran) -> float:
    return ran.campaign.ledger.totals().committed


# --- the cap ------------------------------------------------------------------------------------------------------


def test_at_the_cap_no_episode_starts_those_in_flight_finish_and_the_summary_says_so(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = study_with_cap(tmp_path, server, 2.5)
    server.answer_with(lambda _request: Reply(body=said("openai", Turn(calls=SUBMIT.calls, usage=False))))
    ran = run_study(study)
    outcomes = [summary.outcome for summary in ran.summaries if summary]
    call = call_bound(study.manifest.models["model"].pricing, study.manifest.scaffold)
    # Answers without usage are booked at a call's bound, a quarter of an episode's.
    started = len(outcomes)
    assert outcomes == ["completed"] * started
    assert 2 <= started < 10
    assert committed(ran) == pytest.approx(started * call)
    assert started * call + episode_usd(study) > study.manifest.budget.cap_usd, "it went on as long as it could"
    assert len(server.requests) == started
    assert (ran.campaign.capped, ran.campaign.stopped, ran.campaign.halted) == (True, True, None)
    assert halt_error(ran.campaign) is None, "the cap is no error"
    noted = ran.campaign.ledger.totals().capped
    assert noted is not None
    assert (noted.model, noted.needed_usd) == ("model", episode_usd(study))
    lines = study.store.ledger.read_text().splitlines()
    assert sum(json.loads(line)["op"] == "cap" for line in lines) == 1, "once, however many did not fit"
    text = "\n".join(summary_lines(ran.campaign))
    cap = study.manifest.budget.cap_usd
    assert f"PARTIAL: the cost cap is reached; {started} of 10 episodes completed, spend 0.0000 USD" in text
    assert f"(+ {started * call:.4f} reserved or unknown) against a cap of {cap:.2f} USD" in text
    assert f"  model query-tiny: none-baseline {10 - started}/10" in text


def test_episodes_wait_for_what_others_settle_before_the_run_gives_up(server: AnsweringServer, tmp_path: Path) -> None:
    study = study_with_cap(tmp_path, server, 1.5)
    server.answer_with(lambda _request: Reply(body=said("openai", SUBMIT), delay_s=0.02))
    ran = run_study(study)
    assert [summary and summary.outcome for summary in ran.summaries] == ["completed"] * 10
    assert not ran.campaign.capped
    assert committed(ran) == pytest.approx(10 * ANSWER_USD)
    assert "PARTIAL" not in "\n".join(summary_lines(ran.campaign))


def test_no_more_than_the_cap_is_ever_held_while_the_run_goes_on(server: AnsweringServer, tmp_path: Path) -> None:
    study = study_with_cap(tmp_path, server, 3.25)
    held = []
    ledger = Ledger(study.store.ledger, 1.0)

    def respond(_request: Received) -> Reply:
        totals = ledger.totals()
        held.append((len(totals.open), totals.committed))
        return Reply(body=said("openai", SUBMIT), delay_s=0.02)

    server.answer_with(respond)
    run_study(study)
    assert max(number for number, _ in held) == 3
    assert max(usd for _, usd in held) <= study.manifest.budget.cap_usd


def test_the_cap_counts_what_earlier_runs_and_dead_processes_hold(server: AnsweringServer, tmp_path: Path) -> None:
    study = study_with_cap(tmp_path, server, 1.5)
    cap = study.manifest.budget.cap_usd
    other = Ledger(study.store.ledger, cap)
    assert other.reserve(cap / 2, model="model", cell="c", episode="e", attempt=1)
    entry = json.loads(study.store.ledger.read_text())
    study.store.ledger.write_text(json.dumps({**entry, "pid": 2**22 + 1}) + "\n")
    ran = run_study(study)
    assert ran.summaries == [None] * 10
    assert server.requests == []
    text = "\n".join(summary_lines(ran.campaign))
    assert f"{cap / 2:.4f} USD of these are held for 1 episodes whose process died" in text
    assert "0 of 10 episodes completed" in text


def test_what_another_machine_holds_counts_and_is_told_by_its_name(server: AnsweringServer, tmp_path: Path) -> None:
    study = study_with_cap(tmp_path, server, 1.5)
    cap = study.manifest.budget.cap_usd
    assert Ledger(study.store.ledger, cap).reserve(cap / 2, model="model", cell="c", episode="e", attempt=1)
    entry = json.loads(study.store.ledger.read_text())
    study.store.ledger.write_text(json.dumps({**entry, "host": "the-other-one"}) + "\n")
    ran = run_study(study)
    assert (ran.summaries, server.requests) == ([None] * 10, [])
    text = "\n".join(summary_lines(ran.campaign))
    assert f"{cap / 2:.4f} USD of these are held for 1 episodes of other machines (the-other-one)" in text
    assert "whose process died" not in text


def test_a_raised_cap_goes_on_where_the_last_run_stopped(server: AnsweringServer, tmp_path: Path) -> None:
    study = study_with_cap(tmp_path, server, 1.0, concurrent_episodes=1)
    server.answer_with(lambda _request: Reply(body=said("openai", SUBMIT)))
    first = run_study(study)
    assert first.campaign.capped
    done = [summary.episode_id for summary in first.summaries if summary]
    raised = study_with_cap(tmp_path, server, 20)
    second = run_study(raised)
    assert done
    assert {job.episode_id for job in second.jobs} == {job.episode_id for job in first.jobs} - set(done)
    assert second.campaign.tally.completed == 10


def test_a_repetition_that_the_cap_has_no_room_for_ends_the_episode_and_stays_under_the_cap(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = study_with_cap(tmp_path, server, 1.1, concurrent_episodes=1)
    server.answer_with(lambda _request: Reply(502, {"error": {"message": "lost"}}))
    ran = run_study(study, first=1)
    assert (ran.end["outcome"], ran.end["kind"]) == ("infra_error", "budget")
    assert ran.end["usage_known"] is False
    assert len(server.requests) == 1
    assert committed(ran) <= study.manifest.budget.cap_usd


def test_a_provider_that_bills_more_than_was_reserved_is_paid_in_full_and_asked_no_more(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = study_with_cap(tmp_path, server, 1.5, concurrent_episodes=1)
    cap = study.manifest.budget.cap_usd
    bill = said("openai", SUBMIT)
    bill["usage"] = {"prompt_tokens": 0, "completion_tokens": math.ceil(1.2 * cap / 15e-6)}
    server.answer_with(lambda _request: Reply(body=bill))
    ran = run_study(study)
    totals = ran.campaign.ledger.totals()
    assert len(server.requests) == 1
    assert totals.spent == totals.committed == pytest.approx(1.2 * cap, rel=1e-4)
    assert ran.campaign.capped
    assert ran.end["cost_usd"] == pytest.approx(totals.spent)
    told = "\n".join(summary_lines(ran.campaign))
    assert f"WARNING: {totals.spent:.4f} USD are spent, unknown or held, over the cap of {cap:.2f}" in told
    run_study(study)
    assert len(server.requests) == 1


@pytest.mark.parametrize("cap", [1.0, 1.6, 2.3, 4.0])
def test_whatever_fails_the_cap_holds(server: AnsweringServer, tmp_path: Path, cap: float) -> None:
    study = study_with_cap(tmp_path, server, cap, retry={"http_attempts": 4, "episode_attempts": 2})
    faults = [
        Reply(502, {"error": {"message": "lost"}}),
        Reply(body="<html>"),
        Reply(503, {"error": {"message": "down"}}),
        Reply(close=True),
        Reply(body=said("openai", Turn("hm", usage=False))),
        Reply(body=said("openai", SUBMIT)),
        Reply(404, {"error": {"message": "gone"}}),
    ]
    server.answer_with(lambda _request: faults[len(server.requests) % len(faults)])
    ran = run_study(study)
    assert committed(ran) <= study.manifest.budget.cap_usd * (1 + 1e-12)
    assert ran.campaign.ledger.totals().reserved == 0
    finished = [index for index, summary in enumerate(ran.summaries) if summary]
    ends = [ran.events(index)[-1] for index in finished]
    bound = episode_usd(study)
    assert all(end["cost_usd"] <= bound for end in ends if end["usage_known"])


# --- halting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": {"message": "bad key"}}),
        (402, {"error": {"message": "pay first"}}),
        (403, {"error": {"message": "not you"}}),
        (429, {"error": {"code": "insufficient_quota", "message": "used up"}}),
    ],
)
def test_a_refused_key_or_a_spent_quota_halts_and_nothing_is_marked(
    server: AnsweringServer, tmp_path: Path, status: int, body: Any
) -> None:
    study = open_study(
        tmp_path, {"model": http_entry("openai", server.url, limits={"concurrent_episodes": 1})}, instances=3
    )
    server.script(Reply(body=said("openai", SUBMIT)), Reply(status, body), *[Reply(body=said("openai", SUBMIT))] * 9)
    ran = run_study(study)
    assert [summary and summary.outcome for summary in ran.summaries] == ["completed", *[None] * 5]
    assert len(server.requests) == 2, "no further episode asks, though five were waiting"
    assert [ran.marker(index) is None for index in range(6)] == [False, *[True] * 5]
    assert ran.waits == []
    error = halt_error(ran.campaign)
    assert isinstance(error, RunHalted)
    assert error.exit_code == 3
    assert f"http_{status}: {body['error']['message']}" in str(error)
    assert "left to do (cell episodes left/planned):\n  model query-tiny: none-baseline 5/6" in str(error)
    assert ran.campaign.tally.infra_errors == 0
    assert ran.campaign.ledger.totals().reserved == 0


def test_a_halt_lets_those_in_flight_finish(server: AnsweringServer, tmp_path: Path) -> None:
    study = open_study(
        tmp_path, {"model": http_entry("openai", server.url, limits={"concurrent_episodes": 3})}, instances=3
    )
    server.script(
        Reply(body=said("openai", SUBMIT), delay_s=0.3),
        Reply(body=said("openai", SUBMIT), delay_s=0.3),
        Reply(401, {"error": {"message": "bad key"}}, delay_s=0.1),
        *[Reply(body=said("openai", SUBMIT))] * 9,
    )
    ran = run_study(study)
    assert sorted(str(summary and summary.outcome) for summary in ran.summaries) == [*["None"] * 4, *["completed"] * 2]
    assert len(server.requests) == 3
    assert isinstance(ran.campaign.halted, RunHalted)


def test_a_halt_during_another_attempt_leaves_the_first_ones_outcome_told(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = open_study(tmp_path, {"model": http_entry("openai", server.url)}, retry={"episode_attempts": 2})
    server.script(Reply(404, {"error": {"message": "gone"}}), Reply(401, {"error": {"message": "bad key"}}))
    ran = run_study(study, first=1)
    (summary,) = ran.summaries
    assert summary is not None
    assert (summary.outcome, summary.kind) == ("infra_error", "http_404")
    assert ran.campaign.tally.infra_errors == 1
    assert ran.path().with_suffix(".attempt-1.jsonl").exists()
    assert ran.marker() is None
    assert isinstance(ran.campaign.halted, RunHalted)


def test_one_models_refusal_stops_the_others_too(server: AnsweringServer, tmp_path: Path) -> None:
    models = {"model": http_entry("openai", server.url, limits={"concurrent_episodes": 1}), "agent": scripted_entry()}
    study = open_study(tmp_path, models, execution={"concurrent_episodes": 1})
    server.script(Reply(401, {"error": {"message": "bad key"}}))
    ran = run_study(study)
    assert ran.summaries == [None] * 4
    assert remaining(ran.campaign).count(" 2/2") == 2


# --- models that cannot be asked at all -------------------------------------------------------------------------------


def test_a_model_whose_adapter_cannot_be_built_is_left_out_and_the_others_go_on(
    server: AnsweringServer, tmp_path: Path
) -> None:
    bad = http_entry("openai", "http://[::1", limits={"concurrent_episodes": 1})
    models = {"bad": bad, "good": http_entry("anthropic", server.url)}
    study = open_study(tmp_path, models, instances=2)
    server.answer_with(lambda _request: Reply(body=said("anthropic", SUBMIT)))
    check_models(study, {})
    ran = run_study(study)
    assert [summary and summary.outcome for summary in ran.summaries] == [*[None] * 4, *["completed"] * 4]
    assert (ran.campaign.halted, ran.campaign.stopped) == (None, False)
    assert ran.campaign.stopped_for("bad")
    assert not ran.campaign.stopped_for("good")
    assert halt_error(ran.campaign) is None, "as where a server is down"
    why = "model 'bad' cannot be asked: its adapter cannot be built (ValueError; look at its base_url 'http://[::1')"
    assert ran.output.count(f"run: WARNING: {why}; its episodes are left, other models go on\n") == 1
    assert f"run: WARNING: {why}; 4 of its episodes are left; mend it and run again" in summary_lines(ran.campaign)
    assert ran.campaign.ledger.totals().reserved == 0
    assert study.store.ledger.read_text().count('"model":"bad"') == 1, "after the first, none is begun"
    assert not study.store.episodes("bad", study.cells[0].id).exists()
    mended = run_study(open_study(tmp_path, {**models, "bad": http_entry("openai", server.url)}, instances=2))
    assert len(mended.jobs) == 4


def test_a_missing_package_is_named(server: AnsweringServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(*_arguments: Any) -> Any:
        raise ModuleNotFoundError("No module named 'some_extra'", name="some_extra")

    monkeypatch.setattr("flows.campaign.open_adapter", without)
    study = open_study(tmp_path, {"model": http_entry("openai", server.url), "agent": scripted_entry()})
    ran = run_study(study)
    assert [summary is None for summary in ran.summaries] == [True, True, False, False]
    assert "cannot be built (No module named 'some_extra'; install the package)" in ran.output


def test_an_address_of_the_environment_that_is_none_is_not_said(server: AnsweringServer, tmp_path: Path) -> None:
    entry = http_entry("openai", "", base_url=None, base_url_env="THE_PLACE")
    study = open_study(tmp_path, {"model": entry})
    ran = run_study(study, environ={"THE_PLACE": "http://[secret-place"})
    assert "cannot be built (ValueError; look at its entry)" in ran.output
    assert "secret-place" not in ran.output + "".join(summary_lines(ran.campaign))
    assert server.requests == []


# --- counting -----------------------------------------------------------------------------------------------------


def test_infra_errors_are_counted_and_a_cell_of_nothing_else_is_shouted_about(
    server: AnsweringServer, tmp_path: Path
) -> None:
    models = {"down": http_entry("anthropic", server.url), "agent": scripted_entry()}
    study = open_study(tmp_path, models, instances=2)
    server.answer_with(lambda _request: Reply(500, {"error": {"message": "down"}}))
    ran = run_study(study)
    tally = ran.campaign.tally
    assert (tally.planned, tally.finished, tally.completed, tally.infra_errors) == (8, 8, 4, 4)
    assert tally.dead_cells() == [("down", study.cells[0].id)]
    first, *others = summary_lines(ran.campaign)
    assert first.startswith("run: 8 of 8 episodes finished (0 before this run), 4 infra_error; spent ")
    assert others == [f"run: WARNING: every episode of cell {study.cells[0].id} of model down is an infra_error"]
    assert halt_error(ran.campaign) is None


def test_an_infra_error_is_raised_to_whoever_tracks_episodes(server: AnsweringServer, tmp_path: Path) -> None:
    study = open_study(tmp_path, {"model": http_entry("openai", server.url)})
    server.script(Reply(404, {"error": {"message": "gone"}}))

    async def attempt() -> Campaign:
        campaign = Campaign(study, Console(io.StringIO()), {})
        job = campaign.jobs("model", study.cells[0])[0]
        with pytest.raises(EpisodeFailed, match=f"http_404.*{job.episode_id}") as caught:
            await campaign.attempt(job)
        assert caught.value.summary.kind == "http_404"
        await campaign.close()
        return campaign

    assert asyncio.run(attempt()).tally.infra_errors == 1


def test_progress_counts_episodes_and_spend(tmp_path: Path) -> None:
    study = open_study(tmp_path, {"agent": scripted_entry()})
    console = Console(io.StringIO())
    with console.progress("run", 2, "episodes") as progress:
        ran = run_study(study, before=lambda campaign: campaign.show_on(progress))
    assert progress.done == 2
    assert progress.spent_usd == pytest.approx(ran.campaign.ledger.totals().spent)


def test_no_more_episodes_run_at_once_than_the_manifest_allows(server: AnsweringServer, tmp_path: Path) -> None:
    models = {name: http_entry("openai", server.url, limits={"concurrent_episodes": 4}) for name in ("one", "two")}
    study = open_study(tmp_path, models, instances=6, execution={"concurrent_episodes": 6})
    held = []
    ledger = Ledger(study.store.ledger, 1e9)

    def respond(_request: Received) -> Reply:
        totals = ledger.totals()
        held.append([totals.models[key] for key in totals.open])
        return Reply(body=said("openai", SUBMIT), delay_s=0.02)

    server.answer_with(respond)
    run_study(study)
    assert len(held) == 24
    assert max(map(len, held)) <= 6
    assert max(names.count(name) for names in held for name in models) <= 4


# --- keys ---------------------------------------------------------------------------------------------------------

KEY = "sk-canary-0f9e8d7c6b5a4938"


class Echo:
    """Repeats the request's headers, in as many ways as there are faults, and in the end refuses the key."""

    def __init__(self) -> None:
        self.served = 0

    def __call__(self, request: Received) -> Reply:
        self.served += 1
        echo = json.dumps(request.headers)
        adapter = "openai" if "chat" in request.path else "anthropic"
        sound = said(adapter, Turn(f"You sent {echo}", (("submit", {"answer": echo}),)))
        return [
            Reply(400, echo),
            Reply(404, {"error": echo}),
            Reply(200, {"error": {"message": echo}}),
            Reply(200, f"not json {echo}"),
            Reply(200, {"choices": echo, "content": echo}),
            Reply(429, echo, {"retry-after": KEY}),
            Reply(200, sound, cut=len(json.dumps(sound)) // 2),
            Reply(200, sound),
            Reply(503, [echo]),
            Reply(401 if self.served > 60 else 502, {"error": {"message": echo}}),
            Reply(500, {"error": {"message": echo, "type": echo, "code": echo}}, {"x-echo": KEY}),
        ][self.served % 11]


def test_a_key_leaves_no_trace_in_files_errors_or_logs(
    server: AnsweringServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.answer_with(Echo())
    monkeypatch.setenv("CANARY_KEY", KEY)
    models = {name: http_entry(name, server.url, api_key_env="CANARY_KEY") for name in ("openai", "anthropic")}
    study = open_study(tmp_path, models, instances=6, retry={"http_attempts": 3, "episode_attempts": 2})
    ran = run_study(study, environ={"CANARY_KEY": KEY})
    assert all(KEY in json.dumps(request.headers) for request in server.requests), "it was really sent"
    ends = [ran.events(index)[-1] for index in range(len(ran.jobs)) if ran.marker(index)]
    kinds, outcomes = {end["kind"] for end in ends}, {end["outcome"] for end in ends}
    assert "completed" in outcomes, "an answer that quotes the key was taken in"
    assert len(kinds) > 2
    assert isinstance(ran.campaign.halted, RunHalted)

    halted: BaseException = ran.campaign.halted
    told = ["".join(traceback.format_exception(halted)), repr(ran.campaign.tally), ran.output, caplog.text]
    told += summary_lines(ran.campaign)
    chained: BaseException | None = halted
    while chained is not None:
        told.append(repr(vars(chained)))
        chained = chained.__cause__ or chained.__context__
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(re.search(r"attempt-\d", path.name) for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert [text[:200] for text in told if KEY in text] == []


def test_a_run_past_the_disk_budget_is_refused_before_it_starts(tmp_path: Path) -> None:
    study = open_study(tmp_path, {"agent": scripted_entry()}, budget={"cap_usd": 1.0, "disk_gb": 1e-6})
    with pytest.raises(StudyError, match=r"over the budget of 1e-06 GB; raise budget\.disk_gb"):
        Campaign(study, Console()).check_disk({"agent": 10})
