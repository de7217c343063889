"""What was run: the grid, the models, dates, hashes, and which cells are missing or partial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from flows.report.blocks import (
    Block,
    Column,
    Facts,
    Fold,
    Listing,
    Paragraph,
    Section,
    Warnings,
    field_column,
    reason_column,
    table,
)
from flows.report.style import axis_label, table_of
from flows.report.wording import NOTHING, count, known, percent, rate_interval, span, text, usd
from flows.results import NO_START
from flows.stats.answerable import refusals
from flows.stats.cells import ALL

STATES = ("all infra_error", "partial", "missing", "unsupported")
"""States of a cell that is not complete, the gravest first."""


_FILES_SHOWN = 6


@dataclass(frozen=True)
class Study:
    """What the results file says of the study, beside its tables."""

    metadata: Mapping[str, Any]
    models: pd.DataFrame
    """One row per model: model, episodes, infra_errors, adapter_version, scaffold_version, first, last, cost_usd;
    first and last null where no start is known."""
    refused: tuple[tuple[str, str], ...]
    """Analyses that the rows do not allow, and why."""
    sources: Mapping[str, tuple[str, ...]]
    """git_sha, manifest_hash, scientific_hash -> every value in the rows."""

    @property
    def name(self) -> str:
        """As the manifest calls it."""
        return str(self.metadata.get("study") or "results without a manifest")


def described(frame: pd.DataFrame, metadata: Mapping[str, Any]) -> Study:
    """The study of a results table and the metadata of its file; the order of the rows changes nothing."""
    rows = []
    for model, own in frame.groupby("model", sort=True):
        started = own.loc[own["started_at"] != NO_START, "started_at"]
        rows.append(
            {
                "model": str(model),
                "episodes": len(own),
                "infra_errors": int(own["infra_error"].sum()),
                "adapter_version": _values(own["adapter_version"]),
                "scaffold_version": _values(own["scaffold_version"]),
                "first": started.min(),
                "last": started.max(),
                "cost_usd": float(own["cost_usd"].astype(float).sort_values().sum()),
                "unknown_cost": int(own["cost_usd"].isna().sum()),
            }
        )
    columns = ["model", "episodes", "infra_errors", "adapter_version", "scaffold_version", "first", "last"]
    models = pd.DataFrame(rows, columns=[*columns, "cost_usd", "unknown_cost"])
    names = ("git_sha", "manifest_hash", "scientific_hash")
    sources = {name: tuple(sorted(set(frame[name].dropna()))) for name in names}
    return Study(metadata, models, tuple(refusals(frame)), sources)


def _values(column: pd.Series) -> str:
    return ", ".join(sorted(set(column.dropna()))) or NOTHING


def gap_warnings(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """One sentence for each kind of gap in the grid."""
    cells = table_of(tables, "coverage")
    if cells.empty:
        return []
    counts = cells["state"].value_counts()
    said = {
        "all infra_error": ("has infrastructure errors only", "have infrastructure errors only"),
        "partial": ("is partial", "are partial"),
        "missing": ("has no episode yet", "have no episode yet"),
        "unsupported": ("cannot be run by its model", "cannot be run by their model"),
    }
    found = [(counts[state], said[state]) for state in STATES if counts.get(state, 0)]
    return [f"{number} of {len(cells)} cells {one if number == 1 else many}." for number, (one, many) in found]


WORDS = (
    (
        "instance",
        "One generated task with a truth that a program checks. Instances come in families of tasks and in "
        "difficulties; a family at one difficulty is a stratum.",
    ),
    (
        "episode",
        "One attempt of one model at one instance, from the first message to the verdict: passed or failed, by the"
        " verifier's word alone.",
    ),
    (
        "pass rate",
        "The share of episodes that passed, with equal weight on every instance, then every stratum, then, where "
        "several models are taken together, every model.",
    ),
    (
        "run",
        "Episodes of one instance under one condition are repeated; a run seed numbers the repetitions.",
    ),
    (
        "axis, level",
        "What is changed, and to what: the axis `tool names` has the levels `synonyms` and `opaque`. No change "
        "alters the task or its truth. The baseline has no change.",
    ),
    (
        "cell",
        "One model in one stratum at one level.",
    ),
    (
        "points",
        "Percentage points of pass rate. Changes are the changed condition less the baseline.",
    ),
    (
        "95% interval",
        "The values that the data leave plausible; it counts in instances drawn from the same generator. Rates and"
        " changes stand with theirs throughout.",
    ),
    (
        "infrastructure error",
        "An episode that provider, network or verifier broke. It counts in no rate; how many there are, and what "
        "they could change, is stated.",
    ),
)
"""Term -> what it means in a report."""

FAMILIES = {
    "filesys": "reach several goals in a simulated file system",
    "query": "answer a question from a database",
    "tabular": "transform a table to a written specification",
}
"""Families that ship, in words; others are named alone."""


def words() -> Section:
    """What the report's words mean."""
    return Section("words", "Words used here", [Facts(WORDS)])


def about(study: Study, tables: Mapping[str, pd.DataFrame]) -> Section:
    """The section."""
    blocks: list[Block] = [_facts(study)]
    blocks.append(
        table(
            "Models, with their prices in USD per million tokens of input and output",
            study.models,
            [
                field_column("model", "model", text, numeric=False),
                Column("asked as", lambda row: text(_entry(study, row["model"]).get("model")), False, optional=True),
                field_column("episodes", "episodes", count),
                Column("infra errors", lambda row: _share(row["infra_errors"], row["episodes"])),
                Column("started", lambda row: span(row["first"], row["last"]), False),
                field_column("adapter", "adapter_version", text, numeric=False),
                field_column("agent loop", "scaffold_version", text, numeric=False),
                Column("prices", lambda row: _price(study, row["model"]), optional=True),
                Column("cost", _cost),
            ],
        )
    )
    blocks += _refused(study)
    blocks += _coverage(table_of(tables, "coverage"), planned=study.metadata.get("planned") is not None)
    blocks += _infra(table_of(tables, "infra_errors"))
    return Section("what-was-run", "What was run", blocks)


def _entry(study: Study, model: str) -> Mapping[str, Any]:
    """What the manifest says of a model; empty for results without one."""
    entry = (study.metadata.get("models") or {}).get(model)
    return entry if isinstance(entry, Mapping) else {}


def _price(study: Study, model: str) -> str:
    prices = _entry(study, model).get("pricing") or {}
    return f"{prices['input']:g}, {prices['output']:g}" if {"input", "output"} <= set(prices) else NOTHING


def _refused(study: Study) -> list[Block]:
    """What the results cannot say, where no grid said beforehand what they would hold."""
    if study.metadata.get("grid") or not study.refused:
        return []
    items = tuple(f"{what[0].upper()}{what[1:]}: {why}." for what, why in study.refused)
    return [Paragraph("These results do not allow every analysis. Not possible with them are:"), Listing(items)]


def _share(part: int, whole: int) -> str:
    return f"{count(part)} ({percent(part / whole)})" if whole and part else count(part)


def _cost(row: Mapping[str, Any]) -> str:
    if row["unknown_cost"] == row["episodes"]:
        return "unknown"
    unknown = f", {row['unknown_cost']} episodes unknown" if row["unknown_cost"] else ""
    return f"{usd(row['cost_usd'])}{unknown}"


def _facts(study: Study) -> Facts:
    meta = study.metadata
    grid = meta.get("grid") or {}
    models = study.models
    items = [("study", study.name)]
    items += _origin(meta) or [("profile", text(meta.get("profile"))), ("master seed", text(meta.get("seed")))]
    if grid:
        items += [
            ("tasks", "; ".join(_family(name, levels) for name, levels in grid.get("families", {}).items())),
            ("axes and levels", _lists(grid.get("axes", {}))),
            ("instances", f"{grid.get('instances', NOTHING)} per family and difficulty"),
            ("runs per instance", ", ".join(f"{name} {runs}" for name, runs in (grid.get("runs") or {}).items())),
            ("models of the grid", ", ".join(grid.get("models", []))),
        ]
    items += _loop(meta)
    lost = int(models["infra_errors"].sum())
    errors = f"{count(lost)} infrastructure {'error' if lost == 1 else 'errors'}"
    items.append(("episodes", f"{count(models['episodes'].sum())}, {errors}"))
    if len(models):
        items.append(("started", _span(models["first"].min(), models["last"].max())))
    if not meta.get("imported"):
        items += _hash_facts(study)
    items += [
        ("code", f"commit {', '.join(study.sources['git_sha']) or NOTHING}"),
        ("resamples", f"{count((meta.get('analysis') or {}).get('resamples'))} of each interval and permutation test"),
    ]
    return Facts(tuple(items))


def _span(first: Any, last: Any) -> str:
    return span(first, last) if known(first) else "unknown: the source does not say"


def _origin(meta: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was imported, from which files and with what result; empty for a study's own results."""
    items: list[tuple[str, str]] = []
    for source in meta.get("imported") or ():
        files = [f"{file['name']} (SHA-256 {file['sha256'][:12]}…)" for file in source["files"][:_FILES_SHOWN]]
        more = len(source["files"]) - len(files)
        items.append((f"imported, {source['format']}", "; ".join(files) + (f"; and {more} more files" if more else "")))
        if source["notes"]:
            items.append(("the import said", ". ".join(_once(source)) + "."))
        if source["lacking"]:
            items.append(("the source lacks", ", ".join(source["lacking"])))
    return items


def _once(source: Mapping[str, Any]) -> list[str]:
    """What the import said, what it said of several files once."""
    names = {file["name"] for file in source["files"]}
    said: dict[str, list[str]] = {}
    for note in source["notes"]:
        name, colon, rest = note.partition(": ")
        own = bool(colon) and name in names
        said.setdefault(rest if own else note, []).extend([name] if own else [])
    return [
        f"{count(len(files))} files: {note}" if len(files) > 1 else ": ".join([*files, note])
        for note, files in said.items()
    ]


def _hash_facts(study: Study) -> list[tuple[str, str]]:
    meta = study.metadata
    return [
        (
            "manifest hash",
            f"{_hashes(study.sources['manifest_hash'], meta.get('manifest_hash'))} (all of the manifest)",
        ),
        (
            "scientific hash",
            f"{_hashes(study.sources['scientific_hash'], meta.get('scientific_hash'))} (what can change an outcome)",
        ),
    ]


def _family(name: str, difficulties: Iterable[str]) -> str:
    said = f", {FAMILIES[name]}" if name in FAMILIES else ""
    return f"{name}{said} ({', '.join(map(str, difficulties))})"


def _loop(meta: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Limits of the agent loop and the temperature, where the results name them."""
    items = []
    loop = meta.get("scaffold") or {}
    if {"step_cap", "max_output_tokens", "tasks_per_conversation"} <= set(loop):
        several = int(loop["tasks_per_conversation"])
        company = (
            "one task per conversation" if several == 1 else f"{several} tasks per conversation, one after another"
        )
        items.append(
            (
                "agent loop",
                f"at most {loop['step_cap']} turns of {count(loop['max_output_tokens'])} tokens per task, {company}; "
                "the same for every model, prompts and tools included",
            )
        )
    baseline = (meta.get("decoding") or {}).get("baseline_temperature")
    if baseline == "provider_default":
        items.append(
            (
                "temperature",
                "none is sent at the baseline: every model runs at its provider's default, so the models of this "
                "study may differ in temperature, and that difference is part of every comparison between them",
            )
        )
    elif baseline is not None:
        items.append(("temperature", f"{baseline} at the baseline"))
    return items


def _lists(names: Mapping[str, Iterable[str]]) -> str:
    return "; ".join(f"{name} ({', '.join(map(str, values))})" for name, values in names.items()) or NOTHING


def _hashes(of_rows: tuple[str, ...], of_file: Any) -> str:
    """Those that the rows carry; the file's own is said where it differs."""
    rows = ", ".join(of_rows) or NOTHING
    return rows if not of_file or of_rows == (of_file,) else f"{rows} in the rows; {of_file} when they were last scored"


def _coverage(cells: pd.DataFrame, *, planned: bool) -> list[Block]:
    if cells.empty:
        return [Paragraph("The results name no grid and hold no cell.")]
    gaps = cells[cells["state"] != "complete"]
    unplanned = (
        "The results name no grid, so that what was planned is unknown. A cell counts as complete here if its model "
        "was scored on every task that any model has in that family and difficulty. "
    )
    said = "" if planned else unplanned
    if gaps.empty:
        return [
            Paragraph(f"{said}All {count(len(cells))} cells (model, family, difficulty, axis, level) are complete.")
        ]
    order = {state: place for place, state in enumerate(STATES)}
    gaps = gaps.assign(order=gaps["state"].map(order)).sort_values(["order", "model", "cell_id"], kind="stable")
    listed = table(
        f"{count(len(gaps))} of {count(len(cells))} cells are not complete",
        gaps,
        [
            field_column("model", "model", text, numeric=False),
            field_column("cell", "cell_id", text, numeric=False),
            field_column("state", "state", text, numeric=False),
            Column("scored of planned", lambda row: f"{count(row['scored'])} of {count(row['planned'])}"),
            field_column("infra errors", "infra_error", count),
            reason_column(),
        ],
    )
    listing = Listing(tuple(gap_warnings({"coverage": cells})))
    fold = Fold("Which cells are not complete", (listed,))
    return [listing, fold] if planned else [Paragraph(said.strip()), listing, fold]


def _infra(rates: pd.DataFrame) -> list[Block]:
    if rates.empty:
        return []
    own = rates[(rates["scope"] == "model") & (rates["infra_errors"] > 0)]
    explained = (
        "An infrastructure error (provider, network, verifier) is not a failure of the agent: it belongs to no rate. "
        "The bounds say what the pass rate would be if every such episode had failed, or had passed."
    )
    if own.empty:
        return [Paragraph(f"No episode ended in an infrastructure error. {explained}")]
    listed = table(
        "Infrastructure errors by model and condition, with bounds on the pass rate",
        own,
        [
            field_column("model", "model", text, numeric=False),
            Column("condition", lambda row: axis_label(row["axis"], row["level"]), False),
            Column("errors", lambda row: f"{count(row['infra_errors'])} of {count(row['episodes'])}"),
            Column(
                "rate, 95% interval",
                lambda row: (
                    f"{percent(row['infra_rate'])} ({rate_interval(row['infra_rate_low'], row['infra_rate_high'])})"
                ),
            ),
            field_column("pass rate", "pass_rate", percent),
            Column("bounds", lambda row: rate_interval(row["if_infra_failed"], row["if_infra_passed"])),
        ],
    )
    total = rates[(rates["scope"] == "model")].groupby("model")[["infra_errors", "episodes"]].sum()
    hurt = [
        f"{model} {_share(int(r.infra_errors), int(r.episodes))}" for model, r in total.iterrows() if r.infra_errors
    ]
    lost = own[own["nothing_scored"]]
    blocks: list[Block] = []
    if len(lost):
        items = tuple(
            f"{row['model']}, {axis_label(row['axis'], row['level'])}: every episode ended in an infrastructure error."
            for row in lost.to_dict("records")
        )
        blocks.append(Warnings("Nothing was scored", items))
    blocks.append(Paragraph(f"{explained} Errors by model: {'; '.join(hurt)}."))
    return [*blocks, Fold("Infrastructure errors by condition", (listed,))]


def overall_of(frame: pd.DataFrame, model: str = ALL) -> pd.DataFrame:
    """The rows of a table over all strata, for one model or for the mean over models."""
    return frame if frame.empty else frame[(frame["scope"].isin(["overall", "model"])) & (frame["model"] == model)]


def has_value(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows that have a value in a column."""
    return frame if frame.empty else frame[[known(value) for value in frame[column]]]
