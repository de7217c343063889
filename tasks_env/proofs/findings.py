"""The verification of verifiers: what must pass passes, what must fail fails, and an independent judge agrees.

For one instance, shown in one way, `prove` plays the family's reference, plays a plan that does nothing, plans
that hand in what was there, a plausible mistake, and then puts before the verifier restatements and near
misses of the final state that the reference reached. Each proposal is judged twice: by the verifier, and by the
family's second opinion, which shares no code with it. A near miss that both call right is *equivalent*, as is a
restatement in the very bytes of the right answer: it is counted and listed, and is no evidence either way.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from tasks_env.canonical import canonical_json
from tasks_env.families import SecondOpinion, family
from tasks_env.session import Session, play, render, verify
from tasks_env.types import FinalState, Instance, Presentation, ToolCall, Variant, Verdict

Kind = Literal["reference", "no_op", "untouched", "mistake", "restatement", "near_miss"]
Outcome = Literal["held", "equivalent", "broken"]

KINDS: tuple[Kind, ...] = get_args(Kind)
MUST_PASS: frozenset[Kind] = frozenset({"reference", "restatement"})
PLAYED: dict[Kind, str] = {
    "reference": "reference",
    "no_op": "do nothing",
    "untouched": "hand in the input",
    "mistake": "one wrong step",
}
"""The operators that every family has: plans that are played. The other kinds' operators are the family's own."""
RAISED = "(raised)"
"""Operator of a finding that says that a method of the family broke before it proposed anything."""
NOTE_CHARS = 240
_NOTHING = "the plan hands nothing in"


@dataclass(frozen=True)
class Finding:
    """One proposal, judged."""

    kind: Kind
    operator: str
    variant: Variant
    outcome: Outcome
    note: str = ""
    """For a broken one: what the verifier and the second opinion said. For an equivalent one: the state."""


def prove(
    instance: Instance,
    presentation: Presentation,
    *,
    axis: str = "none",
    level: str = "baseline",
    seed: int = 0,
    rng: random.Random,
) -> Iterator[Finding]:
    """Every finding on one instance as one presentation shows it; `rng` draws the mistake and the mutants.

    A family's method that raises is a broken finding. Where the reference is broken there is no right answer to
    restate or to miss, and nothing is proposed beside the played plans.
    """
    bench = _Bench(instance, render(instance, presentation, axis=axis, level=level, seed=seed))
    yield from bench.guarded("reference", bench.reference())
    yield from bench.guarded("no_op", bench.no_op())
    yield from bench.guarded("untouched", bench.untouched())
    yield from bench.guarded("mistake", bench.mistake(rng))
    yield from bench.guarded("restatement", bench.restatements())
    yield from bench.guarded("near_miss", bench.near_misses(rng))


class _Bench:
    """One variant with its two judges."""

    def __init__(self, instance: Instance, variant: Variant) -> None:
        self._instance = instance
        self._variant = variant
        self._family = family(instance.family)
        self._opinion: SecondOpinion | None = None
        self._right: FinalState | None = None
        self._calls: tuple[ToolCall, ...] = ()

    def guarded(self, kind: Kind, findings: Iterator[Finding]) -> Iterator[Finding]:
        """The findings; where the family raises in the middle, a broken one in place of the rest."""
        try:
            yield from findings
        except Exception as error:  # noqa: BLE001 - whatever breaks in a family is a finding about it
            yield Finding(kind, RAISED, self._variant, "broken", _told(error))

    def reference(self) -> Iterator[Finding]:
        """The reference; what it reaches is the right answer from then on."""
        session, errors = self._played(self._family.reference(self._instance))
        flaw = f"the reference meets an error: {errors[0]}" if errors else ""
        finding = self._judged(
            "reference",
            PLAYED["reference"],
            session.final_state(),
            tuple(session.calls),
            flaw or _unsubmitted(session),
        )
        if finding.outcome == "held":
            self._right, self._calls = session.final_state(), tuple(session.calls)
        yield finding

    def no_op(self) -> Iterator[Finding]:
        """An agent that does nothing."""
        session, _ = self._played(())
        yield self._judged("no_op", PLAYED["no_op"], session.final_state(), ())

    def untouched(self) -> Iterator[Finding]:
        """Agents that hand in what was there."""
        for plan in self._family.untouched(self._instance):
            ends = bool(plan) and plan[-1].name == self._family.closing_tool  # which may refuse what is handed in
            yield self._wrong_plan("untouched", plan, "" if ends else _NOTHING)

    def mistake(self, rng: random.Random) -> Iterator[Finding]:
        """The reference with one wrong step."""
        yield self._wrong_plan("mistake", self._family.mistake(self._instance, rng))

    def restatements(self) -> Iterator[Finding]:
        """The right answer in other bytes."""
        if self._right is None:
            return
        for proposal in self._family.restatements(self._instance, self._right):
            yield self._judged("restatement", proposal.operator, proposal.state, self._calls)

    def near_misses(self, rng: random.Random) -> Iterator[Finding]:
        """Answers that are wrong by a little."""
        if self._right is None:
            return
        for proposal in self._family.near_misses(self._instance, self._right, rng):
            yield self._judged("near_miss", proposal.operator, proposal.state, self._calls)

    def _played(self, plan: tuple[ToolCall, ...]) -> tuple[Session, list[str]]:
        """The session after a plan, played under the variant's names, and the errors that it met."""
        session = Session(self._instance, self._variant)
        results = play(session, plan)
        return session, [result.content for result in results if result.is_error]

    def _wrong_plan(self, kind: Kind, plan: tuple[ToolCall, ...], flaw: str | None = None) -> Finding:
        session, _ = self._played(plan)
        flaw = _unsubmitted(session) if flaw is None else flaw
        return self._judged(kind, PLAYED[kind], session.final_state(), tuple(session.calls), flaw)

    def _judged(
        self, kind: Kind, operator: str, state: FinalState, calls: tuple[ToolCall, ...], flaw: str = ""
    ) -> Finding:
        """What both judges make of a final state; `flaw` says why it would be no evidence whatever they say."""
        passed, said = self._verdict(calls, state)
        second, seconded = self._second(state)
        broken = flaw or passed is None or second is None
        outcome = "broken" if broken else outcome_of(kind, passed=bool(passed), second=bool(second))
        if kind == "restatement" and outcome == "held" and _bytes(state) == _bytes(self._right):
            outcome = "equivalent"
        if outcome == "held":
            return Finding(kind, operator, self._variant, outcome)
        shown = f"state {canonical_json(state.data)[:NOTE_CHARS]}"
        if outcome == "equivalent":
            return Finding(kind, operator, self._variant, outcome, shown)
        note = f"verifier: {said}; second opinion: {seconded}; {shown}"
        return Finding(kind, operator, self._variant, "broken", f"{flaw}; {note}" if flaw else note)

    def _verdict(self, calls: tuple[ToolCall, ...], state: FinalState) -> tuple[bool | None, str]:
        """Whether the verifier passes it (null: its word is worth nothing), and its word."""
        try:
            verdict = verify(self._instance, calls, state)
        except Exception as error:  # noqa: BLE001 - a verifier that breaks is what is looked for
            return None, f"raised {_told(error)}"
        problem = inconsistency(verdict)
        failed = "; ".join(f"{each.name} {each.detail}".strip() for each in verdict.conditions if not each.holds)
        said = "passed" if verdict.passed else f"failed ({failed[:NOTE_CHARS]})"
        return (None, f"{said}, but {problem}") if problem else (verdict.passed, said)

    def _second(self, state: FinalState) -> tuple[bool | None, str]:
        try:
            if self._opinion is None:
                self._opinion = self._family.second_opinion(self._instance)
            right = self._opinion(state)
        except Exception as error:  # noqa: BLE001 - as above
            return None, f"raised {_told(error)}"
        return right, "right" if right else "wrong"


def inconsistency(verdict: Verdict) -> str:
    """How a verdict contradicts itself; empty if it does not."""
    if not 0 <= verdict.partial_score <= 1:
        return f"its partial score {verdict.partial_score} is outside 0 to 1"
    if verdict.passed != (verdict.partial_score == 1):
        return f"its partial score is {verdict.partial_score}"
    if not verdict.conditions:
        return "it names no condition"
    if verdict.passed != all(condition.holds for condition in verdict.conditions):
        return f"{sum(not condition.holds for condition in verdict.conditions)} of its conditions do not hold"
    return ""


def outcome_of(kind: Kind, *, passed: bool, second: bool) -> Outcome:
    """What two judgements mean for a proposal of this kind."""
    if passed != second:
        return "broken"
    if passed == (kind in MUST_PASS):
        return "held"
    return "equivalent" if kind == "near_miss" else "broken"


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:NOTE_CHARS]


def _unsubmitted(session: Session) -> str:
    return "" if session.submitted else _NOTHING


def _bytes(state: FinalState | None) -> str:
    return "" if state is None else state.model_dump_json()
