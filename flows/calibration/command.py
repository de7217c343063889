"""The `calibration` command: many studies over a few processes, and the table that the report reads."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Hashable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from flows.calibration.measures import COVERAGE, FALSE, FAMILY, POOLED, Found
from flows.calibration.population import populations
from flows.calibration.study import Series, run_studies
from flows.calibration.summary import ERRORS, FIELDS, missed, summarise
from flows.console import Console
from flows.errors import ConfigurationError
from flows.files import storage, write_atomically
from flows.manifest import Manifest
from flows.stats.hypotheses import Hypothesis, HypothesisError, parse_hypotheses
from flows.store import Store

METADATA_KEY = b"agent_bench_calibration"
FILE = "calibration.parquet"
"""In results/, where the report looks for it."""
PROCESSES = 2


@dataclass(frozen=True)
class Request:
    """What to run."""

    studies: int
    """Per population."""
    instances: int
    """Per stratum."""
    resamples: int
    seed: int
    processes: int = PROCESSES


def default_out(manifest_path: Path, root: str) -> Path:
    """results/calibration.parquet of a study's tree."""
    return Store(manifest_path.resolve().parent / root).results / FILE


def calibrate(manifest: Manifest, hypotheses: Path, request: Request, console: Console) -> pd.DataFrame:
    """The calibration table of `request.studies` studies of every population. Bounded, and the same for the same seed,
    whatever the number of processes.

    Raises:
        ConfigurationError: no scripted agent in the profile, or hypotheses that cannot be read.
        StoreError: the file of hypotheses cannot be read.
    """
    chosen = populations(manifest)
    registered: tuple[Hypothesis, ...] = ()
    if hypotheses.is_file():
        with storage(hypotheses):
            text = hypotheses.read_text(encoding="utf-8")
        try:
            registered = parse_hypotheses(text)
        except HypothesisError as error:
            raise ConfigurationError(f"{hypotheses}: {error}") from None
    series = [Series(one, request.instances, registered, request.seed, request.resamples) for one in chosen]
    jobs = [(k, number) for number in range(request.studies) for k in range(len(series))]
    found: dict[tuple[int, int], list[Found]] = {}
    with console.progress("calibration", len(jobs), "studies") as progress:
        if request.processes == 1:
            for k, number in jobs:
                (found[k, number],) = run_studies(series[k], number, 1)
                progress.advance()
        else:
            workers = min(request.processes, len(jobs), os.cpu_count() or 1)
            with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
                waiting = {pool.submit(run_studies, series[k], number, 1): (k, number) for k, number in jobs}
                try:
                    for done in as_completed(waiting):
                        (found[waiting[done]],) = done.result()
                        progress.advance()
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
    tables = [
        summarise(one.name, request.instances, [found[k, number] for number in range(request.studies)])
        for k, one in enumerate(chosen)
    ]
    return pd.concat(tables, ignore_index=True)


def write_table(table: pd.DataFrame, out: Path, command: str) -> None:
    """The table as Parquet, with the command that made it in its metadata, and CSV beside it. Raises `StoreError`."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    about = {"command": command, "columns": {name: field.meaning for name, field in FIELDS.items()}}
    arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), METADATA_KEY: json.dumps(about).encode()})
    buffer = BytesIO()
    pq.write_table(arrow, buffer)
    write_atomically(out, buffer.getvalue())
    write_atomically(out.with_suffix(".csv"), table.to_csv(index=False, lineterminator="\n").encode("utf-8"))


def read_command(path: Path) -> str:
    """The command that made a calibration table; empty if the file does not say."""
    with storage(path):
        metadata = pq.read_schema(path).metadata or {}
    return str(json.loads(metadata.get(METADATA_KEY, b"{}")).get("command", ""))


def summary_lines(table: pd.DataFrame) -> list[str]:
    """What a person should see: interval coverage and false conclusions (of single hypotheses only in the table), then
    whatever misses its promise."""
    lines = [f"{'population':11} {'what':74} {'nominal':>8} {'measured':>9} {'MC error':>9}"]
    for measure in (COVERAGE, FALSE):
        for row in _records(table[(table["measure"] == measure) & table["nominal"].notna()]):
            if row["table"] == "verdicts" and row["scope"] != FAMILY and not str(row["quantity"]).startswith(POOLED):
                continue
            what = f"{row['table']}: {row['quantity']} ({row['scope']})"
            lines.append(
                f"{row['population']:11} {what:74} {row['nominal']:8.3f} {row['value']:9.3f} "
                f"{_number(row['mc_error']):>9}" + ("  MISSES" if row["misses"] is True else "")
            )
    bad = missed(table)
    promised = int(table["misses"].notna().sum())
    lines.append(f"{len(bad)} of {promised} measures miss what is promised by more than {ERRORS:g} Monte-Carlo errors")
    lines += [
        f"  {row['population']}: {row['table']}: {row['quantity']} ({row['scope']}): {row['measure']} "
        f"{row['value']:.4f} ± {row['mc_error']:.4f}, promised {row['nominal']:g}"
        for row in _records(bad)
    ]
    return lines


def _records(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    return table.to_dict("records")


def _number(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.3f}"


def run(manifest: Manifest, hypotheses: Path, request: Request, out: Path) -> pd.DataFrame:
    """Calibrate, write and print."""
    started, console = time.monotonic(), Console()
    table = calibrate(manifest, hypotheses, request, console)
    command = (
        f"agent-bench calibration --studies {request.studies} --instances {request.instances} "
        f"--resamples {request.resamples} --seed {request.seed}"
    )
    write_table(table, out, command)
    for line in summary_lines(table):
        console.line(line)
    console.line(f"calibration: {len(table)} measures in {out} and .csv; {time.monotonic() - started:.1f} s in all")
    return table
