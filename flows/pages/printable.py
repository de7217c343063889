"""Text that anybody may have written, made fit to be shown: bounded, and without characters that act."""

from __future__ import annotations

SHOWN_CHARS = 4000
"""Of one text; a longer one says how much more there is."""


def escaped(text: str) -> str:
    """Printable as it is; everything else, line breaks and tabs apart, as an escape.

    Control characters, NUL, lone surrogates and what turns the direction of text become visible; letters that run from
    right to left stay what they are.
    """
    return "".join(
        character if character in "\n\t" or character.isprintable() else ascii(character)[1:-1] for character in text
    )


def bounded(text: str, limit: int = SHOWN_CHARS) -> str:
    """At most `limit` characters of `text`, and how many more there are."""
    return text if len(text) <= limit else f"{text[:limit]}\n… {len(text) - limit} more characters"
