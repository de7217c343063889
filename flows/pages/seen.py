"""One finished episode with what a person wants beside its transcript: the verdict, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.outcomes import INFRA_ERROR
from flows.pages.differences import Difference, Line, state_difference
from flows.scoring import judge
from tasks_env import FinalState, Instance, Verdict


@dataclass(frozen=True)
class Seen:
    """A whole transcript, judged anew."""

    events: Sequence[dict[str, Any]]
    instance: Instance
    path: Path
    verdict: Verdict | None
    no_verdict: str
    """Why there is none."""
    problem: str | None
    """What the verifier raised."""
    difference: Difference

    @property
    def head(self) -> dict[str, Any]:
        """The first event."""
        return self.events[0]

    @property
    def end(self) -> dict[str, Any]:
        """The last event."""
        return self.events[-1]

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return "none" if self.verdict is None else "passed" if self.verdict.passed else "failed"


def look(events: Sequence[dict[str, Any]], instance: Instance, path: Path) -> Seen:
    """Judge a whole transcript. A verifier that breaks is told, not raised: the page is for finding out why."""
    verdict, reason, problem = None, "", None
    if events[-1]["outcome"] == INFRA_ERROR:
        reason = "an infra_error belongs to no pass rate"
    else:
        try:
            verdict = judge(instance, events)
        except Exception as error:  # noqa: BLE001 - shown in the verdict's place
            reason, problem = "the verifier failed", f"{type(error).__name__}: {error}"
    try:
        difference = state_difference(instance, FinalState.model_validate(events[-1]["final_state"]))
    except Exception as error:  # noqa: BLE001 - shown in the difference's place
        difference = Difference(
            "the states cannot be compared", (Line("@", f"{type(error).__name__}: {' '.join(str(error).split())}"),)
        )
    return Seen(events, instance, path, verdict, reason, problem, difference)
