"""A family under examination, with the instances that it is examined on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks_env.families import Family
from tasks_env.session import Session, play, render
from tasks_env.types import FinalState, Frozen, Instance, Presentation, ToolCall, ToolResult


@dataclass(frozen=True)
class Declared:
    """A family and the parameters of its difficulties, before anything is generated."""

    family: Family[Any]
    difficulties: Mapping[str, Mapping[str, Any]]
    seed: int


@dataclass(frozen=True)
class Subject:
    """A family with instances of each of its difficulties."""

    family: Family[Any]
    params: Mapping[str, Frozen]
    """By difficulty."""
    drawn: tuple[Instance, ...]
    """As they were generated; never handed to the family."""
    seed: int
    count: int
    """Instances of each difficulty."""

    @property
    def instances(self) -> list[Instance]:
        """Fresh copies, so that no promise is judged on what the family did to an instance before."""
        return [instance.model_copy(deep=True) for instance in self.drawn]

    def played(
        self, instance: Instance, plan: tuple[ToolCall, ...], presentation: Presentation | None = None
    ) -> tuple[Session, list[ToolResult]]:
        """A fresh session after a plan, and what its tools answered."""
        session = Session(instance, render(instance, presentation))
        return session, play(session, plan)

    def states(self, instance: Instance) -> list[tuple[str, tuple[ToolCall, ...], FinalState]]:
        """Final states of known worth: after nothing, and after the reference."""
        found = []
        for name, plan in (("doing nothing", ()), ("the reference", self.family.reference(instance))):
            session, _ = self.played(instance, plan)
            found.append((name, tuple(session.calls), session.final_state()))
        return found
