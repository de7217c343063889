"""Judging an episode: the submitted answer against the computed one."""

from __future__ import annotations

from pydantic import JsonValue

from tasks_env.families.query.answers import Answer, parse_answer, written
from tasks_env.families.query.question import AnswerFormat
from tasks_env.types import Condition, JsonObject, Verdict, VerifierInput

_SHOWN_CHARS = 60


def verify(evidence: VerifierInput) -> Verdict:
    """Passed when an answer was submitted, has the form asked for, and equals the truth. Binary: the score
    is 0 or 1. Looks at the final state alone; any JSON is accepted there."""
    answer = evidence.final_state.data.get("answer")
    text = answer if isinstance(answer, str) and evidence.final_state.submitted else None
    form = AnswerFormat.model_validate(evidence.instance.spec["answer"])
    given = parse_answer(text, form) if text is not None else None
    truth = _truth(evidence.instance.truth)
    conditions = (
        Condition(
            name="answer_submitted",
            holds=text is not None,
            detail="" if text is not None else "no answer was submitted",
        ),
        Condition(
            name="answer_form",
            holds=given is not None,
            detail="" if given is not None else f"expected {_expected(form)}, got {_short(answer)}",
        ),
        Condition(
            name="answer_value",
            holds=given is not None and given == truth,
            detail="" if given is None or given == truth else _difference(given, truth),
        ),
    )
    passed = all(condition.holds for condition in conditions)
    return Verdict(passed=passed, partial_score=float(passed), conditions=conditions)


def _truth(stored: JsonObject) -> Answer:
    answer = stored["answer"]
    return [str(part) for part in answer] if isinstance(answer, list) else str(answer)


def _expected(form: AnswerFormat) -> str:
    if form.kind == "pair":
        return "a text and a number separated by a semicolon"
    return {"number": "a plain number", "text": "a text", "date": "a date YYYY-MM-DD"}.get(form.kind, "a list")


def _short(value: JsonValue) -> str:
    if not isinstance(value, str):
        return f"a value of type {type(value).__name__}"
    return repr(value) if len(value) <= _SHOWN_CHARS else f"{value[:_SHOWN_CHARS]!r}..."


def _difference(given: Answer, truth: Answer) -> str:
    """What differs first, not the whole truth of a list."""
    if isinstance(given, str) or isinstance(truth, str):
        return f"got {_short(given if isinstance(given, str) else written(given))}, expected {_short(str(truth))}"
    for place, (got, expected) in enumerate(zip(given, truth, strict=False), start=1):
        if got != expected:
            return f"value {place}: got {_short(got)}, expected {_short(expected)}"
    return f"got {len(given)} values, expected {len(truth)}"
