"""From a harness's score to the two columns that analyses read: passed, and partial_score from 0 to 1."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

PASS_WORDS = frozenset({"true", "t", "1", "1.0", "yes", "y", "pass", "passed", "correct", "c"})
FAIL_WORDS = frozenset({"false", "f", "0", "0.0", "no", "n", "fail", "failed", "incorrect", "wrong", "i"})


class Scale(NamedTuple):
    """A score's range, and from where on it passes."""

    low: float = 0.0
    """The worst score: partial_score 0. Above `high` where a lower score is better."""
    high: float = 1.0
    """The best score: partial_score 1."""
    pass_at: float | None = None
    """On the score's own scale; null: only the best score passes."""

    def partial(self, score: float) -> float:
        """The score from 0 to 1. Raises `ValueError` outside the range, which NaN is."""
        share = (score - self.low) / (self.high - self.low)
        if not 0 <= share <= 1:
            raise ValueError(
                f"expected a number from {min(self.low, self.high):g} to {max(self.low, self.high):g}, got {score:g}; "
                "name the range of this score with --range WORST:BEST"
            )
        return share

    def passed(self, score: float) -> bool:
        """Whether the score is at least as good as `pass_at`."""
        limit = self.high if self.pass_at is None else self.pass_at
        return score >= limit if self.high > self.low else score <= limit


def verdict(word: Any) -> bool | None:
    """Pass or fail, as harnesses and people write it; null for anything else."""
    if isinstance(word, bool):
        return word
    text = str(word).strip().lower()
    return True if text in PASS_WORDS else False if text in FAIL_WORDS else None


def scale(text: str | None, pass_at: str | None) -> Scale:
    """The scale that `--range WORST:BEST` and `--pass-at SCORE` name. Raises `ValueError`."""
    low, high = 0.0, 1.0
    if text is not None:
        ends = [_number(part) for part in text.split(":")]
        if len(ends) != 2 or ends[0] == ends[1] or None in ends:
            raise ValueError(f"--range {text}: expected WORST:BEST, two different numbers such as 0:10")
        low, high = (end for end in ends if end is not None)
    limit = None if pass_at is None else _number(pass_at)
    if pass_at is not None and (limit is None or not min(low, high) <= limit <= max(low, high)):
        raise ValueError(f"--pass-at {pass_at}: expected a score from {low:g} to {high:g} (see --range)")
    return Scale(low, high, limit)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
