"""Axis `temperature`: the same bytes, decoded at another sampling temperature."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tasks_env.perturbations.base import SameSample
from tasks_env.types import Instance, Presentation

MAXIMUM = 2.0
_DECIMAL = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]{1,6})?", re.ASCII)


class Temperature(SameSample):
    """A level is a plain decimal from 0 to 2, such as `0.7`. Draws nothing, so the seed changes nothing."""

    axis: str = "temperature"

    def check_level(self, level: str) -> None:
        """Raises `ValueError` unless `level` is a plain decimal number from 0 to 2."""
        if not _DECIMAL.fullmatch(level) or float(level) > MAXIMUM:
            raise ValueError(f"{self.axis} level {level!r}: expected a decimal from 0 to 2, such as 0.7")

    def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:  # noqa: ARG002
        """The temperature `level` for every instance."""
        self.check_level(level)
        return [Presentation(temperature=float(level)) for _ in instances]
