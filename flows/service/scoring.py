"""From finished transcripts to rows: the evaluator's verdict on the tree that each episode ended with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flows.episodes.transcript import read_transcript
from flows.errors import StoreError
from flows.files import write_atomically
from flows.results_file import refresh_results
from flows.scoring import latest_rows, pending_episodes, results_metadata, row_for
from flows.service.study import ServiceStudy
from tasks_env.canonical import content_hash
from tasks_env.service.evaluation import Evaluation, evaluation_json
from tasks_env.service.family import Judge

BENCHMARK = "service-change"
COMPLETED = "completed"


@dataclass
class KeptJudge:
    """A judge that keeps its latest verdict on each tree: the row has only part of one."""

    judge: Judge
    _verdicts: dict[str, Evaluation] = field(default_factory=dict)

    def __call__(self, benchmark: str, files: Mapping[str, str]) -> Evaluation:
        """The verdict on a tree."""
        evaluation = self.judge(benchmark, files)
        self._verdicts[content_hash([benchmark, dict(files)])] = evaluation
        return evaluation

    def kept(self, benchmark: str, files: Mapping[str, str]) -> Evaluation | None:
        """The latest verdict on a tree; null if there was none."""
        return self._verdicts.get(content_hash([benchmark, dict(files)]))


def evaluation_path(study: ServiceStudy, episode_id: str) -> Path:
    """Where an episode's evaluation.json lies."""
    return study.store.results / "evaluations" / f"{episode_id}.json"


def score_finished(study: ServiceStudy, judge: KeptJudge) -> list[dict[str, Any]]:
    """Judge what is finished and has no row yet: rows in the journal and in results.parquet, and an evaluation.json
    for each submission that was handed in.

    Only while the family is registered with `judge`. Returns the study's rows, the latest of each episode.

    Raises:
        StoreError: a transcript or the disk.
        CellLocked: another process writes the results.
    """
    with study.store.results_lock():
        for cell, episodes in pending_episodes(study, study.store.journal_rows()):
            instances = study.instances(cell)
            for episode in episodes:
                path = study.transcript(episode)
                row = row_for(instances[episode.instance_id], path)
                handed_in = row["outcome"] == COMPLETED
                evaluation = judge.kept(study.benchmark.id, _tree(path)) if handed_in else None
                if evaluation is not None:
                    named = evaluation.model_copy(update={"run_id": episode.episode_id})
                    write_atomically(evaluation_path(study, episode.episode_id), evaluation_json(named))
                study.store.append_rows([_with_class(row, evaluation)])
        journal = study.store.journal_rows()
        everything = latest_rows(journal, [row["episode_id"] for row in journal])
        refresh_results(study.store.table, everything, results_metadata(study))
    own = {each.episode_id for model, cell in study.work for each in study.episodes(model, cell)}
    return [row for row in everything if row["episode_id"] in own]


def _tree(path: Path) -> dict[str, str]:
    """The tree that an episode ended with; empty where its world could not be read."""
    state = read_transcript(path)[-1]["final_state"]["data"]
    files = state.get("files", {})
    if not isinstance(files, dict):
        raise StoreError(
            path, "its final state holds no tree of files; it was edited: delete it and its marker, run again"
        )
    return files


def _with_class(row: dict[str, Any], evaluation: Evaluation | None) -> dict[str, Any]:
    """The row under this benchmark's name; a submission that was handed in and fails has the taxonomy's class."""
    row = {**row, "benchmark": BENCHMARK}
    if evaluation is not None and row["passed"] is False:
        row["failure_class"] = evaluation.failure_class
    return row
