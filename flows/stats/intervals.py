"""Closed-form intervals for one proportion, for a paired difference, and for combinations of intervals.

Counts may be fractional: effective sample sizes and equal-weight counts are. Every function returns
(lower, upper) and raises ValueError for counts that cannot be.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import betaincinv, ndtri

Interval = tuple[float, float]

_SLACK = 1e-9


def z_quantile(confidence: float) -> float:
    """Two-sided standard normal quantile: 1.96 for 0.95."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    return float(-ndtri((1 - confidence) / 2))


def _check(successes: float, n: float) -> None:
    if not n > 0 or not -_SLACK <= successes <= n + _SLACK:
        raise ValueError(f"need n > 0 and 0 <= successes <= n, got {successes} of {n}")


def wilson(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a proportion (Wilson 1927)."""
    _check(successes, n)
    z = z_quantile(confidence)
    p = min(max(successes / n, 0.0), 1.0)
    centre = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if p <= 0 else (centre - half) / scale
    high = 1.0 if p >= 1 else (centre + half) / scale
    return max(low, 0.0), min(high, 1.0)


def clopper_pearson(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """The exact interval for a proportion (Clopper and Pearson 1934)."""
    _check(successes, n)
    tail = (1 - confidence) / 2
    low = 0.0 if successes <= _SLACK else float(betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes >= n - _SLACK else float(betaincinv(successes + 1, n - successes, 1 - tail))
    return low, high


def jeffreys(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """Jeffreys' interval for a proportion; the upper end is 1 at all-pass, the lower end 0 at all-fail."""
    _check(successes, n)
    tail = (1 - confidence) / 2
    x = min(max(successes, 0.0), n)
    low = 0.0 if x <= _SLACK else float(betaincinv(x + 0.5, n - x + 0.5, tail))
    high = 1.0 if x >= n - _SLACK else float(betaincinv(x + 0.5, n - x + 0.5, 1 - tail))
    return low, high


def _check_paired(b: float, c: float, n: float) -> None:
    if b < 0 or c < 0 or not n > 0 or b + c > n * (1 + _SLACK):
        raise ValueError(f"need b >= 0, c >= 0 and b + c <= n, got b={b}, c={c}, n={n}")


def tango(b: float, c: float, n: float, confidence: float = 0.95) -> Interval:
    """Tango's score interval for a paired difference (b - c)/n (Tango 1998).

    Args:
        b: Sum of the positive differences (pairs that gained).
        c: Sum of the absolute negative differences (pairs that lost).
        n: Pairs.
    """
    _check_paired(b, c, n)
    z = z_quantile(confidence)
    estimate = (b - c) / n

    def score(delta: float) -> float:
        """Excess of |standardised difference| over z at a hypothetical difference, as squares times n."""
        linear = -b - c + (2 * n - b + c) * delta
        constant = -c * delta * (1 - delta)
        loss = (math.sqrt(max(linear * linear - 8 * n * constant, 0.0)) - linear) / (4 * n)
        variance = n * (2 * loss + delta * (1 - delta))
        return (b - c - n * delta) ** 2 - z * z * max(variance, 0.0)

    return _crossing(score, estimate, -1.0), _crossing(score, estimate, 1.0)


def _crossing(score: Callable[[float], float], inside: float, outside: float) -> float:
    """Where `score` turns positive between the estimate and an end of the range, to the last bit or so."""
    if score(outside) <= 0:
        return outside
    for _ in range(60):
        middle = (inside + outside) / 2
        if score(middle) > 0:
            outside = middle
        else:
            inside = middle
    return (inside + outside) / 2


def newcombe_paired(a: float, b: float, c: float, d: float, confidence: float = 0.95) -> Interval:
    """Newcombe's method 10 for a paired difference (Newcombe 1998), Wilson intervals joined by the phi coefficient.

    Args:
        a: Pairs that pass in both arms.
        b: Pairs that pass in the first arm only.
        c: Pairs that pass in the second arm only.
        d: Pairs that fail in both; the interval is for (b - c)/n.
    """
    n = a + b + c + d
    _check_paired(b, c, n)
    first, second = (a + b) / n, (a + c) / n
    low1, high1 = wilson(a + b, n, confidence)
    low2, high2 = wilson(a + c, n, confidence)
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    product = a * d - b * c
    # Newcombe's continuity correction applies to positive association alone.
    if product > 0:
        product = max(product - n / 2, 0.0)
    phi = product / math.sqrt(margins) if margins > 0 else 0.0
    down1, up1, down2, up2 = first - low1, high1 - first, second - low2, high2 - second
    lower = math.sqrt(max(down1**2 - 2 * phi * down1 * up2 + up2**2, 0.0))
    upper = math.sqrt(max(up1**2 - 2 * phi * up1 * down2 + down2**2, 0.0))
    return max(first - second - lower, -1.0), min(first - second + upper, 1.0)


def bonett_price(b: float, c: float, n: float, confidence: float = 0.95) -> Interval:
    """Bonett and Price's adjusted Wald interval for a paired difference (b - c)/n (Bonett and Price 2012)."""
    _check_paired(b, c, n)
    z = z_quantile(confidence)
    p_b, p_c = (b + 1) / (n + 2), (c + 1) / (n + 2)
    half = z * math.sqrt((p_b + p_c - (p_b - p_c) ** 2) / (n + 2))
    return max(p_b - p_c - half, -1.0), min(p_b - p_c + half, 1.0)


def mover_difference(first: float, first_interval: Interval, second: float, second_interval: Interval) -> Interval:
    """Interval for first - second from two independent intervals (method of variance estimates recovery).

    Source: Zou and Donner 2008.
    """
    difference = first - second
    (low1, high1), (low2, high2) = first_interval, second_interval
    lower = math.hypot(max(first - low1, 0.0), max(high2 - second, 0.0))
    upper = math.hypot(max(high1 - first, 0.0), max(second - low2, 0.0))
    return difference - lower, difference + upper
