"""Axis `paraphrase`: the same request in other words, written by hand by each family."""

from __future__ import annotations

from collections.abc import Sequence

from tasks_env.errors import UnknownName
from tasks_env.perturbations.base import SameSample
from tasks_env.types import Instance, Presentation

LEVELS = ("p1", "p2", "p3", "p4", "p5")


class Paraphrase(SameSample):
    """Levels p1 to p5: which of a family's wordings is shown. Draws nothing, so the seed changes nothing."""

    axis: str = "paraphrase"

    def check_level(self, level: str) -> None:
        """Raises `UnknownName` unless `level` is one of p1 to p5."""
        if level not in LEVELS:
            raise UnknownName(f"{self.axis} level", level, LEVELS)

    def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:  # noqa: ARG002
        """The wording `level` for every instance."""
        self.check_level(level)
        return [Presentation(phrasing=level) for _ in instances]
