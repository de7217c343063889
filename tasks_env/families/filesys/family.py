"""The file system family: goals that take several steps in a tree of files."""

from __future__ import annotations

import random
from typing import ClassVar

from tasks_env.families.base import Family
from tasks_env.families.filesys.generator import generate
from tasks_env.families.filesys.goals import Spec, tree
from tasks_env.families.filesys.params import FilesysParams
from tasks_env.families.filesys.reference import mistake, reference
from tasks_env.families.filesys.tools import CLOSING_TOOL, TOOLS
from tasks_env.families.filesys.verifier import verify
from tasks_env.families.filesys.wording import prompt
from tasks_env.families.filesys.world import FileWorld
from tasks_env.types import Content, Instance, ToolCall, ToolSpec, Verdict, VerifierInput


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
