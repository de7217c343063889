"""evaluation.json: the shipped schema and the types say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import ValidationError

from tasks_env.service.benchmark import load_benchmark
from tasks_env.service.evaluation import SCHEMA_FILE, Evaluation, check_document, evaluation_json
from tasks_env.service.evaluator import no_verdict


def document(**changed: Any) -> dict[str, Any]:
    made: dict[str, Any] = no_verdict(load_benchmark("BE-002"), "the control fails", "r-1", 7).model_dump(mode="json")
    return {**made, **changed}


def test_the_types_and_the_schema_have_the_same_fields() -> None:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    assert set(schema["properties"]) == set(schema["required"]) == set(Evaluation.model_fields)


def test_a_document_holds_versions_and_hashes_even_without_a_verdict() -> None:
    made = json.loads(evaluation_json(Evaluation.model_validate(document())))
    contract = load_benchmark("BE-002").contract
    assert (made["evaluator_version"], made["suite_hash"]) == (contract.evaluator_version, contract.suite_hash)
    assert (made["exit_code"], made["failure_class"], made["passed"]) == (30, "F15", False)
    assert {each["status"] for each in made["criteria"]} == {"not_reached"}


@pytest.mark.parametrize(
    "changed",
    [
        {"exit_code": 0},
        {"exit_code": 14},
        {"exit_code": 12, "failure_class": None},
        {"exit_code": 0, "passed": True, "failure_class": None},
        {"detail": ""},
        {"suite_hash": "abc"},
        {"criteria": []},
        {"agent_tests_passed": "yes"},
        {"extra": 1},
        {"environment": {"python": "3.11"}},
    ],
)
def test_a_document_that_contradicts_itself_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        check_document(document(**changed))
