"""Reading registered hypotheses, and saying where a text goes wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from flows.stats.hypotheses import HypothesisError, Registration, parse_hypotheses
from tests.flows.stats.synthetic import Plan, synthetic_results

REGISTERED = Path(__file__).parents[3] / "HYPOTHESES.md"

GOOD = """id: H-A
axis: tool_names
level: opaque
kind: directional
sign: -1
smallest_effect: 0.05
"""


def block(yaml: str, before: str = "It falls.") -> str:
    return f"{before}\n\n```yaml\n{yaml}```\n\n"


def mistakes(text: str) -> tuple[tuple[int, str], ...]:
    with pytest.raises(HypothesisError) as caught:
        parse_hypotheses(text)
    return caught.value.mistakes


def test_the_studys_own_file_registers_eight_hypotheses() -> None:
    found = {hypothesis.id: hypothesis for hypothesis in parse_hypotheses(REGISTERED.read_text("utf-8"))}
    assert len(found) == 8
    assert found["H-PARAPHRASE"].kind == "equivalence"
    assert found["H-PARAPHRASE"].level == "mean"
    assert found["H-TOOLS-OPAQUE"].sign == -1
    assert found["H-DISTRACTORS-5"].level == "5"
    assert found["H-DISTRACTORS-5"].text == found["H-DISTRACTORS-2"].text
    assert all(hypothesis.text and hypothesis.smallest_effect == 0.03 for hypothesis in found.values())


def test_a_block_carries_its_prose_and_its_line() -> None:
    (found,) = parse_hypotheses(
        f"# Title\n\nIgnored.\n\n## Tools\n\nNames matter,\nso it falls.\n\n```yaml\n{GOOD}```\n"
    )
    assert found.text == "Names matter, so it falls."
    assert found.line == 10
    assert found.smallest_effect == 0.05
    with pytest.raises(ValidationError):
        found.id = "other"  # type: ignore[misc]


def test_blocks_in_other_languages_and_a_text_without_blocks_register_nothing() -> None:
    assert parse_hypotheses("```python\nid: H-A\n```\n\n~~~\nid: H-B\n~~~\n") == ()
    assert parse_hypotheses("") == ()


def test_the_smallest_effect_has_a_default() -> None:
    (found,) = parse_hypotheses(block("id: H-A\naxis: order\nlevel: mean\nkind: equivalence\n"))
    assert found.smallest_effect == 0.03


@pytest.mark.parametrize(
    ("yaml", "line", "part"),
    [
        (GOOD + "severity: high\n", 10, "unknown key 'severity'; known: id, axis, level, kind, sign, smallest_effect"),
        (GOOD.replace("kind: directional", "kind: direct"), 7, "kind: Input should be 'directional' or 'equivalence'"),
        (GOOD.replace("sign: -1", "sign: 2"), 8, "sign: Input should be -1 or 1"),
        (GOOD.replace("sign: -1\n", ""), 3, "a directional hypothesis needs `sign: 1` or `sign: -1`"),
        (GOOD.replace("directional", "equivalence"), 3, "an equivalence hypothesis has no `sign`"),
        (GOOD.replace("0.05", "5"), 9, "smallest_effect: Input should be less than 1"),
        (GOOD.replace("0.05", "-0.05"), 9, "smallest_effect: Input should be greater than 0"),
        (GOOD.replace("level: opaque", "level: 2"), 6, 'level: quote it, `level: "2"`'),
        (GOOD.replace("axis: tool_names\n", ""), 3, "axis: Field required"),
        (GOOD + "id: H-B\n", 10, 'found duplicate key "id"'),
        ("id: [H-A\n", 4, "expected ',' or ']'"),
        ("- H-A\n", 3, "the block must be a mapping"),
        ("", 3, "the block must be a mapping"),
        (GOOD.replace("id: H-A", "id: 'H A'"), 4, "id: String should match pattern"),
    ],
)
def test_a_bad_block_is_an_error_that_names_its_line(yaml: str, line: int, part: str) -> None:
    found = mistakes(block(yaml))
    assert any(where == line and part in message for where, message in found), found


def test_an_id_registered_twice_is_an_error_that_names_both_lines() -> None:
    ((line, message),) = mistakes(block(GOOD) + block(GOOD))
    assert line == 14
    assert "H-A is registered already, on line 3" in message


def test_all_mistakes_are_listed_at_once() -> None:
    text = block(GOOD + "a: 1\n") + block(GOOD.replace("directional", "no"))
    assert len(mistakes(text)) == 2


def test_a_block_that_never_closes_is_an_error() -> None:
    ((line, message),) = mistakes("x\n```yaml\nid: H-A\n")
    assert line == 2
    assert "never closed" in message


def test_a_dated_amendment_replaces_a_hypothesis_in_place() -> None:
    other = GOOD.replace("H-A", "H-B")
    changed = GOOD.replace("0.05", "0.10")
    text = block(GOOD) + block(other) + "## Amendments\n\n### 2026-02-01\n\n" + block(changed)
    first, second = parse_hypotheses(text)
    assert (first.id, first.smallest_effect, first.amended) == ("H-A", 0.10, "2026-02-01")
    assert (second.id, second.amended) == ("H-B", None)


def test_an_amendment_without_a_date_is_an_error() -> None:
    found = mistakes(block(GOOD) + "## Amendments\n\n" + block(GOOD))
    assert "heading with its date" in found[0][1]


def test_a_registration_judges_the_rows_of_its_time() -> None:
    frame = synthetic_results(Plan(models=("a",), strata=(("t", "e"),), instances=2, runs=1), 1)
    middle = frame["started_at"].sort_values().iloc[10].to_pydatetime()
    before = Registration((), started_until=middle).judges(frame)
    after = Registration((), started_from=middle).judges(frame)
    assert before.sum() == 10
    assert (before ^ after).all()
    assert (frame.loc[after, "started_at"] >= middle).all()
    assert not Registration((), started_from=datetime(2030, 1, 1, tzinfo=UTC)).judges(frame).any()
