"""What difficulty parameters are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_env import ParameterError, validated_params
from tasks_env.families.tabular import TabularParams

from .levels import EASY, HARD


def test_every_parameter_is_required_and_described() -> None:
    for field in TabularParams.model_fields.values():
        assert field.is_required()
        assert field.description


@pytest.mark.parametrize(
    ("base", "changes", "words"),
    [
        (EASY, {"rows": 2}, "'rows'"),
        (EASY, {"groups": 9}, "'groups'"),
        (EASY, {"color": 1}, "'color'"),
        (EASY, {"measures": 1}, "measures and group_keys"),
        (HARD, {"measures": 0}, "measures and group_keys"),
        (HARD, {"sort_keys": 0}, "needs sort_keys"),
        (EASY, {"sort_keys": 0, "limit": True}, "limit needs sort_keys"),
        (EASY, {"filters": 0, "sort_keys": 0}, "at least one operation"),
        (HARD, {"groups": 8, "group_keys": 2}, "may not exceed rows"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_by_name(
    base: TabularParams, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        validated_params("tabular", {**base.model_dump(), **changes})
