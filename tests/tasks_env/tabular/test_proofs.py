"""The verifier is proven at the shipped difficulties, and one with a wrong rule does not get through."""

from __future__ import annotations

import ast
import itertools
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_env import Instance, Session, family, play, render
from tasks_env.families import FAMILIES
from tasks_env.families.tabular import second_opinion as judging
from tasks_env.families.tabular import second_solver
from tasks_env.families.tabular.evaluate import result_columns
from tasks_env.families.tabular.family import Tabular
from tasks_env.families.tabular.near_misses import near_misses
from tasks_env.families.tabular.reading_slips import READING_OPERATORS, operator_of
from tasks_env.families.tabular.readings import careless_readings, decisive_readings
from tasks_env.families.tabular.spec import Spec
from tasks_env.families.tabular.table import Column
from tasks_env.proofs import EQUIVALENT_LIMIT, Finding, Proof, prove
from tasks_env.session import verify
from tasks_env.types import FinalState, Presentation, Verdict, VerifierInput

from .handmade import RESULT, handmade
from .levels import LEVELS, SHIPPED, instance, shipped
from .wrong_verifiers import LAX, STRICT, Repair

TABULAR = family("tabular")
SEEDS = range(20)


def findings(chosen: Instance, seed: int = 0) -> list[Finding]:
    return list(prove(chosen, Presentation(), rng=random.Random(seed)))


def right_state(chosen: Instance) -> FinalState:
    session = Session(chosen, render(chosen))
    play(session, TABULAR.reference(chosen))
    return session.final_state()


@pytest.fixture(scope="module")
def proof() -> Proof:
    """The findings at the shipped difficulties."""
    made = Proof(["tabular"])
    for difficulty in SHIPPED:
        for seed in SEEDS:
            made.add(findings(shipped(difficulty, seed), seed))
    return made


def test_the_verifier_is_proven_at_every_shipped_difficulty(proof: Proof) -> None:
    assert len(SHIPPED) >= 2
    assert proof.problems() == []


def test_every_declared_operator_is_tried_and_nearly_none_of_its_mutants_is_equivalent(proof: Proof) -> None:
    tallies = [tally for (_, kind, _), tally in proof.tallies.items() if kind == "near_miss"]
    assert len(tallies) == len(TABULAR.near_miss_operators) >= 40
    assert all(tally.tried >= 5 for tally in tallies)
    tried = sum(tally.tried for tally in tallies)
    assert tried > 1500
    assert sum(len(tally.equivalent) for tally in tallies) < EQUIVALENT_LIMIT * tried


@pytest.mark.parametrize("level", LEVELS)
def test_other_shapes_of_task_are_proven_too(level: str) -> None:
    broken = [f for seed in range(2) for f in findings(instance(level, seed), seed) if f.outcome == "broken"]
    assert not broken


def test_the_same_seed_makes_the_same_mutants() -> None:
    chosen = shipped("hard", 1)
    right = right_state(chosen)
    first, again, other = ([*near_misses(chosen, right, random.Random(seed))] for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_no_restatement_and_no_mutant_repeats_the_right_bytes() -> None:
    for difficulty in SHIPPED:
        chosen = shipped(difficulty, 2)
        right = right_state(chosen)
        for proposal in TABULAR.near_misses(chosen, right, random.Random(3)):
            assert proposal.state != right.model_copy(update={"data": {**right.data, "table": "typed"}})
            assert proposal.operator in TABULAR.near_miss_operators
        texts = [proposal.state.data["csv"] for proposal in TABULAR.restatements(chosen, right)]
        assert len(set(texts)) == len(texts)
        assert texts[0] == right.data["csv"]


def test_every_reading_belongs_to_an_operator() -> None:
    for level in LEVELS:
        spec = Spec.model_validate(instance(level, 1).spec)
        for name, _ in [*decisive_readings(spec), *careless_readings(spec)]:
            assert operator_of(name) in READING_OPERATORS
    with pytest.raises(KeyError, match="no operator"):
        operator_of("filters in another order")


# The proof itself: a verifier with one rule removed, or one added, is found out.


class Changed(Tabular):
    """The family with a verifier that changes the submission before it judges it."""

    def __init__(self, repair: Repair) -> None:
        self._repair = repair

    def verify(self, evidence: VerifierInput) -> Verdict:
        truth = str(evidence.instance.truth["csv"])
        state = self._repair(evidence.final_state, truth)
        return super().verify(evidence.model_copy(update={"final_state": state}))


def broken_with(verifier: Tabular, instances: Iterator[Instance], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Operators that are reported broken under another verifier; the reference never may be."""
    monkeypatch.setitem(FAMILIES, "tabular", verifier)
    found = [f for chosen in instances for f in findings(chosen) if f.outcome == "broken"]
    assert all(f.note for f in found)
    return {f.operator for f in found}


def witnesses(level: str) -> Iterator[Instance]:
    """Two instances of a level; `dates`: easy ones whose result has a column of dates."""
    if level != "dates":
        return iter([instance(level, 0), instance(level, 1)])
    drawn = (instance("easy", seed) for seed in range(200))
    return itertools.islice((i for i in drawn if "date" in {column.kind for column in result_of(i)}), 2)


def result_of(chosen: Instance) -> tuple[Column, ...]:
    return result_columns(Spec.model_validate(chosen.spec))


def test_the_unchanged_verifier_has_nothing_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_with(Changed(lambda state, _: state), witnesses("hard"), monkeypatch) == set()


@pytest.mark.parametrize("rule", LAX)
def test_a_verifier_without_one_of_its_rules_is_reported(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    repair, level, operators = LAX[rule]
    broken = broken_with(Changed(repair), witnesses(level), monkeypatch)
    assert operators <= broken
    assert not broken & {"reference", *TABULAR.restatement_operators}


@pytest.mark.parametrize("rule", STRICT)
def test_a_verifier_with_a_rule_too_many_is_reported(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil, operators = STRICT[rule]
    broken = broken_with(Changed(spoil), witnesses("hard"), monkeypatch)
    assert operators <= broken
    assert broken <= set(TABULAR.restatement_operators)


def test_a_wrong_truth_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = handmade().model_copy(update={"truth": {"csv": RESULT.replace("6.9", "6.8")}})
    assert broken_with(Tabular(), iter([chosen]), monkeypatch) == {"reference"}


# The second judge is independent, and agrees on anything.


def test_the_second_judge_shares_no_code_with_what_it_judges() -> None:
    for module, allowed in (
        (second_solver, set()),
        (judging, {"tasks_env.families.tabular.second_solver", "tasks_env.types"}),
    ):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        imported = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        foreign = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
        assert foreign == allowed
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "truth"]
        assert "truth" not in [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]


def test_the_second_judge_does_not_read_the_truth() -> None:
    blind = handmade().model_copy(update={"truth": {"csv": "nothing\n"}})
    opinion = TABULAR.second_opinion(blind)
    assert opinion(FinalState(submitted=True, data={"csv": RESULT}))
    assert not opinion(FinalState(submitted=True, data={"csv": "nothing\n"}))


HAND = handmade()
HAND_OPINION: Callable[[FinalState], bool] = TABULAR.second_opinion(HAND)
PIECES = ["\n", "\r\n", "\r", ",", '"', '""', '"retail"', "0", ".0", "-", "\ufeff", " ", "3.0", "3", "", "2", "\x00"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(RESULT)), st.integers(0, 6), st.sampled_from(PIECES)), max_size=3))
def test_the_two_judges_agree_on_any_text_near_the_right_one(edits: list[tuple[int, int, str]]) -> None:
    text = RESULT
    for place, length, piece in edits:
        text = text[:place] + piece + text[place + length :]
    state = FinalState(submitted=True, data={"table": "x", "csv": text})
    assert verify(HAND, (), state).passed == HAND_OPINION(state)
