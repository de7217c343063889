"""Axis `distractors`: plausible, well-described tools, listed after the real ones, that help with no task."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tasks_env.errors import UnknownName
from tasks_env.families import family
from tasks_env.perturbations.base import SameSample
from tasks_env.perturbations.pool.agenda import AGENDA
from tasks_env.perturbations.pool.base import Distractor
from tasks_env.perturbations.pool.language import LANGUAGE
from tasks_env.perturbations.pool.measures import MEASURES
from tasks_env.perturbations.pool.money import MONEY
from tasks_env.perturbations.pool.places import PLACES
from tasks_env.seeding import derive
from tasks_env.types import Instance, Presentation

_LEVEL = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)

POOL: dict[str, Distractor] = {
    distractor.spec.name: distractor for distractor in (*PLACES, *MONEY, *LANGUAGE, *MEASURES, *AGENDA)
}


def distractor(name: str) -> Distractor:
    """The irrelevant tool called `name`. Raises `UnknownName`."""
    try:
        return POOL[name]
    except KeyError:
        raise UnknownName("distractor", name, POOL) from None


class Distractors(SameSample):
    """A level is how many are added: a number from 1 to the size of the pool."""

    axis: str = "distractors"

    def check_level(self, level: str) -> None:
        """Raises `ValueError` unless `level` is a whole number from 1 to the size of the pool."""
        if not _LEVEL.fullmatch(level) or int(level) > len(POOL):
            raise ValueError(f"{self.axis} level {level!r}: expected a whole number from 1 to {len(POOL)}")

    def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:
        """A draw for each instance, so that no single set of distractors stands for the level.

        With one seed the draws are nested: the tools of a level begin with those of each lower level.

        Raises:
            ValueError: a family has tools of its own under so many of the pool's names that too few are left.
        """
        self.check_level(level)
        return [Presentation(distractors=draw(instance, int(level), seed)) for instance in instances]


def draw(instance: Instance, count: int, seed: int) -> tuple[str, ...]:
    """`count` names from the pool that are not names of the instance's own tools."""
    own = {spec.name for spec in family(instance.family).tools()}
    names = sorted(name for name in POOL if name not in own)
    if count > len(names):
        raise ValueError(f"family {instance.family!r} leaves {len(names)} distractors to draw from, not {count}")
    derive(seed, "distractors", instance.instance_id).shuffle(names)
    return tuple(names[:count])
