"""The verdict on one submission, as evaluation.json has it. `evaluation.schema.json` is the same for other programs."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from jsonschema import Draft202012Validator
from pydantic import Field

from tasks_env.types import Frozen

SCHEMA_FILE = Path(__file__).with_name("evaluation.schema.json")
Status = Literal["pass", "fail", "not_reached"]

INFRASTRUCTURE = 30
EXITS: dict[str, tuple[int, str]] = {
    "starts": (10, "F04"),
    "baseline": (11, "F05"),
    "functional": (12, "F03"),
    "contract": (13, "F02"),
    "dependencies": (20, "F07"),
    "scope": (21, "F07"),
}
"""Check → exit code and failure class of a submission whose first failure it is."""
INFRASTRUCTURE_CLASS = "F15"
MEANINGS = {
    0: "all acceptance criteria passed",
    10: "build failure",
    11: "existing tests failed",
    12: "acceptance suite failed",
    13: "error contract violated",
    20: "new dependency introduced",
    21: "unrelated files changed",
    30: "evaluator or infrastructure failure",
}


class CriterionResult(Frozen):
    """How one criterion came out."""

    id: str
    status: Status
    detail: str
    duration_s: float = Field(ge=0)
    timed_out: bool


class Quality(Frozen):
    """What the submission changed."""

    changed_files: list[str]
    unrelated_files: list[str]
    new_dependencies: list[str]
    baseline_tests_removed: list[str]


class Environment(Frozen):
    """Where the submission ran, and what it was kept from. The three are true only if the kernel agreed each time."""

    python: str
    network_isolated: bool
    processes_isolated: bool
    files_isolated: bool


class Evaluation(Frozen):
    """evaluation.json."""

    schema_version: Literal[1] = 1
    benchmark_id: str
    run_id: str
    evaluator_version: str
    baseline_hash: str
    suite_hash: str
    submission_hash: str | None
    """Null where there was no submission to read."""
    draw_seed: int
    """Of the values that the suites drew: with it the evaluation can be repeated."""
    exit_code: int
    passed: bool
    failure_class: str | None
    detail: str
    """For exit code 30: what kept the evaluator from judging."""
    criteria: list[CriterionResult]
    task_attempted: bool
    agent_tests_passed: bool | None
    """Of the tests that the submission added or edited, by its own word; null if there are none."""
    quality: Quality
    environment: Environment

    def criterion(self, identity: str) -> CriterionResult:
        """The result of one criterion."""
        return next(each for each in self.criteria if each.id == identity)


def evaluation_json(evaluation: Evaluation) -> bytes:
    """evaluation.json, checked against the schema that is shipped."""
    document = evaluation.model_dump(mode="json")
    check_document(document)
    return json.dumps(document, indent=2, ensure_ascii=True).encode("ascii") + b"\n"


def check_document(document: Any) -> None:
    """Refuse what is no evaluation by the schema. Raises `jsonschema.ValidationError`."""
    _validator().validate(document)


@lru_cache(maxsize=1)
def _validator() -> Any:
    return Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
