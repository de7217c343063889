"""Proofs that verifiers judge rightly.

`prove` gives the findings on one instance as one presentation shows it; a `Proof` tallies many and says what is
missing; a `Trial` is one family and difficulty under one level of one axis, proven by `run_trial`.
"""

from __future__ import annotations

from tasks_env.proofs.findings import KINDS, PLAYED, Finding, Kind, Outcome, inconsistency, outcome_of, prove
from tasks_env.proofs.tallies import EQUIVALENT_LIMIT, Proof, Tally
from tasks_env.proofs.trials import Trial, run_trial

__all__ = [
    "EQUIVALENT_LIMIT",
    "KINDS",
    "PLAYED",
    "Finding",
    "Kind",
    "Outcome",
    "Proof",
    "Tally",
    "Trial",
    "inconsistency",
    "outcome_of",
    "prove",
    "run_trial",
]
