"""The query family: natural-language questions against a generated SQLite database."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import ClassVar

from tasks_env.errors import GenerationError
from tasks_env.families.base import Family, Proposal, SecondOpinion, World
from tasks_env.families.query.generator import generate_content
from tasks_env.families.query.instruction import instruction
from tasks_env.families.query.near_misses import NEAR_MISS_OPERATORS, missed
from tasks_env.families.query.params import QueryParams
from tasks_env.families.query.plans import mistaken_plan, reference_plan
from tasks_env.families.query.question import Question
from tasks_env.families.query.restatements import RESTATEMENT_OPERATORS, restated
from tasks_env.families.query.second_opinion import second_opinion
from tasks_env.families.query.tools import TOOLS, QueryWorld
from tasks_env.families.query.untouched import untouched_plans
from tasks_env.families.query.verifier import verify
from tasks_env.types import (
    Content,
    FinalState,
    Instance,
    ToolCall,
    ToolSpec,
    Verdict,
    VerifierInput,
)


class Query(Family[QueryParams]):
    """Questions over related tables, answered through read-only SQL; scored pass or fail.

    The final state is `{"answer": the submitted text, or null}`; the truth `{"answer": text, or list of
    texts}`.
    """

    name: ClassVar[str] = "query"
    version: ClassVar[int] = 3
    params = QueryParams
    demonstration = QueryParams(
        tables=1, rows=8, min_hops=0, max_hops=0, predicates=1, null_share=0, questions=("count",)
    )
    closing_tool: ClassVar[str] = "submit"
    restatement_operators: ClassVar[tuple[str, ...]] = RESTATEMENT_OPERATORS
    near_miss_operators: ClassVar[tuple[str, ...]] = NEAR_MISS_OPERATORS

    def generate(self, params: QueryParams, seed: int) -> Content:
        """See `generate_content`."""
        return generate_content(params, seed)

    def tools(self) -> tuple[ToolSpec, ...]:
        """List and describe tables, run a SELECT statement, submit the answer."""
        return TOOLS

    def prompt(self, instance: Instance, phrasing: str) -> str:
        """The question with the rules for its answer. Raises `UnknownName`."""
        return instruction(Question.model_validate(instance.spec), phrasing)

    def open(self, instance: Instance) -> World:
        """An episode's database; it is built at the first statement."""
        return QueryWorld(instance.world)

    def verify(self, evidence: VerifierInput) -> Verdict:
        """See `verifier.verify`."""
        return verify(evidence)

    def reference(self, instance: Instance) -> tuple[ToolCall, ...]:
        """See `reference_plan`."""
        return reference_plan(Question.model_validate(instance.spec), instance.world)

    def mistake(self, instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:
        """See `mistaken_plan`; the plan is checked to fail. Raises `GenerationError` if none does."""

        def fails(answer: str) -> bool:
            state = FinalState(submitted=True, data={"answer": answer})
            return not self.verify(VerifierInput(instance=instance, calls=(), final_state=state)).passed

        plan = mistaken_plan(Question.model_validate(instance.spec), instance.world, rng, fails)
        if plan is None:
            raise GenerationError(f"no mistake found for instance {instance.instance_id}")
        return plan

    def second_opinion(self, instance: Instance) -> SecondOpinion:
        """See `second_opinion.second_opinion`."""
        return second_opinion(instance)

    def untouched(self, instance: Instance) -> Iterator[tuple[ToolCall, ...]]:
        """See `untouched_plans`."""
        return untouched_plans(Question.model_validate(instance.spec), instance.world)

    def restatements(self, instance: Instance, right: FinalState) -> Iterator[Proposal]:
        """See `restated`."""
        form = Question.model_validate(instance.spec).answer
        for operator, answer in restated(str(right.data["answer"]), form):
            yield Proposal(operator=operator, state=FinalState(submitted=True, data={"answer": answer}))

    def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
        """See `missed`."""
        question = Question.model_validate(instance.spec)
        for operator, state in missed(question, instance.world, str(right.data["answer"]), rng):
            yield Proposal(operator=operator, state=state)
