"""Findings counted by family and operator, and what they leave unproven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tasks_env.families import family
from tasks_env.proofs.findings import PLAYED, Finding, Kind

EQUIVALENT_LIMIT = 0.02
"""The share of equivalent near misses of a family must stay under this."""


@dataclass
class Tally:
    """The findings of one operator on one family."""

    kind: Kind
    operator: str
    declared: bool = True
    """Whether the family names the operator as one of its own."""
    held: int = 0
    equivalent: list[str] = field(default_factory=list)
    """A line for each: instance, axis, level, and the state."""
    broken: list[str] = field(default_factory=list)
    """A line for each: instance, axis, level, and what was said."""

    @property
    def tried(self) -> int:
        """Proposals, the equivalent ones included."""
        return self.held + len(self.equivalent) + len(self.broken)

    @property
    def rate(self) -> float | None:
        """The share that held among those that are evidence: for near misses, the kill rate. Null without any."""
        evidence = self.held + len(self.broken)
        return self.held / evidence if evidence else None


class Proof:
    """The tallies of many findings, by family, kind and operator.

    Args:
        families: Whose declared operators must all occur.
    """

    def __init__(self, families: Iterable[str]) -> None:
        self.tallies: dict[tuple[str, Kind, str], Tally] = {}
        self.variants: Counter[tuple[str, str, str, str]] = Counter()
        """Variants looked at by family, difficulty, axis and level."""
        self._undeclared: list[str] = []
        for name in families:
            chosen = family(name)
            for kind, operator in PLAYED.items():
                self.tallies[name, kind, operator] = Tally(kind, operator)
            if not chosen.restatement_operators:
                self._undeclared.append(f"{name}: declares no restatement operators")
            if not chosen.near_miss_operators:
                self._undeclared.append(f"{name}: declares no near-miss operators")
            for operator in chosen.restatement_operators:
                self.tallies[name, "restatement", operator] = Tally("restatement", operator)
            for operator in chosen.near_miss_operators:
                self.tallies[name, "near_miss", operator] = Tally("near_miss", operator)

    def add(self, findings: Iterable[Finding]) -> None:
        """Count findings; an operator that the family does not declare becomes a problem."""
        for finding in findings:
            variant = finding.variant
            tally = self._tally(variant.family, finding.kind, finding.operator)
            if finding.kind == "no_op":
                self.variants[variant.family, variant.difficulty, variant.axis, variant.level] += 1
            line = f"{variant.instance_id} {variant.axis} {variant.level}: {finding.note}"
            if finding.outcome == "held":
                tally.held += 1
            elif finding.outcome == "equivalent":
                tally.equivalent.append(line)
            else:
                tally.broken.append(line)

    def merge(self, other: Proof) -> None:
        """Count what another proof counted."""
        self.variants += other.variants
        for (name, kind, operator), theirs in other.tallies.items():
            tally = self._tally(name, kind, operator, theirs.declared)
            tally.held += theirs.held
            tally.equivalent += theirs.equivalent
            tally.broken += theirs.broken

    def broken(self) -> list[str]:
        """Every proposal that was not judged as it must be."""
        return self._lines("broken")

    def equivalents(self) -> list[str]:
        """Every proposal that turned out to be the right answer itself."""
        return self._lines("equivalent")

    def missing(self) -> list[str]:
        """What was not proven although nothing broke: operators without evidence, too many equivalents."""
        lines = list(self._undeclared)
        near = Counter[str]()
        equivalent = Counter[str]()
        for (name, kind, operator), tally in self.tallies.items():
            where = f"{name}, {kind} {operator!r}"
            if not tally.declared and tally.held + len(tally.equivalent):
                lines.append(f"{where}: the family does not declare this operator")
            if not tally.tried:
                lines.append(f"{where}: never tried; more instances are needed")
            elif tally.rate is None:
                lines.append(f"{where}: no evidence, each of {tally.tried} is equivalent to the right answer")
            if kind == "near_miss":
                near[name] += tally.tried
                equivalent[name] += len(tally.equivalent)
        for name, count in near.items():
            if count and equivalent[name] / count >= EQUIVALENT_LIMIT:
                share = equivalent[name] / count
                lines.append(f"{name}: {share:.1%} of the near misses are equivalent, not under {EQUIVALENT_LIMIT:.0%}")
        return lines

    def problems(self) -> list[str]:
        """Why the verifiers are not proven; empty when they are."""
        return self.broken() + self.missing()

    def _tally(self, name: str, kind: Kind, operator: str, declared: bool = False) -> Tally:
        return self.tallies.setdefault((name, kind, operator), Tally(kind, operator, declared))

    def _lines(self, outcome: str) -> list[str]:
        return [
            f"{name}, {kind} {operator!r}: {line}"
            for (name, kind, operator), tally in self.tallies.items()
            for line in getattr(tally, outcome)
        ]
