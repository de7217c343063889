"""Permutation nulls: what level means look like when the level labels mean nothing.

On paired axes the labels of whole blocks (all runs of an instance in a condition) are permuted within the
instance, the same way for every model: permuting single episodes would break up the dependence between the runs
of one block and reject falsely. On unpaired axes the instances of a stratum are dealt anew to the samples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flows.stats.cells import UNPAIRED_AXES, BoolArray, Condition, FloatArray, ScoreCube, Stratum
from tasks_env.seeding import derive_seed

_CHUNK = 2_500
_LARGEST_TABLE = 720
_LARGEST_UNIT = 60
_EXACT_SUM = 2**24
DECIMALS = 10
"""Scores are rounded to this before they are compared, so that equal scores tie."""


@dataclass(frozen=True)
class PairedBlock:
    """Instances of a stratum complete in every condition and model."""

    values: FloatArray
    """Shape (instances, conditions, models)."""

    def means(self) -> FloatArray:
        """Shape (conditions, models)."""
        mean: FloatArray = self.values.mean(axis=0)
        return mean

    def sizes(self) -> tuple[int, ...]:
        """Instances per condition."""
        return tuple(len(self.values) for _ in range(self.values.shape[1]))

    def permuted(self, rng: np.random.Generator, draws: int) -> FloatArray:
        """Means after permuting condition labels within each instance, shape (draws, conditions, models)."""
        n, conditions, models = self.values.shape
        if conditions == 2:
            moved = _coins(rng, (draws, n)) @ (self.values[:, 1] - self.values[:, 0])
            sums = self.values.sum(axis=0)
            swapped: FloatArray = np.stack([sums[0] + moved, sums[1] - moved], axis=1) / n
            return swapped
        values, unit = _whole(self.values)
        total = np.zeros((draws, conditions * models), dtype=values.dtype)
        if math.factorial(conditions) <= _LARGEST_TABLE:
            orders = np.array(list(itertools.permutations(range(conditions))))
            picks = rng.integers(0, len(orders), size=(n, draws), dtype=np.uint16)
            for instance, pick in zip(values, picks.astype(np.intp), strict=True):
                total += instance[orders].reshape(len(orders), -1).take(pick, axis=0)
        else:
            for instance in values:
                order = np.argsort(rng.random((draws, conditions)), axis=1)
                total += instance[order].reshape(draws, -1)
        means: FloatArray = total.astype(np.float64) / (unit * n)
        return means.reshape(draws, conditions, models)


def _coins(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Fair 0/1 draws."""
    count = math.prod(shape)
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-count // 8)), dtype=np.uint8), count=count)
    return bits.reshape(shape).astype(np.float64)


def _whole(values: FloatArray) -> tuple[FloatArray | npt.NDArray[np.float32], int]:
    """Values as whole numbers of 1/unit, in the 32 bits that hold their sums exactly; as they are if there is no such
    unit. Means of a few runs are multiples of one over their number, and moving half the bytes takes half the time.
    """
    for unit in range(1, _LARGEST_UNIT + 1):
        scaled = values * unit
        rounded = scaled.round()
        if np.abs(scaled - rounded).max() < 10.0**-DECIMALS:
            exact = float(np.abs(rounded).max()) * len(values) < _EXACT_SUM
            return (rounded.astype(np.float32), unit) if exact else (values, 1)
    return values, 1


@dataclass(frozen=True)
class UnpairedBlock:
    """Samples of a stratum, one per condition, each complete in every model."""

    samples: tuple[FloatArray, ...]
    """Per condition, shape (instances, models)."""

    def means(self) -> FloatArray:
        """Shape (conditions, models)."""
        means: FloatArray = np.stack([sample.mean(axis=0) for sample in self.samples])
        return means

    def sizes(self) -> tuple[int, ...]:
        """Instances per condition."""
        return tuple(len(sample) for sample in self.samples)

    def permuted(self, rng: np.random.Generator, draws: int) -> FloatArray:
        """Means after dealing all instances anew to samples of the same sizes: (draws, conditions, models)."""
        pooled = np.concatenate(self.samples)
        labels = np.repeat(np.arange(len(self.samples)), self.sizes())
        dealt = rng.permuted(np.broadcast_to(labels, (draws, len(labels))), axis=1)
        sums = np.empty((draws, len(self.samples), pooled.shape[1]))
        for condition in range(1, len(self.samples)):
            sums[:, condition] = (dealt == condition).astype(np.float64) @ pooled
        sums[:, 0] = pooled.sum(axis=0) - sums[:, 1:].sum(axis=1)
        means: FloatArray = sums / np.array(self.sizes())[:, None]
        return means


Block = PairedBlock | UnpairedBlock


def complete_blocks(cube: ScoreCube, conditions: Sequence[Condition], models: Sequence[int]) -> dict[Stratum, Block]:
    """The comparable data of each stratum: instances scored in every model and in every condition they appear in.

    Conditions of one axis, with or without the baseline. Strata that lack a condition are left out.
    """
    positions = _positions(cube, conditions)
    if not models or not positions:
        return {}
    unpaired = any(condition.axis in UNPAIRED_AXES for condition in conditions)
    blocks: dict[Stratum, Block] = {}
    for stratum in cube.strata:
        values = cube.means[stratum][:, list(models)][:, :, positions].transpose(0, 2, 1)
        scored: BoolArray = np.logical_and.reduce(~np.isnan(values), axis=2)
        if unpaired:
            samples = tuple(values[scored[:, k], k] for k in range(len(conditions)))
            if all(len(sample) for sample in samples):
                blocks[stratum] = UnpairedBlock(samples)
        elif scored.all(axis=1).any():
            blocks[stratum] = PairedBlock(values[scored.all(axis=1)])
    return blocks


def _positions(cube: ScoreCube, conditions: Sequence[Condition]) -> list[int]:
    """Where the conditions are; empty if one of them is absent."""
    found = [cube.index(condition) for condition in conditions]
    positions = [position for position in found if position is not None]
    return positions if len(positions) == len(found) else []


def usable_models(cube: ScoreCube, conditions: Sequence[Condition]) -> tuple[int, ...]:
    """Models with a scored episode in every condition."""
    positions = _positions(cube, conditions)
    if not positions:
        return ()
    present: BoolArray = np.zeros((len(cube.models), len(positions)), dtype=np.bool_)
    for stratum in cube.strata:
        present |= (cube.runs[stratum][:, :, positions] > 0).any(axis=0)
    return tuple(int(model) for model in np.flatnonzero(present.all(axis=1)))


def equal_weight_means(blocks: Mapping[Stratum, Block]) -> FloatArray:
    """Scores with equal weight on strata, shape (conditions, models), rounded for comparison."""
    means: FloatArray = np.mean([block.means() for block in blocks.values()], axis=0)
    return means.round(DECIMALS)


def permuted_means(
    blocks: Mapping[Stratum, Block], *, seed: int, permutations: int
) -> Iterator[dict[Stratum, FloatArray]]:
    """Null means of each stratum in chunks; stack the chunks along the first axis to get all permutations.

    Each array has the shape (permutations in the chunk, conditions, models), unrounded.
    """
    streams = {s: np.random.default_rng(derive_seed(seed, "permutation", *s)) for s in blocks}
    for start in range(0, permutations, _CHUNK):
        draws = min(_CHUNK, permutations - start)
        yield {stratum: block.permuted(streams[stratum], draws) for stratum, block in blocks.items()}
