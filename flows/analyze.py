"""Stage 5: tables, figures and verdicts from results.parquet alone, a task per part."""

from pathlib import Path

from prefect import flow, task

from flows.analysis import (
    HYPOTHESES,
    begin,
    descriptive_tables,
    draw,
    finish,
    inferential_tables,
    read_inputs,
    report_lines,
    source_summary,
    up_to_date,
    write_figures,
    write_tables,
)
from flows.console import Console
from flows.context import Options, Study


@flow(name="analyze", flow_run_name="analyze")
async def analyze(options: Options) -> int:
    """Write results/analysis/ anew unless nothing changed. Returns how many tables it holds."""
    study, console = Study(options), Console()
    store = study.store
    inputs = read_inputs(store.table, Path(options.manifest).resolve().parent / HYPOTHESES)
    if up_to_date(store, inputs):
        console.line(f"analyze: {store.analysis.name}/ is up to date")
        return 0
    begin(store)
    with console.progress("analyze", 3, "parts") as progress:
        tables = task(lambda: descriptive_tables(inputs), name="descriptive-tables", persist_result=False)()
        progress.advance()
        tables |= task(lambda: inferential_tables(inputs), name="inferential-tables", persist_result=False)()
        write_tables(store, tables)
        progress.advance()
        task(lambda: write_figures(store, draw(tables)), name="figures", persist_result=False)()
        progress.advance()
    finish(store, inputs, source_summary(inputs))
    for line in report_lines(tables):
        console.line(line)
    for row in tables["verdicts"].itertuples():
        console.line(f"analyze: {row.id}: {row.final_label}")
    console.line(f"analyze: {len(tables)} tables and 5 figures in {store.analysis}")
    return len(tables)
