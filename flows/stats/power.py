"""Sample size and smallest detectable difference of a comparison of two pass rates.

Normal theory with k = z(1 - alpha/2) + z(power). `variance` is always the variance of one instance's
difference, so that the standard error over n instances is sqrt(variance / n). Nothing here needs data: the
plan of a study can call it before any episode is run. Sources: Connor, Biometrics 43 (1987), for pairs;
Miller, arXiv 2411.00640, for the split into instance and run variance; Satterthwaite, Biometrics Bulletin 2
(1946), for degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

ALPHA = 0.05
POWER = 0.8

FEW_LEVELS = 30
"""Below this many levels, t quantiles stand in for normal ones."""

_LARGEST_N = 10**7


def k_factor(alpha: float = ALPHA, power: float = POWER) -> float:
    """z(1 - alpha/2) + z(power).

    Raises:
        ValueError: alpha or power is not strictly between 0 and 1.
    """
    for name, value in (("alpha", alpha), ("power", power)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")
    return NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)


def second_rate(base: float, delta: float) -> float:
    """The rate `delta` away from `base` towards one half, where the variance is larger."""
    return base - delta if base >= 0.5 else base + delta


def difference_variance(first: float, second: float, rho: float, *, runs: float = 1, icc: float | None = None) -> float:
    """Variance of one instance's difference of pass rates, p1q1 + p2q2 - 2 rho sqrt(p1q1p2q2) with one run.

    Args:
        first, second: The two pass rates.
        rho: Correlation of single episodes of the two arms on one instance; 0 for unpaired arms.
        runs: Run seeds per instance and arm; may be infinite.
        icc: Correlation of two episodes of one arm on one instance: the share of the variance that run seeds
            cannot average out. By default (1 + rho) / 2, which splits what the arms do not share into equal
            parts of instance and run variance.

    Raises:
        ValueError: a rate is outside [0, 1], fewer than one run, or rho > icc.
    """
    if not (0 <= first <= 1 and 0 <= second <= 1):
        raise ValueError(f"pass rates must lie in [0, 1], got {first} and {second}")
    if runs < 1:
        raise ValueError(f"need at least one run, got {runs}")
    shared = (1 + rho) / 2 if icc is None else icc
    if not (-1 <= rho <= shared <= 1):
        raise ValueError(f"need -1 <= rho <= icc <= 1, got rho {rho} and icc {shared}")
    v1, v2 = first * (1 - first), second * (1 - second)
    return (v1 + v2) * (shared + (1 - shared) / runs) - 2 * rho * math.sqrt(v1 * v2)


def run_variance(
    omega2: float, sigma2_first: float, sigma2_second: float, runs_first: float, runs_second: float
) -> float:
    """omega² + sigma_A²/K_A + sigma_B²/K_B: true per-instance differences plus run noise of both arms."""
    return omega2 + sigma2_first / runs_first + sigma2_second / runs_second


def instances_needed(delta: float, variance: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """n = k² variance / delta², not rounded.

    Raises:
        ValueError: delta is not positive or the variance is negative.
    """
    if delta <= 0 or variance < 0:
        raise ValueError(f"need delta > 0 and variance >= 0, got {delta} and {variance}")
    return k_factor(alpha, power) ** 2 * variance / delta**2


def unpaired_n(first: float, second: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """Instances per arm when the arms have different instances: k²(p1q1 + p2q2)/delta²."""
    return paired_n(first, second, 0.0, alpha=alpha, power=power)


def paired_n(first: float, second: float, rho: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """Instances when both arms run the same ones once: k² sigma_d²/delta²."""
    variance = difference_variance(first, second, rho)
    return instances_needed(abs(first - second), variance, alpha=alpha, power=power)


def connor_n(first: float, second: float, rho: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """Instances for McNemar's test: (z_alpha sqrt(psi) + z_power sqrt(psi - delta²))²/delta².

    psi is the probability of a discordant pair, sigma_d² + delta².
    """
    delta = abs(first - second)
    variance = difference_variance(first, second, rho)
    z_alpha, z_power = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)
    return (z_alpha * math.sqrt(variance + delta**2) + z_power * math.sqrt(variance)) ** 2 / delta**2


def detectable_difference(n: float, variance: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """k sqrt(variance / n): the smallest difference found with the given power."""
    if n <= 0:
        raise ValueError(f"need n > 0, got {n}")
    return k_factor(alpha, power) * math.sqrt(variance / n)


def smallest_detectable_difference(
    n: float,
    base: float,
    rho: float,
    runs: float = 1,
    *,
    icc: float | None = None,
    alpha: float = ALPHA,
    power: float = POWER,
) -> float | None:
    """The smallest change of a pass rate, from `base` towards one half, found in n instances.

    Arguments as in `difference_variance`; rho = 0 for arms of different instances, n then being per arm. Over
    strata of unequal size n is 1/sum(w_h²/n_h). None if even a change to the other end of [0, 1] goes unseen.
    """
    room = base if base >= 0.5 else 1 - base

    def missed(delta: float) -> bool:
        variance = difference_variance(base, second_rate(base, delta), rho, runs=runs, icc=icc)
        return delta < detectable_difference(n, max(variance, 0.0), alpha=alpha, power=power)

    if missed(room):
        return None
    return _boundary(missed, 0.0, room)


def _boundary(missed: Callable[[float], bool], low: float, high: float) -> float:
    """Where `missed` turns false between low (missed) and high (not missed)."""
    for _ in range(60):
        middle = (low + high) / 2
        if missed(middle):
            low = middle
        else:
            high = middle
    return high


class GeneralSize(NamedTuple):
    """Instances needed to generalise over levels; `n` is None, with the reason, if no number suffices."""

    n: int | None
    reason: str | None


def _satterthwaite_df(n: float, variance: float, variance_ml: float, levels: int) -> float:
    instance, level = variance / n, 2 * variance_ml / levels
    spread = instance**2 / max(n - 1, 1) + level**2 / max(levels - 1, 1)
    return (instance + level) ** 2 / spread if spread > 0 else math.inf


def _k_general(n: float, variance: float, variance_ml: float, levels: int, alpha: float, power: float) -> float:
    if levels >= FEW_LEVELS or variance_ml <= 0:
        return k_factor(alpha, power)
    from scipy.special import stdtrit

    df = _satterthwaite_df(n, variance, variance_ml, levels)
    return float(stdtrit(df, 1 - alpha / 2) + stdtrit(df, power))


def smallest_general_difference(
    variance_ml: float, levels: int, *, alpha: float = ALPHA, power: float = POWER
) -> float:
    """k sqrt(2 sigma_ML²/L): what no number of instances gets below. Infinite with a single level and
    sigma_ML² > 0."""
    if variance_ml <= 0:
        return 0.0
    if levels < 2:
        return math.inf
    return _k_general(math.inf, 0.0, variance_ml, levels, alpha, power) * math.sqrt(2 * variance_ml / levels)


def general_instances(
    delta: float,
    variance: float,
    variance_ml: float,
    levels: int,
    *,
    alpha: float = ALPHA,
    power: float = POWER,
) -> GeneralSize:
    """Instances needed to find a difference between two models for any equivalent prompt and tool set.

    The smallest n with delta >= k sqrt(variance/n + 2 sigma_ML²/L); with normal quantiles that is
    n = k² variance/(delta² - 2 k² sigma_ML²/L). With fewer than `FEW_LEVELS` levels k takes t quantiles with
    Satterthwaite's degrees of freedom, the level part having L - 1.

    Args:
        variance: Of one instance's difference after averaging over the L levels.
        variance_ml: sigma_ML², the model x level variance; 0 or less generalises for free.
        levels: L, the number of equivalent prompts and tool sets that each instance is run under.
    """
    if delta <= 0 or variance < 0:
        raise ValueError(f"need delta > 0 and variance >= 0, got {delta} and {variance}")
    floor = smallest_general_difference(variance_ml, levels, alpha=alpha, power=power)
    if delta <= floor:
        return GeneralSize(None, _out_of_reach(floor, levels))

    def misses(n: float) -> bool:
        k = _k_general(n, variance, variance_ml, levels, alpha, power)
        return delta < k * math.sqrt(variance / n + 2 * max(variance_ml, 0.0) / levels)

    high = 2
    while misses(high):
        high *= 2
        if high > _LARGEST_N:
            return GeneralSize(None, f"unreachable: more than {_LARGEST_N:,} instances")
    low = high // 2 if high > 2 else 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if misses(middle) else (low, middle)
    return GeneralSize(high, None)


def _out_of_reach(floor: float, levels: int) -> str:
    if math.isinf(floor):
        return "unreachable: one prompt says nothing of others"
    found = f"less than {100 * floor:.1f} points" if floor < 1 else "any difference at all"
    return f"unreachable: under {levels} prompts and tool sets no number of instances finds {found}"


def general_power(n: float, delta: float, variance: float, variance_ml: float, levels: int) -> float:
    """Chance of finding `delta` in n instances for any equivalent prompt, alpha .05 two-sided.

    The probability of the tail on the side of `delta`; quantiles as in `general_instances`.
    """
    se = math.sqrt(variance / n + 2 * max(variance_ml, 0.0) / levels)
    if se == 0:
        return 1.0
    if levels >= FEW_LEVELS or variance_ml <= 0:
        return NormalDist().cdf(delta / se - NormalDist().inv_cdf(1 - ALPHA / 2))
    from scipy.special import stdtr, stdtrit

    df = _satterthwaite_df(n, variance, variance_ml, levels)
    return float(stdtr(df, delta / se - float(stdtrit(df, 1 - ALPHA / 2))))
