"""A study that people watch and schedule: a real server, a real worker, a real browser, a real webhook."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.context import Study
from flows.results_file import read_results
from tests.browser import CHROMIUM, chromium
from tests.conftest import small_manifest
from tests.flows.chaos.model import BadDay, plans_of
from tests.flows.episodes.answering import AnsweringServer
from tests.flows.models.fault_server import Received, Reply
from tests.flows.orchestration.standing import (
    ROOT,
    Standing,
    interrupted,
    listening,
    standing_server,
    wait_for,
)
from tests.flows.test_run_stage import served_study

pytestmark = pytest.mark.slow

OOPS = Reply(500, {"error": {"message": "oops"}})
ONE_AT_A_TIME = {"execution/concurrent_episodes": 1, "execution/concurrent_cells": 1}
TAB = "Task Runs"
FAILED, COMPLETED = "FAILED", "COMPLETED"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with its manifest and its deployments, the nightly smoke one every few seconds."""
    folder = tmp_path_factory.mktemp("project")
    small_manifest(folder, {"models": ["scripted-weak"], "families": {"query": ["easy"]}})
    (folder / "deployments").mkdir()
    text = (ROOT / "deployments" / "prefect.yaml").read_text(encoding="utf-8")
    nightly = '{cron: "0 3 * * *", timezone: UTC, active: true}'
    assert nightly in text
    (folder / "deployments" / "prefect.yaml").write_text(text.replace(nightly, "{interval: 8}"), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server(project: Path) -> Iterator[Standing]:
    with standing_server(project / "experiments.yaml") as standing:
        yield standing


def faulty(study: Study) -> BadDayOfTwo:
    """Of the study's two tasks one fails in its first attempt, the other one always."""
    return BadDayOfTwo(sorted(plans_of(study)), BadDay(plans_of(study), study.manifest.models["served"].pricing, 1, 0))


class BadDayOfTwo:
    """Answers requests for two tasks: after some faults, and never."""

    def __init__(self, prompts: list[str], day: BadDay) -> None:
        self._prompts, self._day, self._asked = prompts, day, Counter[str]()

    def __call__(self, request: Received) -> Reply:
        [prompt] = [m["content"] for m in request.body["messages"] if m["content"] in self._prompts]
        self._asked[prompt] += 1
        if prompt == self._prompts[1] or self._asked[prompt] <= 2:  # the requests of an attempt
            return OOPS
        return self._day(request)


def named(runs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {run["name"]: run for run in runs}


def test_a_study_with_faults_shows_its_retries_and_its_failed_episodes(server: Standing, tmp_path: Path) -> None:
    model = AnsweringServer()
    with model.running():
        study = served_study(tmp_path, model.url, **ONE_AT_A_TIME)
        model.answer_with(faulty(study))
        done = server.command("study", "--manifest", str(study.manifest_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "8 of 8 episodes finished (0 before this run), 4 infra_error" in done.stdout
    assert "prefect" not in done.stdout.lower()

    flows = named(server.ask("/flow_runs/filter", {"flow_runs": {"state": {"type": {"any_": [COMPLETED]}}}}))
    assert set(flows) == {"study full", "generate", "perturb", "run", "score", "analyze"}, "green, every one"
    in_run = {"flow_runs": {"id": {"any_": [flows["run"]["id"]]}}}
    assert server.ask("/task_runs/count", in_run) == 2 + 8, "the cells, and every episode of them: nothing was lost"
    tasks = server.ask("/task_runs/filter", in_run)
    cells = [task for task in tasks if task["name"].startswith("served ")]
    episodes = [task for task in tasks if task not in cells]
    assert {task["state_type"] for task in cells} == {COMPLETED}
    ended = Counter((task["state_type"], task["run_count"]) for task in episodes)
    assert ended == {(FAILED, 2): 4, (COMPLETED, 2): 1, (COMPLETED, 1): 3}
    for task in episodes:
        cell, instance, run = task["name"].rsplit(" ", 3)[0], task["name"].split(" ")[1], task["name"][-5:]
        assert cell == f"query-easy-{'none-baseline' if 'none' in task['tags'] else 'order-shuffled'}"
        assert (instance[:11], run[:4]) == ("query-easy-", "run ")
        assert set(task["tags"]) in ({"served", "query", "none"}, {"served", "query", "order"})
        if task["state_type"] == FAILED:
            assert "infra_error (http_500) in episode" in task["state"]["message"]

    artifacts = {each["key"]: each for each in server.ask("/artifacts/filter", {})}
    assert set(artifacts) == {
        *(f"full-{stage}" for stage in ("generate", "perturb", "run", "run-progress", "score", "analyze")),
        *(f"full-served-query-easy-{cell}" for cell in ("none-baseline", "order-shuffled")),
    }
    assert artifacts["full-run-progress"]["data"] == 100
    assert "| infra_error | 2 |" in artifacts["full-served-query-easy-none-baseline"]["data"]
    assert "| served | query-easy-order-shuffled | 4 | " in artifacts["full-run"]["data"]
    report = tmp_path / "results" / "analysis" / "report.html"
    assert f"[report.html]({report.as_uri()})" in artifacts["full-analyze"]["data"]
    assert artifacts["full-analyze"]["data"].count("](data:image/png;base64,") == 5
    if CHROMIUM is not None:
        look(server, flows["run"], next(task for task in episodes if task["state_type"] == FAILED), artifacts, tmp_path)


def look(server: Standing, run: Any, episode: Any, artifacts: Any, shots: Path) -> None:
    """What a person sees of it in the browser."""
    wanted = {
        f"/runs/flow-run/{run['id']}": ["Completed", "10 Task runs", TAB, "served query-easy-none-baseline", "Failed"],
        f"/runs/task-run/{episode['id']}": [episode["name"], "Failed", "Run Count\n2", "Retries\n1", "served"],
        f"/artifacts/artifact/{artifacts['full-run']['id']}": ["8 of 8 episodes finished", "infra_error"],
        f"/artifacts/artifact/{artifacts['full-analyze']['id']}": ["H-ORDER", "deltas_forest"],
    }
    with chromium() as browser:
        for number, (path, texts) in enumerate(wanted.items()):
            page = browser.open(f"{server.address}{path}", width=1400, height=1100)
            for text in texts:
                wait_for(lambda text=text, page=page: text in page.evaluate("document.body.innerText"), 30)
                if text == TAB:
                    found = f"[...document.querySelectorAll('*')].filter(each => each.innerText == '{TAB}')"
                    page.evaluate(f"{found}.pop().click()")
            if path.endswith(artifacts["full-analyze"]["id"]):
                drawn = "[...document.querySelectorAll('img')].filter(image => image.naturalWidth > 300).length"
                wait_for(lambda page=page, drawn=drawn: page.evaluate(drawn) == 5, 30)
            page.screenshot(shots / f"{number}.png", whole=False)
            page.close()


def test_a_second_server_on_the_same_state_or_port_is_refused_in_a_paragraph(server: Standing, project: Path) -> None:
    elsewhere = project / "other"
    elsewhere.mkdir()
    other = small_manifest(elsewhere)
    same_state = server.command("server", "--port", "0", "--manifest", str(project / "experiments.yaml"))
    port = server.address.rsplit(":", 1)[1]
    same_port = server.command("server", "--port", port, "--manifest", str(other))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        foreign = server.command("server", "--port", str(taken.getsockname()[1]), "--manifest", str(other))
    assert [done.returncode for done in (same_state, same_port, foreign)] == [2, 2, 2]
    export = f"export PREFECT_API_URL={server.address}/api"
    assert f"a server already runs on {project / '.prefect' / 'server'} (process {server.process.pid})" in (
        same_state.stderr
    )
    assert export in same_state.stderr
    assert f"a Prefect server is already running on port {port}; to use it: {export}" in same_port.stderr
    assert "is taken by another program" in foreign.stderr
    assert server.said[-2] == export


def test_scheduled_runs_and_what_ends_badly(server: Standing, project: Path, tmp_path: Path) -> None:
    with listening() as (address, posted):
        manifest = str(project / "experiments.yaml")
        deployed = server.command("deploy", "--manifest", manifest, "--notify", address)
        assert deployed.returncode == 0, deployed.stderr
        assert "study/rerun-infra-errors: 0 */6 * * * (off)" in deployed.stdout
        deployments = named(server.ask("/deployments/filter", {}))
        assert set(deployments) == {"smoke", "study", "rerun-infra-errors", "analyze-only"}

        runs_of = {name: f"/deployments/{each['id']}/create_flow_run" for name, each in deployments.items()}
        for parameters, reason in (
            ({"options": {"profil": "smoke"}}, "'profil' was unexpected"),
            ({"options": {"seed": -1}}, "-1 is less than the minimum of 0"),
            ({"options": {}, "until": "the end"}, "'the end' is not one of"),
        ):
            status, text = server.refusal(runs_of["study"], {"parameters": parameters})
            assert status == 409
            assert reason in text

        worker = server.started("worker", "--limit", "2", "--manifest", manifest)
        smoke = {"deployments": {"name": {"any_": ["smoke"]}}}
        completed = smoke | {"flow_runs": {"state": {"type": {"any_": [COMPLETED]}}}}
        cancelled = smoke | {"flow_runs": {"state": {"name": {"any_": ["Cancelled"]}}}}
        try:
            wait_for(lambda: server.ask("/flow_runs/filter", cancelled))
            server.ask(f"/deployments/{deployments['smoke']['id']}/pause_deployment", {})
            kill_a_study(server, tmp_path)
            [first, *_] = wait_for(lambda: server.ask("/flow_runs/filter", completed))
        finally:
            interrupted(worker)
        assert "auto-scheduled" in first["tags"]
        frame, _ = read_results(project / ".smoke" / "results" / "results.parquet")
        assert len(frame) == 10
        assert (project / ".smoke" / "results" / "analysis" / "report.html").is_file()
        messages = {run["state"]["message"] for run in server.ask("/flow_runs/filter", cancelled)}
        assert messages == {"Deployment concurrency limit reached."}, "two at once never work on one root"
        wait_for(lambda: any(json.loads(text)["text"].startswith("study smoke Crashed: ") for text in posted), 60)


def kill_a_study(server: Standing, folder: Path) -> None:
    """In the middle of its episodes; whoever starts next on its root marks it."""
    grid = {"models": ["scripted-weak"], "families": {"query": ["easy"]}, "instances": 60}
    manifest = str(small_manifest(folder, grid))
    study = server.started("study", "--smoke", "--manifest", manifest)
    wait_for(lambda: len(list(folder.glob(".smoke/runs/*/*/episodes/*._COMPLETE"))) > 5)
    study.kill()
    study.wait()
    again = server.command("perturb", "--profile", "smoke", "--manifest", manifest)
    assert f"2 flow runs on {folder / '.smoke'} whose process was killed are marked as crashed" in again.stdout
    crashed = {"flow_runs": {"state": {"type": {"any_": ["CRASHED"]}}}}
    assert {run["name"] for run in server.ask("/flow_runs/filter", crashed)} == {"study smoke", "run"}
    unfinished = {"task_runs": {"state": {"type": {"any_": ["RUNNING", "PENDING"]}}}}
    assert server.ask("/task_runs/count", crashed | unfinished) == 0


def test_the_server_ends_with_ctrl_c_and_says_so(server: Standing) -> None:
    assert interrupted(server.process) == 0
    assert server.process.stdout is not None
    assert server.process.stdout.read() == "server: stopped\n"
