"""Axis `resample`: other instances of the same family and difficulty, shown as the baseline shows its own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tasks_env.types import Instance, Presentation

_LEVEL = re.compile(r"s[1-9][0-9]{0,5}", re.ASCII)


class Resample:
    """Levels s1, s2, ...: independent draws of instances. Its comparison with the baseline is unpaired."""

    axis: str = "resample"

    def check_level(self, level: str) -> None:
        """Raises `ValueError` unless `level` is `s` and a positive number without leading zeros."""
        if not _LEVEL.fullmatch(level):
            raise ValueError(f"{self.axis} level {level!r}: expected s1, s2, s3, ...")

    def sample(self, level: str) -> str:
        """The level itself: instance seeds derive from it. Raises `ValueError` for a bad level."""
        self.check_level(level)
        return level

    def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:  # noqa: ARG002
        """The identity for every instance.

        Raises:
            ValueError: an instance comes from another draw, which would compare the baseline with itself.
        """
        self.check_level(level)
        for instance in instances:
            if instance.sample != level:
                raise ValueError(
                    f"{self.axis} level {level!r}: instance {instance.instance_id} is of sample "
                    f"{instance.sample!r}; generate the set with sample={level!r}"
                )
        return [Presentation() for _ in instances]
