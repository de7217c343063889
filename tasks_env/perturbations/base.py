"""What a perturbation is: a change of how instances are shown, never of what they ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tasks_env.types import BASE_SAMPLE, Instance, Presentation


class Perturbation(Protocol):
    """One axis. It knows instances only by their surfaces: wording key, names, tool list, decoding, order."""

    axis: str

    def check_level(self, level: str) -> None:
        """Raises `UnknownName` or `ValueError` for a level that the axis does not have."""

    def sample(self, level: str) -> str:
        """Which draw of instances the level is shown on: `base`, unless the axis redraws them."""

    def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:
        """One presentation per instance, in the order of `instances`."""


class SameSample:
    """Mix-in of the axes that keep the baseline's instances, which makes their comparison paired."""

    def sample(self, level: str) -> str:  # noqa: ARG002
        """The baseline's draw."""
        return BASE_SAMPLE
