"""The shipped families keep the contract, under the difficulties of the shipped manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.manifest import load_manifest
from tasks_env import FAMILIES, check_family

MANIFEST = Path(__file__).parents[2] / "experiments.yaml"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_shipped_family_keeps_every_promise(name: str) -> None:
    check_family(FAMILIES[name], load_manifest(MANIFEST).families[name], instances=8)
