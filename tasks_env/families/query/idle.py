"""Databases that no episode holds, kept for the next one in the same world: to open one costs ten statements.

No statement changes a guarded database, so the next episode cannot tell it from a new one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from tasks_env.families.query.guard import GuardedDatabase

MOST = 64


@dataclass(eq=False)
class _Entry:
    world: Any
    database: GuardedDatabase


_idle: deque[_Entry] = deque()


def take(world: Any) -> GuardedDatabase | None:
    """The database of the very same `world` that was used last, which is idle no more; null if there is none."""
    for entry in reversed(list(_idle)):
        if entry.world is world:
            try:
                _idle.remove(entry)
            except ValueError:  # another thread took it
                continue
            return entry.database
    return None


def give(world: Any, database: GuardedDatabase) -> None:
    """Keep a database of `world`; where there are too many, the one that has been idle longest is closed."""
    _idle.append(_Entry(world, database))
    while len(_idle) > MOST:
        _idle.popleft().database.close()
