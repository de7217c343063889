"""A solved task, taken apart: what near misses of its final tree are made from."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_env.families.filesys.effects import Effects, apply, effects
from tasks_env.families.filesys.goals import Files, Goal, Spec, tree
from tasks_env.types import FinalState, Instance


@dataclass(frozen=True)
class Solved:
    """A task with its right final tree, and which part of the tree is whose."""

    goals: tuple[Goal, ...]
    start: Files
    right: Files
    """The final tree."""
    changes: tuple[Effects, ...]
    """What each goal calls for."""

    @property
    def written(self) -> list[str]:
        """Files of the final tree that a goal creates, changes or moves; sorted."""
        return sorted(path for path in self._concerned() if path in self.right)

    @property
    def removed(self) -> list[str]:
        """Files of the start tree that a goal takes away; sorted."""
        return sorted(path for path in self._concerned() if path not in self.right)

    @property
    def untouched(self) -> list[str]:
        """Files that no goal concerns; sorted."""
        return sorted(self.right.keys() - self._concerned())

    @property
    def folders(self) -> list[str]:
        """The root, as the empty string, and every folder that has a file directly in it; sorted."""
        return sorted({"", *(path.rsplit("/", 1)[0] for path in self.right)})

    def instead(self, number: int, changes: Effects) -> Files:
        """The final tree if goal `number` (from 0) had been carried out as `changes`."""
        undone: Effects = {path: self.start.get(path) for path in self.changes[number]}
        return apply(changes, apply(undone, self.right))

    def _concerned(self) -> set[str]:
        return {path for changes in self.changes for path in changes}


def solved(instance: Instance, right: FinalState) -> Solved:
    """The task of `instance`, whose right final state is given."""
    goals, start = Spec.model_validate(instance.spec).goals, tree(instance.world["files"])
    changes = tuple(effects(goal, start) for goal in goals)
    return Solved(goals=goals, start=start, right=tree(right.data["files"]), changes=changes)
