"""The contract of a perturbation: it changes how tasks are shown, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tasks_env.canonical import canonical_json
from tasks_env.contract.promises import Promise, broken_promises
from tasks_env.contract.wording import LEFT_OVER
from tasks_env.errors import ContractError, UnknownName
from tasks_env.families import FAMILIES, Family, family, registered
from tasks_env.generation import generate_instance, instance_seeds
from tasks_env.perturbations import Perturbation
from tasks_env.seeding import derive
from tasks_env.session import Session, play, render
from tasks_env.types import Instance, Presentation, ToolCall, Variant

INSTANCES = 20
AXIS_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
NO_LEVELS = ("", " ", "no such level", "\n", "-1", "{level}")


@dataclass(frozen=True)
class Examined:
    """A perturbation with the levels and families that it is examined on."""

    perturbation: Perturbation
    levels: tuple[str, ...]
    families: tuple[Family[Any], ...]
    count: int
    seed: int

    def instances(self, chosen: Family[Any], level: str) -> list[Instance]:
        """Of the family's smallest parameters, in the sample that the level is shown on."""
        sample = self.perturbation.sample(level)
        return [
            generate_instance(chosen.name, chosen.demonstration, seed, sample=sample)
            for seed in instance_seeds(self.seed, chosen.name, "contract", sample, self.count)
        ]

    def cells(self) -> Iterator[tuple[str, str, list[Instance], list[Presentation]]]:
        """Family, level, instances and how they are shown."""
        for chosen in self.families:
            for level in self.levels:
                instances = self.instances(chosen, level)
                yield chosen.name, level, instances, self.perturbation.present(instances, level, self.seed)


def check_perturbation(
    perturbation: Perturbation,
    levels: Sequence[str],
    families: Sequence[Family[Any]] | None = None,
    *,
    instances: int = INSTANCES,
    seed: int = 0,
) -> None:
    """Examine a perturbation at the given levels, on instances of the given families, by default the shipped ones.

    Raises:
        ContractError: has a line for every broken promise, which begins with the promise's name.
    """
    chosen = tuple(FAMILIES.values() if families is None else families)
    with ExitStack() as stack:
        for each in chosen:
            stack.enter_context(registered(each))
        broken = broken_promises(PROMISES, Examined(perturbation, tuple(levels), chosen, instances, seed))
    if broken:
        raise ContractError(f"perturbation {getattr(perturbation, 'axis', type(perturbation).__name__)!r}", broken)


def names(examined: Examined) -> Iterator[str]:
    """The axis has a name that manifests take; its levels are accepted and others refused."""
    if not AXIS_NAME.fullmatch(str(examined.perturbation.axis)):
        yield f"axis {examined.perturbation.axis!r}: lower-case letters, digits, _ . - are expected"
    if not examined.levels:
        yield "no level was given to examine"
    for level in examined.levels:
        examined.perturbation.check_level(level)
    for level in NO_LEVELS:
        try:
            examined.perturbation.check_level(level)
        except (UnknownName, ValueError):
            continue
        yield f"level {level!r} is accepted"


def presentations(examined: Examined) -> Iterator[str]:
    """One for each instance, the same for the same seed, whatever the order in which the instances come."""
    for name, level, instances, shown in examined.cells():
        where = f"{name}, level {level!r}"
        if len(shown) != len(instances):
            yield f"{where}: {len(instances)} instances, {len(shown)} presentations"
            continue
        if examined.perturbation.present(instances, level, examined.seed) != shown:
            yield f"{where}: the same seed gave other presentations"
        reversed_ = examined.perturbation.present(instances[::-1], level, examined.seed)[::-1]
        if reversed_ != shown:
            yield f"{where}: the order of the instances changes how one is shown"


def source_untouched(examined: Examined) -> Iterator[str]:
    """The instances are what they were, and every variant names its source."""
    for chosen in examined.families:
        for level in examined.levels:
            instances = examined.instances(chosen, level)
            before = canonical_json([each.model_dump(mode="json") for each in instances])
            shown = examined.perturbation.present(instances, level, examined.seed)
            if canonical_json([each.model_dump(mode="json") for each in instances]) != before:
                yield f"{chosen.name}, level {level!r}: the instances were changed"
            for instance, presentation in zip(instances, shown, strict=True):
                if _shown(examined, instance, presentation, level).source_hash != render(instance).source_hash:
                    yield f"{chosen.name}, level {level!r}: a variant has another source"


def wording_whole(examined: Examined) -> Iterator[str]:
    """Nothing that an agent reads is left unresolved."""
    for name, level, instances, shown in examined.cells():
        for instance, presentation in zip(instances, shown, strict=True):
            variant = _shown(examined, instance, presentation, level)
            for text in (variant.prompt, *(spec.model_dump_json() for spec in variant.tools)):
                left = LEFT_OVER.search(text)
                if left and left[0] not in render(instance).prompt:
                    yield f"{name}, level {level!r}: {left[0]} is left unresolved"


def verdicts_stay(examined: Examined) -> Iterator[str]:
    """The reference still passes, a mistake still fails, and both leave what they leave in the baseline."""
    for name, level, instances, shown in examined.cells():
        for instance, presentation in zip(instances, shown, strict=True):
            where = f"{name}, level {level!r}, {instance.instance_id}"
            variant, baseline = _shown(examined, instance, presentation, level), render(instance)
            chosen = family(name)
            plans = {
                "the reference": (chosen.reference(instance), True),
                "a mistake": (chosen.mistake(instance, derive(examined.seed, instance.instance_id)), False),
                "doing nothing": ((), False),
            }
            for what, (plan, passes) in plans.items():
                session, errors = _played(instance, variant, plan)
                plain, plain_errors = _played(instance, baseline, plan)
                if session.verdict().passed != passes:
                    yield f"{where}: {what} {'fails' if passes else 'passes'}"
                if errors != plain_errors or session.calls != plain.calls:
                    yield f"{where}: {what} is answered otherwise than in the baseline"
                if session.final_state() != plain.final_state() or session.verdict() != plain.verdict():
                    yield f"{where}: {what} leaves another state or verdict than in the baseline"


PROMISES: dict[str, Promise[Examined]] = {
    "axis and levels have names": names,
    "presentations are determined": presentations,
    "the source is untouched": source_untouched,
    "every wording is whole": wording_whole,
    "verdicts stay what they were": verdicts_stay,
}


def _shown(examined: Examined, instance: Instance, presentation: Presentation, level: str) -> Variant:
    return render(instance, presentation, axis=examined.perturbation.axis, level=level, seed=examined.seed)


def _played(instance: Instance, variant: Variant, plan: tuple[ToolCall, ...]) -> tuple[Session, list[bool]]:
    session = Session(instance, variant)
    return session, [result.is_error for result in play(session, plan)]
