"""The whole study as Prefect flows, on small grids, under the test run's one server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pandas as pd
import pytest

from flows.analysis.inputs import read_inputs, up_to_date
from flows.cli import main
from flows.context import Options
from flows.episodes.ledger import Ledger
from flows.results import WALL_CLOCK_COLUMNS
from flows.results_file import read_results
from flows.stats.tables import TABLE_COLUMNS as CORE_TABLES
from flows.store import Store
from tests.conftest import small_manifest

EVERY_LEVEL = {
    "paraphrase": ["p1", "p2", "p3", "p4", "p5"],
    "tool_names": ["synonyms", "opaque"],
    "distractors": ["2", "5"],
    "resample": ["s1"],
    "temperature": ["0.7"],
    "order": ["shuffled"],
}


def comparable(table: Path) -> pd.DataFrame:
    frame, _ = read_results(table)
    return frame.drop(columns=list(WALL_CLOCK_COLUMNS))


def run_study(manifest: Path, until: Literal["run", "score", "analyze"] = "analyze") -> dict[str, float]:
    from flows.study import study

    return asyncio.run(study(Options(manifest=str(manifest), profile="smoke"), until=until))


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_api_url")
def test_smoke_study_exercises_every_family_difficulty_axis_and_level(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    families = {name: ["easy", "hard"] for name in ("tabular", "filesys", "query")}
    manifest = small_manifest(
        tmp_path, {"models": ["scripted-strong"], "families": families, "axes": EVERY_LEVEL, "instances": 1}
    )
    seconds = run_study(manifest)
    assert list(seconds) == ["generate", "perturb", "run", "score", "analyze"]

    root = tmp_path / ".smoke"
    frame, metadata = read_results(root / "results" / "results.parquet")
    assert len(frame) == 6 * (2 + 2 + 11)
    assert set(zip(frame["axis"], frame["level"], strict=True)) == {
        ("none", "baseline"),
        *((axis, level) for axis, levels in EVERY_LEVEL.items() for level in levels),
    }
    assert not frame["infra_error"].any()
    assert frame["cost_usd"].gt(0).all()
    assert frame["manifest_hash"].unique().tolist() == [metadata["manifest_hash"]]
    assert frame.groupby("cell_id")["run_seed"].max()["query-easy-order-shuffled"] == 2

    analysis = root / "results" / "analysis"
    written = {path.stem for path in (analysis / "tables").glob("*.parquet")}
    assert written >= {*CORE_TABLES, "coverage", "verdicts", "variance_components", "power_exact"}
    for name in ("deltas_forest", "paraphrase_strip", "rank_slopes", "variance_components", "power_curves"):
        assert (analysis / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (analysis / "figures" / f"{name}.svg").stat().st_size > 1000
        assert len(pd.read_parquet(analysis / "figures" / f"{name}.parquet").columns) > 1

    first = capsys.readouterr().out
    assert "stage run:" in first
    run_study(manifest)
    second = capsys.readouterr().out
    assert second.count(": complete\n") == len(frame)
    assert "is up to date" in second


@pytest.mark.usefixtures("prefect_api_url")
def test_stages_report_only_to_their_own_tree(tmp_path: Path) -> None:
    manifest = small_manifest(tmp_path, {"models": ["scripted-weak"], "families": {"query": ["easy"]}})
    run_study(manifest)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".smoke", "HYPOTHESES.md", "experiments.yaml"]
    runs = tmp_path / ".smoke" / "runs"
    transcripts = sorted(runs.glob("scripted-weak/*/episodes/*.jsonl"))
    assert len(transcripts) == 2 * (2 + 1 + 2)
    for path in transcripts:
        marker = json.loads(path.with_suffix("._COMPLETE").read_text())
        assert marker["attempt"] == 1
    reserved = [json.loads(line) for line in (runs / "ledger.jsonl").read_text().splitlines()]
    assert [entry["op"] for entry in reserved].count("settle") == len(transcripts)


@pytest.mark.usefixtures("prefect_api_url")
def test_cap_reached_is_a_visible_partial_and_analyze_lists_the_cells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = small_manifest(tmp_path, {"families": {"query": ["easy"]}}, budget={"cap_usd": 1.47})
    run_study(manifest)
    out = capsys.readouterr().out
    assert "PARTIAL: the cost cap is reached" in out
    assert "of 20 episodes completed" in out
    assert "cells are not complete" in out
    frame, _ = read_results(tmp_path / ".smoke" / "results" / "results.parquet")
    assert 0 < len(frame) < 20
    assert frame["cost_usd"].sum() < 1.47


@pytest.mark.usefixtures("prefect_api_url")
def test_study_in_conversations_of_several_tasks_runs_to_the_end_and_is_skipped_the_next_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    axes = {"resample": ["s1"], "order": ["shuffled"]}
    manifest = small_manifest(
        tmp_path,
        {"models": ["scripted-weak"], "families": {"query": ["easy"]}, "axes": axes, "instances": 5},
        scaffold={"tasks_per_conversation": 2},
    )
    run_study(manifest, until="score")
    assert "25 of 25 episodes finished" in capsys.readouterr().out
    frame, metadata = read_results(tmp_path / ".smoke" / "results" / "results.parquet")
    assert len(frame) == 5 * (2 + 1 + 2)
    sizes = frame.groupby("conversation_id")["conversation_position"].agg(["size", "max"])
    assert sizes["size"].value_counts().to_dict() == {2: 10, 1: 5}
    assert (sizes["size"] == sizes["max"]).all()
    assert not frame["infra_error"].any()
    assert sum(cell["episodes"] for cell in metadata["planned"]) == len(frame)
    run_study(manifest, until="run")
    assert capsys.readouterr().out.count(": complete\n") == len(frame)


def _files(root: Path, pattern: str, at_least: int) -> Callable[[], bool]:
    return lambda: len(list(root.glob(pattern))) >= at_least


def _whole_study(manifest: str, said: str, environ: dict[str, str]) -> None:
    """In a process forked from one that has imported everything: to import takes longer than a stage."""
    os.environ.update(environ)
    with Path(said).open("wb") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    sys.exit(main(["study", "--smoke", "--manifest", manifest]))


@pytest.mark.slow
def test_study_killed_in_each_stage_gives_the_same_table_after_a_rerun(
    tmp_path: Path, study_environment: dict[str, str]
) -> None:
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    run_study(small_manifest(undisturbed), until="score")
    expected = comparable(undisturbed / ".smoke" / "results" / "results.parquet")

    killed = tmp_path / "killed"
    killed.mkdir()
    manifest = small_manifest(killed)
    root = killed / ".smoke"
    moments = {
        "generate": _files(root, "data/instances/*/_COMPLETE", 1),
        "perturb": _files(root, "data/variants/*/*/_COMPLETE", 2),
        "run": _files(root, "runs/*/*/episodes/*._COMPLETE", 5),
        "score": _files(root, "results/scores.jsonl", 1),
        "analyze": _files(root, "results/analysis/tables/*.csv", 1),
    }
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["flows.cli", "flows.study", "flows.analysis.outputs"])
    said = tmp_path / "said"

    def started() -> multiprocessing.process.BaseProcess:
        process = processes.Process(target=_whole_study, args=[str(manifest), str(said), study_environment])
        process.start()
        return process

    for stage, reached in moments.items():
        process = started()
        deadline = time.monotonic() + 200
        while not reached() and process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.join()
        assert reached(), f"the study never reached stage {stage}"
    last = started()
    last.join(300)
    assert last.exitcode == 0, said.read_text()
    assert "SMOKE OK" in said.read_text()
    pd.testing.assert_frame_equal(comparable(root / "results" / "results.parquet"), expected)


@pytest.mark.slow
def test_two_whole_studies_at_once_on_one_root_wait_for_each_other_and_share_books_and_results(
    tmp_path: Path, study_environment: dict[str, str]
) -> None:
    models = ("scripted-strong", "scripted-weak")
    manifest = small_manifest(tmp_path, {"families": {"query": ["easy"]}})
    store = Store(tmp_path / ".smoke")
    said = [tmp_path / model for model in models]
    with store.results_lock():  # so that both have to wait
        with contextlib.ExitStack() as opened:
            processes = [
                subprocess.Popen(
                    [sys.executable, "-m", "flows.study", "--smoke", "--manifest", str(manifest), "--model", model],
                    env=study_environment,
                    stdout=opened.enter_context(path.open("w")),
                    stderr=subprocess.STDOUT,
                )
                for model, path in zip(models, said, strict=True)
            ]
        waiting = f"score: waiting for process {os.getpid()}, which works on the same results\n"
        deadline = time.monotonic() + 200
        while not all(waiting in path.read_text() for path in said) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert [process.wait(300) for process in processes] == [0, 0], [path.read_text() for path in said]
    told = [path.read_text() for path in said]
    assert all("SMOKE OK" in text and text.count(waiting) == 1 for text in told), told

    frame, metadata = read_results(store.table)
    assert frame["episode_id"].is_unique
    assert frame.groupby("model").size().to_dict() == dict.fromkeys(models, 10)
    assert sum(cell["episodes"] for cell in metadata["planned"]) == len(frame) == len(store.journal_rows())
    assert set(frame["episode_id"]) == set().union(*store.finished_transcripts().values())
    assert not frame["infra_error"].any()
    entries = [json.loads(line) for line in store.ledger.read_text().splitlines()]
    assert {entry["pid"] for entry in entries if entry["op"] == "reserve"} == {process.pid for process in processes}
    totals = Ledger(store.ledger, 200.0).totals()
    assert (totals.spent, totals.reserved) == (pytest.approx(frame["cost_usd"].sum()), 0)
    assert up_to_date(store, read_inputs(store.table, tmp_path / "HYPOTHESES.md")), "the last analysis is of all rows"


@pytest.mark.slow
def test_failing_stage_is_named_and_exits_non_zero(tmp_path: Path, study_environment: dict[str, str]) -> None:
    manifest = small_manifest(tmp_path, {"families": {"query": ["easy"]}})
    command = [sys.executable, "-m", "flows.study", "--smoke", "--manifest", str(manifest)]
    (tmp_path / ".smoke" / "data").mkdir(parents=True)
    (tmp_path / ".smoke" / "data" / "variants").write_text("a file where a folder must be")
    failed = subprocess.run(command, env=study_environment, capture_output=True, text=True, timeout=300)
    assert failed.returncode == 1
    first, second = failed.stderr.splitlines()
    assert first == "SMOKE FAILED in stage 'perturb'"
    assert second.startswith("agent-bench: stage 'perturb' failed: ")
    assert "SMOKE OK" not in failed.stdout
