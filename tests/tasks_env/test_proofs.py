"""The proof of verifiers, itself put to the test: with families that are right, lax, strict or inconsistent."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tasks_env import FinalState, Instance, Presentation, ToolCall, Verdict, VerifierInput, generate_instance
from tasks_env.errors import GenerationError, ParameterError, ToolError, UnknownName
from tasks_env.families import Proposal, Reply, SecondOpinion, registered
from tasks_env.proofs import KINDS, PLAYED, Finding, Proof, Trial, inconsistency, outcome_of, prove, run_trial
from tasks_env.types import Condition, JsonObject
from tests.tasks_env.stranger import Book, Ledger, closing, read

PARAMS = {"accounts": 3, "entries": 12}


def trial(**changes: Any) -> Trial:
    return Trial(
        **{
            "family": "ledger",
            "difficulty": "easy",
            "params": PARAMS,
            "axis": "none",
            "level": "baseline",
            "seed": 3,
            "instances": 6,
            **changes,
        }
    )


def proof_of(ledger: Ledger, **changes: Any) -> Proof:
    with registered(ledger):
        return run_trial(trial(**changes))


def findings_of(ledger: Ledger, seed: int = 1) -> list[Finding]:
    with registered(ledger):
        return list(prove(generate_instance("ledger", PARAMS, seed), Presentation(), rng=random.Random(seed)))


def broken_operators(proof: Proof) -> set[tuple[str, str]]:
    return {(kind, operator) for (_, kind, operator), tally in proof.tallies.items() if tally.broken}


def with_verdict(change: Any) -> Ledger:
    """A ledger whose verdicts are changed by `change(verdict, evidence)`."""

    class Changed(Ledger):
        def verify(self, evidence: VerifierInput) -> Verdict:
            verdict = super().verify(evidence)
            return change(verdict, evidence) or verdict

    return Changed()


def without_condition(name: str) -> Ledger:
    """A ledger whose verifier forgot one of its rules."""

    def lax(verdict: Verdict, _evidence: VerifierInput) -> Verdict:
        kept = tuple(each for each in verdict.conditions if not each.name.startswith(name))
        score = sum(each.holds for each in kept) / len(kept)
        return Verdict(passed=score == 1, partial_score=score, conditions=kept)

    return with_verdict(lax)


class TestASoundFamily:
    def test_is_proven_and_every_operator_is_tried(self) -> None:
        proof = proof_of(Ledger())
        assert proof.problems() == []
        assert {(kind, operator) for _, kind, operator in proof.tallies} == {
            *PLAYED.items(),
            *(("restatement", name) for name in Ledger.restatement_operators),
            *(("near_miss", name) for name in Ledger.near_miss_operators),
        }
        assert all(tally.tried >= 1 and tally.rate == 1.0 for tally in proof.tallies.values())
        assert proof.tallies["ledger", "near_miss", "a cent off"].held == 6
        assert proof.variants == {("ledger", "easy", "none", "baseline"): 6}

    @pytest.mark.parametrize(
        ("axis", "level"),
        [
            ("paraphrase", "p4"),
            ("tool_names", "opaque"),
            ("tool_names", "synonyms"),
            ("distractors", "5"),
            ("resample", "s1"),
            ("temperature", "0.7"),
            ("order", "shuffled"),
        ],
    )
    def test_is_proven_under_every_axis(self, axis: str, level: str) -> None:
        proof = proof_of(Ledger(), axis=axis, level=level, instances=4)
        assert proof.problems() == []
        assert proof.variants == {("ledger", "easy", axis, level): 4}

    def test_findings_come_in_the_order_of_the_kinds(self) -> None:
        kinds = [finding.kind for finding in findings_of(Ledger())]
        assert kinds == sorted(kinds, key=KINDS.index)
        assert set(kinds) == set(KINDS)

    def test_same_seed_gives_the_same_findings_and_another_gives_others(self) -> None:
        assert findings_of(Ledger(), 5) == findings_of(Ledger(), 5)

        class Noted(Ledger):
            def __init__(self) -> None:
                self.states: list[FinalState] = []

            def verify(self, evidence: VerifierInput) -> Verdict:
                self.states.append(evidence.final_state)
                return super().verify(evidence)

        runs = [Noted() for _ in range(3)]
        for each, seed in zip(runs, (1, 1, 2), strict=True):
            proof_of(each, seed=seed)
        assert runs[0].states == runs[1].states != runs[2].states

    def test_levels_draw_instances_of_their_own_and_the_baseline_those_of_the_study(self) -> None:
        class Noted(Ledger):
            seeds: list[int]

            def __init__(self) -> None:
                self.seeds = []

            def generate(self, params: Any, seed: int) -> Any:
                self.seeds.append(seed)
                return super().generate(params, seed)

        from tasks_env import instance_seeds

        drawn = {}
        for axis, level in (("none", "baseline"), ("order", "shuffled"), ("paraphrase", "p1"), ("resample", "s1")):
            ledger = Noted()
            proof_of(ledger, axis=axis, level=level)
            drawn[axis] = ledger.seeds
        assert drawn["none"] == instance_seeds(3, "ledger", "easy", "base", 6)
        assert drawn["resample"] == instance_seeds(3, "ledger", "easy", "s1", 6)
        assert len({seed for seeds in drawn.values() for seed in seeds}) == 4 * 6


class TestALaxVerifier:
    @pytest.mark.parametrize(
        ("forgotten", "operators"),
        [
            ("closed", {("near_miss", "never closed")}),
            ("no other account", {("near_miss", "account too many")}),
            (
                "balance",
                {
                    ("mistake", "one wrong step"),
                    ("untouched", "hand in the input"),
                    *(("near_miss", name) for name in Ledger.near_miss_operators[:4]),
                    *(("near_miss", name) for name in Ledger.near_miss_operators[5:9]),
                },
            ),
        ],
    )
    def test_is_broken_under_the_operators_of_the_rule_that_it_forgot(
        self, forgotten: str, operators: set[tuple[str, str]]
    ) -> None:
        found = broken_operators(proof_of(without_condition(forgotten)))
        assert operators - {("no_op", "do nothing")} <= found
        assert ("reference", "reference") not in found
        assert found - operators <= {("no_op", "do nothing"), ("near_miss", "unit written too")}

    def test_says_what_both_judges_said_about_which_state(self) -> None:
        [line] = [each for each in proof_of(without_condition("closed"), instances=1).problems() if "never" in each]
        assert line.startswith("ledger, near_miss 'never closed': ledger-easy-")
        assert "none baseline: verifier: passed; second opinion: wrong; state {" in line

    def test_that_passes_anything_is_broken_under_every_operator_that_must_fail(self) -> None:
        passed = Verdict(passed=True, partial_score=1, conditions=(Condition(name="any", holds=True),))
        found = broken_operators(proof_of(with_verdict(lambda _verdict, _evidence: passed)))
        assert found == {
            ("no_op", "do nothing"),
            ("untouched", "hand in the input"),
            ("mistake", "one wrong step"),
            *(("near_miss", name) for name in Ledger.near_miss_operators),
        }


class TestAStrictVerifier:
    def test_is_broken_under_the_restatement_that_it_refuses(self) -> None:
        def strict(verdict: Verdict, evidence: VerifierInput) -> Verdict | None:
            balances: Any = evidence.final_state.data["balances"]
            if verdict.passed and any(text.startswith("+") for text in balances.values()):
                return Verdict(passed=False, partial_score=0, conditions=(Condition(name="sign", holds=False),))
            return None

        proof = proof_of(with_verdict(strict))
        assert broken_operators(proof) == {("restatement", "plus sign")}
        assert "verifier: failed (sign); second opinion: right" in proof.problems()[0]

    def test_that_fails_the_reference_leaves_nothing_to_restate_or_miss(self) -> None:
        failed = Verdict(passed=False, partial_score=0, conditions=(Condition(name="no", holds=False, detail="why"),))
        proof = proof_of(with_verdict(lambda _verdict, _evidence: failed))
        assert broken_operators(proof) == {("reference", "reference")}
        assert "failed (no why)" in proof.problems()[0]
        assert {each for each in proof.missing() if "never tried" in each} == {
            f"ledger, {kind} {operator!r}: never tried; more instances are needed"
            for kind, names in (
                ("restatement", Ledger.restatement_operators),
                ("near_miss", Ledger.near_miss_operators),
            )
            for operator in names
        }

    def test_that_looks_at_the_calls_is_shown_those_of_the_reference(self) -> None:
        """Proposals stand for agents that acted: a verifier must not tell them from one that did not."""

        def looking(_verdict: Verdict, evidence: VerifierInput) -> Verdict | None:
            if not evidence.calls:
                return Verdict(passed=False, partial_score=0, conditions=(Condition(name="acted", holds=False),))
            return None

        assert proof_of(with_verdict(looking)).problems() == []


class TestAnInconsistentFamily:
    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"partial_score": 1.5}, "partial score 1.5 is outside 0 to 1"),
            ({"partial_score": -0.1}, "partial score -0.1 is outside 0 to 1"),
            ({"partial_score": float("nan")}, "partial score nan is outside 0 to 1"),
            ({"partial_score": 0.5}, "passed, but its partial score is 0.5"),
            ({"conditions": ()}, "names no condition"),
            ({"conditions": (Condition(name="x", holds=False),)}, "1 of its conditions do not hold"),
        ],
    )
    def test_verdict_that_contradicts_itself_is_broken(self, change: dict[str, Any], problem: str) -> None:
        def contradictory(verdict: Verdict, _evidence: VerifierInput) -> Verdict | None:
            return verdict.model_copy(update=change) if verdict.passed else None

        [line] = proof_of(with_verdict(contradictory), instances=1).broken()
        assert "ledger, reference 'reference'" in line
        assert problem in line

    def test_failing_verdict_with_a_whole_score_or_no_failed_condition_is_inconsistent(self) -> None:
        held, failed = Condition(name="x", holds=True), Condition(name="y", holds=False)
        assert inconsistency(Verdict(passed=False, partial_score=1, conditions=(failed,))) == "its partial score is 1.0"
        assert "0 of its conditions" in inconsistency(Verdict(passed=False, partial_score=0, conditions=(held,)))
        assert inconsistency(Verdict(passed=False, partial_score=0.5, conditions=(held, failed))) == ""
        assert inconsistency(Verdict(passed=True, partial_score=1, conditions=(held,))) == ""

    def test_verifier_that_raises_is_broken_where_it_does(self) -> None:
        def raising(_verdict: Verdict, evidence: VerifierInput) -> Verdict | None:
            if len(evidence.final_state.data["balances"]) == 1:  # type: ignore[arg-type]
                raise KeyError("second account")
            return None

        proof = proof_of(with_verdict(raising))
        assert broken_operators(proof) == {("near_miss", "account missing")}
        assert "verifier: raised KeyError: 'second account'; second opinion: wrong" in proof.problems()[0]

    def test_second_opinion_that_raises_is_broken(self) -> None:
        class Raising(Ledger):
            def second_opinion(self, instance: Instance) -> SecondOpinion:  # noqa: ARG002
                raise ZeroDivisionError("no opinion")

        assert "second opinion: raised ZeroDivisionError: no opinion" in proof_of(Raising()).problems()[0]

    def test_second_opinion_that_disagrees_is_broken_both_ways(self) -> None:
        class Contrary(Ledger):
            def second_opinion(self, instance: Instance) -> SecondOpinion:
                opinion = super().second_opinion(instance)
                return lambda state: not opinion(state)

        proof = proof_of(Contrary())
        assert {kind for kind, _ in broken_operators(proof)} == {"reference", "no_op", "untouched", "mistake"}

    @pytest.mark.parametrize("kind", ["reference", "untouched", "mistake", "restatement", "near_miss"])
    def test_method_that_raises_is_broken_and_the_other_kinds_are_tried(self, kind: str) -> None:
        method = {"restatement": "restatements", "near_miss": "near_misses"}.get(kind, kind)

        def raising(*_arguments: object) -> Any:
            raise LookupError("gone")

        ledger = type("Raising", (Ledger,), {method: raising})()
        proof = proof_of(ledger)
        assert broken_operators(proof) == {(kind, "(raised)")}
        assert proof.broken()[0].endswith("none baseline: LookupError: gone")
        assert proof.tallies["ledger", "no_op", "do nothing"].held == 6
        assert any("never tried" in line for line in proof.missing())

    def test_family_without_proofs_is_told_so(self) -> None:
        class Bare(Ledger):
            def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
                raise NotImplementedError

        assert any("(raised)" in line and "NotImplementedError" in line for line in proof_of(Bare()).problems())


class TestPlansThatProveNothing:
    def test_reference_that_meets_an_error_is_broken(self) -> None:
        class Clumsy(Ledger):
            def reference(self, instance: Instance) -> tuple[ToolCall, ...]:
                return (ToolCall(name="read_journal", arguments={"page_number": 99}), *super().reference(instance))

        line = proof_of(Clumsy()).broken()[0]
        assert "the reference meets an error: error in argument 'page_number': there are" in line

    @pytest.mark.parametrize(
        ("method", "kind"), [("reference", "reference"), ("mistake", "mistake"), ("untouched", "untouched")]
    )
    def test_plan_that_hands_nothing_in_is_broken(self, method: str, kind: str) -> None:
        def unfinished(self: Any, *arguments: Any) -> Any:
            plans = getattr(Ledger, method)(self, *arguments)
            return iter([plan[:-1] for plan in plans]) if method == "untouched" else plans[:-1]

        proof = proof_of(type("Unfinished", (Ledger,), {method: unfinished})())
        assert kind in {found for found, _ in broken_operators(proof)}
        assert "the plan hands nothing in; verifier: failed" in proof.broken()[0]

    def test_untouched_plan_may_be_refused_by_the_closing_tool(self) -> None:
        class Careful(Book):
            def _close(self, arguments: JsonObject) -> Reply:
                if not self._balances:
                    raise ToolError("nothing was written")
                return super()._close(arguments)

        class Empty(Ledger):
            def open(self, instance: Instance) -> Book:
                return Careful(instance.world)

            def untouched(self, instance: Instance) -> Iterator[tuple[ToolCall, ...]]:
                yield (ToolCall(name="close_books", arguments={}),)
                yield from super().untouched(instance)

        proof = proof_of(Empty())
        assert proof.problems() == []
        assert proof.tallies["ledger", "untouched", "hand in the input"].held == 12

    def test_mistake_that_passes_is_broken(self) -> None:
        class Flawless(Ledger):
            def mistake(self, instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:  # noqa: ARG002
                return self.reference(instance)

        assert broken_operators(proof_of(Flawless())) == {("mistake", "one wrong step")}


class TestEquivalents:
    class Doubtful(Ledger):
        """One near miss of eleven is the right answer."""

        near_miss_operators = (*Ledger.near_miss_operators, "entry counted")

        def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
            yield from super().near_misses(instance, right, rng)
            yield Proposal(operator="entry counted", state=right)
            if rng.random() < 0.5:
                yield Proposal(operator="entry counted", state=right.model_copy(update={"submitted": False}))

    def test_are_listed_and_are_no_evidence(self) -> None:
        proof = proof_of(self.Doubtful())
        tally = proof.tallies["ledger", "near_miss", "entry counted"]
        assert len(tally.equivalent) == 6
        assert 0 < tally.held < 6
        assert tally.rate == 1.0
        assert tally.tried == 6 + tally.held
        assert proof.broken() == []
        assert len(proof.equivalents()) == 6
        assert 'state {"balances"' in proof.equivalents()[0]

    def test_too_many_are_a_problem(self) -> None:
        proof = proof_of(self.Doubtful())
        [line] = proof.problems()
        near = sum(tally.tried for (_, kind, _), tally in proof.tallies.items() if kind == "near_miss")
        assert line == f"ledger: {6 / near:.1%} of the near misses are equivalent, not under 2%"

    def test_operator_that_only_gives_equivalents_has_no_evidence(self) -> None:
        class Idle(Ledger):
            near_miss_operators = (*Ledger.near_miss_operators, "nothing")

            def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
                yield from super().near_misses(instance, right, rng)
                yield Proposal(operator="nothing", state=right)

        proof = proof_of(Idle())
        assert proof.tallies["ledger", "near_miss", "nothing"].rate is None
        assert (
            "ledger, near_miss 'nothing': no evidence, each of 6 is equivalent to the right answer" in proof.missing()
        )

    def test_restatement_that_only_orders_keys_otherwise_is_none(self) -> None:
        class Reordering(Ledger):
            restatement_operators = (*Ledger.restatement_operators, "other order")

            def restatements(self, instance: Instance, right: FinalState) -> Iterator[Proposal]:
                yield from super().restatements(instance, right)
                balances: Any = right.data["balances"]
                state = right.model_copy(update={"data": {"balances": dict(reversed(balances.items()))}})
                yield Proposal(operator="other order", state=state)

        proof = proof_of(Reordering())
        assert proof.problems() == []
        assert proof.tallies["ledger", "restatement", "other order"].held == 6

    def test_restatement_in_the_very_bytes_is_one(self) -> None:
        class Repeating(Ledger):
            def restatements(self, instance: Instance, right: FinalState) -> Iterator[Proposal]:  # noqa: ARG002
                for operator in self.restatement_operators:
                    yield Proposal(operator=operator, state=right)

        proof = proof_of(Repeating())
        assert len(proof.missing()) == 3
        assert all("no evidence" in line for line in proof.missing())


class TestTally:
    def test_undeclared_operator_is_a_problem_and_no_crash(self) -> None:
        class Secretive(Ledger):
            near_miss_operators = Ledger.near_miss_operators[1:]

        assert proof_of(Secretive()).problems() == [
            "ledger, near_miss 'a cent off': the family does not declare this operator"
        ]

    def test_operator_that_never_occurs_is_a_problem(self) -> None:
        class Boastful(Ledger):
            near_miss_operators = (*Ledger.near_miss_operators, "never made")

        assert proof_of(Boastful()).problems() == [
            "ledger, near_miss 'never made': never tried; more instances are needed"
        ]

    def test_merged_proofs_count_as_one(self) -> None:
        with registered(TestEquivalents.Doubtful()):
            parts = [
                run_trial(trial(axis=axis, level=level))
                for axis, level in (("none", "baseline"), ("order", "shuffled"))
            ]
            merged = Proof(["ledger"])
            for part in parts:
                merged.merge(part)
        for key, tally in merged.tallies.items():
            assert tally.tried == sum(part.tallies[key].tried for part in parts)
        assert merged.equivalents() == [line for part in parts for line in part.equivalents()]
        assert len(merged.equivalents()) == 12
        assert len(merged.variants) == 2

    def test_merging_keeps_what_broke(self) -> None:
        with registered(without_condition("closed")):
            parts = [run_trial(trial(seed=seed)) for seed in (3, 4)]
            merged = Proof(["ledger"])
            for part in parts:
                merged.merge(part)
        assert merged.broken() == [line for part in parts for line in part.broken()]
        assert len(merged.broken()) == 12

    def test_merging_keeps_what_only_the_other_saw(self) -> None:
        class Secretive(Ledger):
            near_miss_operators = Ledger.near_miss_operators[1:]

        with registered(Secretive()):
            merged = Proof(["ledger"])
            merged.merge(run_trial(trial()))
        assert "does not declare" in merged.problems()[0]

    def test_proof_of_an_unknown_family_is_refused(self) -> None:
        with pytest.raises(UnknownName, match="unknown family 'legder'"):
            Proof(["legder"])


class TestTrial:
    @pytest.mark.parametrize(
        ("changes", "error", "match"),
        [
            ({"params": {"accounts": 1, "entries": 12}}, ParameterError, "accounts"),
            ({"axis": "tone", "level": "rude"}, UnknownName, "unknown perturbation axis 'tone'"),
            ({"axis": "paraphrase", "level": "p9"}, UnknownName, "p9"),
            ({"axis": "resample", "level": "1"}, ValueError, "expected s1"),
        ],
    )
    def test_what_cannot_be_drawn_or_shown_is_an_error(
        self, changes: dict[str, Any], error: type[Exception], match: str
    ) -> None:
        with pytest.raises(error, match=match):
            proof_of(Ledger(), **changes)

    def test_generation_that_fails_is_an_error(self) -> None:
        class Barren(Ledger):
            def _draw(self, params: Any, rng: random.Random) -> None:  # noqa: ARG002
                return None

        with pytest.raises(GenerationError, match="no acceptable journal"):
            proof_of(Barren())


def test_two_judgements_mean_what_the_kind_says() -> None:
    for kind in KINDS:
        for passed in (True, False):
            assert outcome_of(kind, passed=passed, second=not passed) == "broken"
        must_pass = kind in ("reference", "restatement")
        assert outcome_of(kind, passed=must_pass, second=must_pass) == "held"
        wrong = outcome_of(kind, passed=not must_pass, second=not must_pass)
        assert wrong == ("equivalent" if kind == "near_miss" else "broken")


def test_the_strangers_two_solvers_share_no_route() -> None:
    """The ledger's own promise, without which the tests here would prove nothing."""
    with registered(Ledger()):
        for seed in range(30):
            instance = generate_instance("ledger", PARAMS, seed)
            opinion = Ledger().second_opinion(instance)
            spec: Any = instance.spec
            truth: Any = instance.truth["balances"]
            assert opinion(FinalState(submitted=True, data={"balances": truth}))
            balances = closing(instance, spec["first_day"], spec["last_day"])
            assert {name: read(text) for name, text in truth.items()} == {
                name: balances[name] * 100 for name in spec["accounts"]
            }
