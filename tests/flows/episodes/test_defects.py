"""A defect of the environment in one episode is that episode's row; every other episode goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows.results import INFRA_ERROR
from tasks_env.families.query.family import Query
from tasks_env.families.query.tools import QueryWorld
from tests.flows.episodes.support import Ran, of_kind, open_study, run_study, scripted_entry
from tests.flows.small_study import score


class Boom(Exception):
    """Whatever broke."""


def outcomes(ran: Ran) -> list[str | None]:
    return [summary.outcome if summary else None for summary in ran.summaries]


def one_breaks(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, break_now: Any) -> None:
    """Let the first call of a method break, and every other work."""
    works, broken = getattr(owner, name), [True]

    def method(self: Any, *arguments: Any) -> Any:
        return break_now() if broken and broken.pop() else works(self, *arguments)

    monkeypatch.setattr(owner, name, method)


def boom() -> None:
    raise Boom("out of order")


def test_a_world_that_cannot_be_opened_is_one_infra_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(tmp_path, {"agent": scripted_entry(1.0, limits={"concurrent_episodes": 1})}, instances=2)
    one_breaks(monkeypatch, Query, "open", boom)
    ran = run_study(study)
    assert outcomes(ran) == [INFRA_ERROR, *["completed"] * 3]
    assert (ran.end["kind"], ran.end["detail"]) == ("tool_exception", "opening the world: Boom: out of order")
    assert (ran.end["steps"], ran.end["http_attempts"], ran.end["calls"]) == (0, 0, [])
    assert ran.end["final_state"] == {"submitted": False, "data": {}}
    assert ran.campaign.halted is None
    assert ran.campaign.ledger.totals().reserved == 0
    rows = {row["episode_id"]: row for row in score(study)}
    assert len(rows) == 4
    assert rows[ran.jobs[0].episode_id]["failure_class"] == "tool_exception"
    again = run_study(study)
    assert outcomes(again) == ["completed"], "and is worth another attempt"


def test_it_voids_the_conversation_that_it_belongs_to_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = open_study(
        tmp_path,
        {"agent": scripted_entry(1.0, limits={"concurrent_episodes": 1})},
        instances=2,
        scaffold={"tasks_per_conversation": 2},
    )
    one_breaks(monkeypatch, Query, "open", boom)
    first, second = run_study(study).summaries
    assert first is not None
    assert second is not None
    assert [(one.outcome, one.kind) for one in first.conversation] == [
        (INFRA_ERROR, "tool_exception"),
        (INFRA_ERROR, "conversation_broken"),
    ]
    assert [one.outcome for one in second.conversation] == ["completed"] * 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}, {"a": {3}}])
def test_a_state_that_is_no_json_is_one_infra_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: object
) -> None:
    study = open_study(tmp_path, {"agent": scripted_entry(1.0, limits={"concurrent_episodes": 1})})
    one_breaks(monkeypatch, QueryWorld, "state", lambda: {"answer": value})
    ran = run_study(study)
    assert outcomes(ran) == [INFRA_ERROR, "completed"]
    assert (ran.end["outcome"], ran.end["kind"]) == (INFRA_ERROR, "tool_exception")
    assert ran.end["detail"].startswith("final state: ")
    assert len(of_kind(ran.events(), "end")) == 1
    assert ran.campaign.ledger.totals().spent > 0, "what it cost is booked"


def test_a_verifier_that_breaks_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(tmp_path, {"agent": scripted_entry(1.0)}, instances=2)
    run_study(study)
    one_breaks(monkeypatch, Query, "verify", boom)
    rows = score(study)
    assert sorted(str(row["failure_class"]) for row in rows) == [*["None"] * 3, "verifier_error:Boom"]
    assert sum(row["infra_error"] for row in rows) == 1
    assert [row["passed"] for row in score(study)] == [True], "that one is judged again, and nothing else"
