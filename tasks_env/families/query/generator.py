"""From parameters and a seed to a task whose question has one answer that no known wrong reading reaches."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from functools import lru_cache
from itertools import combinations

from tasks_env.errors import GenerationError
from tasks_env.families.query.answers import Answer, parse_answer
from tasks_env.families.query.candidates import LOOKED_UP, Draw, View
from tasks_env.families.query.data import generate_world, table_sizes
from tasks_env.families.query.database import connect
from tasks_env.families.query.params import QueryParams, QuestionKind
from tasks_env.families.query.question import Question
from tasks_env.families.query.readings import wrong_readings
from tasks_env.families.query.schema import Path, Role, Schema, schema_of
from tasks_env.families.query.solver import agrees, run, solve
from tasks_env.families.query.themes import THEMES
from tasks_env.families.query.untouched import untouched_answers
from tasks_env.seeding import derive
from tasks_env.types import Content, JsonObject

WORLDS_PER_SEED = 40
CANDIDATES_PER_WORLD = 60


def generate_content(params: QueryParams, seed: int) -> Content:
    """Question, tables and truth for `seed`. The kind of question, the number of hops and the type that a
    lookup asks for are drawn once, so that rejection never shifts how often each occurs.

    Raises:
        GenerationError: no acceptable question within `WORLDS_PER_SEED` databases of `CANDIDATES_PER_WORLD`
        tries.
    """
    choice = derive(seed, "query", "kind")
    kind = choice.choice(params.questions)
    hops = choice.randint(params.min_hops, params.max_hops)
    looked_up = choice.choice(LOOKED_UP)
    for attempt in range(WORLDS_PER_SEED):
        found = _try_world(params, kind, hops, looked_up, derive(seed, "query", "world", attempt))
        if found is not None:
            return found
    raise GenerationError(
        f"family 'query': no acceptable question of kind {kind!r} with {hops} hops for seed {seed} within"
        f" {WORLDS_PER_SEED} databases; more rows or fewer predicates make one likelier"
    )


def _try_world(
    params: QueryParams, kind: QuestionKind, hops: int, looked_up: tuple[Role, ...], rng: random.Random
) -> Content | None:
    schema = _draw_schema(params, rng)
    sizes = dict(zip([table.name for table in THEMES[schema.theme].tables], table_sizes(params.rows), strict=True))
    world = generate_world(rng, schema, sizes, params.null_share)
    shapes = [(table.name, tree) for table in schema.tables for tree in _trees(schema, table.name, hops)]
    views: dict[str, View] = {}
    with closing(connect(world)) as connection:
        for _ in range(CANDIDATES_PER_WORLD):
            base, tree = rng.choice(shapes)
            if base not in views:
                views[base] = View(schema, world, base)
            question = Draw(rng, params, views[base], tree, looked_up).question(kind)
            if question is None:
                continue
            truth = accepted(connection, question)
            if truth is not None and not _given_away(question, world, truth):
                return Content(
                    spec=question.to_spec(),
                    world=world,
                    truth={"answer": [*truth] if isinstance(truth, list) else truth},
                )
    return None


def accepted(connection: sqlite3.Connection, question: Question) -> Answer | None:
    """The right answer when it is safe and no wrong reading leads to it, else None."""
    truth = solve(connection, question)
    if truth is None:
        return None
    for reading in wrong_readings(question):
        if agrees(question, truth, run(connection, question, reading)):
            return None
    return truth


def _given_away(question: Question, world: JsonObject, truth: Answer) -> bool:
    """Whether what an agent is shown without looking for it answers the question."""
    return any(parse_answer(shown, question.answer) == truth for shown in untouched_answers(question, world))


def _draw_schema(params: QueryParams, rng: random.Random) -> Schema:
    theme = THEMES[rng.choice(sorted(THEMES))]
    events, referred, beyond, also_referred = (table.name for table in theme.tables)
    names = {
        1: (events,),
        2: (events, referred),
        3: (events, referred, rng.choice((beyond, also_referred))),
        4: (events, referred, beyond, also_referred),
    }[params.tables]
    return schema_of(theme, names, params.null_share > 0)


@lru_cache(maxsize=1024)
def _trees(schema: Schema, base: str, hops: int) -> tuple[tuple[Path, ...], ...]:
    """Every set of `hops` joins that can be made from `base`, each after the ones that it extends."""
    reachable = schema.paths(base)[1:]
    return tuple(
        tree for tree in combinations(reachable, hops) if all(len(path) == 1 or path[:-1] in tree for path in tree)
    )
