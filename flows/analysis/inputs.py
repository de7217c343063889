"""What an analysis is made from: the results, their grid, the registered hypotheses. Light to import."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from flows.errors import StoreError
from flows.files import storage
from flows.preregistration import Preregistration, read_preregistration
from flows.report.calibration import Calibration, read_calibration, read_shipped
from flows.report.glossary import NO_DOUBT, NOTHING_REGISTERED
from flows.results import NO_START
from flows.results_file import read_results
from flows.stats.cells import prepared
from flows.stats.hypotheses import HypothesisError, parse_hypotheses
from flows.store import MARKER, Store
from tasks_env.canonical import content_hash
from tasks_env.seeding import derive_seed

HYPOTHESES = "HYPOTHESES.md"
CALIBRATION = "calibration.parquet"
"""Beside the results: what `agent-bench calibration` measured."""
_SOURCES = {".py", ".jinja", ".css", ".csv"}

PREREGISTRATION_COLUMNS = {
    "code": "kind of warning; `ok` for a text without one, `none` where imported results have no text",
    "message": "what it means for the verdicts",
}

REGISTERED_COLUMNS = {
    "commit": "commit that brought the text; null if it was never committed",
    "text_hash": "first 16 hex digits of the SHA-256 of the text, UTF-8 with LF",
    "committed_at": "when that commit was made (UTC), by its committer's clock",
    "hypotheses": "hypotheses that the text registers; null if it cannot be read",
    "rows": "rows of results.parquet that started while it was in force, and which it judges",
    "first_row": "start of the first of them, if known",
    "last_row": "start of the last of them",
}


@dataclass(frozen=True)
class Inputs:
    """What an analysis is made from."""

    frame: pd.DataFrame
    metadata: Mapping[str, Any]
    registered: Preregistration
    calibration: Calibration
    key: str
    """Hash of everything that could change an output."""

    @property
    def seed(self) -> int:
        """Of all resampling."""
        return derive_seed(int(self.metadata.get("seed", 0)), "analysis")

    @property
    def resamples(self) -> int:
        """Bootstrap resamples and permutations."""
        return int(self.metadata.get("analysis", {}).get("resamples", 10_000))


def read_inputs(results: Path, hypotheses: Path) -> Inputs:
    """Read and check everything. Raises `StoreError`."""
    frame, metadata = read_results(results)
    try:
        prepared(frame)
    except ValueError as error:
        raise StoreError(results, f"cannot be analyzed: {error}") from None
    registered = _registered_for(frame, metadata, hypotheses)
    with storage(results):
        digest = hashlib.sha256(results.read_bytes()).hexdigest()
    texts = [text.name for text in registered.texts]
    calibrated = results.with_name(CALIBRATION)
    parts = [digest, texts, [list(warning) for warning in registered.warnings], _code_hash()]
    own = calibrated.is_file()
    measured = read_calibration(calibrated) if own else read_shipped()
    if own:
        parts.append(hashlib.sha256(calibrated.read_bytes()).hexdigest())
    return Inputs(frame, metadata, registered, measured, content_hash(parts))


def _registered_for(frame: pd.DataFrame, metadata: Mapping[str, Any], hypotheses: Path) -> Preregistration:
    """Imported results were not run under any registration here, so that it is no doubt if there is none."""
    if metadata.get("imported") and not hypotheses.is_file():
        return Preregistration((), (), ())
    return read_preregistration(hypotheses, frame["started_at"].dt.to_pydatetime().tolist())


def _code_hash() -> str:
    package = Path(__file__).parent.parent
    folders = [package / part for part in ("stats", "report", "analysis")]
    sources = sorted(path for folder in folders for path in folder.iterdir() if path.suffix in _SOURCES)
    return content_hash([[path.name, path.read_text(encoding="utf-8")] for path in sources])


def up_to_date(store: Store, inputs: Inputs) -> bool:
    """Whether the written analysis is the one that `inputs` would give."""
    marker = store.analysis / MARKER
    return marker.is_file() and marker.read_text(encoding="ascii") == inputs.key


def preregistration_table(registered: Preregistration) -> pd.DataFrame:
    """Every warning about the hypotheses' text, or the one line that says there is none, or no text."""
    rows = [tuple(warning) for warning in registered.warnings]
    if not rows and not registered.texts:
        rows = [(NOTHING_REGISTERED, "the results were imported, and nothing was registered for them")]
    rows = rows or [(NO_DOUBT, f"in force: {', '.join(text.name for text in registered.texts)}")]
    return pd.DataFrame(rows, columns=list(PREREGISTRATION_COLUMNS), dtype="str")


def registered_table(inputs: Inputs) -> pd.DataFrame:
    """One row per text of the hypotheses file, in the order they came into force, with the results rows it judges."""
    texts = inputs.registered.texts
    columns = list(REGISTERED_COLUMNS)
    if not texts:
        return pd.DataFrame(columns=columns).astype({"rows": "int64", "hypotheses": "Int64"})
    started = inputs.frame["started_at"].sort_values(ignore_index=True)
    # A row older than every commit is judged by the first text. Only a single text can lack a commit.
    commits = [pd.Timestamp(text.committed_at) for text in texts[1:] if text.committed_at is not None]
    edges = [0, *(int(started.searchsorted(moment)) for moment in commits), len(started)]
    rows = []
    for text, (begin, end) in zip(texts, pairwise(edges), strict=True):
        own = started.iloc[begin:end]
        known = own[own != NO_START]
        rows.append(
            {
                "commit": text.commit,
                "text_hash": text.text_hash,
                "committed_at": text.committed_at,
                "hypotheses": _registered(text.text),
                "rows": len(own),
                "first_row": known.min() if len(known) else None,
                "last_row": known.max() if len(known) else None,
            }
        )
    table = pd.DataFrame(rows, columns=columns)
    moments = dict.fromkeys(("committed_at", "first_row", "last_row"), "datetime64[us, UTC]")
    return table.astype({"commit": "str", "text_hash": "str", "hypotheses": "Int64", "rows": "int64", **moments})


def _registered(text: str) -> int | None:
    try:
        return len(parse_hypotheses(text))
    except HypothesisError:
        return None
