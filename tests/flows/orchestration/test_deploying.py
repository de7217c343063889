"""What is deployed, and what is refused before anything is sent."""

from __future__ import annotations

import json
from pathlib import Path

import jinja2
import pytest
from ruamel.yaml import YAML

from flows.cli import main
from flows.errors import ConfigurationError
from flows.orchestration.deploying import PAYLOAD, POOL, PREFECT_FILE, named_server
from flows.orchestration.settings import API_URL

ROOT = Path(__file__).parents[3]
NOBODY = "http://127.0.0.1:9/api"


def test_every_deployment_is_of_the_pool_checked_and_alone() -> None:
    document = YAML(typ="safe").load(ROOT / PREFECT_FILE)
    deployments = {each["name"]: each for each in document["deployments"]}
    assert set(deployments) == {"smoke", "study", "rerun-infra-errors", "analyze-only"}
    for each in deployments.values():
        assert each["work_pool"]["name"] == POOL
        assert each["enforce_parameter_schema"] is True
        assert each["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    active = [name for name, each in deployments.items() if any(one["active"] for one in each.get("schedules", []))]
    assert active == ["smoke"], "what costs money is switched on by a person"


def test_no_deployment_names_a_place_on_one_machine() -> None:
    text = (ROOT / PREFECT_FILE).read_text(encoding="utf-8")
    assert "pull:" not in text, "the folder in which it is deployed is put in by Prefect"
    assert not any(word.startswith(("/", "~", "C:")) for word in text.replace('"', " ").split())


def test_the_notification_is_json_whatever_the_message_says() -> None:
    environment = jinja2.Environment(autoescape=False)
    environment.filters["ui_url"] = lambda _run: "http://127.0.0.1:4200/runs"
    state = {"name": "Failed", "message": 'stage "run" failed:\n\\ over\ttwo lines'}
    text = environment.from_string(PAYLOAD).render(flow_run={"name": "study full", "state": state})
    assert json.loads(text) == {
        "text": 'study full Failed: stage "run" failed:\n\\ over\ttwo lines http://127.0.0.1:4200/runs'
    }
    silent = environment.from_string(PAYLOAD).render(flow_run={"name": "n", "state": {"name": "s", "message": None}})
    assert json.loads(silent)["text"] == "n s: no message http://127.0.0.1:4200/runs"


def test_a_server_that_is_not_named_or_silent_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"PREFECT_API_URL is not set.*`agent-bench server`"):
        named_server({})
    with pytest.raises(
        ConfigurationError, match=r"PREFECT_API_URL=http://127\.0\.0\.1:9/api does not answer \(.*refused"
    ):
        named_server({API_URL: NOBODY})
    with pytest.raises(ConfigurationError, match="does not answer"):
        named_server({API_URL: "no address"})


@pytest.mark.parametrize("command", ["deploy", "worker"])
def test_commands_that_need_a_server_end_with_2_and_a_paragraph(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(API_URL, NOBODY)
    assert main([command, "--manifest", str(ROOT / "experiments.yaml")]) == 2
    assert "see that the server is up" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["server", "--port", "65536"], ["server", "--port", "x"], ["deploy", "--notify", "here"]]
)
def test_options_that_are_none_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert words[1] in capsys.readouterr().err
