"""What changed in the manifest since the last run of a root, and what of the finished work that leaves standing.

The last run's resolved manifest lies in runs/manifest.json. It decides nothing: an episode is known by its id, which
covers everything that could change its outcome. It is there so that a change is said, and never found out later.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from flows.context import Study
from flows.manifest import SCAFFOLD_VERSION, scientific_hash
from flows.manifest.changes import changes
from flows.outcomes import INFRA_ERROR
from tasks_env.canonical import canonical_json
from tasks_env.families import family
from tasks_env.perturbations import VERSION as PERTURBATIONS_VERSION

SHOWN_CHANGES = 40
_NEVER_TOLD = "runs/ holds finished transcripts, and no manifest of a last run to compare with"


@dataclass(frozen=True)
class Standing:
    """Finished transcripts of a root, latest attempts, over the whole grid."""

    valid: int
    """Episodes of the grid that no run repeats."""
    foreign: int
    """Of another configuration: no episode of the grid has their id."""
    undecided: int
    """In cells of the grid that have not been perturbed: which episodes they hold is not known yet."""


def remembered(study: Study) -> dict[str, Any]:
    """What a run leaves for the next one to compare with: the resolved manifest, and the code's own versions."""
    manifest = study.manifest
    return {
        "manifest": manifest.model_dump(mode="json"),
        "versions": {
            "scaffold": SCAFFOLD_VERSION,
            "perturbations": PERTURBATIONS_VERSION,
            "families": {name: family(name).version for name in manifest.grid.families},
        },
        "scientific_hash": scientific_hash(manifest),
    }


def standing(study: Study) -> Standing:
    """Count the finished transcripts that belong to the grid and those that do not."""
    whole = study.whole()
    there = study.store.finished_transcripts()
    counts: Counter[str] = Counter()
    for model, cell in whole.work:
        found = there.pop((model, cell.id), set())
        if found and not whole.has_variants(cell):
            counts["undecided"] += len(found)
        elif found:
            finished = whole.finished(model, cell).values()
            counts["valid"] += sum(marker["outcome"] != INFRA_ERROR for marker in finished)
            counts["foreign"] += len(found - {episode.episode_id for episode in whole.episodes(model, cell)})
    counts["foreign"] += sum(len(found) for found in there.values())
    return Standing(counts["valid"], counts["foreign"], counts["undecided"])


def change_lines(study: Study) -> list[str]:
    """What differs from the last run of this root, field by field, and what stays valid; nothing if nothing differs.

    Raises:
        StoreError: runs/ cannot be read.
    """
    before, now = study.store.last_run(), remembered(study)
    if before is not None and canonical_json(before) == canonical_json(now):
        return []
    stand = standing(study)
    if not before:
        unknown = f"{study.store.last_manifest}: cannot be read, so that what changed since the last run is not known"
        if before is None and not stand.foreign + stand.undecided:
            return []
        return [unknown if before == {} else _NEVER_TOLD, *_standing_lines(stand)]
    differences = changes(_mapping(before, "manifest"), now["manifest"])
    differences += changes({"versions": _mapping(before, "versions")}, {"versions": now["versions"]})
    lines = [
        "the manifest is not the one of the last run here:",
        *(f"  {each}" for each in differences[:SHOWN_CHANGES]),
    ]
    if len(differences) > SHOWN_CHANGES:
        lines.append(f"  … and {len(differences) - SHOWN_CHANGES} more fields")
    if before.get("scientific_hash") == now["scientific_hash"]:
        lines.append("nothing of this can change an outcome")
    return [*lines, *_standing_lines(stand)]


def remember(study: Study) -> None:
    """Leave the manifest for the next run to compare with. Raises `StoreError`."""
    study.store.remember_run(remembered(study))


def _mapping(content: dict[str, Any], key: str) -> dict[str, Any]:
    found = content.get(key)
    return found if isinstance(found, dict) else {}


def _standing_lines(stand: Standing) -> list[str]:
    lines = [f"{stand.valid} finished episodes remain valid" + ("" if stand.foreign or stand.undecided else ": all")]
    if stand.foreign:
        lines.append(f"{stand.foreign} finished transcripts belong to another configuration: kept, and left aside")
    if stand.undecided:
        lines.append(f"{stand.undecided} lie in cells that are not perturbed yet, which decides about them")
    return lines
