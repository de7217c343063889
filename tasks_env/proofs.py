"""The verification of verifiers: what must pass passes, what must fail fails, and an independent judge agrees.

For one instance, shown in one way, `prove` plays the family's reference, plays a plan that does nothing, plans
that hand in what was there, a plausible mistake, and then puts before the verifier restatements and near
misses of the final state that the reference reached. Each proposal is judged twice: by the verifier, and by the
family's second opinion, which shares no code with it. A near miss that both call right is *equivalent*: it is
counted and listed, and is no evidence either way.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from tasks_env.canonical import canonical_json
from tasks_env.families import family
from tasks_env.session import Session, play, render, verify
from tasks_env.types import FinalState, Instance, Presentation, ToolCall, Variant

Kind = Literal["reference", "no_op", "untouched", "mistake", "restatement", "near_miss"]
Outcome = Literal["held", "equivalent", "broken"]

MUST_PASS: frozenset[Kind] = frozenset({"reference", "restatement"})
EQUIVALENT_LIMIT = 0.02
"""The share of equivalent near misses of a family must stay under this."""


@dataclass(frozen=True)
class Finding:
    """One proposal, judged."""

    kind: Kind
    operator: str
    variant: Variant
    outcome: Outcome
    note: str = ""
    """For a broken one: what the verifier and the second opinion said."""


def prove(
    instance: Instance,
    presentation: Presentation,
    *,
    axis: str = "none",
    level: str = "baseline",
    seed: int = 0,
    rng: random.Random,
) -> Iterator[Finding]:
    """Every finding on one instance as one presentation shows it; `rng` draws the mistake and the mutants."""
    judge = _Judge(instance, render(instance, presentation, axis=axis, level=level, seed=seed))
    chosen = family(instance.family)
    reference = chosen.reference(instance)
    right = judge.played(reference)
    yield judge.finding("reference", "reference", right, tuple(reference))
    yield judge.finding("no_op", "do nothing", judge.played(()))
    for plan in chosen.untouched(instance):
        yield judge.finding("untouched", "hand in the input", judge.played(plan))
    yield judge.finding("mistake", "one wrong step", judge.played(chosen.mistake(instance, rng)))
    for proposal in chosen.restatements(instance, right):
        yield judge.finding("restatement", proposal.operator, proposal.state)
    for proposal in chosen.near_misses(instance, right, rng):
        yield judge.finding("near_miss", proposal.operator, proposal.state)


class _Judge:
    """The two judges of one variant's final states."""

    def __init__(self, instance: Instance, variant: Variant) -> None:
        self._instance = instance
        self._variant = variant
        self._second_opinion = family(instance.family).second_opinion(instance)

    def played(self, plan: tuple[ToolCall, ...]) -> FinalState:
        """The final state after a plan, played under the variant's names."""
        session = Session(self._instance, self._variant)
        play(session, plan)
        return session.final_state()

    def finding(self, kind: Kind, operator: str, state: FinalState, calls: tuple[ToolCall, ...] = ()) -> Finding:
        verdict = verify(self._instance, calls, state)
        second = self._second_opinion(state)
        outcome = outcome_of(kind, passed=verdict.passed, second=second)
        note = ""
        if outcome == "broken":
            failed = "; ".join(f"{each.name} {each.detail}".strip() for each in verdict.conditions if not each.holds)
            note = (
                f"verifier: {'passed' if verdict.passed else f'failed ({failed[:200]})'}, "
                f"second opinion: {'right' if second else 'wrong'}; state {canonical_json(state.data)[:200]}"
            )
        return Finding(kind=kind, operator=operator, variant=self._variant, outcome=outcome, note=note)


def outcome_of(kind: Kind, *, passed: bool, second: bool) -> Outcome:
    """What two judgements mean for a proposal of this kind."""
    if passed != second:
        return "broken"
    if passed == (kind in MUST_PASS):
        return "held"
    return "equivalent" if kind == "near_miss" else "broken"


@dataclass
class Tally:
    """The findings of one operator on one family."""

    kind: Kind
    operator: str
    held: int = 0
    equivalent: list[str] = field(default_factory=list)
    """Ids of the instances."""
    broken: list[str] = field(default_factory=list)
    """A line for each: instance, axis, level, and what was said."""

    @property
    def tried(self) -> int:
        """Proposals, the equivalent ones included."""
        return self.held + len(self.equivalent) + len(self.broken)

    @property
    def rate(self) -> float | None:
        """The share that held among those that are evidence: for near misses, the kill rate. Null without any."""
        evidence = self.held + len(self.broken)
        return self.held / evidence if evidence else None


class Proof:
    """The tallies of many findings, by family and operator.

    Args:
        families: Whose declared operators must all occur.
    """

    def __init__(self, families: Iterable[str]) -> None:
        self.tallies: dict[tuple[str, Kind, str], Tally] = {}
        self.variants: Counter[tuple[str, str, str, str]] = Counter()
        """Variants proven by family, difficulty, axis and level."""
        for name in families:
            chosen = family(name)
            for kind, operator in (
                ("reference", "reference"),
                ("no_op", "do nothing"),
                ("untouched", "hand in the input"),
                ("mistake", "one wrong step"),
                *(("restatement", operator) for operator in chosen.restatement_operators),
                *(("near_miss", operator) for operator in chosen.near_miss_operators),
            ):
                self.tallies[name, kind, operator] = Tally(kind, operator)  # type: ignore[arg-type, index]

    def add(self, findings: Iterable[Finding]) -> None:
        """Count the findings on one variant.

        Raises:
            KeyError: an operator that the family does not declare.
        """
        for finding in findings:
            variant = finding.variant
            tally = self.tallies[variant.family, finding.kind, finding.operator]
            if finding.kind == "reference":
                self.variants[variant.family, variant.difficulty, variant.axis, variant.level] += 1
            if finding.outcome == "held":
                tally.held += 1
            elif finding.outcome == "equivalent":
                tally.equivalent.append(variant.instance_id)
            else:
                tally.broken.append(f"{variant.instance_id} {variant.axis} {variant.level}: {finding.note}")

    def problems(self) -> list[str]:
        """Why the verifiers are not proven; empty when they are."""
        problems = []
        near = Counter[str]()
        equivalent = Counter[str]()
        for (name, kind, operator), tally in self.tallies.items():
            problems += [f"{name}, {kind} {operator!r}: {line}" for line in tally.broken]
            if not tally.tried:
                problems.append(f"{name}, {kind} {operator!r}: never tried; more instances are needed")
            if kind == "near_miss":
                near[name] += tally.tried
                equivalent[name] += len(tally.equivalent)
        for name, count in near.items():
            if count and equivalent[name] / count >= EQUIVALENT_LIMIT:
                share = equivalent[name] / count
                problems.append(
                    f"{name}: {share:.1%} of the near misses are equivalent, not under {EQUIVALENT_LIMIT:.0%}"
                )
        return problems
