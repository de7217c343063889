"""A manifest with a scripted agent, and judges that need no processes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from flows.console import Console
from flows.context import Options
from tasks_env.service.benchmark import load_benchmark
from tasks_env.service.evaluation import EXITS, INFRASTRUCTURE, Evaluation
from tasks_env.service.evaluator import no_verdict
from tasks_env.service.family import case_tree
from tests.conftest import small_manifest

CERTAIN = "certain"
"""A scripted agent that always plays the reference."""


def options(folder: Path) -> Options:
    """The smoke profile of a manifest in a folder of its own, with one more scripted agent."""
    rates = {"easy": 1.0, "hard": 1.0}
    agent = {"adapter": "scripted", "pass_rate": rates, "pricing": {"input": 1.0, "output": 5.0}}
    path = small_manifest(folder, models={CERTAIN: agent})
    return Options(manifest=str(path), profile="smoke")


def console() -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(out), out


def verdict(identity: str, code: int) -> Evaluation:
    """A verdict of which only the code matters: the first criterion of its check has failed."""
    benchmark = load_benchmark(identity)
    refused = no_verdict(benchmark, "no judge", "r", 0)
    if code == INFRASTRUCTURE:
        return refused
    check, failure_class = next(((check, name) for check, (each, name) in EXITS.items() if each == code), (None, None))
    failed = next((each.id for each in benchmark.contract.criteria if each.check == check), None)
    criteria = [
        each.model_copy(update={"status": "fail" if each.id == failed else "pass"}) for each in refused.criteria
    ]
    changed = {"exit_code": code, "passed": code == 0, "failure_class": failure_class, "criteria": criteria}
    return refused.model_copy(update={**changed, "detail": "", "submission_hash": "0" * 64})


class Judge:
    """Knows the known-good tree and the framework's 400; counts how often it was asked."""

    def __init__(self, code: int | None = None) -> None:
        self.code = code
        self.asked = 0

    def __call__(self, identity: str, files: Mapping[str, str]) -> Evaluation:
        self.asked += 1
        if self.code is not None:
            return verdict(identity, self.code)
        if files == case_tree(identity, "known_good"):
            return verdict(identity, 0)
        known = load_benchmark(identity).contract.verification["framework_400"]
        return verdict(identity, known if files == case_tree(identity, "framework_400") else 12)
