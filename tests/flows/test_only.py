"""`run --only infra_error`: those whose latest attempt is one, and nothing that was never finished."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.campaign import latest_outcome
from flows.campaign_summary import summary_lines
from flows.context import Options, Study
from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import http_entry, open_study, run_study
from tests.flows.models.fault_server import Reply

SUBMIT = Reply(body=said("openai", Turn(calls=(("submit", {"answer": "4"}),))))
LOST = Reply(502, {"error": {"message": "lost"}})
REFUSED = Reply(401, {"error": {"message": "bad key"}})


@pytest.fixture(scope="module")
def _running_server() -> Iterator[AnsweringServer]:
    answering = AnsweringServer()
    with answering.running():
        yield answering


@pytest.fixture
def server(_running_server: AnsweringServer) -> AnsweringServer:
    _running_server.script()
    return _running_server


def study_of(folder: Path, server: AnsweringServer, only: str | None = None, **sections: Any) -> Study:
    """Six episodes of one model, one at a time, each attempted once; the order of the jobs is that of the requests."""
    models = {"model": http_entry("openai", server.url, limits={"concurrent_episodes": 1})}
    study = open_study(folder, models, instances=3, retry={"http_attempts": 1}, **sections)
    study.options = study.options.model_copy(update={"only": only})
    return study


def outcomes(study: Study) -> list[str | None]:
    return [latest_outcome(study.store, study.transcript(e)) for e in study.episodes("model", study.cells[0])]


def test_only_infra_errors_are_attempted_again_and_the_rest_is_left(server: AnsweringServer, tmp_path: Path) -> None:
    server.script(SUBMIT, LOST, SUBMIT, LOST)
    first = run_study(study_of(tmp_path, server), first=4)
    assert outcomes(first.study) == ["completed", "infra_error", "completed", "infra_error", None, None]

    server.script(*[SUBMIT] * 9)
    again = run_study(study_of(tmp_path, server, "infra_error"))
    assert [job.episode_id for job in again.jobs] == [first.jobs[1].episode_id, first.jobs[3].episode_id]
    assert len(server.requests) == 2
    assert outcomes(again.study) == [*["completed"] * 4, None, None]
    text = "\n".join(summary_lines(again.campaign))
    assert "run: 4 of 6 episodes finished (2 before this run), 0 infra_error" in text
    assert "run: 2 unfinished episodes were passed over" in text
    assert not again.campaign.is_complete("model", again.study.cells[0])

    third = run_study(study_of(tmp_path, server))
    assert len(third.jobs) == 2, "a plain run goes on with what was left"
    assert third.campaign.is_complete("model", third.study.cells[0])


def test_attempt_that_was_broken_off_before_anything_was_finished_is_passed_over(
    server: AnsweringServer, tmp_path: Path
) -> None:
    server.script(REFUSED)
    halted = run_study(study_of(tmp_path, server), first=1)
    assert halted.path().exists()
    assert halted.marker() is None
    assert run_study(study_of(tmp_path, server, "infra_error")).jobs == []


def test_repetition_that_was_broken_off_is_still_to_be_repeated(server: AnsweringServer, tmp_path: Path) -> None:
    server.script(LOST)
    run_study(study_of(tmp_path, server), first=1)
    server.script(REFUSED)
    halted = run_study(study_of(tmp_path, server, "infra_error"))
    assert (len(halted.jobs), halted.marker()) == (1, None)
    server.script(SUBMIT)
    assert len(run_study(study_of(tmp_path, server, "infra_error")).jobs) == 1
    assert run_study(study_of(tmp_path, server, "infra_error")).jobs == []


def test_a_conversation_is_attempted_again_whole(server: AnsweringServer, tmp_path: Path) -> None:
    scaffold = {"tasks_per_conversation": 2}
    server.script(SUBMIT, LOST, *[SUBMIT] * 2)
    first = run_study(study_of(tmp_path, server, scaffold=scaffold), first=2)
    assert outcomes(first.study)[:4] == ["infra_error", "infra_error", "completed", "completed"]
    server.script(*[SUBMIT] * 9)
    again = run_study(study_of(tmp_path, server, "infra_error", scaffold=scaffold))
    assert [[task.episode_id for task in job.conversation] for job in again.jobs] == [
        [task.episode_id for task in first.jobs[0].conversation]
    ]
    assert outcomes(again.study)[:4] == ["completed"] * 4


def test_a_conversation_that_was_merely_broken_off_is_passed_over_though_a_task_was_set_aside(
    server: AnsweringServer, tmp_path: Path
) -> None:
    scaffold = {"tasks_per_conversation": 2}
    server.script(SUBMIT, SUBMIT)
    first = run_study(study_of(tmp_path, server, scaffold=scaffold), first=1)
    second = first.study.transcript(first.jobs[0].followers[0].episode)
    second.with_suffix("._COMPLETE").unlink()
    server.script(REFUSED)
    run_study(study_of(tmp_path, server, scaffold=scaffold), first=1)
    assert first.path().with_suffix(".attempt-1.jsonl").exists()
    assert run_study(study_of(tmp_path, server, "infra_error", scaffold=scaffold)).jobs == []


@pytest.mark.usefixtures("prefect_api_url")
def test_the_stage_leaves_untouched_cells_for_the_next_run(
    server: AnsweringServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from flows.run import run

    server.answer_with(lambda _request: SUBMIT)
    models = {"model": http_entry("openai", server.url)}
    manifest = str(open_study(tmp_path, models, axes={"order": ["shuffled"]}).manifest_path)
    only = asyncio.run(run(Options(manifest=manifest, only="infra_error")))
    assert (only["planned"], only["finished"], server.requests) == (4, 0, [])
    assert "4 unfinished episodes were passed over" in capsys.readouterr().out
    assert asyncio.run(run(Options(manifest=manifest)))["finished"] == 4
