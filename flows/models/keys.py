"""A key on its way from the environment to one request header."""

from __future__ import annotations

from typing import NoReturn
from urllib.parse import quote

SHORTEST_SECRET = 8
"""A shorter key is a placeholder (`none`, `EMPTY`): taking it out of texts would only damage them."""


class ApiKey:
    """A key that is not shown, not pickled, and leaves only through `header`.

    Raises:
        ValueError: empty, or with characters that no header takes; HTTP libraries would quote it in their errors.
    """

    __slots__ = ("_spellings", "_value")

    def __init__(self, value: str) -> None:
        if not value or any(not "!" <= character <= "~" for character in value):
            raise ValueError("holds a blank, a line break or another character that no key has")
        self._value = value
        # As it is, with JSON's optional escape of the slash, and as it would stand in an address.
        self._spellings = (value, value.replace("/", "\\/"), quote(value, safe=""))

    def header(self, name: str, prefix: str = "") -> dict[str, str]:
        """The header `name` with the key after `prefix`, for a request that is being sent; to be kept nowhere."""
        return {name: prefix + self._value}

    def scrub(self, text: str) -> str:
        """`text` without the key, should a server have echoed it."""
        if len(self._value) < SHORTEST_SECRET:
            return text
        for spelling in self._spellings:
            text = text.replace(spelling, "[key]")
        return text

    def __repr__(self) -> str:
        return "ApiKey(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key is never pickled")
