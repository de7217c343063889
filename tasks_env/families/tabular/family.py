"""The tabular family behind the interface that everything else meets it through."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import ClassVar

from tasks_env.errors import UnknownName
from tasks_env.families.base import Family, Proposal, SecondOpinion, World
from tasks_env.families.tabular import near_misses, plan, restatements, second_opinion
from tasks_env.families.tabular.generate import generate
from tasks_env.families.tabular.params import TabularParams
from tasks_env.families.tabular.spec import Spec
from tasks_env.families.tabular.tools import CLOSING_TOOL, TOOLS
from tasks_env.families.tabular.verify import verify
from tasks_env.families.tabular.voices import VOICES
from tasks_env.families.tabular.wording import instruction
from tasks_env.types import Content, FinalState, Instance, ToolCall, ToolSpec, Verdict, VerifierInput


class Tabular(Family[TabularParams]):
    """Transform generated CSV tables as a generated spec says; the submitted bytes are compared with the
    truth.

    `FinalState.data` is `{"table": name or null, "csv": text or null}`: the submitted table and its CSV
    text, as typed if the agent typed it, else in the canonical form of `csv_form`.
    """

    name: ClassVar[str] = "tabular"
    version: ClassVar[int] = 3
    params: type[TabularParams] = TabularParams
    demonstration: TabularParams = TabularParams(
        rows=4,
        groups=2,
        distractor_columns=0,
        missing_percent=0,
        joins=0,
        filters=1,
        derived_columns=0,
        group_keys=0,
        measures=0,
        sort_keys=0,
        limit=False,
    )
    closing_tool: ClassVar[str] = CLOSING_TOOL
    restatement_operators: ClassVar[tuple[str, ...]] = restatements.RESTATEMENT_OPERATORS
    near_miss_operators: ClassVar[tuple[str, ...]] = near_misses.NEAR_MISS_OPERATORS

    def generate(self, params: TabularParams, seed: int) -> Content:
        """The task for `seed`. Raises `GenerationError`."""
        return generate(params, seed)

    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools by canonical names, the closing tool last."""
        return TOOLS

    def prompt(self, instance: Instance, phrasing: str) -> str:
        """The instruction in one of `phrasings`. Raises `UnknownName`."""
        if phrasing not in VOICES:
            raise UnknownName("phrasing", phrasing, VOICES)
        return instruction(Spec.model_validate(instance.spec), VOICES[phrasing])

    def open(self, instance: Instance) -> World:
        """A fresh world with the instance's tables."""
        return plan.open_world(instance)

    def verify(self, evidence: VerifierInput) -> Verdict:
        """Judge the submitted table; see `verify.verify` for the conditions and the partial score."""
        return verify(evidence)

    def reference(self, instance: Instance) -> tuple[ToolCall, ...]:
        """A plan that passes, read off the spec."""
        return plan.reference(Spec.model_validate(instance.spec))

    def mistake(self, instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:
        """A plausible plan that fails: a wrong reading, a forgotten step, stopping early, a typing slip."""
        return plan.mistake(instance, rng)

    def second_opinion(self, instance: Instance) -> SecondOpinion:
        """A judge by the second solver and its own reading of the rules of equality."""
        return second_opinion.second_opinion(instance)

    def untouched(self, instance: Instance) -> Iterator[tuple[ToolCall, ...]]:
        """Each input table handed in as it is."""
        return plan.untouched(Spec.model_validate(instance.spec))

    def restatements(self, instance: Instance, right: FinalState) -> Iterator[Proposal]:
        """The right table in other CSV text of the same canonical form."""
        return restatements.restatements(instance, right)

    def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
        """Wrong readings, and slips in rows, columns, cells and in handing in."""
        return near_misses.near_misses(instance, right, rng)
