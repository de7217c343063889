"""What every perturbation must hold: the task, its truth and its verdicts stay what they were."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tasks_env.families import FAMILIES, family
from tasks_env.generation import generate_instance
from tasks_env.perturbations import perturbation
from tasks_env.seeding import derive
from tasks_env.session import Session, play, render
from tasks_env.types import FinalState, Instance, Presentation, ToolCall, Variant, Verdict
from tests.tasks_env.perturbations.draws import drawn_instance

CELLS = {
    "paraphrase": ["p1", "p2", "p3", "p4", "p5"],
    "tool_names": ["synonyms", "opaque"],
    "distractors": ["2", "5"],
    "resample": ["s1", "s2"],
    "temperature": ["0.7"],
    "order": ["shuffled"],
}
"""Every level of the study, by axis."""

EXAMPLES = int(os.environ.get("PERTURBATION_EXAMPLES", "12"))
"""Instances per property of one axis; `test_preservation` looks at thousands."""

search = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="PERTURBATION_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)

seeds = st.integers(0, 2**63 - 1)
family_names = st.sampled_from(sorted(FAMILIES))
_PLACEHOLDER = re.compile(r"\{(tool|arg):")


@st.composite
def instances(draw: st.DrawFn, sample: str = "base") -> Instance:
    """A small instance of any family, with parameters from the family's own model."""
    return drawn_instance(draw(family_names), draw(seeds), sample)


def instance_for(name: str, seed: int, sample: str = "base") -> Instance:
    """An instance with the smallest parameters of its family."""
    return generate_instance(name, family(name).demonstration, seed, sample=sample)


def presented(instance: Instance, axis: str, level: str, seed: int) -> Variant:
    """The variant of one instance in a cell."""
    [presentation] = perturbation(axis).present([instance], level, seed)
    return render(instance, presentation, axis=axis, level=level, seed=seed)


@dataclass(frozen=True)
class Played:
    """What came of playing a plan."""

    errors: tuple[bool, ...]
    calls: tuple[ToolCall, ...]
    final_state: FinalState
    verdict: Verdict


def played(instance: Instance, variant: Variant, plan: tuple[ToolCall, ...]) -> Played:
    """A plan of canonical calls, carried out under the variant's names."""
    session = Session(instance, variant)
    errors = tuple(result.is_error for result in play(session, plan))
    return Played(errors, tuple(session.calls), session.final_state(), session.verdict())


class Unperturbed:
    """An instance as the baseline shows it, with what comes of a right and of a wrong plan."""

    def __init__(self, instance: Instance, seed: int) -> None:
        self.instance = instance
        self.bytes = instance.model_dump_json()
        self.variant = render(instance)
        self.reference = family(instance.family).reference(instance)
        self.mistake = family(instance.family).mistake(instance, derive(seed, "mistake"))
        self.right = played(instance, self.variant, self.reference)
        self.wrong = played(instance, self.variant, self.mistake)
        assert not any(self.right.errors)
        assert self.right.calls == self.reference
        assert self.right.final_state.submitted
        assert self.right.verdict.passed
        assert self.right.verdict.partial_score == 1.0
        assert not self.wrong.verdict.passed
        assert self.wrong.verdict.partial_score < 1.0

    def assert_same_task(self, variant: Variant) -> None:
        """Right passes and wrong fails, both step by step as in the baseline, and the source is what it was."""
        instance = self.instance
        assert played(instance, variant, self.reference) == self.right
        assert played(instance, variant, self.mistake) == self.wrong
        assert instance.model_dump_json() == self.bytes
        assert variant.instance_id == self.variant.instance_id
        assert variant.source_hash == self.variant.source_hash
        assert not _PLACEHOLDER.search(variant.prompt)
        assert not any(_PLACEHOLDER.search(spec.model_dump_json()) for spec in variant.tools)


def assert_preserved(instance: Instance, axis: str, level: str, seed: int) -> Variant:
    """The cell's variant, after checking that right plans pass, wrong ones fail and nothing else moved."""
    baseline = Unperturbed(instance, seed)
    variant = presented(instance, axis, level, seed)
    baseline.assert_same_task(variant)
    assert not Session(instance, variant).verdict().passed
    assert (variant.axis, variant.level, variant.seed) == (axis, level, seed)
    return variant


def assert_shown_as_baseline(instance: Instance, variant: Variant) -> None:
    """An agent reads the same bytes as in the baseline."""
    assert_same_bytes(variant, render(instance, Presentation()))


def assert_same_bytes(variant: Variant, other: Variant) -> None:
    """Prompt and tools are the same to the byte."""
    assert variant.prompt.encode() == other.prompt.encode()
    assert [spec.model_dump_json() for spec in variant.tools] == [spec.model_dump_json() for spec in other.tools]
