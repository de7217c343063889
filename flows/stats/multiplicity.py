"""Corrections for testing several hypotheses at once. A missing p value counts as 1: it keeps its place."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjusted p values, in the order given; null stays null but counts in the family.

    Source: Holm, Scandinavian Journal of Statistics 6 (1979).

    Raises:
        ValueError: a p value is outside [0, 1].
    """
    ps = _checked(p_values)
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = largest
    return [None if p is None else value for p, value in zip(p_values, adjusted, strict=True)]


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's step-up adjusted p values, in the order given; nulls as in `holm`.

    Raises:
        ValueError: a p value is outside [0, 1].
    """
    ps = _checked(p_values)
    adjusted = [1.0] * len(ps)
    smallest = 1.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__, reverse=True)):
        smallest = min(smallest, ps[index] * len(ps) / (len(ps) - rank))
        adjusted[index] = smallest
    return [None if p is None else value for p, value in zip(p_values, adjusted, strict=True)]


def bonferroni_confidence(alpha: float, family: int) -> float:
    """The confidence 1 - alpha/family at which `family` intervals hold jointly with confidence 1 - alpha."""
    return 1 - alpha / max(family, 1)


def _checked(p_values: Sequence[float | None]) -> list[float]:
    ps = [1.0 if p is None else float(p) for p in p_values]
    if wrong := [p for p in ps if not 0 <= p <= 1]:
        raise ValueError(f"p values must lie in [0, 1], got {wrong[0]}")
    return ps
