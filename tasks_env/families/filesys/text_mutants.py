"""Final trees in which one text is wrong by a little."""

from __future__ import annotations

import random
import string
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from pydantic import JsonValue

from tasks_env.families.filesys.goals import Files
from tasks_env.families.filesys.lookalikes import lookalikes
from tasks_env.families.filesys.solved import Solved

Rewrite = Callable[[list[str], random.Random], Iterator[list[str]]]
"""From the lines of a text to wrong ones; nothing where they offer no place."""


def line_missing(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    """One line fewer."""
    at = rng.randrange(len(lines))
    yield lines[:at] + lines[at + 1 :]


def line_duplicated(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    """One line twice."""
    at = rng.randrange(len(lines))
    yield lines[: at + 1] + lines[at:]


def lines_swapped(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    """Two lines in each other's place."""
    pairs = [(i, j) for j in range(len(lines)) for i in range(j) if lines[i] != lines[j]]
    if pairs:
        i, j = rng.choice(pairs)
        swapped = [*lines]
        swapped[i], swapped[j] = lines[j], lines[i]
        yield swapped


def blank_line_added(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    """An empty line at the start, and one between two lines."""
    yield ["", *lines]
    if len(lines) > 1:
        at = rng.randrange(1, len(lines))
        yield [*lines[:at], "", *lines[at:]]


def space_added(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    """A space at the end of the last line, and at either end of any."""
    yield [*lines[:-1], lines[-1] + " "]
    at = rng.randrange(len(lines))
    line = f" {lines[at]}" if rng.random() < 0.5 else f"{lines[at]} "
    yield [*lines[:at], line, *lines[at + 1 :]]


def letter_in_another_case(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    """One letter in the other case."""
    yield from _one_character(lines, rng, str.swapcase)


def look_alike_letter(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    """One letter from another script; one letter or digit in a compatibility form."""
    at = rng.randrange(len(lines))
    for line in lookalikes(lines[at], rng):
        yield [*lines[:at], line, *lines[at + 1 :]]


def accent_dropped(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    """One letter without its accent."""
    yield from _one_character(lines, rng, lambda character: unicodedata.normalize("NFD", character)[0])


def character_changed(lines: list[str], rng: random.Random) -> Iterator[list[str]]:
    """One character is another letter."""
    letter = rng.choice(string.ascii_lowercase)
    yield from _one_character(lines, rng, lambda character: letter if character != letter else letter.upper())


def emptied(lines: list[str], rng: random.Random) -> Iterator[list[str]]:  # noqa: ARG001
    """No text at all."""
    yield []


def _one_character(lines: list[str], rng: random.Random, change: Callable[[str], str]) -> Iterator[list[str]]:
    places = [
        (row, at)
        for row, line in enumerate(lines)
        for at, character in enumerate(line)
        if change(character) != character
    ]
    if places:
        row, at = rng.choice(places)
        line = lines[row]
        yield [*lines[:row], line[:at] + change(line[at]) + line[at + 1 :], *lines[row + 1 :]]


def rewritten(task: Solved, paths: Sequence[str], rewrite: Rewrite, rng: random.Random) -> Iterator[Files]:
    """The final tree with one of `paths` rewritten: the first, in random order, that offers a place."""
    for path in rng.sample(paths, len(paths)):
        mutants = [
            {**task.right, path: "".join(line + "\n" for line in lines)}
            for lines in rewrite(task.right[path].split("\n")[:-1], rng)
        ]
        if mutants:
            yield from mutants
            return


def text_of_a_neighbour(task: Solved, rng: random.Random) -> Iterator[Files]:
    """A written file with the text of another one."""
    if task.written:
        path = rng.choice(task.written)
        others = sorted({text for text in task.right.values() if text != task.right[path]})
        if others:
            yield {**task.right, path: rng.choice(others)}


def text_of_the_wrong_type(task: Solved, rng: random.Random) -> Iterator[dict[str, JsonValue]]:
    """A text as a list of its lines; a number as a number; a file that is gone as null."""
    if task.right:
        path = rng.choice(task.written or sorted(task.right))
        plain = task.right[path].strip()
        yield {**task.right, path: int(plain) if plain.isdecimal() else [*plain.splitlines()]}
    if task.removed:
        yield {**task.right, rng.choice(task.removed): None}
