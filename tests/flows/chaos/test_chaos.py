"""Runs that die at any moment, on disks that fail, against a server that fails: what is left is whole and is counted.

Episodes are conversations of their own, and, with a third as many seeds, share conversations of up to `TOGETHER` tasks.
`AGENT_BENCH_CHAOS_SEEDS` sets how many seeds are tried, `AGENT_BENCH_CHAOS_FIRST` the first of them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from flows.context import Study
from flows.episodes.ledger import Ledger
from flows.episodes.pricing import call_bound
from flows.episodes.transcript import read_transcript
from flows.grid import conversations_of
from flows.results import INFRA_ERROR, WALL_CLOCK_COLUMNS, results_frame
from flows.scoring import grid_episodes, latest_rows
from tests.flows.chaos.disk import KINDS, Disaster
from tests.flows.chaos.host import HALTED, open_run
from tests.flows.chaos.model import BadDay, plans_of
from tests.flows.episodes.answering import AnsweringServer
from tests.flows.episodes.support import http_entry, open_study
from tests.flows.small_study import score

ROOT = Path(__file__).parents[3]
SEEDS = int(os.environ.get("AGENT_BENCH_CHAOS_SEEDS", "30"))
FIRST = int(os.environ.get("AGENT_BENCH_CHAOS_FIRST", "0"))
CAP_USD = 1000.0
IN_FLIGHT = 16
ROUNDS_AT_MOST = 15
TOGETHER = 3
"""Tasks per conversation where context is carried; a set of four has a shorter last one."""
CASES = [(1, seed) for seed in range(FIRST, FIRST + SEEDS)] + [
    (TOGETHER, seed) for seed in range(FIRST, FIRST + -(-SEEDS // 3))
]


class Host:
    """The process that forks runs."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.flows.chaos.host"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = ThreadPoolExecutor(1)

    def close(self) -> None:
        """End the host."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._reader.shutdown()

    def run(self, study: Study, disaster: Disaster | None = None, kill_when: Any = None) -> int:
        """One invocation. Returns its exit code, negative where a signal ended it.

        Args:
            kill_when: Asked now and then; the run is killed when it says yes.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        order = {
            "manifest": str(study.manifest_path),
            "disaster": asdict(disaster) if disaster else None,
            "log": str(study.manifest_path.with_name("log")),
        }
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()
        pid = int(stdout.readline())
        code = self._reader.submit(stdout.readline)
        deadline = time.monotonic() + 60
        while not code.done():
            if (kill_when and kill_when()) or time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                break
            time.sleep(0.002)
        return int(code.result(20))


def log_of(study: Study) -> str:
    """What the last run said."""
    return study.manifest_path.with_name("log").read_text()


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    process = Host()
    yield process
    process.close()


@pytest.fixture(scope="module")
def server() -> Iterator[AnsweringServer]:
    answering = AnsweringServer()
    with answering.running():
        yield answering


@pytest.fixture(scope="module")
def tasks(request: pytest.FixtureRequest) -> int:
    """Tasks per conversation."""
    return int(request.param)


@pytest.fixture(scope="module")
def pristine(tasks: int, server: AnsweringServer, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study with its sets and without a single episode."""
    limits = {"concurrent_episodes": IN_FLIGHT, "timeout_s": 10.0}
    return open_study(
        tmp_path_factory.mktemp("pristine"),
        {"model": http_entry("openai", server.url, limits=limits)},
        axes={"order": ["shuffled"]},
        instances=4,
        execution={"concurrent_episodes": IN_FLIGHT},
        budget={"cap_usd": CAP_USD},
        scaffold={"step_cap": 6, "tasks_per_conversation": tasks},
        retry={
            "http_attempts": 4,
            "first_wait_s": 0.004,
            "multiplier": 1.5,
            "max_wait_s": 0.05,
            "episode_attempts": 2,
        },
    )


def copy_of(pristine: Study, folder: Path) -> Study:
    """The same study elsewhere."""
    shutil.copytree(pristine.manifest_path.parent, folder, dirs_exist_ok=True)
    return open_run(str(folder / pristine.manifest_path.name))


def play(server: AnsweringServer, study: Study, seed: int, share: float) -> BadDay:
    """Let the server have such a day."""
    day = BadDay(plans_of(study), study.manifest.models["model"].pricing, seed, share)
    server.answer_with(day)
    return day


def table(study: Study) -> pd.DataFrame:
    """The scored table, sorted as it is written."""
    score(study)
    return results_frame(latest_rows(study.store.journal_rows(), grid_episodes(study)))


@pytest.fixture(scope="module")
def undisturbed(
    tasks: int, pristine: Study, server: AnsweringServer, host: Host, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """The table of a run on a good day."""
    study = copy_of(pristine, tmp_path_factory.mktemp("undisturbed"))
    day = play(server, study, 0, 0.0)
    assert host.run(study) == 0, log_of(study)
    totals = Ledger(study.store.ledger, CAP_USD).totals()
    assert (totals.spent, totals.unknown, totals.open) == (pytest.approx(day.account.served_usd), 0.0, {})
    frame = table(study)
    assert len(frame) == IN_FLIGHT
    assert (
        frame["conversation_position"].max() is pd.NA if tasks == 1 else frame["conversation_position"].max() == tasks
    )
    assert set(frame["outcome"]) > {"completed"}, "episodes end in several ways"
    assert set(frame["passed"]) == {True, False}
    return frame


def ledger_lines(study: Study) -> list[dict[str, Any]]:
    """The ledger's whole lines; a run that was killed may have left a torn one."""
    whole, _, _ = study.store.ledger.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


USAGE_COLUMNS = ["tokens_in", "tokens_cached", "tokens_out", "tokens_reasoning", "cost_usd"]
MAY_DIFFER = [*WALL_CLOCK_COLUMNS, "attempts", "usage_known", *USAGE_COLUMNS]
"""Faults change how often an episode was attempted, and whether its usage is known (an answer that was lost on its way
was worked out, and may be billed). What is known of usage is the same."""


def assert_same_scores(frame: pd.DataFrame, expected: pd.DataFrame) -> None:
    """The tables agree in all that the agent did and was judged by, and in all usage that is known."""
    pd.testing.assert_frame_equal(frame.drop(columns=MAY_DIFFER), expected.drop(columns=MAY_DIFFER))
    known = frame["usage_known"]
    pd.testing.assert_frame_equal(frame.loc[known, USAGE_COLUMNS], expected.loc[known, USAGE_COLUMNS])
    assert frame.loc[~known, USAGE_COLUMNS].isna().all(axis=None)


def assert_cap_held(study: Study, cap: float) -> None:
    """After no line of the ledger was more committed than the cap."""
    open_by_id: dict[str, float] = {}
    booked = 0.0
    for entry in ledger_lines(study):
        if entry["op"] == "settle":
            held = open_by_id.pop(entry["id"])
            assert entry["spent_usd"] + entry["unknown_usd"] <= held * (1 + 1e-9)
            booked += entry["spent_usd"] + entry["unknown_usd"]
        else:
            open_by_id[entry["id"]] = open_by_id.get(entry["id"], 0.0) + entry["usd"]
        assert booked + sum(open_by_id.values()) <= cap * (1 + 1e-12)


def assert_whole(study: Study) -> None:
    """Every finished transcript is whole, and nothing half-written lies about."""
    for model, cell in study.work:
        for episode in study.episodes(model, cell):
            path = study.transcript(episode)
            marker = study.store.marker(path)
            assert marker is not None
            assert marker["outcome"] != INFRA_ERROR
            events = read_transcript(path)
            assert (events[0]["event"], events[-1]["event"]) == ("episode", "end")
            assert events[0]["attempt"] == marker["attempt"] == 1 + study.store.earlier_attempts(path)
    assert [path for path in study.store.root.rglob("*") if path.name.endswith(".tmp")] == []


def assert_no_episode_twice(study: Study, day: BadDay) -> None:
    """An episode that had an outcome was not met again, and no answer was counted in two places.

    The tasks of a conversation are marked one after another: a run that died in between had not finished it before the
    last of them was, and only until then were the others met again.
    """
    answers: Counter[str] = Counter()
    last_of_all = {
        conversation[-1].episode_id
        for model, cell in study.work
        for conversation in conversations_of(study.episodes(model, cell))
    }
    for path in sorted(study.store.runs.rglob("*.jsonl")):
        if path == study.store.ledger:
            continue
        events = read_transcript(path)
        answers.update(event["raw"]["id"] for event in events if event["event"] == "answer")
        if ".attempt-" in path.name and path.name.partition(".")[0] in last_of_all:
            assert events[-1]["outcome"] == INFRA_ERROR, f"{path.name} was finished and run again"
    assert set(answers.values()) == {1}
    assert answers.keys() <= day.account.served.keys()


def assert_books_balance(study: Study, day: BadDay) -> None:
    """Nothing was spent that was not served; all that was asked is spent, unknown, or held for the dead."""
    totals = Ledger(study.store.ledger, CAP_USD).totals()
    bound = call_bound(study.manifest.models["model"].pricing, study.manifest.scaffold)
    assert totals.spent <= day.account.served_usd * (1 + 1e-9)
    assert totals.unknown <= day.account.lost * bound * (1 + 1e-9)
    assert totals.committed * (1 + 1e-9) >= day.account.served_usd + day.account.lost * bound
    assert sum(entry.get("tokens_in") or 0 for entry in ledger_lines(study)) <= sum(
        usage.input_total for usage in day.account.served.values()
    )
    assert totals.abandoned().keys() == totals.open.keys(), "whoever held them is dead"


def trouble(rng: random.Random, day: BadDay) -> tuple[Disaster | None, Any]:
    """The end of one run: a kill from outside, or one of the disk's at a chosen operation."""
    kind = rng.choice(["kill from outside", "kill from outside", *KINDS])
    if kind != "kill from outside":
        return Disaster(kind, rng.randrange(1, 160), rng.choice([1, 2, 5, 10**9])), None
    after, linger = day.account.asked + rng.randrange(0, 60), rng.random() * 0.02
    reached: list[float] = []

    def kill_when() -> bool:
        if day.account.asked >= after and not reached:
            reached.append(time.monotonic())
        return bool(reached) and time.monotonic() - reached[0] >= linger

    return None, kill_when


@pytest.mark.parametrize(("tasks", "seed"), CASES, indirect=["tasks"], scope="module")
def test_a_study_that_was_killed_again_and_again_ends_as_if_nothing_had_happened(
    seed: int, pristine: Study, undisturbed: pd.DataFrame, server: AnsweringServer, host: Host, tmp_path: Path
) -> None:
    study = copy_of(pristine, tmp_path)
    rng = random.Random(seed)
    day = play(server, study, seed, 0.2)
    story = []
    for _ in range(rng.randrange(2, 5)):
        disaster, kill_when = trouble(rng, day)
        code = host.run(study, disaster, kill_when)
        story.append((disaster or "kill", code))
        assert code in (0, HALTED, -signal.SIGKILL), f"{story}\n{log_of(study)}"
        if study.store.ledger.exists():
            assert_cap_held(study, CAP_USD)
    for _ in range(ROUNDS_AT_MOST):
        assert host.run(study) == 0, f"{story}\n{log_of(study)}"
        if "0 infra_error" in log_of(study):
            break
    assert_whole(study)
    assert_cap_held(study, CAP_USD)
    assert_books_balance(study, day)
    assert_no_episode_twice(study, day)
    assert_same_scores(table(study), undisturbed)
    asked = day.account.asked
    assert host.run(study) == 0
    assert day.account.asked == asked, "nothing is left to ask"
