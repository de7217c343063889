"""What a task family is: the one interface that everything else meets a family through."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, Generic, Protocol, TypeVar

from tasks_env.types import (
    Content,
    FinalState,
    Frozen,
    Instance,
    JsonObject,
    ToolCall,
    ToolSpec,
    Verdict,
    VerifierInput,
)


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


class Proposal(Frozen):
    """A final state that a proof puts before the verifier."""

    operator: str
    """How it was made from the right one: one of the family's `restatement_operators` or `near_miss_operators`."""
    state: FinalState


SecondOpinion = Callable[[FinalState], bool]
"""Whether a final state is right, found out by another route than the verifier's."""


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
    restatement_operators: ClassVar[tuple[str, ...]] = ()
    """The ways to write a right answer differently that `restatements` knows."""
    near_miss_operators: ClassVar[tuple[str, ...]] = ()
    """The ways to be wrong by a little that `near_misses` knows."""

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

    @abstractmethod
    def second_opinion(self, instance: Instance) -> SecondOpinion:
        """An independent judge: it shares no code with the generator, the tools, the reference or the verifier,
        and reads `instance.spec` and `instance.world` but never `instance.truth`."""

    @abstractmethod
    def untouched(self, instance: Instance) -> Iterator[tuple[ToolCall, ...]]:
        """Plans that hand in what was there from the start, closing call included; each must fail."""

    @abstractmethod
    def restatements(self, instance: Instance, right: FinalState) -> Iterator[Proposal]:
        """The right final state in other bytes that mean the same; each must pass."""

    @abstractmethod
    def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
        """Mutants of the right final state; each must fail unless the second opinion calls it right.

        Several mutants of one operator are welcome. An operator that an instance offers no place for yields
        nothing."""
