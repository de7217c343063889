"""Models doing the tasks: transcripts and ledger of the scaffold, a verdict and a row for each, and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flows.context import Options
from flows.episodes.books import read_books
from flows.episodes.recording import replay_problem
from flows.episodes.schema import check_transcript
from flows.episodes.transcript import read_transcript
from flows.errors import ConfigurationError
from flows.results_file import read_results
from flows.service.run import run_benchmark
from flows.service.scoring import evaluation_path
from flows.service.study import ServiceStudy, chosen_axes, model_entry
from tasks_env import registered
from tasks_env.service.benchmark import load_benchmark
from tasks_env.service.evaluation import check_document
from tasks_env.service.family import ServiceChange
from tests.conftest import SMALL_GRID
from tests.flows.service.support import CERTAIN, Judge, console, options

MODEL = "scripted-brittle"


@pytest.fixture
def judge() -> Judge:
    """In place of the evaluator, which has tests of its own."""
    return Judge()


def ran(
    given: Options, judge: Judge, runs: int = 5, task: str = "BE-002", model: str = MODEL, **axes: Any
) -> tuple[int, str]:
    line, out = console()
    code = run_benchmark(given, load_benchmark(task), model, line, runs=runs, judge=judge, **axes)
    return code, out.getvalue()


def root(given: Options) -> Path:
    return Path(given.manifest).parent / ".smoke"


def table(given: Options) -> Any:
    frame, _ = read_results(root(given) / "service-change" / "results" / "results.parquet")
    return frame


def test_every_run_has_a_transcript_a_verdict_and_a_row(tmp_path: Path, judge: Judge) -> None:
    given = options(tmp_path)
    code, said = ran(given, judge, runs=8)
    assert code == 0
    frame = table(given)
    assert len(frame) == 8
    assert judge.asked == (frame["outcome"] == "completed").sum()
    assert set(frame["benchmark"]) == {"service-change"}
    assert set(frame["cell_id"]) == {"service-be-002-none-baseline"}
    assert sorted(frame["run_seed"]) == list(range(1, 9))
    assert set(frame["failure_class"].dropna()) <= {"F02", "F03", "no_submission", "malformed"}
    assert 0 < frame["passed"].sum() < 8
    for row in frame.to_dict("records"):
        path = root(given) / "service-change/runs" / MODEL / row["cell_id"] / "episodes" / f"{row['episode_id']}.jsonl"
        check_transcript(read_transcript(path))
        evaluation = root(given) / "service-change/results/evaluations" / f"{row['episode_id']}.json"
        assert evaluation.is_file() is (row["outcome"] == "completed")
        if evaluation.is_file():
            document = json.loads(evaluation.read_text())
            check_document(document)
            assert (document["run_id"], document["passed"]) == (row["episode_id"], row["passed"])
            assert document["failure_class"] == (None if row["passed"] else row["failure_class"])
    assert "run: 8 of 8 episodes finished" in said
    assert "BE-002 scripted-brittle none-baseline: " in said


def test_a_finished_run_is_neither_run_nor_judged_again_and_more_runs_are_added(tmp_path: Path, judge: Judge) -> None:
    given = options(tmp_path)
    ran(given, judge, runs=2)
    first = table(given)
    asked = judge.asked
    ran(given, judge, runs=2)
    assert judge.asked == asked
    ran(given, judge, runs=3)
    assert judge.asked <= asked + 1
    assert set(first["episode_id"]) < set(table(given)["episode_id"])


def test_money_is_booked_in_the_studys_own_ledger(tmp_path: Path, judge: Judge) -> None:
    given = options(tmp_path)
    ran(given, judge, runs=2)
    books = read_books(root(given) / "runs" / "ledger.jsonl")
    assert [booking.cell for booking in books.bookings] == ["service-be-002-none-baseline"] * 2
    assert books.totals.spent > 0
    assert not (root(given) / "service-change" / "runs" / "ledger.jsonl").exists()


def test_the_perturbations_are_cells_of_their_own(tmp_path: Path, judge: Judge) -> None:
    given = options(tmp_path)
    ran(given, judge, runs=1, axis="all")
    cells = {name.removeprefix("service-be-002-") for name in table(given)["cell_id"]}
    assert cells == {
        "none-baseline",
        *(f"paraphrase-p{number}" for number in range(1, 6)),
        "tool_names-synonyms",
        "tool_names-opaque",
        "distractors-2",
        "distractors-5",
    }


def test_the_default_grid_knows_nothing_of_it() -> None:
    assert "service" not in SMALL_GRID["families"]
    manifest = (Path(__file__).parents[3] / "experiments.yaml").read_text(encoding="utf-8")
    assert "service" not in manifest


def test_an_evaluator_that_cannot_judge_leaves_an_infra_error_that_is_judged_again(tmp_path: Path) -> None:
    given = options(tmp_path)
    code, said = ran(given, Judge(30), runs=2, model=CERTAIN)
    frame = table(given)
    assert code == 1
    assert list(frame["failure_class"]) == ["verifier_error:EvidenceError"] * 2
    assert frame["passed"].isna().all()
    assert "no run has a verdict, 2 infra_error" in said
    assert not (root(given) / "service-change/results/evaluations").exists()
    repaired = Judge()
    code, _ = ran(given, repaired, runs=2, model=CERTAIN)
    assert (code, repaired.asked) == (0, 2)
    assert table(given)["passed"].notna().all()


def test_a_transcript_replays(tmp_path: Path, judge: Judge) -> None:
    given = options(tmp_path)
    ran(given, judge, runs=2)
    with registered(ServiceChange(judge)):
        study = ServiceStudy(given, load_benchmark("BE-002"), {MODEL: model_entry(given, MODEL)}, runs=2)
        for model, cell in study.work:
            variants = {each.variant_id: each for each in study.variants(cell)}
            for episode in study.episodes(model, cell):
                instance = study.instances(cell)[episode.instance_id]
                events = read_transcript(study.transcript(episode))
                assert replay_problem(instance, variants[episode.variant_id], events) is None
                assert evaluation_path(study, episode.episode_id).is_file() is (events[-1]["outcome"] == "completed")


def test_the_output_says_what_few_runs_cannot_show(tmp_path: Path, judge: Judge) -> None:
    _, said = ran(options(tmp_path), judge, runs=5)
    assert "5 runs cannot show that the share lies in the band" in said
    assert "95% interval" in said
    assert "AC4   fails in " in said


@pytest.mark.parametrize("task", ["BE-001", "BE-002"])
def test_a_benchmark_that_everybody_passes_does_not_discriminate(tmp_path: Path, task: str) -> None:
    _, said = ran(options(tmp_path), Judge(0), runs=17, task=task, model=CERTAIN)
    assert "0 of 17 runs fail (0%, 95% interval 0 to 20%), band 30 to 70%: does not discriminate: too few" in said
    assert "AC1   fails in 0 of 17 runs that reached it, never fired" in said


def test_an_unknown_model_is_named_with_its_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"--model: .* has no model 'scripted-week'.*did you mean"):
        model_entry(options(tmp_path), "scripted-week")


def test_a_model_without_its_key_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    given = options(tmp_path)
    line, _ = console()
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY"):
        run_benchmark(given, load_benchmark("BE-002"), "first", line, runs=1, environ={})
    assert not (root(given) / "service-change").exists()


@pytest.mark.parametrize(
    ("axis", "level", "said"),
    [
        ("resample", None, "--axis: no axis 'resample' here; known: all, paraphrase, tool_names, distractors"),
        ("paraphrase", "p9", "--level: axis 'paraphrase' has no level 'p9'; known: p1, p2, p3, p4, p5"),
        (None, "p1", "--level: belongs to --axis"),
        ("all", "p1", "--axis: no axis 'all' here"),
    ],
)
def test_axes_and_levels_that_do_not_apply_are_refused(axis: str | None, level: str | None, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        chosen_axes(axis, level)
    assert str(caught.value).startswith(said)
