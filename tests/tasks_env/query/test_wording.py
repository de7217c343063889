"""The wordings: complete, different, and true to the question."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tasks_env import Instance, Presentation, UnknownName, render
from tests.tasks_env.query.handmade import ABSENT, AVERAGE, COUNT, LIST, TOP
from tests.tasks_env.query.levels import FAMILY, KINDS, a_mix, made_of_kind

_STRICT_WORDS = {
    "lt": ("less than", "before", "strictly below", "strictly earlier than", "< "),
    "le": ("at most", "on or before", "does not exceed", "no later than", "<= "),
    "gt": ("more than", "after", "strictly above", "strictly later than", "> "),
    "ge": ("at least", "on or after", "no less than", "no earlier than", ">= "),
    "eq": ("is", "equals", "= "),
    "ne": ("is not", "differs from", "<> "),
}
_RANKS = {
    "highest": ("highest", "largest", "greatest", "maximum"),
    "lowest": ("lowest", "smallest", "least", "minimum"),
    "latest": ("latest", "most recent", "last"),
    "earliest": ("earliest", "first"),
}
_KIND_WORDS = {
    "count": ("How many", "how many", "Count", "number of"),
    "distinct": ("different values", "distinct"),
    "sum": ("total", "Add up", "add up", "sum"),
    "average": ("average", "mean"),
    "date": ("date",),
    "lookup": ("only", "the one", "exactly one", "one matching row", "single", "only one"),
    "extreme": ("with the", "whose", "with", "has the"),
    "list": ("different values", "distinct", "set of values"),
    "top": ("how much", "figure", "comes to", "followed by"),
    "absent": ("not the", "do not occur", "never appear", "of none"),
}
_ENTITIES_WITHOUT_ROWS = ("Include ", "are included", "belong to the count", "included", "do include", "including")
_EMPTY_GROUPS = ("are left out", "not considered", "out of the running", "ignored", "do not bother", "excluded")
_MISSING = r"NULL"


def _prompts(instance: Instance) -> dict[str, str]:
    return {name: render(instance, Presentation(phrasing=name)).prompt for name in FAMILY.phrasings}


def _words(ref: Any) -> list[str]:
    steps = [link.removesuffix("_id") for link in ref.get("path", [])]
    label = [] if ref["column"] == "id" else [ref["column"]]
    return [word.replace("_", " ") for word in [*steps, *label]]


def _says(prompt: str, words: list[str]) -> bool:
    flat = prompt.replace("_", " ").replace(".", " ").lower()
    return all(word.lower() in flat for word in words)


def _value(predicate: Any) -> str:
    value = predicate["value"]
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _assert_complete(instance: Instance, name: str, prompt: str) -> None:
    spec: Any = instance.spec
    where = f"{name}: {spec} in {prompt}"
    assert spec["base"] in prompt or spec["base"][:-1] in prompt, where
    for predicate in spec["predicates"]:
        assert _says(prompt, _words(predicate["ref"])), where
        assert any(
            re.search(f"{re.escape(words)} ?'?{re.escape(_value(predicate))}\\b", prompt)
            for words in _STRICT_WORDS[predicate["operator"]]
        ), where
    for part in ("column", "measure"):
        if spec.get(part):
            assert _says(prompt, _words(spec[part])), where
    assert any(word in prompt for word in _KIND_WORDS[spec["kind"]]), where
    if spec.get("direction"):
        assert any(word in prompt for word in _RANKS[spec["direction"]]), where
    if spec["kind"] == "top":
        assert any(word in prompt for word in _EMPTY_GROUPS), where
    if spec["kind"] == "absent":
        assert any(word in prompt for word in _ENTITIES_WITHOUT_ROWS), where
    assert bool(re.search(_MISSING, prompt)) == spec["states_nulls"], where
    form = spec["answer"]
    if form.get("decimals"):
        assert f"rounded to {form['decimals']} decimals" in prompt, where
        assert "decimal point" in prompt, where
    elif form["kind"] in ("number", "pair"):
        assert "whole number" in prompt, where
    if form["kind"] == "list":
        assert re.search("alphabetical", prompt), where
        forward, backward = prompt.rfind("A"), prompt.rfind("Z")
        assert ("Z to A" in prompt or "at Z and ending" in prompt) == (form.get("order") == "descending"), where
        assert forward >= 0 <= backward
        assert any(word in prompt for word in ("once", "none twice", "no repeats", "without repetition")), where
    if form["kind"] in ("list", "pair"):
        assert "semicolon" in prompt, where
        assert "(;)" in prompt, where
    if form["kind"] == "date":
        assert "YYYY-MM-DD" in prompt, where
    if form["kind"] == "text":
        assert "quotes" in prompt, where
    for tool in ("list_tables", "describe_table", "run_query", "submit"):
        assert tool in prompt, where
    assert "answer" in prompt, where


def test_every_phrasing_carries_every_part_of_the_spec() -> None:
    instances = a_mix(12) + [made_of_kind(kind, seed) for kind in KINDS for seed in range(4)]
    for instance in instances:
        for name, prompt in _prompts(instance).items():
            _assert_complete(instance, name, prompt)


@pytest.mark.parametrize("other", [COUNT, AVERAGE, LIST, TOP, ABSENT])
def test_changing_any_part_of_the_spec_changes_every_phrasing(other: Instance) -> None:
    spec: Any = other.spec
    predicate = spec["predicates"][0]
    changes: list[dict[str, Any]] = [
        {"predicates": [{**predicate, "value": "2019-01-01" if "date" in predicate["ref"]["column"] else "lost"}]},
        {"predicates": [{**predicate, "operator": "ne" if predicate["operator"] == "eq" else "lt"}]},
        {"predicates": [{**predicate, "ref": {"column": "town", "path": ["member_id"]}}]},
        {"predicates": [predicate, {"ref": {"column": "duration"}, "operator": "ge", "value": 8}]},
        {"states_nulls": not spec["states_nulls"]},
    ]
    if spec.get("measure"):
        changes += [{"measure": None}, {"measure": {"column": "duration"}}, {"direction": "lowest"}]
    if spec.get("column") and spec["kind"] != "absent":
        changes.append({"column": {"column": "status" if spec["kind"] != "average" else "duration"}})
    if spec["answer"]["kind"] == "list":
        changes.append({"answer": {"kind": "list"}})
    for change in changes:
        changed = other.model_copy(update={"spec": {**spec, **change}})
        before, after = _prompts(other), _prompts(changed)
        assert all(before[name] != after[name] for name in before), change


def test_wording_comes_from_the_spec_alone() -> None:
    for instance in a_mix(2):
        bare = instance.model_copy(update={"world": {"tables": []}, "truth": {"answer": "other"}})
        for name in FAMILY.phrasings:
            assert FAMILY.prompt(bare, name) == FAMILY.prompt(instance, name)


def test_phrasings_are_really_different() -> None:
    for instance in a_mix(3):
        prompts = list(_prompts(instance).values())
        for place, one in enumerate(prompts):
            for two in prompts[place + 1 :]:
                first, second = set(re.findall(r"\w+", one.lower())), set(re.findall(r"\w+", two.lower()))
                assert len(first & second) / len(first | second) < 0.75


def test_no_phrasing_gives_the_answer_away() -> None:
    for instance in a_mix(10):
        answer = instance.truth["answer"]
        if isinstance(answer, str) and len(answer) > 3 and not answer.isdigit():
            values = [str(predicate["value"]) for predicate in instance.spec["predicates"]]
            assert answer in values or all(answer not in prompt for prompt in _prompts(instance).values())


def test_easy_prompts_are_short() -> None:
    assert max(len(render(instance).prompt) for instance in a_mix(10) if instance.difficulty == "easy") < 500


def test_unknown_phrasing_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="p1, p2"):
        FAMILY.prompt(COUNT, "p9")


def test_the_neutral_wording_of_a_count() -> None:
    assert render(COUNT).prompt == (
        "A SQLite database holds the records of a public library. Answer this question from it:\n\n"
        "How many loans are there where the status is 'overdue'?\n\n"
        "Answer format: one whole number in digits, nothing else.\n\n"
        "Use list_tables, describe_table and run_query to find the answer, then call submit with it as answer."
    )
