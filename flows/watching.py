"""What Prefect's UI shows of a study beside the states of its runs: one text per stage and cell, as markdown."""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.campaign import Campaign
from flows.context import Study
from flows.files import storage
from flows.grid import Cell
from flows.outcomes import INFRA_ERROR, OUTCOMES

SHOWN_BYTES = 400_000
"""Figures that are larger together are named, not shown: the server keeps every artifact in its database."""


def run_text(campaign: Campaign, summary: Sequence[str]) -> str:
    """The stage `run`: what it did, and how the episodes of every model and cell ended."""
    rows = [
        (model, cell.id, len(campaign.study.episodes(model, cell)), campaign.tally.outcomes[(model, cell.id)])
        for model, cell in campaign.study.work
    ]
    seen = [outcome for outcome in OUTCOMES if any(counter[outcome] for *_, counter in rows)]
    table = _table(
        ("model", "cell", "planned", *seen),
        [(model, cell, planned, *(counter[each] for each in seen)) for model, cell, planned, counter in rows],
    )
    return "\n".join(["# run", "", *_quoted(summary), "", *table, "", *_places(campaign.study)])


def cell_text(campaign: Campaign, model: str, cell: Cell) -> str:
    """One model's episodes in one cell: how they ended, and where their transcripts are."""
    study, counter = campaign.study, campaign.tally.outcomes[(model, cell.id)]
    planned = len(study.episodes(model, cell))
    table = _table(("outcome", "episodes"), [(each, counter[each]) for each in OUTCOMES if counter[each]])
    lines = [f"# {model} {cell.id}", "", f"{counter.total()} of {planned} episodes have an outcome.", "", *table]
    if counter[INFRA_ERROR]:
        lines += [
            "",
            f"{counter[INFRA_ERROR]} ended in infra_error: they are in no pass rate, and a later run repeats them.",
        ]
    return "\n".join([*lines, "", f"Transcripts: `{study.store.episodes(model, cell.id)}`"])


def sets_text(stage: str, study: Study, names: Iterable[str], written: int) -> str:
    """The stages `generate` and `perturb`: the sets that the grid needs."""
    listed = list(names)
    table = _table((f"sets of {stage}",), [(name,) for name in listed])
    return "\n".join(
        [
            f"# {stage}",
            "",
            f"{written} of {len(listed)} written, the others were there.",
            "",
            *table,
            "",
            *_places(study),
        ]
    )


def scores_text(study: Study, rows: Sequence[Mapping[str, Any]]) -> str:
    """The stage `score`: passed of judged episodes by model, axis and level."""
    groups: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        group = groups[(row["model"], row["axis"], row["level"])]
        group["infra" if row["infra_error"] else "passed" if row["passed"] else "failed"] += 1
    table = _table(
        ("model", "axis", "level", "passed", "of", "infra_error"),
        [
            (*name, each["passed"], each["passed"] + each["failed"], each["infra"])
            for name, each in sorted(groups.items())
        ],
    )
    return "\n".join(["# score", "", *table, "", f"Rows: `{study.store.table}`"])


def analysis_text(report: Path, verdicts: Iterable[tuple[str, str]], lines: Sequence[str]) -> str:
    """The stage `analyze`: verdicts, warnings, where the report is, and the figures."""
    figures = sorted((report.parent / "figures").glob("*.png"))
    return "\n".join(
        [
            "# analyze",
            "",
            f"The report: [{report.name}]({report.as_uri()}), `{report}`. A browser follows no link from a server to a "
            "file: copy it into the address bar.",
            "",
            *_table(("hypothesis", "verdict"), list(verdicts)),
            "",
            *_quoted(lines),
            "",
            *_pictures(figures),
        ]
    )


def _pictures(figures: Sequence[Path]) -> list[str]:
    contents = []
    for path in figures:
        with storage(path):
            contents.append(path.read_bytes())
    if sum(map(len, contents)) > SHOWN_BYTES:
        return [f"Figures: {', '.join(f'`{path}`' for path in figures)}"]
    return [
        line
        for path, content in zip(figures, contents, strict=True)
        for line in (
            f"## {path.stem}",
            "",
            f"![{path.stem}](data:image/png;base64,{base64.b64encode(content).decode()})",
            "",
        )
    ]


def _places(study: Study) -> list[str]:
    return [
        f"Root: `{study.store.root}`, manifest: `{study.manifest_path.resolve()}`, profile: `{study.manifest.profile}`"
    ]


def _quoted(lines: Sequence[str]) -> list[str]:
    return ["```", *lines, "```"] if lines else []


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    def line(values: Sequence[object]) -> str:
        return f"| {' | '.join(str(value).replace('|', chr(92) + '|') for value in values)} |"

    return [line(head), line(["---"] * len(head)), *map(line, rows)]
