"""Equal-weight averages over models, levels and strata, brought back to one vector of values per stratum.

An average over cells is a weighted sum of cell means. Cells that show the same instances are summed instance by
instance first, so that the instance stays the unit: what is left is one vector per set of instances, and the
sets (strata) are independent. All intervals start from these vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flows.stats.cells import FloatArray

_DECIMALS = 12
"""Averages are rounded to this, so that six sixths are one and equal differences compare equal."""

InstanceSet = tuple[str, ...]
"""Names the instances that a vector is over: family, difficulty and, where samples differ, the sample."""


class Term(NamedTuple):
    """One cell of an average."""

    weight: float
    """Share of the average; the weights of all terms sum to 1."""
    instances: InstanceSet
    values: FloatArray
    """One value per instance of the set, NaN where missing; at least one is present."""
    episodes: int = 0
    """Scored episodes behind the values."""


@dataclass(frozen=True)
class Part:
    """One set of instances of an average: the mean of `values`, with `weight`."""

    instances: InstanceSet
    weight: float
    values: FloatArray
    """Per-instance values, no NaN. Where a cell misses an instance, the cell's mean stands in and the rest are
    stretched about it, so that mean and variance are those of the average of cell means (infinitesimal
    jackknife); with complete cells they are plain means over cells."""
    raw: FloatArray
    """The same without the stand-in: an instance of which nothing is different stays at exactly 0."""
    episodes: int

    @property
    def n(self) -> int:
        """Instances."""
        return len(self.values)

    @cached_property
    def mean(self) -> float:
        """Mean over instances."""
        return float(self.raw.mean())

    @cached_property
    def squares(self) -> float:
        """Sum of squared deviations of the values from their mean."""
        return float(((self.values - self.values.mean()) ** 2).sum())


def pool(terms: Iterable[Term]) -> tuple[Part, ...]:
    """One part per set of instances, sorted; instances that no term has are dropped."""
    grouped: dict[InstanceSet, list[Term]] = {}
    for term in terms:
        grouped.setdefault(term.instances, []).append(term)
    return tuple(_part(key, grouped[key]) for key in sorted(grouped))


def _part(key: InstanceSet, terms: Sequence[Term]) -> Part:
    weight = math.fsum(term.weight for term in terms)
    episodes = sum(term.episodes for term in terms)
    if len(terms) == 1:
        own = terms[0].values
        own = own[~np.isnan(own)].round(_DECIMALS)
        return Part(key, weight, own, own, episodes)
    table = np.column_stack([term.values for term in terms])
    table = table[~np.isnan(table).all(axis=1)]
    present = ~np.isnan(table)
    shares = np.array([term.weight for term in terms]) / weight
    filled = np.where(present, table, 0.0)
    stretch = len(table) / present.sum(axis=0)
    means = filled.sum(axis=0) / present.sum(axis=0)
    raw = (filled @ (shares * stretch)).round(_DECIMALS)
    centred = np.where(present, table - means, 0.0)
    values = raw if present.all() else ((centred * stretch + means) @ shares).round(_DECIMALS)
    return Part(key, weight, values, raw, episodes)


def pooled_mean(parts: Sequence[Part]) -> float:
    """The average itself."""
    return round(math.fsum(part.weight * part.mean for part in parts), _DECIMALS) + 0.0


def pooled_variance(parts: Sequence[Part]) -> float | None:
    """Squared standard error, sum of w_h²·s_h²/n_h.

    A set of one instance takes the within-set variance pooled over the others; null if no set has two.
    """
    df = sum(part.n - 1 for part in parts)
    if df == 0:
        return None
    common = math.fsum(part.squares for part in parts) / df
    return math.fsum(
        part.weight**2 * (part.squares / (part.n - 1) if part.n > 1 else common) / part.n for part in parts
    )


def equal_weight_n(parts: Sequence[Part]) -> float:
    """n0 = 1 / sum(w_h²/n_h): the instances of a simple random sample with the same precision."""
    if len(parts) == 1:
        return float(parts[0].n)
    return 1 / math.fsum(part.weight**2 / part.n for part in parts)


def instance_count(parts: Sequence[Part]) -> int:
    """Instances over all sets."""
    return sum(part.n for part in parts)
