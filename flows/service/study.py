"""The study that `service run` is: one model, one benchmark, the manifest's scaffold, retries, cap and ledger.

Its tree lies beside the study's own, under `service-change/`; the ledger, and so the cap, is the study's. Of the
manifest, the grid alone is replaced: the family `service`, one instance, as many run seeds as were asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from flows.context import Options, Study
from flows.errors import ConfigurationError
from flows.grid import Cell, cells_of, instance_set_keys
from flows.manifest import HttpModel, Manifest, Model, ScriptedModel, load_manifest
from flows.manifest.problems import hint, listing
from flows.manifest.references import reference_problems
from flows.sets import materialize_instances, materialize_variants
from flows.store import Store
from tasks_env.service.benchmark import Benchmark
from tasks_env.service.family import ServiceChange

FAMILY = ServiceChange.name
FOLDER = "service-change"
SCRIPTED_RATES = {"BE-001": "easy", "BE-002": "hard"}
"""Benchmark → the difficulty whose chance of passing a scripted agent has, unless its entry names the benchmark."""
AXES = {"paraphrase": ["p1", "p2", "p3", "p4", "p5"], "tool_names": ["synonyms", "opaque"], "distractors": ["2", "5"]}
"""The axes that apply, with their levels. There is one instance, so there is nothing to resample or to reorder."""


class ServiceStudy(Study):
    """One model on one benchmark; only while the family is registered.

    Args:
        models: Entries by name, in place of the manifest's.
        axes: Axis → levels, beside the baseline.
        runs: Run seeds of every cell.
        scaffold: Settings that differ from the manifest's.
    """

    def __init__(
        self,
        options: Options,
        benchmark: Benchmark,
        models: Mapping[str, Model],
        *,
        runs: int,
        axes: Mapping[str, Sequence[str]] | None = None,
        scaffold: Mapping[str, int] | None = None,
        folder: str = FOLDER,
    ) -> None:
        super().__init__(options.model_copy(update={"model": None, "cell": None}))
        self.options = options
        main = self.store
        self.benchmark = benchmark
        self.manifest = _manifest(self.manifest, benchmark, models, runs, axes or {}, scaffold or {})
        self.store = Store(main.root / folder)
        self.store.ledger = main.ledger
        self.models = list(models)
        self.cells: list[Cell] = cells_of(self.manifest)
        problems = reference_problems(self.manifest)
        if problems:
            raise ConfigurationError(listing(self.manifest_path, problems))

    def prepare(self) -> None:
        """Write the instance and its variants, unless they are there."""
        for key in instance_set_keys(self.manifest, self.cells):
            materialize_instances(self.store, self.manifest, key)
        for cell in self.cells:
            materialize_variants(self.store, self.manifest, cell)


def chosen_axes(axis: str | None, level: str | None) -> dict[str, list[str]]:
    """The cells beside the baseline: none, all of them (`all`), an axis, or one level of it.

    Raises:
        ConfigurationError: no such axis or level.
    """
    if axis is None:
        if level is not None:
            raise ConfigurationError("--level: belongs to --axis")
        return {}
    if axis == "all" and level is None:
        return AXES
    if axis not in AXES:
        raise ConfigurationError(
            f"--axis: no axis {axis!r} here; known: all, {', '.join(AXES)}{hint(axis, list(AXES))}"
        )
    if level is not None and level not in AXES[axis]:
        raise ConfigurationError(f"--level: axis {axis!r} has no level {level!r}; known: {', '.join(AXES[axis])}")
    return {axis: AXES[axis] if level is None else [level]}


def model_entry(options: Options, name: str) -> Model:
    """The manifest's entry. Raises `ConfigurationError` if there is none; it need not be in the grid."""
    manifest = load_manifest(Path(options.manifest), options.profile, options.seed)
    if name not in manifest.models:
        known = sorted(manifest.models)
        raise ConfigurationError(
            f"--model: {options.manifest} has no model {name!r}; known: {', '.join(known)}{hint(name, known)}"
        )
    return manifest.models[name]


def _manifest(
    manifest: Manifest,
    benchmark: Benchmark,
    models: Mapping[str, Model],
    runs: int,
    axes: Mapping[str, Sequence[str]],
    scaffold: Mapping[str, int],
) -> Manifest:
    difficulty = benchmark.id.lower()
    grid = manifest.grid.model_copy(
        update={
            "models": list(models),
            "families": {FAMILY: [difficulty]},
            "axes": {axis: list(levels) for axis, levels in axes.items()},
            "instances": 1,
            "runs": manifest.grid.runs.model_copy(update={"baseline": runs, "order": runs, "others": runs}),
        }
    )
    return manifest.model_copy(
        update={
            "models": {name: _entry(entry, benchmark.id) for name, entry in models.items()},
            "families": {FAMILY: {difficulty: {"benchmark": benchmark.id}}},
            "grid": grid,
            "scaffold": manifest.scaffold.model_copy(update={"tasks_per_conversation": 1, **scaffold}),
        }
    )


def _entry(entry: Model, benchmark: str) -> Model:
    """A scripted agent with a chance of passing here."""
    if isinstance(entry, HttpModel):
        return entry
    rates = entry.pass_rate
    rate = rates.get(benchmark.lower(), rates.get(SCRIPTED_RATES.get(benchmark, ""), max(rates.values())))
    levels = {axis: values for axis, values in entry.effects.items() if axis in AXES}
    return entry.model_copy(update={"pass_rate": {benchmark.lower(): rate}, "effects": levels, "family_effects": {}})


def perfect(entry: ScriptedModel) -> ScriptedModel:
    """A scripted agent that always passes: for plans that are given to it."""
    return entry.model_copy(
        update={"pass_rate": {"easy": 1.0}, "instance_spread": 0.0, "effects": {}, "family_effects": {}}
    )
