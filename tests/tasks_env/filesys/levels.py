"""Parameters at which the tests look at the family, and instances made from them."""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path

from ruamel.yaml import YAML

from tasks_env.canonical import content_hash
from tasks_env.families.filesys import Filesys, FilesysParams
from tasks_env.families.filesys.goals import Files, Goal, Spec, tree
from tasks_env.generation import generate_instance
from tasks_env.session import Session, play, render
from tasks_env.types import FinalState, Instance, Presentation, ToolCall, Verdict

LEVELS: dict[str, FilesysParams] = {
    "easy": FilesysParams(files=8, depth=2, goals=1, searches=0, conditionals=0, matches=2, decoys=1),
    "medium": FilesysParams(files=14, depth=3, goals=2, searches=1, conditionals=0, matches=2, decoys=1),
    "hard": FilesysParams(files=25, depth=4, goals=4, searches=2, conditionals=2, matches=3, decoys=1),
    "flat": FilesysParams(files=12, depth=1, goals=2, searches=1, conditionals=1, matches=1, decoys=0),
    "largest": FilesysParams(files=80, depth=6, goals=8, searches=8, conditionals=0, matches=6, decoys=2),
    "smallest": Filesys.demonstration,
}
MANIFEST = YAML(typ="safe").load(Path(__file__).parents[3] / "experiments.yaml")
SHIPPED = {name: FilesysParams(**shape) for name, shape in MANIFEST["families"]["filesys"].items()}
"""The difficulties of the shipped manifest."""
FAMILY = Filesys()


@lru_cache(maxsize=1024)
def shipped(level: str, seed: int) -> Instance:
    """The instance of a shipped difficulty for a seed."""
    return generate_instance("filesys", SHIPPED[level], seed, difficulty=level)


@lru_cache(maxsize=4096)
def instance(level: str, seed: int) -> Instance:
    """The instance of a level for a seed."""
    return generate_instance("filesys", LEVELS[level], seed, difficulty=level)


def goals(task: Instance) -> tuple[Goal, ...]:
    """Its goals."""
    return Spec.model_validate(task.spec).goals


def start(task: Instance) -> Files:
    """Its start tree."""
    return tree(task.world["files"])


def expected(task: Instance) -> Files:
    """Its expected tree."""
    return tree(task.truth["files"])


def played(task: Instance, plan: tuple[ToolCall, ...], shown: Presentation | None = None) -> Verdict:
    """The verdict after a plan, played through a session."""
    session = Session(task, render(task, shown))
    play(session, plan)
    return session.verdict()


def call(name: str, **arguments: str | bool) -> ToolCall:
    """A canonical call."""
    return ToolCall(name=name, arguments=dict(arguments))


def fingerprint() -> str:
    """A hash over instances of every level with all that derives from them."""
    parts: list[object] = []
    for level in LEVELS:
        for seed in range(3):
            task = instance(level, seed)
            right = FinalState(submitted=True, data={"files": dict(expected(task))})
            proposals = [*FAMILY.restatements(task, right), *FAMILY.near_misses(task, right, random.Random(seed))]
            plans = [FAMILY.reference(task), FAMILY.mistake(task, random.Random(seed)), *FAMILY.untouched(task)]
            parts += [task.model_dump(mode="json"), [FAMILY.prompt(task, name) for name in FAMILY.phrasings]]
            parts += [[step.model_dump(mode="json") for step in plan] for plan in plans]
            parts += [proposal.model_dump(mode="json") for proposal in proposals]
    return content_hash(parts)
