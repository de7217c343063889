"""inspect_ai's own logs, written by inspect_ai in the test, become rows that say what inspect_ai itself computed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from tests.flows.importers.conftest import Import, Refusal, written

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("inspect_ai") is None, reason="`make .venv/.ready-inspect` installs the extra `inspect`"
    ),
]

ROOT = Path(__file__).parents[3]
STRONG, WEAK = "mockllm/strong", "mockllm/weak"


class Logs(NamedTuple):
    """Folders of logs, and what inspect_ai computed: folder → task → model → metric → value."""

    folder: Path
    printed: dict[str, Any]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    folder = tmp_path_factory.mktemp("logs")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("inspect_logs.py")), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return Logs(folder, json.loads(done.stdout.splitlines()[-1]))


def mean_scores(frame: pd.DataFrame) -> dict[tuple[str, str], float]:
    scored = frame[~frame["infra_error"]]
    return scored.groupby(["family", "model"])["partial_score"].mean().to_dict()


@pytest.mark.parametrize("folder", ["eval", "json"])
def test_both_formats_give_the_accuracy_that_inspect_ai_printed(logs: Logs, imported: Import, folder: str) -> None:
    frame = imported("inspect", logs.folder / folder)
    printed = {
        (task, model): next(iter(metrics.values()))
        for task, models in logs.printed[folder].items()
        for model, metrics in models.items()
    }
    assert mean_scores(frame) == pytest.approx(printed)
    assert len(printed) == 4
    epochs = frame[frame["family"] == "letters"].groupby("model")["run_seed"].value_counts().unstack()
    assert epochs.to_numpy().tolist() == [[6, 6], [6, 6]]


def test_a_letter_for_partial_credit_is_a_score_but_no_pass(logs: Logs, imported: Import) -> None:
    frame = imported("inspect", logs.folder / "eval").set_index(["family", "model", "instance_id", "run_seed"])
    partial = frame.loc[("letters", WEAK, "q-5", 1)]
    assert (partial["partial_score"], partial["passed"], partial["failure_class"]) == (0.5, False, "wrong_answer")
    lenient = imported("inspect", logs.folder / "eval", "--pass-at", "0.5")
    assert lenient.groupby("family")["passed"].sum().to_dict() == {"booleans": 8, "letters": 18}


def test_usage_costs_times_and_versions_are_taken_over(logs: Logs, imported: Import) -> None:
    frame = imported("inspect", logs.folder / "eval")
    assert set(frame["tokens_in"]) == {10}
    assert set(frame["tokens_out"]) == {5}
    assert set(frame["cost_usd"]) == {0.25}
    assert set(frame["steps_used"]) == {1}
    assert frame["usage_known"].all()
    assert (frame["wall_clock_s"] > 0).all()
    assert frame["started_at"].min().year >= 2024
    assert frame["adapter_version"].str.startswith("inspect_ai ").all()


def test_of_several_scorers_one_decides_and_the_others_are_named(
    logs: Logs, imported: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = logs.printed["several"]["several"]
    source = logs.folder / "several"
    assert mean_scores(imported("inspect", source))[("several", WEAK)] == printed[WEAK]["letters.accuracy"]
    assert "scorer letters decides, of letters, stars, parts (--metric)" in capsys.readouterr().out
    stars = imported("inspect", source, "--metric", "stars", "--range", "0:10")
    assert mean_scores(stars)[("several", WEAK)] * 10 == pytest.approx(printed[WEAK]["stars.mean"])
    style = imported("inspect", source, "--metric", "parts.style", "--pass-at", "0.5")
    assert style["passed"].all()


def test_a_score_of_several_values_or_out_of_range_asks_for_a_choice(
    logs: Logs, imported: Import, refusal: Refusal
) -> None:
    assert "choose one with --metric (parts.found, parts.style)" in refusal("inspect", logs.folder / "parts")
    assert "there is no such score; there are parts.found" in refusal("inspect", logs.folder / "parts", "--metric", "x")
    assert "score: expected a number from 0 to 1, got 10; name the range" in refusal("inspect", logs.folder / "stars")
    found = imported("inspect", logs.folder / "parts", "--metric", "parts.found")
    assert mean_scores(found)[("parts", WEAK)] == logs.printed["parts"]["parts"][WEAK]["found.accuracy"]


def test_words_are_verdicts_as_for_inspect_ai(logs: Logs, imported: Import) -> None:
    frame = imported("inspect", logs.folder / "words")
    assert mean_scores(frame)[("words", WEAK)] == logs.printed["words"]["words"][WEAK]["graded.accuracy"]


def test_a_task_without_a_scorer_is_refused(logs: Logs, refusal: Refusal) -> None:
    assert "samples, scores: no sample has any: give them some with `inspect score`" in refusal(
        "inspect", logs.folder / "unscored"
    )


def test_an_error_is_no_failure_of_the_agent(logs: Logs, imported: Import) -> None:
    frame = imported("inspect", logs.folder / "errors").set_index(["model", "instance_id"])
    assert frame["infra_error"].sum() == 2
    assert frame.loc[(STRONG, "q-0"), "failure_class"] == "error"
    assert pd.isna(frame.loc[(STRONG, "q-0"), "passed"])
    scores = mean_scores(frame.reset_index())
    assert scores[("errors", STRONG)] == logs.printed["errors"]["errors"][STRONG]["letters.accuracy"]


def test_a_run_that_broke_off_is_imported_as_far_as_it_came_and_said_to_be_partial(
    logs: Logs, imported: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = imported("inspect", logs.folder / "broken-off")
    failed = frame.set_index("instance_id")["infra_error"]
    assert failed["q-3"]
    assert not failed[["q-0", "q-1"]].any()
    assert f"the run ended as error, with {len(frame)} of 6 samples" in capsys.readouterr().out
    assert len(frame) < 6


def test_a_sample_that_was_tried_again_counts_once_with_its_attempts(logs: Logs, imported: Import) -> None:
    frame = imported("inspect", logs.folder / "tried-again").set_index("instance_id")
    assert len(frame) == 6
    assert frame["attempts"].to_dict() == {f"q-{n}": 2 if n == 1 else 1 for n in range(6)}


def test_of_a_run_that_was_retried_the_last_log_counts(
    logs: Logs, imported: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = imported("inspect", logs.folder / "recovered")
    assert len(frame) == 6
    assert frame["infra_error"].sum() == 0
    text = capsys.readouterr().out
    assert text.count("left out, since") == 1
    assert "is a later attempt at the same run" in text


@pytest.mark.parametrize(("folder", "outcome"), [("limits", "truncated"), ("messages", "step_cap")])
def test_a_limit_is_how_the_episode_ended(logs: Logs, imported: Import, folder: str, outcome: str) -> None:
    frame = imported("inspect", logs.folder / folder)
    assert set(frame.loc[frame["instance_id"] == "q-2", "outcome"]) == {outcome}
    assert set(frame.loc[frame["instance_id"] != "q-2", "outcome"]) == {"completed"}
    assert mean_scores(frame)[(folder, WEAK)] == logs.printed[folder][folder][WEAK]["letters.accuracy"]


def test_tool_calls_are_the_trajectory(logs: Logs, imported: Import, capsys: pytest.CaptureFixture[str]) -> None:
    frame = imported("inspect", logs.folder / "tools")
    assert set(frame["trajectory_length"]) == {1}
    weak = frame[frame["model"] == WEAK].drop_duplicates("instance_id").set_index("instance_id")["trajectory_hash"]
    assert weak["q-0"] == weak["q-2"] != weak["q-1"]
    assert "trajectories" not in capsys.readouterr().out
    assert imported("inspect", logs.folder / "eval")["trajectory_hash"].isna().all()


def test_two_prompts_of_one_task_are_refused_until_one_is_a_level(
    logs: Logs, imported: Import, refusal: Refusal
) -> None:
    source = logs.folder / "asked"
    message = refusal("inspect", source)
    assert "task_args.variant: " in message
    assert "they would count as runs of one cell" in message
    options = ("--map", "level=task_args.variant", "--set", "axis=paraphrase", "--baseline", "plain")
    frame = imported("inspect", source, *options)
    assert frame.groupby(["axis", "level"]).size().to_dict() == {("none", "baseline"): 12, ("paraphrase", "polite"): 12}
    assert "did you mean 'task_args.variant'" in refusal("inspect", source, "--map", "level=task_args.varian")


def test_a_damaged_log_is_named(tmp_path: Path, logs: Logs, refusal: Refusal) -> None:
    assert "inspect_ai cannot read it as a log" in refusal("inspect", written(tmp_path, "PK", "one.eval"))
    assert "inspect_ai cannot read it as a log" in refusal("inspect", written(tmp_path, '{"a": 1}', "one.json"))
    [whole, *_] = sorted((logs.folder / "eval").iterdir())
    cut = tmp_path / "cut.eval"
    cut.write_bytes(whole.read_bytes()[:2000])
    assert "inspect_ai cannot read it as a log" in refusal("inspect", cut)
