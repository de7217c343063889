from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.perturbations.temperature import Temperature
from tasks_env.types import Instance
from tests.tasks_env.perturbations.preservation import (
    assert_preserved,
    assert_shown_as_baseline,
    instance_for,
    instances,
    search,
    seeds,
)


@search
@given(instances(), seeds, st.decimals(0, 2, places=2).map(lambda level: f"{level:f}"))
def test_another_temperature_preserves_the_task(instance: Instance, own_seed: int, level: str) -> None:
    variant = assert_preserved(instance, "temperature", level, own_seed)
    assert variant.presentation.temperature == float(level)
    assert_shown_as_baseline(instance, variant)


@pytest.mark.parametrize(("level", "value"), [("0", 0.0), ("0.7", 0.7), ("1", 1.0), ("2", 2.0), ("2.0", 2.0)])
def test_a_level_is_a_decimal(level: str, value: float) -> None:
    assert Temperature().present([instance_for("query", 1, "base")], level, 0)[0].temperature == value


@pytest.mark.parametrize(
    "level",
    [
        "",
        "hot",
        "-0.1",
        "2.1",
        "2.000001",
        "1e0",
        "nan",
        "inf",
        "+1",
        " 1",
        ".5",
        "1.",
        "00.7",
        "0,7",
        "\u0660.7",
        "1\n",
    ],
)
def test_another_level_is_refused(level: str) -> None:
    with pytest.raises(ValueError, match=r"expected a decimal from 0 to 2, such as 0.7"):
        Temperature().check_level(level)
