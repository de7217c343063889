"""Verdicts on hand-made final trees, near misses, and garbage."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from tasks_env.families.filesys.goals import Files
from tasks_env.families.filesys.verifier import canonical_text, verify
from tasks_env.types import FinalState, Instance, Verdict, VerifierInput
from tests.tasks_env.filesys.levels import LEVELS, expected, instance, start

TASK = Instance(
    instance_id="filesys-custom-000000000000",
    family="filesys",
    difficulty="custom",
    sample="base",
    seed=0,
    params={},
    spec={
        "goals": [
            {"kind": "move", "source": "/in/a.md", "destination": "/out/a.md"},
            {"kind": "append", "path": "/log.md", "line": "café"},
        ]
    },
    world={"files": {"/in/a.md": "one\ntwo\n", "/keep.md": "stay\n", "/log.md": "start\n"}},
    truth={
        "files": {"/keep.md": "stay\n", "/log.md": "start\ncafé\n", "/out/a.md": "one\ntwo\n"},
        "goals": [
            {"name": "goal_1_move", "paths": ["/in/a.md", "/out/a.md"]},
            {"name": "goal_2_append", "paths": ["/log.md"]},
        ],
    },
)
RIGHT: Files = {"/keep.md": "stay\n", "/log.md": "start\ncafé\n", "/out/a.md": "one\ntwo\n"}


def judged(files: JsonValue, *, submitted: bool = True, task: Instance = TASK) -> Verdict:
    final = FinalState(submitted=submitted, data={"files": files})
    return verify(VerifierInput(instance=task, calls=(), final_state=final))


def held(verdict: Verdict) -> list[str]:
    return [condition.name for condition in verdict.conditions if condition.holds]


def test_the_expected_tree_passes() -> None:
    verdict = judged(dict(RIGHT))
    assert verdict.passed
    assert verdict.partial_score == 1.0
    assert held(verdict) == ["goal_1_move", "goal_2_append", "nothing_else_changed", "submitted"]
    assert all(condition.detail == "" for condition in verdict.conditions)


@pytest.mark.parametrize(
    "change",
    [
        {"/log.md": "start\ncafé"},
        {"/log.md": "start\ncafé\n\n\n"},
        {"/log.md": "start\r\ncafé\r\n"},
        {"/log.md": "start\ncafe\u0301\n"},
        {"/keep.md": "stay"},
    ],
)
def test_form_alone_makes_no_difference(change: Files) -> None:
    assert judged({**RIGHT, **change}).passed


@pytest.mark.parametrize(
    ("change", "failing", "detail", "score"),
    [
        ({"/log.md": "start\n"}, "goal_2_append", "/log.md ends before line 2: 'café'", 2 / 3),
        ({"/log.md": "café\nstart\n"}, "goal_2_append", "line 1: expected 'start', found 'café'", 2 / 3),
        ({"/log.md": "start\ncafé\nmore\n"}, "goal_2_append", "one line too many, line 3: 'more'", 2 / 3),
        ({"/log.md": "start\n\ncafé\n"}, "goal_2_append", "line 2: expected 'café', found ''", 2 / 3),
        ({"/log.md": "\nstart\ncafé\n"}, "goal_2_append", "line 1", 2 / 3),
        ({"/log.md": "start \ncafé\n"}, "goal_2_append", "found 'start '", 2 / 3),
        ({"/log.md": "start\nCafé\n"}, "goal_2_append", "found 'Café'", 2 / 3),
        ({"/in/a.md": "one\ntwo\n"}, "goal_1_move", "/in/a.md should not exist", 2 / 3),
        ({"/out/a.md": None}, "goal_1_move", "/out/a.md is missing", 2 / 3),
        ({"/out/a.md": None, "/out/A.md": "one\ntwo\n"}, "goal_1_move", "/out/a.md is missing", 1 / 3),
        ({"/keep.md": "changed\n"}, "nothing_else_changed", "/keep.md line 1: expected 'stay'", 2 / 3),
        ({"/keep.md": None}, "nothing_else_changed", "/keep.md is missing", 2 / 3),
        ({"/extra.md": ""}, "nothing_else_changed", "/extra.md should not exist", 2 / 3),
    ],
)
def test_each_near_miss_fails_its_condition_and_says_why(
    change: dict[str, str | None], failing: str, detail: str, score: float
) -> None:
    merged = {**RIGHT, **change}
    verdict = judged({path: text for path, text in merged.items() if text is not None})
    assert not verdict.passed
    condition = next(condition for condition in verdict.conditions if condition.name == failing)
    assert not condition.holds
    assert detail in condition.detail
    assert verdict.partial_score == pytest.approx(score)


def test_the_start_tree_scores_nothing_submitted_or_not() -> None:
    for submitted in (True, False):
        verdict = judged(TASK.world["files"], submitted=submitted)
        assert not verdict.passed
        assert verdict.partial_score == 0.0


def test_right_work_without_submission_misses_one_condition() -> None:
    verdict = judged(dict(RIGHT), submitted=False)
    assert not verdict.passed
    assert verdict.partial_score == 0.75
    assert verdict.conditions[-1].detail == "the work was never submitted"


def test_details_are_bounded_and_do_not_spell_out_long_texts() -> None:
    task = TASK.model_copy(
        update={"truth": {**TASK.truth, "files": {**RIGHT, "/log.md": "secret " * 1000, "/keep.md": "s" * 999}}}
    )
    junk: dict[str, JsonValue] = {f"/{'long' * 40}{n}.md": "x" * 500 for n in range(200)}
    verdict = judged(junk, task=task)
    assert max(len(condition.detail) for condition in verdict.conditions) < 1000
    assert "and 198 more" in verdict.conditions[2].detail
    assert max(condition.detail.count("secret") for condition in verdict.conditions) < 10


@pytest.mark.parametrize("level", LEVELS)
def test_every_single_change_to_the_expected_tree_is_caught(level: str) -> None:
    for seed in range(5 if level != "largest" else 1):
        task = instance(level, seed)
        right = expected(task)
        assert judged(dict(right), task=task).passed
        for path, text in right.items():
            lines = text.split("\n")[:-1]
            mutants: list[dict[str, str]] = [
                {other: kept for other, kept in right.items() if other != path},
                {**right, path: "\n".join(lines[:-1])},
                {**right, path: text + "one more line\n"},
                {**right, path: "\n" + text},
                {**right, path: text.swapcase()},
                {**right, path + ".copy": text},
            ]
            if len(set(lines)) > 1:
                mutants.append({**right, path: "\n".join(sorted(lines, reverse=lines == sorted(lines)))})
            for mutant in mutants:
                if any(
                    canonical_text(mutant.get(p, "\0")) != canonical_text(right.get(p, "\0")) for p in {*right, *mutant}
                ):
                    verdict = judged(dict(mutant), task=task)
                    assert not verdict.passed
                    assert verdict.partial_score < 1.0
        for path, text in start(task).items():
            if path not in right:
                assert not judged({**right, path: text}, task=task).passed


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=12)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)
TREES = st.dictionaries(
    st.one_of(st.sampled_from(list(RIGHT)), st.text(max_size=8)),
    st.one_of(st.sampled_from(list(RIGHT.values())), st.text(max_size=20)),
    max_size=6,
)


@settings(max_examples=120, deadline=None)
@given(st.one_of(JSON, TREES), st.booleans())
def test_no_final_tree_makes_the_verifier_raise_or_pass_by_accident(files: JsonValue, submitted: bool) -> None:
    verdict = judged(files, submitted=submitted)
    assert 0.0 <= verdict.partial_score <= 1.0
    assert (verdict.partial_score == 1.0) == verdict.passed
    assert verdict.passed == all(condition.holds for condition in verdict.conditions)
    json.dumps(verdict.model_dump(mode="json"), ensure_ascii=False).encode("utf-8")
    if verdict.passed:
        assert isinstance(files, dict)
        assert {path: canonical_text(str(text)) for path, text in files.items()} == {
            path: canonical_text(text) for path, text in RIGHT.items()
        }


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(max_size=8), JSON, max_size=3), st.booleans())
def test_no_final_state_makes_the_verifier_raise(data: dict[str, JsonValue], submitted: bool) -> None:
    final = FinalState(submitted=submitted, data=data)
    assert not verify(VerifierInput(instance=TASK, calls=(), final_state=final)).passed
