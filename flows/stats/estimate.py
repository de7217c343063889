"""One estimated quantity with an interval at any confidence, from which p values come by inversion."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Bounds = Callable[[float], tuple[float, float]]
"""Confidence in (0, 1) to (lower, upper); the intervals must be nested as confidence grows."""

Side = Literal["greater", "less", "two-sided"]

_SMALLEST_TAIL = 1e-12
_BISECTIONS = 60


@dataclass(frozen=True)
class Estimate:
    """An estimate, how it was made and how sure it is.

    A quantity that is undefined has `value` null; a quantity whose uncertainty is undefined (one instance) has a
    value and no interval. Both carry a `reason`.
    """

    value: float | None
    n: int
    """Instances that entered: pairs in a paired contrast, the smaller arm in an unpaired one."""
    method: str
    """Name of the interval's method, or `none`."""
    reason: str | None = None
    """Why the value or the interval is undefined; null if both are defined."""
    degenerate: bool = False
    """Every episode behind it passed, or every one failed: nothing could have moved."""
    notes: tuple[str, ...] = ()
    """What was left out on the way, such as strata present in one arm only."""
    bounds: Bounds | None = field(default=None, repr=False, compare=False)

    def interval(self, confidence: float = 0.95) -> tuple[float, float] | tuple[None, None]:
        """Two-sided interval (lower, upper), each tail (1 - confidence)/2; (None, None) if undefined.

        Raises:
            ValueError: confidence is not strictly between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
        if self.bounds is None:
            return None, None
        low, high = self.bounds(confidence)
        return float(low), float(high)

    def p_value(self, null: float = 0.0, side: Side = "two-sided") -> float | None:
        """P value of the test that inverts the interval; null if the interval is undefined.

        `greater` has the alternative value > null: the tail (1 - c)/2 of the confidence c whose lower bound
        touches `null` (the upper bound, and one minus the tail, when the interval lies on the other side).
        `less` mirrors it. `two-sided` is twice the smaller of both, at most 1: one minus the largest confidence
        whose interval excludes `null`. By bisection over the tail, never below 1e-12.

        Raises:
            ValueError: unknown side.
        """
        if side not in ("greater", "less", "two-sided"):
            raise ValueError(f"side must be 'greater', 'less' or 'two-sided', got {side!r}")
        if self.bounds is None:
            return None
        if side == "two-sided":
            return min(1.0, 2 * min(self._one_sided(null, "greater"), self._one_sided(null, "less")))
        return self._one_sided(null, side)

    def _one_sided(self, null: float, side: Literal["greater", "less"]) -> float:
        beyond = self._tail(null, above=side == "greater")
        if beyond is not None:
            return beyond
        opposite = self._tail(null, above=side == "less")
        return 0.5 if opposite is None else 1 - opposite

    def _tail(self, null: float, *, above: bool) -> float | None:
        """Smallest tail at which the interval lies wholly above (or below) `null`; null if even tail 0.5 does not."""
        assert self.bounds is not None
        bounds = self.bounds

        def excludes(tail: float) -> bool:
            low, high = bounds(1 - 2 * tail)
            return low > null if above else high < null

        widest, narrowest = math.log(_SMALLEST_TAIL), math.log(0.5 - 1e-9)
        if not excludes(math.exp(narrowest)):
            return None
        if excludes(math.exp(widest)):
            return _SMALLEST_TAIL
        for _ in range(_BISECTIONS):
            middle = (widest + narrowest) / 2
            if excludes(math.exp(middle)):
                narrowest = middle
            else:
                widest = middle
        return math.exp(narrowest)


def undefined(reason: str, *, n: int = 0, value: float | None = None, notes: tuple[str, ...] = ()) -> Estimate:
    """An estimate without an interval (and without a value, unless one is given)."""
    return Estimate(value=value, n=n, method="none", reason=reason, notes=notes)
