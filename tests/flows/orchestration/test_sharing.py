"""Limits that processes share: made from the manifest, held together by real processes, never passed by in silence."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.campaign import Campaign
from flows.campaign_summary import halt_error
from flows.console import Console
from flows.context import Study
from flows.episodes.pacing import shared_limits
from flows.orchestration import is_shared, set_limits, take_slots
from flows.orchestration.settings import API_URL, EMBEDDED
from flows.orchestration.sharing import LimitMissing
from tests.flows.chaos.model import BadDay, plans_of
from tests.flows.episodes.answering import AnsweringServer
from tests.flows.models.fault_server import Received, Reply
from tests.flows.small_study import REMOVED, open_study, prepare

ROOT = Path(__file__).parents[3]
PER_MINUTE = 60
CELLS = ("query-easy-none-baseline", "query-easy-order-shuffled")

pytestmark = pytest.mark.xdist_group("prefect")


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    answering = AnsweringServer()
    with answering.running():
        yield answering


def study_at(folder: Path, url: str, **limits: Any) -> Study:
    """A study of one served model and two cells of ten episodes, with its sets."""
    folder.mkdir(exist_ok=True)
    study = open_study(
        folder,
        {
            "models/served/base_url": url,
            "models/served/api_key_env": REMOVED,
            "models/served/limits": {"concurrent_episodes": 16, **limits},
            "grid/models": ["served"],
            "grid/axes": {"order": ["shuffled"]},
            "grid/instances": 5,
        },
    )
    prepare(study)
    return study


def test_only_a_server_of_the_users_own_is_shared() -> None:
    address = "http://127.0.0.1:4200/api"
    assert is_shared({API_URL: address})
    assert not is_shared({API_URL: address, EMBEDDED: "1"})
    assert not is_shared({})
    assert not is_shared({API_URL: ""})


@pytest.mark.usefixtures("prefect_api_url")
class TestOnAServer:
    @pytest.fixture
    def name(self) -> str:
        return f"agent-bench-test-{uuid.uuid4().hex}"

    def test_limits_are_made_and_a_changed_one_is_told(self, name: str) -> None:
        from prefect.client.orchestration import get_client

        async def go() -> None:
            assert await set_limits({name: 600}) == []
            assert await set_limits({name: 600}) == []
            assert await set_limits({name: 300}) == [f"{name}: from 600 to 300 slots per minute"]
            async with get_client() as client:
                limit = await client.read_global_concurrency_limit_by_name(name)
            assert (limit.limit, limit.slot_decay_per_second, limit.active) == (300, 5.0, True)

        asyncio.run(go())

    def test_two_that_make_a_limit_at_once_make_one(self, name: str) -> None:
        async def go() -> None:
            assert await asyncio.gather(*(set_limits({name: 600}) for _ in range(4))) == [[]] * 4

        asyncio.run(go())

    def test_slots_are_granted_up_to_the_limit_and_then_as_they_come_back(self, name: str) -> None:
        async def go() -> float:
            await set_limits({name: 120})
            started = time.monotonic()
            for _ in range(13):
                await take_slots(name, 10)
            return time.monotonic() - started

        assert asyncio.run(go()) > 4.5, "130 slots, of which 120 are there and 2 a second come back"

    def test_a_limit_that_is_gone_is_missed(self, name: str) -> None:
        from prefect.client.orchestration import get_client

        async def go() -> None:
            await set_limits({name: 600})
            await take_slots(name, 1)
            async with get_client() as client:
                await client.delete_global_concurrency_limit_by_name(name)
            with pytest.raises(LimitMissing, match=rf"'{name}'.* is gone; .*then run again: it is made anew"):
                await take_slots(name, 1)

        asyncio.run(go())


def test_a_run_whose_shared_limit_is_gone_asks_nothing_more_and_stops_in_good_order(
    server: AnsweringServer, tmp_path: Path
) -> None:
    study = study_at(tmp_path, server.url, requests_per_minute=60)
    server.answer_with(BadDay(plans_of(study), study.manifest.models["served"].pricing, 1, 0.0))
    [limit] = shared_limits(study.manifest, study.models)
    asked: list[tuple[str, int]] = []

    async def acquire(name: str, slots: int) -> None:
        asked.append((name, slots))
        if len(asked) > 12:
            raise LimitMissing(name, "is gone")

    async def go() -> Campaign:
        campaign = Campaign(study, Console(io.StringIO()), {}, acquire=acquire)
        jobs = [job for model, cell in study.work for job in campaign.jobs(model, cell)]
        await asyncio.gather(*map(campaign.attempt_repeatedly, jobs))
        await campaign.close()
        return campaign

    campaign = asyncio.run(go())
    assert asked[:12] == [(limit.name, 1000)] * 12, "a second's worth is one request"
    assert len(server.requests) == 12
    error = halt_error(campaign)
    assert isinstance(error, LimitMissing)
    assert error.exit_code == 1
    assert campaign.ledger.totals().reserved == 0
    assert campaign.tally.infra_errors == 0


@pytest.mark.slow
def test_two_processes_on_one_prefect_server_stay_below_the_rate_together(
    server: AnsweringServer, tmp_path: Path, study_environment: dict[str, str]
) -> None:
    """Each process makes fewer requests than its own bucket holds: alone, neither would ever wait."""
    study = study_at(tmp_path / "study", server.url, requests_per_minute=PER_MINUTE)
    day = BadDay(plans_of(study), study.manifest.models["served"].pricing, 1, 0.0)
    times: list[float] = []

    def respond(request: Received) -> Reply:
        times.append(time.monotonic())
        return day(request)

    server.answer_with(respond)
    environ = {name: value for name, value in study_environment.items() if name != EMBEDDED}  # as a user's own server
    program = "import sys; from flows.cli import main; sys.exit(main(sys.argv[1:]))"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program, "run", "--manifest", str(study.manifest_path), "--cell", cell],
            env={**environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for cell in CELLS
    ]
    said = [run.communicate(timeout=300)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert all("10 of 10 episodes finished (0 before this run), 0 infra_error" in text for text in said)
    per_second = PER_MINUTE / 60
    in_stock = len(runs) * per_second
    assert len(times) > PER_MINUTE + 10, "there is something to wait for"
    assert len(times) / len(runs) < PER_MINUTE
    for first, begin in enumerate(times):
        for last in range(first, len(times)):
            allowed = PER_MINUTE + per_second * (times[last] - begin) + in_stock
            assert last - first + 1 <= allowed, f"{last - first + 1} requests within {times[last] - begin:.1f} s"
    assert times[-1] - times[0] >= (len(times) - PER_MINUTE - in_stock) / per_second
