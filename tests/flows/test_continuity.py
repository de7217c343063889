"""A changed manifest is told field by field, with what stays valid; nothing is mixed and nothing thrown away."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from flows.context import Options, Study
from flows.continuity import change_lines, remember
from tests.flows.small_study import open_study, prepare, run_episodes, tree_bytes

EPISODES = 14


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the small study, run and remembered."""
    folder = tmp_path_factory.mktemp("study")
    study = open_study(folder)
    prepare(study)
    run_episodes(study)
    remember(study)
    return folder


@pytest.fixture
def finished(template: Path, tmp_path: Path) -> Study:
    """A copy of it."""
    folder = tmp_path / "copy"
    shutil.copytree(template, folder)
    return Study(Options(manifest=str(folder / "experiments.yaml")))


def changed(study: Study, changes: dict[str, Any]) -> Study:
    """The study after its manifest was edited, its sets prepared."""
    edited = open_study(study.manifest_path.parent, changes)
    prepare(edited)
    return edited


def test_nothing_is_said_where_nothing_changed_or_nothing_was_run(finished: Study, tmp_path: Path) -> None:
    assert change_lines(finished) == []
    assert change_lines(changed(finished, {})) == []
    (tmp_path / "fresh").mkdir()
    fresh = open_study(tmp_path / "fresh")
    assert change_lines(fresh) == []


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"budget/cap_usd": 50.0}, "budget.cap_usd: 100.0 -> 50.0"),
        ({"models/steady/pricing/output": 6.0}, "models.steady.pricing.output: 5.0 -> 6.0"),
        (
            {"models/steady/limits/requests_per_minute": 60},
            "models.steady.limits.requests_per_minute: null -> 60",
        ),
        ({"retry/http_attempts": 5}, "retry.http_attempts: 2 -> 5"),
        ({"execution/concurrent_episodes": 3}, "execution.concurrent_episodes: 16 -> 3"),
    ],
)
def test_cap_price_limits_and_pace_leave_everything_valid(finished: Study, changes: dict[str, Any], line: str) -> None:
    assert change_lines(changed(finished, changes)) == [
        "the manifest is not the one of the last run here:",
        f"  {line}",
        "nothing of this can change an outcome",
        f"{EPISODES} finished episodes remain valid: all",
    ]


def test_a_growing_set_keeps_what_is_finished_but_for_places_in_an_order_of_another_length(finished: Study) -> None:
    assert change_lines(changed(finished, {"grid/instances": 9})) == [
        "the manifest is not the one of the last run here:",
        "  grid.instances: 2 -> 9",
        f"{EPISODES - 4} finished episodes remain valid",
        "4 finished transcripts belong to another configuration: kept, and left aside",
    ]


@pytest.mark.parametrize(
    ("changes", "lines", "valid"),
    [
        ({"families/query/easy/rows": 9}, ["families.query.easy.rows: 8 -> 9"], 0),
        # The temperature axis asks for its own; all other cells for the baseline's.
        ({"decoding/baseline_temperature": 0.2}, ["decoding.baseline_temperature: 0.0 -> 0.2"], 2),
        ({"scaffold/step_cap": 9}, ["scaffold.step_cap: 10 -> 9"], 0),
        ({"scaffold/tasks_per_conversation": 2}, ["scaffold.tasks_per_conversation: 1 -> 2"], 0),
        ({"seed": 8}, ["seed: 7 -> 8"], 0),
        ({"grid/axes": {"paraphrase": ["p1"]}}, ['grid.axes.resample: ["s1"] -> (absent)'], 4 + 2),
        ({"grid/runs/baseline": 3}, ["grid.runs.baseline: 2 -> 3"], EPISODES),
    ],
)
def test_what_can_change_an_outcome_leaves_the_old_transcripts_aside(
    finished: Study, changes: dict[str, Any], lines: list[str], valid: int
) -> None:
    before = tree_bytes(finished.store.runs)
    told = change_lines(changed(finished, changes))
    assert told[0] == "the manifest is not the one of the last run here:"
    assert [line for line in lines if f"  {line}" not in told] == []
    assert "nothing of this can change an outcome" not in told
    if valid == EPISODES:
        assert told[-1] == f"{EPISODES} finished episodes remain valid: all"
    else:
        assert told[-2:] == [
            f"{valid} finished episodes remain valid",
            f"{EPISODES - valid} finished transcripts belong to another configuration: kept, and left aside",
        ]
    assert tree_bytes(finished.store.runs) == before


def test_what_was_left_aside_counts_again_when_the_manifest_is_changed_back(finished: Study) -> None:
    other = changed(finished, {"families/query/easy/rows": 9})
    run_episodes(other)
    remember(other)
    assert change_lines(changed(finished, {}))[1:] == [
        "  families.query.easy.rows: 9 -> 8",
        f"{EPISODES} finished episodes remain valid",
        f"{EPISODES} finished transcripts belong to another configuration: kept, and left aside",
    ]


def test_a_narrowed_run_counts_the_whole_grid(finished: Study) -> None:
    edited = changed(finished, {"budget/cap_usd": 50.0})
    narrow = Study(edited.options.model_copy(update={"cell": "query-easy-none-baseline"}))
    assert change_lines(narrow)[-1] == f"{EPISODES} finished episodes remain valid: all"


def test_cells_that_are_not_perturbed_yet_are_undecided(finished: Study) -> None:
    edited = open_study(finished.manifest_path.parent, {"families/query/easy/rows": 9})
    assert change_lines(edited)[-2:] == [
        "0 finished episodes remain valid",
        f"{EPISODES} lie in cells that are not perturbed yet, which decides about them",
    ]


def test_an_infra_error_is_not_valid_work(finished: Study) -> None:
    path = finished.transcript(finished.episodes("steady", finished.cells[0])[0])
    marker = finished.store.marker(path)
    assert marker is not None
    finished.store.mark_complete(path, {**marker, "outcome": "infra_error"})
    assert change_lines(changed(finished, {"budget/cap_usd": 50.0}))[-1].startswith(f"{EPISODES - 1} finished episodes")


def test_a_new_version_of_the_code_is_told_like_a_field(finished: Study) -> None:
    content = json.loads(finished.store.last_manifest.read_text())
    content["versions"]["families"]["query"] -= 1
    content["scientific_hash"] = "0" * 16
    finished.store.remember_run(content)
    now = content["versions"]["families"]["query"] + 1
    assert change_lines(finished)[1] == f"  versions.families.query: {now - 1} -> {now}"


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"manifest": NaN}', b"\xff", b'{"manifest": 3}'])
def test_a_damaged_memory_is_said_and_replaced(finished: Study, damage: bytes) -> None:
    finished.store.last_manifest.write_bytes(damage)
    told = change_lines(finished)
    assert told[-1] == f"{EPISODES} finished episodes remain valid: all"
    if damage != b'{"manifest": 3}':
        assert "cannot be read" in told[0]
    remember(finished)
    assert change_lines(finished) == []


def test_finished_work_of_an_unknown_manifest_is_told(finished: Study) -> None:
    finished.store.last_manifest.unlink()
    assert change_lines(changed(finished, {})) == [], "all of it belongs to the grid"
    assert change_lines(changed(finished, {"seed": 8})) == [
        "runs/ holds finished transcripts, and no manifest of a last run to compare with",
        "0 finished episodes remain valid",
        f"{EPISODES} finished transcripts belong to another configuration: kept, and left aside",
    ]


def test_many_changes_are_cut_and_say_so(finished: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.continuity.SHOWN_CHANGES", 1)
    told = change_lines(changed(finished, {"budget/cap_usd": 50.0, "retry/http_attempts": 5, "seed": 8}))
    assert told[2] == "  … and 2 more fields"


def test_the_memory_is_written_only_when_it_differs(finished: Study) -> None:
    before = finished.store.last_manifest.stat()
    remember(finished)
    assert finished.store.last_manifest.stat().st_mtime_ns == before.st_mtime_ns
    remember(changed(finished, {"budget/cap_usd": 50.0}))
    assert json.loads(finished.store.last_manifest.read_text())["manifest"]["budget"]["cap_usd"] == 50.0


@pytest.mark.usefixtures("prefect_api_url")
def test_the_stage_tells_what_changed_before_it_starts_and_remembers(
    finished: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    from flows.run import run

    edited = changed(finished, {"budget/cap_usd": 50.0})
    options = Options(manifest=str(edited.manifest_path))
    asyncio.run(run(options))
    first = capsys.readouterr().out
    assert first.startswith("run: the manifest is not the one of the last run here:\nrun:   budget.cap_usd: 100.0 -> ")
    asyncio.run(run(options))
    assert "the manifest is not" not in capsys.readouterr().out
