"""The families by name: an explicit map, no registration."""

from __future__ import annotations

from typing import Any

from tasks_env.errors import UnknownName
from tasks_env.families.base import Family, Reply, World
from tasks_env.families.filesys import Filesys
from tasks_env.families.query import Query
from tasks_env.families.tabular import Tabular

FAMILIES: dict[str, Family[Any]] = {family.name: family for family in (Filesys(), Query(), Tabular())}


def family(name: str) -> Family[Any]:
    """The family called `name`. Raises `UnknownName`, which lists the known ones."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise UnknownName("family", name, FAMILIES) from None


__all__ = ["FAMILIES", "Family", "Reply", "World", "family"]
