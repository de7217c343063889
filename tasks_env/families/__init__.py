"""The families by name: those shipped here in an explicit map, those of others through entry points."""

from __future__ import annotations

from typing import Any

from tasks_env.families.base import Family, Proposal, Reply, SecondOpinion, World
from tasks_env.families.filesys import Filesys
from tasks_env.families.query import Query
from tasks_env.families.registration import find, registered
from tasks_env.families.tabular import Tabular

FAMILIES: dict[str, Family[Any]] = {family.name: family for family in (Filesys(), Query(), Tabular())}
"""The shipped ones."""


def family(name: str) -> Family[Any]:
    """The family called `name`: one in a `registered` block, a shipped one, or one of an installed distribution.

    Raises:
        UnknownName: there is none; lists the known ones.
        RegistrationError: a distribution's family of this name cannot be used; names the distribution.
    """
    return find(name, FAMILIES)


__all__ = ["FAMILIES", "Family", "Proposal", "Reply", "SecondOpinion", "World", "family", "registered"]
