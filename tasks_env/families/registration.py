"""Families that are not shipped here: those of installed distributions, and one lent for a while.

A distribution registers a family by an entry point whose name is the family's:

    [project.entry-points."agent_bench_stability.families"]
    ledger = "my_package.ledger:Ledger"

The object is a `Family`, or a class of one that takes no arguments. Nothing of a distribution is imported until its
family is asked for by name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tasks_env.errors import RegistrationError, UnknownName
from tasks_env.families.base import Family

GROUP = "agent_bench_stability.families"

_LENT: ContextVar[Mapping[str, Family[Any]]] = ContextVar("lent families", default={})  # noqa: B039 - never changed


@contextmanager
def registered(guest: Family[Any]) -> Iterator[None]:
    """Let `guest` take part under its name within the block, before any other family of that name."""
    token = _LENT.set({**_LENT.get(), guest.name: guest})
    try:
        yield
    finally:
        _LENT.reset(token)


def find(name: str, shipped: Mapping[str, Family[Any]]) -> Family[Any]:
    """The family called `name`. Raises `UnknownName`, `RegistrationError`."""
    lent = _LENT.get()
    if name in lent:
        return lent[name]
    points = _installed(tuple(sys.path)).get(name, ())
    claims = [f"distribution {_distribution(point)!r} ({point.value})" for point in points]
    if name in shipped:
        if claims:
            raise RegistrationError(name, f"the name is taken by a shipped family; also claimed by {claims[0]}")
        return shipped[name]
    if not points:
        raise UnknownName("family", name, {*shipped, *lent, *_installed(tuple(sys.path))})
    if len(points) > 1:
        raise RegistrationError(name, f"the name is taken twice: by {' and by '.join(sorted(claims))}")
    return _loaded(points[0])


@lru_cache(maxsize=8)
def _installed(_path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points by name, as `sys.path` now has them; one that is seen twice counts once."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        known = found.get(point.name, ())
        if (point.value, _distribution(point)) not in [(each.value, _distribution(each)) for each in known]:
            found[point.name] = (*known, point)
    return found


@lru_cache(maxsize=64)
def _loaded(point: EntryPoint) -> Family[Any]:
    where = f"distribution {_distribution(point)!r}, entry point {point.value!r}"
    try:
        loaded = point.load()
        chosen = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        raise RegistrationError(point.name, f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(chosen, Family):
        raise RegistrationError(point.name, f"{where} gives {type(chosen).__name__}, not a tasks_env Family")
    if getattr(chosen, "name", None) != point.name:
        raise RegistrationError(
            point.name, f"{where} gives a family called {getattr(chosen, 'name', None)!r}; both names must be the same"
        )
    return chosen


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "unknown"
