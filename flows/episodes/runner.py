"""One episode from start to marker: reserve, converse, write the transcript, settle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from flows.episodes.calling import ModelCaller, Spending
from flows.episodes.ledger import Ledger
from flows.episodes.opening import opening_messages
from flows.episodes.pacing import Pace, Sleep
from flows.episodes.pricing import episode_bound
from flows.episodes.scaffold import Conversation, Ending, ToolCrash
from flows.episodes.transcript import TRANSCRIPT_VERSION, TranscriptWriter
from flows.errors import RunHalted
from flows.grid import Episode
from flows.manifest import SCAFFOLD_VERSION, Manifest
from flows.models.adapter import AccessDenied, Adapter, ModelCallError
from flows.provenance import Provenance
from flows.store import Store
from tasks_env import FinalState, Instance, Session, Variant
from tasks_env.canonical import content_hash
from tasks_env.seeding import derive


@dataclass(frozen=True)
class Job:
    """An episode with what it is about: also the context that a scripted agent may read."""

    episode: Episode
    instance: Instance
    variant: Variant

    @property
    def episode_id(self) -> str:
        """The episode's id."""
        return self.episode.episode_id


@dataclass(frozen=True)
class Summary:
    """What the run stage counts of a finished episode."""

    episode_id: str
    outcome: str
    kind: str | None
    spent_usd: float


class CapReached(Exception):
    """The episode's upper bound does not fit under the cap, and nothing in flight could make room."""


OpenAdapter = Callable[[Job], Adapter]

UNREADABLE = FinalState(submitted=False, data={})
"""Recorded where a broken world cannot even be read; the episode is an infra_error and is never judged."""


class Runner:
    """Runs episodes of one study.

    Args:
        open_adapter: An adapter for a job, built per episode.
        paces: Rate limits by model.
        stopped: Whether no further episode may start; asked right before each would.
        sleep: How retries wait; replaced in tests.
    """

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        ledger: Ledger,
        provenance: Provenance,
        open_adapter: OpenAdapter,
        paces: dict[str, Pace],
        stopped: Callable[[], bool],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store = store
        self._manifest = manifest
        self._ledger = ledger
        self._provenance = provenance
        self._open_adapter = open_adapter
        self._paces = paces
        self._stopped = stopped
        self._sleep = sleep
        self._in_flight = 0
        self._settled = asyncio.Event()

    async def run(self, job: Job) -> Summary | None:
        """One attempt at one episode, its transcript marked complete at the end; null if the run was stopped before.

        Raises:
            CapReached: not started, for want of money.
            RunHalted: the provider refuses every further call; nothing is marked.
            StoreError: the disk refuses; nothing is marked.
            flows.errors.ConfigurationError: the model's key or address is missing.
        """
        episode = job.episode
        path = self._store.transcript(episode.model, episode.cell.id, episode.episode_id)
        async with self._paces[episode.model].episodes:
            attempt = self._store.earlier_attempts(path) + (1 if self._store.marker(path) is None else 2)
            reservation = await self._reserve(job, attempt)
            if reservation is None:
                return None
            self._in_flight += 1
            spending = Spending()
            try:
                ending, digest = await self._attempt(job, attempt, path, reservation, spending)
            finally:
                self._in_flight -= 1
                try:
                    self._settle(reservation, spending)
                finally:
                    self._settled.set()
                    self._settled = asyncio.Event()
        marker = {
            "sha256": digest,
            "outcome": ending.outcome,
            "kind": ending.kind,
            "attempt": attempt,
            "spent_usd": spending.spent_usd,
        }
        await asyncio.to_thread(self._store.mark_complete, path, marker)
        return Summary(episode.episode_id, ending.outcome, ending.kind, spending.spent_usd)

    async def _reserve(self, job: Job, attempt: int) -> str | None:
        """Hold the attempt's upper bound, waiting for what others settle; null if the run was stopped before."""
        episode = job.episode
        bound = episode_bound(self._manifest.models[episode.model].pricing, self._manifest.scaffold)
        while not self._stopped():
            reservation = self._ledger.reserve(
                bound,
                model=episode.model,
                cell=episode.cell.id,
                episode=episode.episode_id,
                attempt=attempt,
            )
            if reservation is not None:
                return reservation
            if self._in_flight == 0:
                raise CapReached(episode.episode_id)
            await self._settled.wait()
        return None

    async def _attempt(
        self, job: Job, attempt: int, path: Path, reservation: str, spending: Spending
    ) -> tuple[Ending, str]:
        """The ending and the hash of the whole transcript, flushed to the disk."""
        adapter = self._open_adapter(job)
        self._store.set_aside(path)
        writer = TranscriptWriter(path)
        try:
            caller = ModelCaller(
                adapter,
                spending,
                pricing=self._manifest.models[job.episode.model].pricing,
                scaffold=self._manifest.scaffold,
                retry=self._manifest.retry,
                pace=self._paces[job.episode.model],
                transcript=writer,
                extend=lambda usd: self._ledger.extend(reservation, usd),
                rng=derive(self._manifest.seed, "backoff", job.episode_id, attempt),
                sleep=self._sleep,
            )
            ending = await self._converse(job, attempt, adapter, caller, spending, writer)
            return ending, await asyncio.to_thread(writer.close)
        finally:
            writer.abandon()

    async def _converse(
        self,
        job: Job,
        attempt: int,
        adapter: Adapter,
        caller: ModelCaller,
        spending: Spending,
        writer: TranscriptWriter,
    ) -> Ending:
        episode, settings = job.episode, self._manifest.scaffold
        session = Session(job.instance, job.variant, settings.tool_output_chars)
        started_at, started = datetime.now(UTC), time.monotonic()
        writer.record("episode", **self._identity(job, attempt, adapter, started_at))
        conversation = Conversation(
            adapter,
            caller,
            session,
            opening_messages(job.instance, job.variant, settings),
            settings,
            episode.temperature,
            writer,
        )
        try:
            ending = await conversation.run()
        except AccessDenied as error:
            raise RunHalted(
                f"model {episode.model!r}: the provider refuses further calls ({error.kind}: {error.detail}); "
                "check the key and the account, then run again: finished episodes are kept"
            ) from error
        except (ModelCallError, ToolCrash) as error:
            ending = conversation.failed(error.kind, error.detail)
        try:
            final_state = _final_state(session)
        except ToolCrash as error:
            ending, final_state = conversation.failed(error.kind, error.detail), UNREADABLE
        writer.record("end", **_end_event(ending, session, final_state, spending, time.monotonic() - started))
        return ending

    def _identity(self, job: Job, attempt: int, adapter: Adapter, started_at: datetime) -> dict[str, object]:
        episode, variant = job.episode, job.variant
        return {
            "transcript_version": TRANSCRIPT_VERSION,
            "episode_id": episode.episode_id,
            "attempt": attempt,
            "model": episode.model,
            "model_id": getattr(self._manifest.models[episode.model], "model", None),
            "cell_id": episode.cell.id,
            "family": variant.family,
            "difficulty": variant.difficulty,
            "axis": variant.axis,
            "level": variant.level,
            "instance_id": variant.instance_id,
            "instance_seed": variant.instance_seed,
            "variant_id": variant.variant_id,
            "run_seed": episode.run_seed,
            "temperature": episode.temperature,
            "scaffold": self._manifest.scaffold.model_dump(mode="json"),
            "scaffold_version": SCAFFOLD_VERSION,
            "adapter_version": adapter.version,
            "git_sha": self._provenance.git_sha,
            "manifest_hash": self._provenance.manifest_hash,
            "scientific_hash": self._provenance.scientific_hash,
            "started_at": started_at.isoformat(timespec="microseconds"),
        }

    def _settle(self, reservation: str, spending: Spending) -> None:
        self._ledger.settle(
            reservation,
            spent_usd=spending.spent_usd,
            unknown_usd=spending.unknown_usd,
            tokens_in=spending.total("input_total"),
            tokens_out=spending.total("output_total"),
        )


def _final_state(session: Session) -> FinalState:
    """The world at the end. Raises `ToolCrash` if it cannot be read."""
    try:
        return session.final_state()
    except Exception as error:
        raise ToolCrash("final state", error) from error


def _end_event(
    ending: Ending, session: Session, final_state: FinalState, spending: Spending, seconds: float
) -> dict[str, object]:
    return {
        "outcome": ending.outcome,
        "kind": ending.kind,
        "detail": ending.detail,
        "steps": ending.steps,
        "final_state": final_state.model_dump(mode="json"),
        "calls": [call.model_dump(mode="json") for call in session.calls],
        "trajectory_hash": content_hash(list(ending.trajectory), 16),
        "trajectory_length": len(ending.trajectory),
        "tokens_in": spending.total("input_total"),
        "tokens_cached": spending.total("input_cached"),
        "tokens_out": spending.total("output_total"),
        "tokens_reasoning": spending.total("output_reasoning"),
        "usage_known": spending.known,
        "cost_usd": spending.spent_usd if spending.known else None,
        "http_attempts": spending.http_attempts,
        "wall_clock_s": round(seconds, 6),
    }
