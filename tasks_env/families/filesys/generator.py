"""From parameters and a seed to a task: build goals and tree, then keep only what can be read in one way."""

from __future__ import annotations

import random

from tasks_env.errors import GenerationError
from tasks_env.families.filesys.builders import SEARCHES, SIMPLE, conditional, simple
from tasks_env.families.filesys.draft import Draft
from tasks_env.families.filesys.effects import apply, effects, interfere
from tasks_env.families.filesys.goals import Files, Goal, Spec
from tasks_env.families.filesys.params import FilesysParams
from tasks_env.families.filesys.readings import ambiguous
from tasks_env.seeding import derive
from tasks_env.types import Content, JsonObject

TRIES = 50


def generate(params: FilesysParams, seed: int) -> Content:
    """A task for `seed`.

    Raises:
        GenerationError: none of the tries gave a task that can be read in one way only.
    """
    reason = ""
    for attempt in range(TRIES):
        goals, files = _candidate(params, derive(seed, "filesys", attempt))
        try:
            reason = _objection(goals, files)
            if not reason:
                return _content(goals, files)
        except GenerationError as unfit:
            reason = str(unfit)
    raise GenerationError(f"filesys: no task within {TRIES} tries for seed {seed}; the last one: {reason}")


def _candidate(params: FilesysParams, rng: random.Random) -> tuple[tuple[Goal, ...], Files]:
    draft = Draft(params, rng)
    searches = _cycled(rng, list(SEARCHES), params.searches)
    simples = _cycled(rng, list(SIMPLE), params.goals - params.searches - params.conditionals)
    built = [SEARCHES[kind](draft) for kind in searches]
    built += [conditional(draft) for _ in range(params.conditionals)]
    built += [simple(draft, kind) for kind in simples]
    rng.shuffle(built)
    for _, path, scope in built:
        for _ in range(params.decoys):
            draft.add_decoy(path, scope)
    while len(draft.files) < params.files:
        draft.add_filler()
    return tuple(goal for goal, _, _ in built), dict(sorted(draft.files.items()))


def _cycled(rng: random.Random, kinds: list[str], count: int) -> list[str]:
    """`count` kinds in random order, none used again before all have been."""
    chosen: list[str] = []
    while len(chosen) < count:
        chosen += rng.sample(kinds, min(len(kinds), count - len(chosen)))
    return chosen


def _objection(goals: tuple[Goal, ...], files: Files) -> str:
    for goal in goals:
        reason = ambiguous(goal, files)
        if reason:
            return reason
    return "the goals interfere" if interfere(goals, files) else ""


def _content(goals: tuple[Goal, ...], files: Files) -> Content:
    expected = files
    conditions: list[JsonObject] = []
    for number, goal in enumerate(goals, start=1):
        changes = effects(goal, files)
        expected = apply(changes, expected)
        conditions.append({"name": f"goal_{number}_{goal.kind}", "paths": [*sorted(changes)]})
    return Content(
        spec=Spec(goals=goals).model_dump(mode="json"),
        world={"files": dict(files)},
        truth={"files": dict(expected), "goals": list(conditions)},
    )
