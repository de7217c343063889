"""What a task family is: the one interface that everything else meets a family through."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Protocol, TypeVar

from tasks_env.types import Content, Frozen, Instance, JsonObject, ToolCall, ToolSpec, Verdict, VerifierInput


class Reply(Frozen):
    """A tool's answer: `text` is shown as it is; in `note` the placeholders for names are resolved."""

    text: str
    note: str = ""


class World(Protocol):
    """The mutable state of one episode, acted on by canonical names with validated arguments."""

    submitted: bool

    def call(self, name: str, arguments: JsonObject) -> Reply:
        """Carry out one call. Raises `ToolError` for what the agent should be told; never anything else."""

    def state(self) -> JsonObject:
        """The present state as JSON: what becomes `FinalState.data`."""


ParamsT = TypeVar("ParamsT", bound=Frozen)


class Family(ABC, Generic[ParamsT]):
    """A generator of verified tasks with the tools to solve them.

    In every text that an agent reads (prompt, tool description, error, note), `{tool:NAME}` and `{arg:NAME}`
    stand for the shown name of a tool or an argument, so that renaming reaches the wording too.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    """Raised with every change that alters an instance, a wording, a tool or a verdict."""
    params: type[ParamsT]
    """Pydantic model of the difficulty parameters; every field validated and described."""
    demonstration: ParamsT
    """The smallest parameters: of the worked example that a scaffold may show."""
    closing_tool: ClassVar[str]
    """The tool whose successful call ends the episode."""
    phrasings: ClassVar[tuple[str, ...]] = ("base", "p1", "p2", "p3", "p4", "p5")

    @abstractmethod
    def generate(self, params: ParamsT, seed: int) -> Content:
        """The task for `seed`: same arguments, same bytes. Raises `GenerationError`."""

    @abstractmethod
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools by canonical names, the closing tool last."""

    @abstractmethod
    def prompt(self, instance: Instance, phrasing: str) -> str:
        """The instruction, from `instance.spec` alone, in one of `phrasings`."""

    @abstractmethod
    def open(self, instance: Instance) -> World:
        """A fresh world for one episode."""

    @abstractmethod
    def verify(self, evidence: VerifierInput) -> Verdict:
        """Judge the final state; a pure function."""

    @abstractmethod
    def reference(self, instance: Instance) -> tuple[ToolCall, ...]:
        """A plan that passes, closing call included."""

    @abstractmethod
    def mistake(self, instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:
        """A plausible plan that fails: the reference with one wrong step, closing call included."""
