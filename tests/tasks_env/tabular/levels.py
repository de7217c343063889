"""Parameters that the tests of the family share."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tasks_env import Instance, generate_instance
from tasks_env.families.tabular import TabularParams

EASY = TabularParams(
    rows=12,
    groups=3,
    distractor_columns=1,
    missing_percent=0,
    joins=0,
    filters=1,
    derived_columns=0,
    group_keys=0,
    measures=0,
    sort_keys=1,
    limit=False,
)
HARD = TabularParams(
    rows=40,
    groups=4,
    distractor_columns=4,
    missing_percent=15,
    joins=1,
    filters=2,
    derived_columns=1,
    group_keys=1,
    measures=2,
    sort_keys=1,
    limit=True,
)


def changed(params: TabularParams, **changes: Any) -> TabularParams:
    """`params` with some fields replaced, validated again."""
    return TabularParams.model_validate({**params.model_dump(), **changes})


LEVELS: dict[str, TabularParams] = {
    "easy": EASY,
    "easy_grouped": changed(EASY, group_keys=1, measures=1),
    "easy_missing": changed(EASY, rows=20, missing_percent=30, filters=2, distractor_columns=0),
    "join_only": changed(EASY, rows=20, joins=1, filters=0, limit=True),
    "two_joins": changed(HARD, joins=2, group_keys=0, measures=0, sort_keys=2),
    "source_order": changed(EASY, sort_keys=0, derived_columns=1),
    "hard": HARD,
    "hard_two_keys": changed(HARD, groups=3, group_keys=2, measures=3, sort_keys=2, missing_percent=0),
}
"""One entry per shape of task; every operation, condition and null rule occurs within a few seeds."""


MANIFEST = Path(__file__).parents[3] / "experiments.yaml"
SHIPPED: dict[str, TabularParams] = {
    difficulty: TabularParams.model_validate(params)
    for difficulty, params in YAML(typ="safe").load(MANIFEST.read_text(encoding="utf-8"))["families"]["tabular"].items()
}
"""The difficulties of the manifest."""


@lru_cache(maxsize=4096)
def instance(level: str, seed: int) -> Instance:
    """A generated instance of one of `LEVELS`."""
    return generate_instance("tabular", LEVELS[level], seed, difficulty=level)


@lru_cache(maxsize=1024)
def shipped(difficulty: str, seed: int) -> Instance:
    """A generated instance of one of the manifest's difficulties."""
    return generate_instance("tabular", SHIPPED[difficulty], seed, difficulty=difficulty)
