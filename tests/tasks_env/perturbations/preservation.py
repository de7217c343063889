"""What every perturbation must hold: the task, its truth and its verdicts stay what they were."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from tasks_env.families import FAMILIES, family
from tasks_env.generation import generate_instance
from tasks_env.perturbations import perturbation
from tasks_env.seeding import derive
from tasks_env.session import Session, play, render
from tasks_env.types import Instance, Presentation, ToolCall, Variant

EXAMPLES = int(os.environ.get("PERTURBATION_EXAMPLES", "12"))
"""Instances per property; raise it for a deeper search."""

search = settings(max_examples=EXAMPLES, deadline=None, derandomize="PERTURBATION_EXAMPLES" not in os.environ)

seeds = st.integers(0, 2**63 - 1)
family_names = st.sampled_from(sorted(FAMILIES))
sizes = st.sampled_from(["smallest", "larger"])
LARGER: dict[str, Mapping[str, Any]] = {
    "filesys": {
        "files": 24,
        "depth": 3,
        "goals": 4,
        "searches": 2,
        "conditionals": 1,
        "matches": 2,
        "decoys": 1,
    },
    "query": {
        "tables": 3,
        "rows": 40,
        "min_hops": 1,
        "max_hops": 2,
        "predicates": 2,
        "null_share": 0.1,
        "questions": ("count", "sum", "average", "list", "top", "absent"),
    },
    "tabular": {
        "rows": 20,
        "groups": 3,
        "distractor_columns": 2,
        "missing_percent": 10,
        "joins": 1,
        "filters": 2,
        "derived_columns": 1,
        "group_keys": 1,
        "measures": 2,
        "sort_keys": 1,
        "limit": True,
    },
}
_PLACEHOLDER = re.compile(r"\{(tool|arg):")


def instance_for(name: str, seed: int, sample: str, size: str = "smallest") -> Instance:
    """An instance with the smallest parameters of its family, or with the `larger` ones above."""
    params = family(name).demonstration if size == "smallest" else LARGER[name]
    return generate_instance(name, params, seed, sample=sample)


def presented(instance: Instance, axis: str, level: str, seed: int) -> Variant:
    """The variant of one instance in a cell."""
    [presentation] = perturbation(axis).present([instance], level, seed)
    return render(instance, presentation, axis=axis, level=level, seed=seed)


def played(instance: Instance, variant: Variant, plan: tuple[ToolCall, ...]) -> tuple[Session, list[bool]]:
    """The session after every call of the plan, and which of the calls were errors."""
    session = Session(instance, variant)
    return session, [result.is_error for result in play(session, plan)]


def assert_preserved(instance: Instance, axis: str, level: str, seed: int) -> Variant:
    """The cell's variant, after checking that right plans pass, wrong ones fail and nothing else moved."""
    before = instance.model_dump_json()
    variant = presented(instance, axis, level, seed)
    baseline = render(instance)
    reference = family(instance.family).reference(instance)
    mistake = family(instance.family).mistake(instance, derive(seed, "mistake"))

    right, errors = played(instance, variant, reference)
    assert not any(errors)
    assert tuple(right.calls) == reference
    assert right.submitted
    assert right.verdict().passed
    assert right.verdict().partial_score == 1.0

    wrong, _ = played(instance, variant, mistake)
    assert not wrong.verdict().passed
    assert wrong.verdict().partial_score < 1.0

    assert not Session(instance, variant).verdict().passed

    for plan in (reference, mistake):
        (shown, shown_errors), (plain, plain_errors) = (played(instance, each, plan) for each in (variant, baseline))
        assert shown_errors == plain_errors
        assert shown.calls == plain.calls
        assert shown.final_state() == plain.final_state()
        assert shown.verdict() == plain.verdict()

    assert instance.model_dump_json() == before
    assert variant.instance_id == baseline.instance_id
    assert variant.source_hash == baseline.source_hash
    assert (variant.axis, variant.level, variant.seed) == (axis, level, seed)
    assert not _PLACEHOLDER.search(variant.prompt)
    assert not any(_PLACEHOLDER.search(spec.model_dump_json()) for spec in variant.tools)
    return variant


def assert_shown_as_baseline(instance: Instance, variant: Variant) -> None:
    """An agent reads the same bytes as in the baseline."""
    baseline = render(instance, Presentation())
    assert variant.prompt.encode() == baseline.prompt.encode()
    assert [spec.model_dump_json() for spec in variant.tools] == [spec.model_dump_json() for spec in baseline.tools]
