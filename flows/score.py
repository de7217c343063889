"""Stage 4: a verdict and a row for every finished episode, a task per cell with something new."""

from collections.abc import Coroutine
from typing import Any

from prefect import Task, flow, task

from flows.console import Console
from flows.context import Options, Study, open_study
from flows.grid import Cell, Episode
from flows.orchestration import artifact_key, claim, labels, publish
from flows.results_file import refresh_results
from flows.scoring import (
    REPLAY_MISMATCH,
    grid_episodes,
    latest_rows,
    news,
    pending_episodes,
    results_metadata,
    row_unless_set_aside,
)
from flows.turns import in_turn, waiting_line
from flows.watching import scores_text


@flow(name="score", flow_run_name="score")
async def score(options: Options, strict: bool = False) -> int:
    """Score what is new, then write results.parquet anew. Returns how many episodes were judged.

    While another process scores or analyzes the same results, it waits for its turn.

    Args:
        strict: Judge every finished episode again, and only by calls that replay: a transcript that does not becomes an
            infra_error. Rows that say nothing new are not written again.
    """
    study, console = open_study(options), Console()
    await claim(study.store.root, console)
    store = study.store
    async with in_turn(store.results_lock, waiting_line(console, "score")):
        journal = store.journal_rows()
        pending = pending_episodes(study, journal, again=strict)
        found, total = sum(len(episodes) for _, episodes in pending), 0
        with console.progress("score", found, "episodes") as progress:
            for cell, episodes in pending:
                total += await _cell_task(study, cell, episodes, journal if strict else None)()
                progress.advance(len(episodes))
        whole = open_study(options.model_copy(update={"model": None, "cell": None}))
        rows = latest_rows(store.journal_rows(), grid_episodes(whole))
        written = refresh_results(store.table, rows, results_metadata(whole))
    console.line(
        f"score: {total} scored, {len(rows)} rows in {store.table.name}"
        f"{'' if written else ' (up to date)'}, {sum(row['infra_error'] for row in rows)} infra_error"
    )
    if total < found:
        console.line(
            f"score: {found - total} episodes were set aside by a run that attempts them again; score once more when "
            "it has ended"
        )
    mismatches = sum(row["failure_class"] == REPLAY_MISMATCH for row in rows)
    if mismatches:
        console.line(
            f"score: WARNING: {mismatches} episodes do not replay and are in no pass rate; `agent-bench replay` names "
            "the first diverging call of each"
        )
    await publish(artifact_key(options.profile, "score"), scores_text(study, rows), "Passed episodes")
    return total


def _cell_task(
    study: Study, cell: Cell, episodes: list[Episode], journal: list[dict[str, Any]] | None
) -> Task[[], Coroutine[Any, Any, int]]:
    """Judge the episodes, strictly where the journal is given: then only what is new to it is written.

    The task returns how many were judged: a run that is under way may have set some aside.
    """

    async def verdicts() -> int:
        instances = study.instances(cell)
        shown = {variant.variant_id: variant for variant in study.variants(cell)} if journal is not None else {}
        judged = [
            row_unless_set_aside(
                instances[each.instance_id], study.transcript(each), shown[each.variant_id] if shown else None
            )
            for each in episodes
        ]
        rows = [row for row in judged if row is not None]
        study.store.append_rows(rows if journal is None else news(rows, journal))
        return len(rows)

    model = episodes[0].model
    return task(name="verdicts", task_run_name=f"{model} {cell.id}", tags=labels(model, cell.family, cell.axis))(
        verdicts
    )
