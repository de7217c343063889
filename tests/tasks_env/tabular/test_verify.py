"""The verifier on anything at all, and its partial score against a textbook computation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_env import family
from tasks_env.families.tabular.verify import MAX_CHARS, common_length
from tasks_env.types import FinalState, ToolCall, Verdict, VerifierInput

from .handmade import RESULT, handmade

INSTANCE = handmade()


def verdict_on(data: dict[str, Any], submitted: bool = True, calls: tuple[ToolCall, ...] = ()) -> Verdict:
    state = FinalState(submitted=submitted, data=data)
    return family("tabular").verify(VerifierInput(instance=INSTANCE, calls=calls, final_state=state))


texts = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["table", "csv", "rows", ""]), json_values), st.booleans())
def test_any_final_state_gets_a_verdict(data: dict[str, Any], submitted: bool) -> None:
    verdict = verdict_on(data, submitted)
    assert not verdict.passed
    assert 0.0 <= verdict.partial_score < 1.0
    assert [condition.name for condition in verdict.conditions] == [
        "submitted",
        "readable",
        "columns",
        "rows",
        "canonical_bytes",
    ]
    json.loads(verdict.model_dump_json())


@given(st.text(alphabet='rsegmntail,"\n\r0123.9-\ufeff\ud800\x00', max_size=60))
def test_any_text_gets_a_verdict_that_fits_its_conditions(text: str) -> None:
    verdict = verdict_on({"table": "x", "csv": RESULT + text})
    assert verdict.passed == all(condition.holds for condition in verdict.conditions)
    assert verdict.passed == (verdict.partial_score == 1.0)
    assert all(len(condition.detail) < 400 for condition in verdict.conditions)


@given(st.permutations([*RESULT.splitlines()[1:], "a,1.0,1", "b,2.0,2"]))
def test_extra_rows_fail_in_any_order(lines: list[str]) -> None:
    text = "\n".join([RESULT.splitlines()[0], *lines])
    assert not verdict_on({"csv": text}).passed


def test_the_verdict_depends_on_nothing_but_the_submission() -> None:
    calls = (ToolCall(name="list_tables", arguments={}),)
    assert verdict_on({"table": "a", "csv": RESULT}) == verdict_on({"table": "b", "csv": RESULT}, True, calls)


def test_a_table_that_was_not_submitted_does_not_count() -> None:
    verdict = verdict_on({"table": "a", "csv": RESULT}, submitted=False)
    assert not verdict.passed
    assert verdict.partial_score == 0.0
    assert verdict.conditions[0].detail == "no table was submitted"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no header"),
        ("a,b\n1\n", "line 2 has 1 fields, but the header has 2"),
        ('a\n"x', "line 2"),
        ("x" * (MAX_CHARS + 1), "longer than"),
    ],
    ids=["empty", "ragged", "open_quote", "huge"],
)
def test_an_unreadable_submission_says_why(text: str, words: str) -> None:
    verdict = verdict_on({"table": "a", "csv": text})
    [readable] = [condition for condition in verdict.conditions if condition.name == "readable"]
    assert not readable.holds
    assert words in readable.detail
    assert verdict.partial_score == 0.0


@settings(max_examples=200)
@given(st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_the_common_length_is_the_textbook_one(got: list[str], want: list[str]) -> None:
    table = [[0] * (len(want) + 1) for _ in range(len(got) + 1)]
    for i, first in enumerate(got):
        for j, second in enumerate(want):
            table[i + 1][j + 1] = table[i][j] + 1 if first == second else max(table[i][j + 1], table[i + 1][j])
    assert common_length(got, want) == table[-1][-1]
