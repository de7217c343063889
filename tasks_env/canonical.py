"""One byte form for JSON data, and its hash: what ids, manifests and stored files are made from."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=True,
    allow_nan=False,
    check_circular=False,  # data are trees, and to look for circles takes a fifth of the time
)


def canonical_json(value: Any) -> str:
    """Sorted keys, no spaces, ASCII only (lone surrogates survive), no NaN or infinity.

    Raises:
        ValueError: `value` holds a number that is not finite.
    """
    return _ENCODER.encode(value)


def content_hash(value: Any, length: int = 64) -> str:
    """The first `length` hex digits of the SHA-256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()[:length]
