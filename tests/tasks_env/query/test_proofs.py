"""The proof of the verifier: it holds on what is shipped, and it fails when a rule of the verifier is broken."""

from __future__ import annotations

import ast
import random
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_env import FinalState, Instance, Naming, Presentation, VerifierInput
from tasks_env.families import FAMILIES
from tasks_env.families.base import SecondOpinion
from tasks_env.families.query import second_opinion, second_solver
from tasks_env.families.query.misqueried import MISQUERIES
from tasks_env.families.query.near_misses import NEAR_MISS_OPERATORS
from tasks_env.proofs import Proof, prove
from tests.tasks_env.query.broken_rules import BROKEN_RULES, BrokenRule, comparison, family_with
from tests.tasks_env.query.handmade import COUNT, EXTREME, LIST, LOOKUP, TOP
from tests.tasks_env.query.levels import FAMILY, SHIPPED, a_mix, made

_SEEDS = 40
_NUMBERS = st.decimals(-10, 10, places=3).map(str)
_RENAMED = Presentation(naming=Naming(tools={"submit": "deliver"}, arguments={"answer": "response"}))


def _proof(instances: list[Instance], presentation: Presentation | None = None) -> Proof:
    proof = Proof(["query"])
    for instance in instances:
        proof.add(prove(instance, presentation or Presentation(), rng=random.Random(instance.seed)))
    return proof


def test_the_proof_holds_on_the_shipped_levels_and_tries_every_operator() -> None:
    assert len(SHIPPED) >= 2
    proof = _proof([made(level, seed) for level in SHIPPED for seed in range(_SEEDS)])
    assert proof.problems() == []
    tried = sum(tally.tried for tally in proof.tallies.values() if tally.kind == "near_miss")
    assert tried >= 15 * _SEEDS * len(SHIPPED)


def test_the_proof_holds_for_every_kind_of_question_and_under_other_names() -> None:
    proof = _proof(a_mix(5), _RENAMED)
    assert [line for line in proof.problems() if "never tried" not in line] == []


def test_near_misses_follow_the_generator_given() -> None:
    for instance in _answering("pair"):
        right = _right(instance)
        first, second, other = (list(FAMILY.near_misses(instance, right, random.Random(n))) for n in (1, 1, 2))
        assert first == second
        assert first != other


def test_second_opinion_shares_no_code_with_what_it_judges() -> None:
    allowed = {
        second_opinion: {
            "__future__",
            "collections.abc",
            "fractions",
            "typing",
            "tasks_env.families.query.second_solver",
            "tasks_env.types",
        },
        second_solver: {"__future__", "fractions", "operator", "typing"},
    }
    for module, names in allowed.items():
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        assert imported <= names
        assert not {"truth", "eval", "exec", "__import__"} & {
            getattr(node, "attr", getattr(node, "id", None)) for node in nodes
        }


def test_second_opinion_is_the_same_without_the_truth() -> None:
    for instance in a_mix(3):
        judge = FAMILY.second_opinion(instance.model_copy(update={"truth": {}}))
        assert judge(_right(instance))
        assert not judge(FinalState(submitted=False, data=_right(instance).data))


@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_both_judges_agree_on_any_text(data: st.DataObject) -> None:
    instance, right, second_judge = data.draw(st.sampled_from(_judged()))
    text = data.draw(st.one_of(_NUMBERS, _edited(right), st.text("0123456789+-.,;e aC\t\u00a0\u0663", max_size=12)))
    state = FinalState(submitted=True, data={"answer": text})
    verdict = FAMILY.verify(VerifierInput(instance=instance, calls=(), final_state=state))
    assert verdict.passed == second_judge(state), text


@lru_cache(maxsize=1)
def _judged() -> list[tuple[Instance, str, SecondOpinion]]:
    """Instances of every form with the right answer as written and the second judge."""
    instances = [COUNT, LIST, LOOKUP, EXTREME, TOP, *_answering("decimals", 2), *_answering("number", 1)]
    return [(instance, _written(instance), FAMILY.second_opinion(instance)) for instance in instances]


def _edited(text: str) -> st.SearchStrategy[str]:
    """`text` with one piece put in place of another."""
    places = st.integers(0, len(text))
    pieces = st.sampled_from(["", " ", "\u00a0", "0", "00", "5", ";", ".", "+", "-", "e", "\n", "4999", "49999"])
    return st.tuples(places, st.integers(0, 1), pieces).map(
        lambda cut: text[: cut[0]] + cut[2] + text[cut[0] + cut[1] :]
    )


def _written(instance: Instance) -> str:
    truth: Any = instance.truth["answer"]
    return truth if isinstance(truth, str) else "; ".join(truth)


@lru_cache(maxsize=16)
def _answering(form: str, count: int = 12) -> tuple[Instance, ...]:
    """Shipped instances with answers of this form: `number` is whole, `decimals` is not."""
    instances = (made(level, seed) for seed in range(120) for level in SHIPPED)
    return tuple(islice((instance for instance in instances if _form(instance) == form), count))


def _told(proof: Proof) -> set[str]:
    """The operators that a proof reports as broken."""
    return {operator for (_, _, operator), tally in proof.tallies.items() if tally.broken}


def _form(instance: Instance) -> str:
    answer: Any = instance.spec["answer"]
    return "decimals" if answer["kind"] == "number" and answer.get("decimals") else str(answer["kind"])


def _right(instance: Instance) -> FinalState:
    return FinalState(submitted=True, data={"answer": FAMILY.reference(instance)[-1].arguments["answer"]})


@pytest.mark.parametrize("broken", BROKEN_RULES, ids=lambda broken: f"{broken.form}, {broken.operator}")
def test_a_verifier_with_a_broken_rule_is_found_out(broken: BrokenRule, monkeypatch: pytest.MonkeyPatch) -> None:
    instances = _answering(broken.form)
    monkeypatch.setitem(FAMILIES, "query", family_with(broken))
    assert any(broken.operator in _told(_proof([instance])) for instance in instances)


def test_a_verifier_that_compares_nothing_is_told_by_every_wrong_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    instances = [made(level, seed) for seed in range(_SEEDS) for level in SHIPPED]
    monkeypatch.setitem(FAMILIES, "query", family_with(BrokenRule("", "", (comparison("True"),))))
    silent = {*MISQUERIES, "hand in the input"}
    while silent:
        assert instances, silent
        silent -= _told(_proof([instances.pop(0)]))


def test_every_operator_tells_some_broken_rule() -> None:
    told = {broken.operator for broken in BROKEN_RULES} | set(MISQUERIES)
    assert told == {*NEAR_MISS_OPERATORS, *FAMILY.restatement_operators}


def test_an_unchanged_copy_of_the_verifier_is_not_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    instances = [
        instance for form in ("number", "decimals", "text", "date", "list", "pair") for instance in _answering(form)
    ]
    monkeypatch.setitem(FAMILIES, "query", family_with(BrokenRule("", "", ())))
    assert not any(tally.broken or tally.equivalent for tally in _proof(instances).tallies.values())
