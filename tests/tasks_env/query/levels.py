"""The parameters that the tests of the query family use, and instances made from them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import get_args

from ruamel.yaml import YAML

from tasks_env import Instance, generate_instance
from tasks_env.families.query import Query
from tasks_env.families.query.params import QueryParams, QuestionKind
from tasks_env.families.query.question import Question

FAMILY = Query()

MANIFEST = Path(__file__).parents[3] / "experiments.yaml"
SHIPPED = {
    name: QueryParams.model_validate(params)
    for name, params in YAML(typ="safe").load(MANIFEST.read_text(encoding="utf-8"))["families"]["query"].items()
}
EASY, HARD = SHIPPED["easy"], SHIPPED["hard"]
LEVELS = {**SHIPPED, "demonstration": Query.demonstration}

KINDS: tuple[QuestionKind, ...] = get_args(QuestionKind)


@lru_cache(maxsize=1024)
def made(level: str, seed: int) -> Instance:
    """The instance of a level for a seed."""
    return generate_instance("query", LEVELS[level], seed, difficulty=level)


@lru_cache(maxsize=1024)
def made_of_kind(kind: QuestionKind, seed: int) -> Instance:
    """An instance with one join and missing values, whose question is of this kind."""
    params = QueryParams(tables=3, rows=40, min_hops=1, max_hops=1, predicates=2, null_share=0.1, questions=(kind,))
    return generate_instance("query", params, seed)


def a_mix(count: int) -> list[Instance]:
    """Instances of every level and every kind, `count` of each level."""
    levels = [made(level, seed) for level in LEVELS for seed in range(count)]
    return levels + [made_of_kind(kind, seed) for kind in KINDS for seed in range(max(1, count // 5))]


def question_of(instance: Instance) -> Question:
    """The question that an instance stores."""
    return Question.model_validate(instance.spec)
