"""Randomness is an argument: every generator derives from a seed and names, by hash.

Seeds never come from an order of calls, a global generator, or Python's own (salted) `hash`.
"""

from __future__ import annotations

import hashlib
import random


def derive_seed(seed: int, *labels: str | int) -> int:
    """A 63-bit seed that depends on `seed` and every label, in order, and on nothing else."""
    text = "\x1f".join([str(seed), *map(str, labels)])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big") >> 1


def derive(seed: int, *labels: str | int) -> random.Random:
    """A private generator for one purpose: `derive(seed, "tabular", "rows")`."""
    return random.Random(derive_seed(seed, *labels))
