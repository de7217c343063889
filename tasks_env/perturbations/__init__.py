"""The perturbation axes by name: an explicit map, no registration.

The baseline (axis `none`, the identity presentation) is not an axis and so is not among them.
"""

from __future__ import annotations

from tasks_env.errors import UnknownName
from tasks_env.perturbations.base import Perturbation
from tasks_env.perturbations.distractors import Distractors
from tasks_env.perturbations.order import Order
from tasks_env.perturbations.paraphrase import Paraphrase
from tasks_env.perturbations.resample import Resample
from tasks_env.perturbations.temperature import Temperature
from tasks_env.perturbations.tool_names import ToolNames

VERSION = 2
"""Raised with every change that alters how some instance is shown."""

PERTURBATIONS: dict[str, Perturbation] = {
    axis.axis: axis for axis in (Paraphrase(), ToolNames(), Distractors(), Resample(), Temperature(), Order())
}


def perturbation(axis: str) -> Perturbation:
    """The perturbation of `axis`. Raises `UnknownName`, which lists the known ones."""
    try:
        return PERTURBATIONS[axis]
    except KeyError:
        raise UnknownName("perturbation axis", axis, PERTURBATIONS) from None


__all__ = ["PERTURBATIONS", "VERSION", "Perturbation", "perturbation"]
