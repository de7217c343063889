"""Stage 5: tables, figures, verdicts and report from results.parquet alone. `python -m flows.analyze` runs it."""

import sys

if __name__ == "__main__":
    # Prefect reads its settings when it is first imported, so the command line must come before it.
    from flows.cli import main

    sys.exit(main(["analyze", *sys.argv[1:]]))

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from prefect import flow, task

from flows.analysis.inputs import HYPOTHESES, Inputs, read_inputs, up_to_date
from flows.console import Console
from flows.context import Options, open_study
from flows.orchestration import artifact_key, claim, publish
from flows.stats.answerable import refusals
from flows.store import Store
from flows.turns import in_turn, waiting_line
from flows.watching import analysis_text

T = TypeVar("T")


@flow(name="analyze", flow_run_name="analyze")
async def analyze(options: Options) -> int:
    """Write results/analysis/ anew unless nothing changed. Returns how many tables it holds.

    While another process scores or analyzes the same results, it waits for its turn.
    """
    study, console = open_study(options), Console()
    store = study.store
    await claim(store.root, console)
    async with in_turn(store.results_lock, waiting_line(console, "analyze")):
        inputs = read_inputs(store.table, Path(options.manifest).resolve().parent / HYPOTHESES)
        if up_to_date(store, inputs):
            console.line(f"analyze: {store.analysis.name}/ is up to date")
            return 0
        return await _analysis(store, inputs, console)


@flow(name="analyze-results", flow_run_name="analyze-results")
async def analyze_results(results: str, out: str) -> int:
    """Analyze a results file without a manifest into the folder `out`; hypotheses are looked for beside the file."""
    store = Store(Path(out))
    store.analysis = Path(out)
    inputs, console = read_inputs(Path(results), Path(results).parent / HYPOTHESES), Console()
    count = await _analysis(store, inputs, console)
    for what, why in refusals(inputs.frame):
        console.line(f"analyze: not possible with these results: {what}: {why}")
    return count


async def _analysis(store: Store, inputs: Inputs, console: Console) -> int:
    # The statistics and figures take seconds to import, which an analysis that is up to date should not pay.
    from flows.analysis import outputs
    from flows.report.figures import FIGURES

    outputs.begin(store)
    with console.progress("analyze", 4, "parts") as progress:
        tables = await _part("descriptive-tables", lambda: outputs.descriptive_tables(inputs))
        progress.advance()
        tables |= await _part("inferential-tables", lambda: outputs.inferential_tables(inputs))
        outputs.write_tables(store, tables)
        progress.advance()
        figures = await _part("figures", lambda: outputs.draw(tables))
        outputs.write_figures(store, figures)
        progress.advance()
        await _part("report", lambda: outputs.write_report(store, inputs, tables, figures))
        progress.advance()
    outputs.finish(store, inputs, outputs.source_summary(inputs))
    told = outputs.report_lines(tables)
    verdicts = outputs.verdict_lines(tables["verdicts"])
    for line in [*told, *(f"analyze: {name}: {label}" for name, label in verdicts)]:
        console.line(line)
    console.line(f"analyze: {len(tables)} tables and {len(FIGURES)} figures in {store.analysis}")
    console.line(f"analyze: the report is {store.analysis / outputs.REPORT}")
    text = analysis_text((store.analysis / outputs.REPORT).resolve(), verdicts, told)
    key = artifact_key(str(inputs.metadata.get("profile", "")), "analyze")
    await publish(key, text, "Verdicts, figures and where the report is")
    return len(tables)


async def _part(name: str, work: Callable[[], T]) -> T:
    """One part of the analysis as a task; nothing of it is small enough to be kept as a result."""

    async def part() -> T:
        return work()

    return await task(name=name, persist_result=False)(part)()
