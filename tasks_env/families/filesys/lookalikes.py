"""Letters that look like others and are not the same in normal form C."""

from __future__ import annotations

import random
from collections.abc import Iterator

CYRILLIC = str.maketrans(
    "aceopxyACEHKMOPTX",
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0410\u0421\u0415\u041d\u041a\u041c\u041e\u0420\u0422\u0425",
)
"""Latin letters and the Cyrillic ones that are drawn alike."""
FULL_WIDTH = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x30, 0x7B) if chr(code).isalnum()})
"""ASCII letters and digits and their compatibility forms, which only normal forms KC and KD bring together."""


def lookalikes(text: str, rng: random.Random) -> Iterator[str]:
    """`text` with one character from another script, then with one in a compatibility form, where it has such."""
    for table in (CYRILLIC, FULL_WIDTH):
        places = [at for at, character in enumerate(text) if ord(character) in table]
        if places:
            at = rng.choice(places)
            yield text[:at] + text[at].translate(table) + text[at + 1 :]
