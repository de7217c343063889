"""What difficulty parameters are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_env import GenerationError, ParameterError, generate_instance, validated_params
from tasks_env.families.tabular import TabularParams

from .levels import EASY, HARD, changed


def test_every_parameter_is_required_and_described() -> None:
    for field in TabularParams.model_fields.values():
        assert field.is_required()
        assert field.description


@pytest.mark.parametrize(
    ("field", "least", "most"),
    [
        ("rows", 3, 200),
        ("groups", 2, 8),
        ("distractor_columns", 0, 6),
        ("missing_percent", 0, 40),
        ("joins", 0, 2),
        ("filters", 0, 3),
        ("derived_columns", 0, 1),
        ("group_keys", 0, 2),
        ("measures", 0, 3),
        ("sort_keys", 0, 2),
    ],
)
def test_every_number_is_bounded_on_both_sides_with_a_message_that_names_it(field: str, least: int, most: int) -> None:
    for value in (least - 1, most + 1, "many", None):
        with pytest.raises(ParameterError, match=f"'{field}'"):
            validated_params("tabular", {**EASY.model_dump(), field: value})


@pytest.mark.parametrize(
    ("base", "changes", "words"),
    [
        (EASY, {"color": 1}, "'color'"),
        (EASY, {"limit": "perhaps"}, "'limit'"),
        (EASY, {"measures": 1}, "measures and group_keys"),
        (HARD, {"measures": 0}, "measures and group_keys"),
        (HARD, {"sort_keys": 0}, "needs sort_keys"),
        (EASY, {"sort_keys": 0, "limit": True}, "limit needs sort_keys"),
        (EASY, {"filters": 0, "sort_keys": 0}, "at least one operation"),
        (HARD, {"groups": 8, "group_keys": 2}, "may not exceed rows"),
        (HARD, {"groups": 2}, "limit needs at least 3 groups"),
        (HARD, {"rows": 4, "groups": 3}, "rows must be at least 5 here"),
        (HARD, {"rows": 5, "measures": 1}, "rows must be at least 6 here"),
        (EASY, {"rows": 4, "joins": 2, "filters": 3}, "rows must be at least 6 here"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_by_name(
    base: TabularParams, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        validated_params("tabular", {**base.model_dump(), **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": 3},
        {"rows": 4, "filters": 2},
        {"rows": 3, "filters": 0, "joins": 2},
        {"rows": 4, "limit": True},
        {"rows": 3, "group_keys": 1, "measures": 1},
    ],
)
def test_the_fewest_rows_suffice_for_some_seed_and_one_fewer_is_refused(changes: dict[str, Any]) -> None:
    smallest = changed(EASY, **{"groups": 2, "distractor_columns": 0, **changes})
    assert smallest.rows == smallest.least_rows
    assert any(generated(smallest, seed) for seed in range(12))
    with pytest.raises(ParameterError, match="rows"):
        validated_params("tabular", {**smallest.model_dump(), "rows": smallest.rows - 1})


def generated(params: TabularParams, seed: int) -> bool:
    try:
        generate_instance("tabular", params, seed)
    except GenerationError:
        return False
    return True
