"""What a study would take and could show, before any spend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flows.context import Study
from flows.episodes.disk import run_bytes, set_bytes, tracking_bytes
from flows.episodes.ledger import Ledger
from flows.episodes.pacing import by_endpoint, per_minute
from flows.episodes.pricing import PER_MILLION, episode_bound
from flows.grid import Cell, episode_count, runs_of, supported_cells, unsupported
from flows.manifest import BASELINE_AXIS, Manifest, ScriptedModel
from flows.stats.power import detectable_difference

BASE_RATE = 0.7
ARM_CORRELATION = 0.5
INSTANCE_SHARE = 0.75
"""Assumed for the smallest detectable differences: the pass rate, the correlation of single episodes of two arms on
one instance, and the share of an episode's variance that belongs to its instance."""

CARRIED_SHARE = 0.3
"""Each task adds twice this share of a task's own input to every later one of its conversation: its calls and results
come along with every request, its tools do not. Measured with the scripted agent of the smoke study (six strata, 4
instances): 1.26 times the input at 2 tasks per conversation, 1.86 times at 4."""


@dataclass(frozen=True)
class Projection:
    """What one model's part of the grid would take."""

    model: str
    cells: int
    episodes: int
    expected_usd: float
    worst_usd: float
    hours: float
    """Beside the other models of its endpoint."""


def project(study: Study, model: str) -> Projection:
    """One model's share of the chosen grid."""
    manifest = study.manifest
    entry, expected = manifest.models[model], manifest.expectation
    cells = [cell for _, cell in supported_cells(manifest, [model], study.cells)]
    episodes = _episodes(study, model)
    tokens_in = expected.tokens_in * carried(manifest)
    tokens = tokens_in * entry.pricing.input + expected.tokens_out * entry.pricing.output
    attempts = manifest.retry.episode_attempts
    return Projection(
        model=model,
        cells=len(cells),
        episodes=episodes,
        expected_usd=episodes * tokens * PER_MILLION,
        worst_usd=episodes * attempts * episode_bound(entry.pricing, manifest.scaffold),
        hours=_hours(study, model),
    )


def carried(manifest: Manifest) -> float:
    """How many times an independent episode's input tokens one takes on average, with what it carries on."""

    def tokens(tasks: int) -> float:
        return tasks + CARRIED_SHARE * tasks * (tasks - 1)

    size, n = manifest.scaffold.tasks_per_conversation, manifest.grid.instances
    return (n // size * tokens(size) + tokens(n % size)) / n


def _episodes(study: Study, model: str) -> int:
    return episode_count(study.manifest, [model], study.cells)


def _hours(study: Study, model: str) -> float:
    """How long the model's episodes take beside those of the others that share its allowances per minute."""
    manifest, expected = study.manifest, study.manifest.expectation
    entry = manifest.models[model]
    if isinstance(entry, ScriptedModel):
        return 0.0
    places = min(entry.limits.concurrent_episodes, manifest.execution.concurrent_episodes)
    by_time = _working_hours(study, model) / places
    together = next(names for names in by_endpoint(manifest, study.models) if model in names)
    episodes = sum(_episodes(study, name) for name in together)
    requests, tokens = per_minute([manifest.models[name] for name in together])
    by_requests = episodes * expected.steps / requests / 60 if requests else 0.0
    per_episode = expected.tokens_in * carried(manifest) + expected.tokens_out
    by_tokens = episodes * per_episode / tokens / 60 if tokens else 0.0
    return max(by_time, by_requests, by_tokens)


def _working_hours(study: Study, model: str) -> float:
    """How long the model's episodes take one after another."""
    if isinstance(study.manifest.models[model], ScriptedModel):
        return 0.0
    expected = study.manifest.expectation
    return _episodes(study, model) * expected.steps * expected.seconds_per_step / 3600


def study_hours(study: Study) -> float:
    """How long the chosen models take side by side: they share the places of `execution.concurrent_episodes`."""
    by_place = sum(_working_hours(study, model) for model in study.models)
    return max(
        by_place / study.manifest.execution.concurrent_episodes, *(_hours(study, model) for model in study.models)
    )


@dataclass(frozen=True)
class Detectable:
    """Smallest differences, as fractions, found with 80% power at 5% (two-sided)."""

    axis: str
    one_model_one_level: float
    one_model: float
    all_models: float


def detectable(study: Study) -> list[Detectable]:
    """Per axis: one level of one model, the mean over levels of one model, and that over all models."""
    manifest, grid = study.manifest, study.manifest.grid
    strata = {(cell.family, cell.difficulty) for cell in study.cells}
    n = grid.instances * len(strata)
    rows = []
    for axis in grid.axes:
        cells = [cell for cell in study.cells if cell.axis == axis]
        levels = {cell.level for cell in cells}
        models = [m for m in study.models if any(unsupported(manifest, m, c) is None for c in cells)]
        if not cells or not models:
            continue
        runs = runs_of(manifest, cells[0])
        single = _difference_variance(axis, grid.runs.baseline, runs)
        mean = _difference_variance(axis, grid.runs.baseline, runs * len(levels))
        rows.append(
            Detectable(
                axis,
                detectable_difference(n, single),
                detectable_difference(n, mean),
                detectable_difference(n * len(models), mean),
            )
        )
    return rows


def _difference_variance(axis: str, baseline_runs: int, runs: float) -> float:
    """Variance of one instance's difference; for redrawn instances, of one instance of each arm."""
    spread = BASE_RATE * (1 - BASE_RATE)
    noise = spread * (1 - INSTANCE_SHARE) * (1 / baseline_runs + 1 / runs)
    shared = 0.0 if axis == "resample" else ARM_CORRELATION
    return 2 * spread * (INSTANCE_SHARE - shared) + noise


def plan_text(study: Study, *, list_cells: bool = False) -> str:
    """The plan as a page of text."""
    manifest = study.manifest
    projections = [project(study, model) for model in study.models]
    lines = [*_grid_lines(study), "", *_cost_lines(study, projections), "", *_power_lines(study)]
    if list_cells:
        lines += ["", "cells:", *_cell_lines(manifest, study.models, study.cells)]
    return "\n".join(lines)


def _grid_lines(study: Study) -> list[str]:
    manifest, grid = study.manifest, study.manifest.grid
    families = ", ".join(f"{name} ({', '.join(levels)})" for name, levels in grid.families.items())
    axes = ", ".join(f"{axis} ({', '.join(levels)})" for axis, levels in grid.axes.items())
    skipped = [
        f"  unsupported: {model} {cell.id}: {reason}"
        for model in study.models
        for cell in study.cells
        if (reason := unsupported(manifest, model, cell)) is not None
    ]
    return [
        f"study {manifest.study}, profile {manifest.profile}, seed {manifest.seed}",
        f"  models    {', '.join(study.models)}",
        f"  families  {families}",
        f"  axes      baseline, {axes}",
        f"  cells     {len(study.cells)} per model; {grid.instances} instances each; run seeds: baseline "
        f"{grid.runs.baseline}, order {grid.runs.order}, others {grid.runs.others}",
        *_conversation_lines(manifest),
        *skipped,
    ]


def _conversation_lines(manifest: Manifest) -> list[str]:
    """What context-carrying changes; nothing where every episode is a conversation of its own."""
    size, n = manifest.scaffold.tasks_per_conversation, manifest.grid.instances
    if size == 1:
        return []
    left = f", the last one of {n % size}" if n % size else ""
    return [
        f"  context   carried over {size} tasks per conversation: {-(-n // size)} conversations per cell and run seed"
        f"{left}; order is an axis, not a control",
        f"            input tokens expected below are {carried(manifest):.1f} times an episode's own; the unit of the "
        "analysis is the conversation, so that the detectable differences below are lower bounds",
    ]


def _cost_lines(study: Study, projections: Sequence[Projection]) -> list[str]:
    manifest, expected = study.manifest, study.manifest.expectation
    width = max(len("model"), *(len(item.model) for item in projections))
    lines = [
        f"cost at {expected.steps:g} steps, {expected.tokens_in:g} input and {expected.tokens_out:g} output tokens per "
        f"episode ({expected.source})",
        f"  {'model':{width}}  {'cells':>6} {'episodes':>9} {'expected USD':>13} {'worst case USD':>15} {'hours':>7}",
    ]
    lines += [
        f"  {item.model:{width}}  {item.cells:6} {item.episodes:9} {item.expected_usd:13.2f} {item.worst_usd:15.2f} "
        f"{item.hours:7.1f}"
        for item in projections
    ]
    episodes = sum(item.episodes for item in projections)
    total, worst = (sum(getattr(item, name) for item in projections) for name in ("expected_usd", "worst_usd"))
    hours = study_hours(study)
    lines.append(
        f"  {'all':{width}}  {sum(item.cells for item in projections):6} {episodes:9} {total:13.2f} {worst:15.2f} "
        f"{hours:7.1f}"
    )
    cap, spent = manifest.budget.cap_usd, Ledger(study.store.ledger, manifest.budget.cap_usd).totals()
    fits = "fits under" if total <= cap else "EXCEEDS"
    sets = set_bytes(manifest, study.cells)
    counts = {item.model: item.episodes for item in projections}
    disk = (run_bytes(manifest, counts) + sets) / 1e9
    tracked = tracking_bytes(manifest, episodes) / 1e9
    fits_on_disk = "of" if disk <= manifest.budget.disk_gb else "which EXCEEDS the budget of"
    return [
        *lines,
        f"  the expected cost {fits} the cap of {cap:.2f} USD (so far spent {spent.spent:.2f}, unknown or reserved "
        f"{spent.unknown + spent.reserved:.2f}); no run goes over it: an episode starts only if its worst case fits",
        f"  disk: about {disk:.2f} GB {fits_on_disk} {manifest.budget.disk_gb:g} GB"
        + (f", {tracked:.2f} GB of it Prefect's, unless a server of your own is used" if tracked else ""),
    ]


def _power_lines(study: Study) -> list[str]:
    def points(fraction: float, width: int) -> str:
        return f"{100 * fraction:{width}.1f}"

    lines = [
        f"smallest detectable difference in points, 80% power at 5% (pass rate {BASE_RATE:g}, correlation of arms "
        f"{ARM_CORRELATION:g}, instance share of variance {INSTANCE_SHARE:g})",
        f"  {'axis':12} {'level, one model':>17} {'mean of levels, one model':>26} {'mean of levels, all models':>27}",
    ]
    lines += [
        f"  {row.axis:12} {points(row.one_model_one_level, 17)} {points(row.one_model, 26)} "
        f"{points(row.all_models, 27)}"
        for row in detectable(study)
    ]
    return lines


def _cell_lines(manifest: Manifest, models: Sequence[str], cells: Sequence[Cell]) -> list[str]:
    lines = []
    for cell in cells:
        number = sum(unsupported(manifest, model, cell) is None for model in models)
        kind = "baseline" if cell.axis == BASELINE_AXIS else f"sample {cell.sample}"
        lines.append(
            f"  {cell.id}: {number} models x {manifest.grid.instances} instances x {runs_of(manifest, cell)} runs "
            f"({kind})"
        )
    return lines
