"""A server on a real PostgreSQL, which two processes on one root report to: one cap, one rate, nothing lost."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from flows.episodes.ledger import Ledger
from flows.episodes.pacing import shared_limits
from flows.episodes.pricing import episode_bound
from tests.flows.chaos.model import BadDay, plans_of
from tests.flows.episodes.answering import AnsweringServer
from tests.flows.orchestration.standing import Standing, standing_server, wait_for
from tests.flows.test_run_stage import BASELINE, ORDER, served_study

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
"""Debian keeps them there, by version."""
OWNER = "postgres"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAMS is None, reason="PostgreSQL is not installed (Debian: postgresql)"),
]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The address of an empty database. PostgreSQL refuses to be run by root, so root runs it as its own user."""
    assert PROGRAMS is not None
    as_owner: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="agent-bench-pg-") as folder:
        if os.getuid() == 0:
            account = pwd.getpwnam(OWNER)
            os.chown(folder, account.pw_uid, account.pw_gid)
            as_owner = {"user": account.pw_uid, "group": account.pw_gid}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        control = [str(PROGRAMS / "pg_ctl"), "-D", f"{folder}/data", "-w", "-s"]

        def run(*words: str) -> None:
            subprocess.run(words, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120, **as_owner)

        run(str(PROGRAMS / "initdb"), "-D", f"{folder}/data", "-A", "trust", "-U", OWNER)
        run(*control, "-l", f"{folder}/log", "-o", options, "start")
        try:
            run(str(PROGRAMS / "createdb"), "-h", "127.0.0.1", "-p", str(port), "-U", OWNER, "prefect")
            yield f"127.0.0.1:{port}/prefect"
        finally:
            run(*control, "-m", "immediate", "stop")


@pytest.fixture
def server(database: str, tmp_path: Path) -> Iterator[Standing]:
    manifest = tmp_path / "server" / "experiments.yaml"
    manifest.parent.mkdir()
    shutil.copy(Path(__file__).parents[3] / "experiments.yaml", manifest)
    url = f"postgresql+asyncpg://{OWNER}@{database}"
    with standing_server(manifest, {"PREFECT_SERVER_DATABASE_CONNECTION_URL": url}) as standing:
        yield standing


async def _rows(database: str, query: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(f"postgresql://{OWNER}@{database}")
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


def test_two_processes_on_one_root_hold_one_cap_and_all_they_did_is_in_the_database(
    database: str, server: Standing, tmp_path: Path
) -> None:
    model = AnsweringServer()
    with model.running():
        study = served_study(
            tmp_path / "study",
            model.url,
            **{"grid/instances": 6, "models/served/limits": {"requests_per_minute": 6000}},
        )
        pricing = study.manifest.models["served"].pricing
        cap = 1.02 * episode_bound(pricing, study.manifest.scaffold)
        study = served_study(
            tmp_path / "study",
            model.url,
            **{
                "grid/instances": 6,
                "models/served/limits": {"requests_per_minute": 6000},
                "budget": {"cap_usd": cap},
            },
        )
        day = BadDay(plans_of(study), pricing, 1, 0.0)
        model.answer_with(day)
        words = ("run", "--manifest", str(study.manifest_path), "--cell")
        both = [server.started(*words, cell) for cell in (BASELINE, ORDER)]
        assert [process.wait(180) for process in both] == [0, 0]
    totals = Ledger(study.store.ledger, cap).totals()
    assert 0 < totals.spent <= cap
    assert (totals.reserved, totals.unknown) == (0, 0)
    assert totals.spent == pytest.approx(day.account.served_usd), "the two counted every request once"

    query = "select name, state_type, state_name from flow_run where name = 'run'"
    flows = wait_for(lambda: len(found := asyncio.run(_rows(database, query))) == 2 and found)
    assert {(kind, name) for _, kind, name in flows} == {("COMPLETED", "Partial")}, "both met the cap"
    unfinished = "select count(*) from task_run where state_type <> 'COMPLETED'"
    wait_for(lambda: asyncio.run(_rows(database, unfinished)) == [(0,)])
    episodes = asyncio.run(_rows(database, "select count(*) from task_run where name like 'query-easy-%'"))
    assert episodes == [(24,)], "an episode that the cap kept from starting is a task that says so"
    [limit] = shared_limits(study.manifest, study.models)
    kept = asyncio.run(_rows(database, 'select name, "limit" from concurrency_limit_v2'))
    assert kept == [(limit.name, 6000 * limit.grain)]
