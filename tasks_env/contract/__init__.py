"""What everything else relies on in a family or a perturbation, as one call that says every broken promise.

check_family(my_family, {"easy": {"rows": 8}})
check_perturbation(my_perturbation, ["mild", "strong"])
"""

from __future__ import annotations

from tasks_env.contract.family import check_family
from tasks_env.contract.perturbation import check_perturbation

__all__ = ["check_family", "check_perturbation"]
