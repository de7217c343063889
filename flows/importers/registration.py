"""Importers by name: those of this package, and those of installed distributions.

A distribution registers an importer by an entry point whose name is the importer's:

    [project.entry-points."agent_bench_stability.importers"]
    helm = "my_package.helm:HelmImporter"

The object is an `Importer`, or a class of one that takes no arguments. Nothing of a distribution is imported until its
importer is asked for by name.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from flows.errors import ConfigurationError
from flows.importers.importer import Importer
from flows.importers.inspect_ai import InspectImporter
from flows.importers.lm_eval import LmEvalImporter
from flows.importers.tables import TableImporter

GROUP = "agent_bench_stability.importers"
SHIPPED: Mapping[str, type[Importer]] = {
    importer.name: importer for importer in (TableImporter, InspectImporter, LmEvalImporter)
}


def importer(name: str) -> Importer:
    """The importer called `name`. Raises `ConfigurationError`."""
    points = _installed()
    claims = points.get(name, ())
    if name in SHIPPED:
        if claims:
            raise ConfigurationError(f"import {name}: the name is taken; also claimed by {_origin(claims[0])}")
        return SHIPPED[name]()
    if not claims:
        known = sorted({*SHIPPED, *points})
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigurationError(f"import {name}: no such format; known: {', '.join(known)}{hint}")
    if len(claims) > 1:
        raise ConfigurationError(
            f"import {name}: the name is taken twice: by {' and by '.join(sorted(map(_origin, claims)))}; "
            "uninstall one of them"
        )
    return _loaded(claims[0])


def _installed() -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points by name; one that is seen twice counts once."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        known = found.get(point.name, ())
        if _origin(point) not in map(_origin, known):
            found[point.name] = (*known, point)
    return found


def _loaded(point: EntryPoint) -> Importer:
    try:
        loaded = point.load()
        chosen = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        raise ConfigurationError(
            f"import {point.name}: {_origin(point)} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(chosen, Importer):
        raise ConfigurationError(
            f"import {point.name}: {_origin(point)} gives {type(chosen).__name__}, not a flows.importers Importer"
        )
    if getattr(chosen, "name", None) != point.name or not getattr(chosen, "patterns", ()):
        raise ConfigurationError(
            f"import {point.name}: {_origin(point)} gives an importer called {getattr(chosen, 'name', None)!r} with "
            f"the patterns {getattr(chosen, 'patterns', ())!r}; it must have the entry point's name, and a pattern"
        )
    return chosen


def _origin(point: EntryPoint) -> str:
    distribution = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown"
    return f"distribution {distribution!r} ({point.value})"
