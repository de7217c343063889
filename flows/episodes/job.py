"""What is to be run, what is under way, and what is counted of it: a conversation as its tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from flows.episodes.calling import Spending
from flows.episodes.scaffold import Ending
from flows.episodes.transcript import TranscriptWriter
from flows.grid import Episode
from flows.models.adapter import Adapter
from flows.results import INFRA_ERROR
from tasks_env import FinalState, Instance, Session, Variant

CONVERSATION_BROKEN = "conversation_broken"
"""Kind of the infra_error of a task whose conversation failed in another of its tasks."""

NOT_ENDED = Ending(INFRA_ERROR, 0, "not_ended")
UNREADABLE = FinalState(submitted=False, data={})
"""Recorded where a broken world cannot even be read; the episode is an infra_error and is never judged."""


@dataclass(frozen=True)
class Job:
    """An episode with what it is about: also the context that a scripted agent may read."""

    episode: Episode
    instance: Instance
    variant: Variant
    followers: tuple[Job, ...] = ()
    """The tasks that come after it in its conversation; only the job of the first one has them."""

    @property
    def episode_id(self) -> str:
        """The episode's id."""
        return self.episode.episode_id

    @property
    def conversation(self) -> tuple[Job, ...]:
        """It and its followers: what is run, and attempted again, as one."""
        return (self, *self.followers)


@dataclass(frozen=True)
class Summary:
    """What the run stage counts of a finished episode."""

    episode_id: str
    outcome: str
    kind: str | None
    spent_usd: float
    followers: tuple[Summary, ...] = ()
    """As of the job."""

    @property
    def conversation(self) -> tuple[Summary, ...]:
        """It and its followers."""
        return (self, *self.followers)

    @property
    def culprit(self) -> Summary | None:
        """The episode that infrastructure let down, and with it the conversation; null if it held."""
        return next(
            (one for one in self.conversation if one.outcome == INFRA_ERROR and one.kind != CONVERSATION_BROKEN), None
        )


@dataclass
class Account:
    """What one attempt at an episode holds in the ledger, and what it takes."""

    reservation: str
    spending: Spending = field(default_factory=Spending)
    settled: bool = False


@dataclass
class Task:
    """One episode under way, and in the end how it came out."""

    job: Job
    attempt: int
    path: Path
    """Of its transcript."""
    account: Account
    adapter: Adapter
    session: Session | None
    """Its world, which it shares with no other task of the conversation; null where it could not be opened."""
    writer: TranscriptWriter
    ending: Ending = NOT_ENDED
    final_state: FinalState = UNREADABLE
    seconds: float = 0.0
    broken: str = ""
    """Why there is no world."""
    digest: str = ""
    """Of the whole transcript, once it is on the disk."""
