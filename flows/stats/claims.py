"""How large a benchmark must be for a claimed difference of two models: for its exact prompt, and for any like it.

The exact prompt: instances are the only sample. Any equivalent prompt: prompts (and tool sets) are a sample too, and
the model x level variance sets a floor that no number of instances gets below. Formulas in `flows.stats.power`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from flows.stats.power import (
    difference_variance,
    general_instances,
    instances_needed,
    second_rate,
    smallest_detectable_difference,
    smallest_general_difference,
)

_STEPS = 60


@dataclass(frozen=True)
class Assumptions:
    """What is taken for granted, or estimated from a study."""

    base: float
    """Pass rate of the first model; the second lies towards one half, where the variance is larger."""
    rho: float
    """Correlation of single episodes of both models on one instance."""
    runs: float = 1.0
    """Run seeds per instance, model and prompt."""
    alpha: float = 0.05
    power: float = 0.8
    icc: float | None = None
    """Correlation of two runs of one model on one instance, which run seeds cannot average out; null: halfway between
    rho and 1."""


@dataclass(frozen=True)
class Prompts:
    """The sample of equivalent prompts and tool sets."""

    variance_ml: float
    """Model x level variance of pass rates; 0 or less generalises for free."""
    levels: int
    """L: prompts that each instance is run under."""
    remaining: float | None = None
    """Share of one episode's variance of a difference that averaging over levels and runs leaves; null: levels average
    out what runs do."""


class Exact(NamedTuple):
    """Instances for one exact prompt."""

    unpaired: int
    """Per arm, if the models have different instances."""
    paired: int
    """If both models have the same ones."""


class General(NamedTuple):
    """Instances for any equivalent prompt, both models on the same ones; null if unreachable, with the reason."""

    n: int | None
    floor: float
    """The difference that no number of instances gets below."""
    reason: str | None


def exact_instances(delta: float, given: Assumptions) -> Exact:
    """Instances that find `delta` for this exact prompt.

    Raises:
        ValueError: delta is not positive, or an assumption is impossible.
    """
    other = _other(given.base, delta)

    def needed(rho: float) -> int:
        # unpaired arms are those of a paired design with the same share of instance variance and no covariance
        variance = difference_variance(given.base, other, rho, runs=given.runs, icc=_icc(given))
        return max(2, math.ceil(instances_needed(delta, variance, alpha=given.alpha, power=given.power) - 1e-9))

    return Exact(needed(0.0), needed(given.rho))


def exact_detectable(n: int, given: Assumptions) -> tuple[float | None, float | None]:
    """Smallest difference that n instances find for this exact prompt: (unpaired, n per arm; paired). Null: none."""

    def smallest(rho: float) -> float | None:
        return smallest_detectable_difference(
            n, given.base, rho, given.runs, icc=_icc(given), alpha=given.alpha, power=given.power
        )

    return smallest(0.0), smallest(given.rho)


def general_claim(delta: float, given: Assumptions, prompts: Prompts) -> General:
    """Instances that find `delta` for any equivalent prompt. Raises as `exact_instances`."""
    variance = max(0.0, averaged_variance(delta, given, prompts))
    options = {"alpha": given.alpha, "power": given.power}
    size = general_instances(delta, variance, prompts.variance_ml, prompts.levels, **options)
    floor = smallest_general_difference(prompts.variance_ml, prompts.levels, **options)
    return General(size.n, floor, size.reason)


def general_detectable(n: int, given: Assumptions, prompts: Prompts) -> float | None:
    """Smallest difference that n instances find for any equivalent prompt; null if they find none that can be."""
    low, high = 0.0, given.base if given.base >= 0.5 else 1 - given.base

    def misses(delta: float) -> bool:
        needed = general_claim(delta, given, prompts).n
        return needed is None or needed > n

    if misses(high):
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if misses(middle) else (low, middle)
    return high


def averaged_variance(delta: float, given: Assumptions, prompts: Prompts) -> float:
    """Variance of one instance's difference, averaged over the levels and runs."""
    other = _other(given.base, delta)
    if prompts.remaining is not None:
        return prompts.remaining * difference_variance(given.base, other, given.rho)
    averaged = replace(given, runs=given.runs * prompts.levels)
    return difference_variance(given.base, other, given.rho, runs=averaged.runs, icc=_icc(given))


def _icc(given: Assumptions) -> float:
    """By default run seeds average out the half of what the arms do not share; two runs of one model share no less
    than runs of two models."""
    return (1 + given.rho) / 2 if given.icc is None else min(1.0, max(given.rho, given.icc))


def _other(base: float, delta: float) -> float:
    if not 0 < delta < 1:
        raise ValueError(f"the difference must lie between 0 and 1, got {delta}")
    other = second_rate(base, delta)
    if not 0 <= other <= 1:
        raise ValueError(f"a difference of {delta:g} from {base:g} leaves the range of a pass rate")
    return other
