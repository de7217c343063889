"""The six wordings of every family: each says the whole spec and nothing else, and no two say it alike."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from itertools import combinations
from statistics import mean
from typing import Any

import pytest

from tasks_env.errors import TaskEnvError
from tasks_env.families import FAMILIES, family
from tasks_env.families.filesys.phrasings import PHRASINGS as FILESYS
from tasks_env.families.query import wording as query_wording
from tasks_env.families.query.phrasings import PHRASINGS as QUERY
from tasks_env.families.tabular.voices import VOICES
from tasks_env.types import Instance, JsonObject
from tests.tasks_env.perturbations.draws import drawn_instance
from tests.tasks_env.perturbations.recovery import (
    WORD,
    Place,
    alternatives,
    kind_of_place,
    leaves,
    renamed,
    replaced,
    residue,
)

TASKS = 100
MUTATED = 30
"""Tasks whose spec is changed leaf by leaf."""
SHARED_WORDS, SHARED_RUNS = 0.45, 0.55
"""Most that two wordings of a task may have in common beside the spec: of their different words, of their text."""

UNWORDED = {
    "tabular": r"tables\.\*\.columns.*|aggregate\.decimals",
    "filesys": r"never",
    "query": r"theme|tables\.\*|nulls",
}
"""Places that a wording leaves out: schemas, which the tools show, and decimals of means, which not every task has."""
BOUND = {"tabular": r"never", "filesys": r".*\bkind", "query": r"base|kind|answer\.kind|.*path\.\*"}
"""Places that cannot change alone; each family's own tests read them back from the wordings."""


@cache
def tasks(name: str) -> list[Instance]:
    return [drawn_instance(name, number) for number in range(TASKS)]


def said(instance: Instance) -> dict[Place, Any]:
    """What of the spec a wording says."""
    places = dict(leaves(instance.spec))
    return {
        place: each
        for place, each in places.items()
        if not re.fullmatch(UNWORDED[instance.family], kind_of_place(place))
    }


def worded(instance: Instance, spec: JsonObject) -> dict[str, str] | None:
    """The wordings of another spec; None if it is not one."""
    chosen, other = family(instance.family), instance.model_copy(update={"spec": spec})
    try:
        return {phrasing: chosen.prompt(other, phrasing) for phrasing in chosen.phrasings}
    except (ValueError, LookupError, TaskEnvError):
        return None


def texts_of(value: Any) -> Iterator[str]:
    """Every text in nested data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts_of(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_of(each)


def own_words(name: str, phrasing: str) -> set[str]:
    """The words of a wording's templates, slots left out."""
    if name == "filesys":
        data: list[Any] = [FILESYS[phrasing].model_dump()]
    elif name == "tabular":
        data = [asdict(VOICES[phrasing]), "decimal", "decimals", "or"]
    else:
        data = [asdict(QUERY[phrasing]), query_wording._NUMBER_TESTS, query_wording._DATE_TESTS, "s"]
    plain = (re.sub(r"\{\{?\w+(:\w+)?\}\}?|\{(tool|arg):\w+\}|\$\w+", " ", text) for text in texts_of(data))
    return {word.lower() for text in plain for word in WORD.findall(text)}


def numbered(instance: Instance, phrasing: str) -> int:
    """Up to which number a wording may count by itself: its steps, its goals, or the lines of a file."""
    if instance.family == "tabular":
        return family("tabular").prompt(instance, phrasing).count("\n") - 1 if phrasing == "base" else 0
    if instance.family == "filesys":
        positions = [step for place, _ in leaves(instance.spec) for step in place if isinstance(step, int)]
        return 1 + max(positions)
    return 0


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_wording_says_nothing_that_is_neither_in_the_spec_nor_said_of_every_task(name: str) -> None:
    for phrasing in family(name).phrasings:
        own = own_words(name, phrasing)
        for instance in tasks(name):
            counted = {str(number) for number in range(1, numbered(instance, phrasing) + 1)}
            strange = {word for word in residue(instance, phrasing) if word not in own | counted}
            assert strange == set(), (phrasing, instance.spec)


@pytest.mark.parametrize("name", ["filesys", "query"])
def test_what_stands_in_quotes_is_quoted_from_the_spec(name: str) -> None:
    quotes = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"") if name == "filesys" else re.compile(r"(?<!\w)'([^'\n]+)'")
    for instance in tasks(name):
        known = {str(each) for _, each in leaves(instance.spec)} | {
            f"[{each}]" for place, each in leaves(instance.spec) if place[-1] == "section"
        }
        for phrasing in family(name).phrasings:
            text = family(name).prompt(instance, phrasing)
            assert {match[match.lastindex or 0] for match in quotes.finditer(text)} <= known, phrasing


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_whatever_part_of_the_spec_changes_every_wording_changes(name: str) -> None:
    chosen = family(name)
    changed: Counter[str] = Counter()
    places: set[str] = set()
    for instance in tasks(name)[:MUTATED]:
        before = {phrasing: chosen.prompt(instance, phrasing) for phrasing in chosen.phrasings}
        for place, old in leaves(instance.spec):
            kind = kind_of_place(place)
            if re.fullmatch(f"{UNWORDED[name]}|{BOUND[name]}", kind):
                continue
            places.add(kind)
            for new in alternatives(old, instance):
                after = worded(instance, replaced(instance.spec, place, new)) or worded(
                    instance, renamed(instance.spec, old, new)
                )
                if after is not None:
                    same = [phrasing for phrasing in before if before[phrasing] == after[phrasing]]
                    assert same == [], (place, old, new, before[same[0]])
                    changed[kind] += 1
    assert places == set(changed), "these places were never changed to something valid"


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_two_tasks_are_worded_alike_only_if_their_specs_are_alike(name: str) -> None:
    for phrasing in family(name).phrasings:
        by_text: dict[str, Instance] = {}
        for instance in tasks(name):
            known = by_text.setdefault(family(name).prompt(instance, phrasing), instance)
            assert said(known) == said(instance)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_no_two_wordings_of_a_task_have_much_in_common_beside_the_spec(name: str) -> None:
    shares: dict[tuple[str, str], list[float]] = {}
    for instance in tasks(name)[::3]:
        beside = {phrasing: residue(instance, phrasing) for phrasing in family(name).phrasings}
        for one, two in combinations(beside, 2):
            first, second = set(beside[one]), set(beside[two])
            share = len(first & second) / len(first | second)
            runs = difflib.SequenceMatcher(None, beside[one], beside[two], autojunk=False).ratio()
            assert share < SHARED_WORDS, (one, two, share)
            assert runs < SHARED_RUNS, (one, two, runs)
            shares.setdefault((one, two), []).append(share)
    assert max(map(mean, shares.values())) < 0.4
    assert mean(map(mean, shares.values())) < 0.25


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_wordings_differ_in_length_and_in_manner(name: str) -> None:
    # An instruction, a question and a terse list are all among them.
    prompts = {phrasing: family(name).prompt(tasks(name)[0], phrasing) for phrasing in family(name).phrasings}
    lengths = sorted(map(len, prompts.values()))
    assert lengths[-1] > 1.8 * lengths[0]
    assert any("?" in text for text in prompts.values())
    assert any("?" not in text for text in prompts.values())
    assert len({text.split()[0] for text in prompts.values()}) == len(prompts)
