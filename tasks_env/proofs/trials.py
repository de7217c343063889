"""One family and difficulty under one level of one axis: drawn, shown and proven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks_env.generation import generate_instance, instance_seeds, validated_params
from tasks_env.perturbations import perturbation
from tasks_env.proofs.findings import prove
from tasks_env.proofs.tallies import Proof
from tasks_env.seeding import derive, derive_seed
from tasks_env.types import BASE_SAMPLE, Presentation

BASELINE_AXIS = "none"


@dataclass(frozen=True)
class Trial:
    """What is to be proven, in plain values: a trial can be carried out in another process."""

    family: str
    difficulty: str
    params: Mapping[str, Any]
    axis: str
    """`none` for the baseline."""
    level: str
    seed: int
    """Master seed: instances, presentation, mistakes and mutants derive from it."""
    instances: int
    """How many variants."""

    @property
    def name(self) -> str:
        """As a cell is called."""
        return f"{self.family}-{self.difficulty}-{self.axis}-{self.level}"


def run_trial(trial: Trial) -> Proof:
    """The tallies of a trial.

    The baseline is proven on the first instances of the study with the same seed; every other level draws instances
    of its own, so that the trials of a family see as many different tasks as they can.

    Raises:
        TaskEnvError: names, parameters or levels that do not exist, or no acceptable instance.
    """
    sample, draw = BASE_SAMPLE, BASE_SAMPLE
    if trial.axis != BASELINE_AXIS:
        sample = perturbation(trial.axis).sample(trial.level)
        draw = sample if sample != BASE_SAMPLE else f"{trial.axis} {trial.level}"
    params = validated_params(trial.family, trial.params)
    instances = [
        generate_instance(trial.family, params, seed, difficulty=trial.difficulty, sample=sample)
        for seed in instance_seeds(trial.seed, trial.family, trial.difficulty, draw, trial.instances)
    ]
    seed = derive_seed(trial.seed, "perturb", trial.name)
    presentations = [Presentation() for _ in instances]
    if trial.axis != BASELINE_AXIS:
        presentations = perturbation(trial.axis).present(instances, trial.level, seed)
    proof = Proof([trial.family])
    for number, (instance, presentation) in enumerate(zip(instances, presentations, strict=True)):
        rng = derive(trial.seed, "prove", trial.name, number)
        proof.add(prove(instance, presentation, axis=trial.axis, level=trial.level, seed=seed, rng=rng))
    return proof
