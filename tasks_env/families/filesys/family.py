"""The file system family: goals that take several steps in a tree of files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import ClassVar

from tasks_env.families.base import Family, Proposal, SecondOpinion
from tasks_env.families.filesys.generator import generate
from tasks_env.families.filesys.goals import Spec, tree
from tasks_env.families.filesys.near_misses import OPERATORS, near_misses
from tasks_env.families.filesys.params import FilesysParams
from tasks_env.families.filesys.reference import mistake, reference
from tasks_env.families.filesys.restatements import RESTATEMENTS, restatements
from tasks_env.families.filesys.second_opinion import second_opinion
from tasks_env.families.filesys.tools import CLOSING_TOOL, TOOLS
from tasks_env.families.filesys.untouched import untouched
from tasks_env.families.filesys.verifier import verify
from tasks_env.families.filesys.wording import prompt
from tasks_env.families.filesys.world import FileWorld
from tasks_env.types import Content, FinalState, Instance, ToolCall, ToolSpec, Verdict, VerifierInput


class Filesys(Family[FilesysParams]):
    """Multi-step goals in a file system kept in memory.

    `world` and `FinalState.data` are `{"files": {path: text}}`; `truth` is the expected tree in the same
    form, and for each goal its name and the paths that it concerns.
    """

    name: ClassVar[str] = "filesys"
    version: ClassVar[int] = 2
    params = FilesysParams
    demonstration = FilesysParams(files=2, depth=1, goals=1, searches=0, conditionals=0, matches=1, decoys=0)
    closing_tool: ClassVar[str] = CLOSING_TOOL
    restatement_operators: ClassVar[tuple[str, ...]] = tuple(RESTATEMENTS)
    near_miss_operators: ClassVar[tuple[str, ...]] = OPERATORS

    def generate(self, params: FilesysParams, seed: int) -> Content:
        """The task for `seed`. Raises `GenerationError`."""
        return generate(params, seed)

    def tools(self) -> tuple[ToolSpec, ...]:
        """List, read, search, write, move, delete, submit."""
        return TOOLS

    def prompt(self, instance: Instance, phrasing: str) -> str:
        """The instruction in one of `phrasings`. Raises `UnknownName`."""
        return prompt(Spec.model_validate(instance.spec), phrasing)

    def open(self, instance: Instance) -> FileWorld:
        """The start tree, for one episode."""
        return FileWorld(tree(instance.world["files"]))

    def verify(self, evidence: VerifierInput) -> Verdict:
        """Each goal, then everything else, then the submission."""
        return verify(evidence)

    def reference(self, instance: Instance) -> tuple[ToolCall, ...]:
        """A careful agent's calls."""
        return reference(Spec.model_validate(instance.spec), tree(instance.world["files"]))

    def mistake(self, instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:
        """The reference with one wrong step: a goal skipped or misread, a slip, or damage elsewhere."""
        return mistake(instance, rng)

    def second_opinion(self, instance: Instance) -> SecondOpinion:
        """Real files, other libraries, and the rule of equality read by another route."""
        judge = second_opinion(instance.spec, tree(instance.world["files"]))
        return lambda state: judge(state.submitted, state.data)

    def untouched(self, instance: Instance) -> Iterator[tuple[ToolCall, ...]]:
        """The start tree: at once, after a look, rewritten as it is, moved there and back."""
        return untouched(tree(instance.world["files"]))

    def restatements(self, instance: Instance, right: FinalState) -> Iterator[Proposal]:  # noqa: ARG002
        """Other line breaks, newlines at the end, Unicode normal form and order of files."""
        return restatements(right)

    def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
        """Goals unmet and misread, files and texts wrong by a little, damage elsewhere, no submission."""
        return near_misses(instance, right, rng)
