"""Axis `order`: the tasks of a set, met in another order.

Only a harness that carries context from task to task can show an effect. With independent episodes, the
default, an agent sees exactly the baseline's bytes: the axis is then a no-op, and its episodes are an A/A
control that measures the noise floor.
"""

from __future__ import annotations

from collections.abc import Sequence

from tasks_env.errors import UnknownName
from tasks_env.perturbations.base import SameSample
from tasks_env.seeding import derive_seed
from tasks_env.types import Instance, Presentation

LEVELS = ("shuffled",)


class Order(SameSample):
    """Level `shuffled`: positions 0 to n-1 by a permutation of the set that the seed fixes."""

    axis: str = "order"

    def check_level(self, level: str) -> None:
        """Raises `UnknownName` unless `level` is `shuffled`."""
        if level not in LEVELS:
            raise UnknownName(f"{self.axis} level", level, LEVELS)

    def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:
        """Each instance's place in the shuffled set.

        The place depends on the seed and the ids, not on the order of `instances`: a set that grows keeps
        the relative order of what it held.
        """
        self.check_level(level)
        keys = [(derive_seed(seed, self.axis, level, each.instance_id), i) for i, each in enumerate(instances)]
        positions = {key: position for position, key in enumerate(sorted(keys))}
        return [Presentation(position=positions[key]) for key in keys]
