"""Episodes from start to marker: reserve, converse, write the transcripts, settle.

The tasks of one conversation are run as one: what one of them costs, says and breaks, the later ones depend on. With
one task per conversation, which is the default, an episode is a conversation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from flows.episodes.calling import ModelCaller
from flows.episodes.commits import GroupCommit
from flows.episodes.job import CONVERSATION_BROKEN, Account, Job, Summary, Task
from flows.episodes.ledger import Ledger
from flows.episodes.opening import opening_messages
from flows.episodes.pacing import Pace, Sleep
from flows.episodes.pricing import episode_bound
from flows.episodes.record import conversation_event, end_event, episode_event
from flows.episodes.scaffold import Ending, History, TaskLoop, ToolCrash
from flows.episodes.transcript import TranscriptWriter
from flows.errors import RunHalted
from flows.manifest import Manifest
from flows.models.adapter import AccessDenied, Adapter, ModelCallError
from flows.provenance import Provenance
from flows.results import INFRA_ERROR
from flows.store import Store
from tasks_env import FinalState, Session
from tasks_env.canonical import canonical_json
from tasks_env.seeding import derive


class CapReached(Exception):
    """The conversation's upper bound does not fit under the cap, and nothing in flight could make room."""


OpenAdapter = Callable[[Job], Adapter]

OVERFLOW = "context_overflow"
"""The outcome after which a conversation cannot go on: whatever comes next is sent with all that did not fit."""


class Runner:
    """Runs episodes of one study.

    Args:
        open_adapter: An adapter for a job, built per episode.
        paces: Rate limits by model.
        stopped: Whether no further episode of a model may start; asked right before each conversation would.
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
        stopped: Callable[[str], bool],
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
        self._places = asyncio.Semaphore(manifest.execution.concurrent_episodes)
        self._in_flight = 0
        self._settled = asyncio.Event()
        self._reserved = GroupCommit(ledger.flush)
        self._settled_and_marked = GroupCommit(ledger.flush)

    async def run(self, job: Job, first: bool = False) -> Summary | None:
        """One attempt at a conversation, its transcripts marked complete at its end; null if stopped before it.

        Args:
            first: It is known that no earlier attempt has left anything, which is then not looked for.

        Raises:
            CapReached: not started, for want of money.
            RunHalted: the provider refuses every further call; nothing is marked.
            StoreError: the disk refuses; nothing is marked.
            flows.errors.ConfigurationError: the model's key or address is missing.
        """
        async with self._places, self._paces[job.episode.model].episodes:
            attempts = {task.episode_id: 1 if first else self._attempt_number(task) for task in job.conversation}
            accounts = await self._reserve(job, attempts)
            if accounts is None:
                return None
            self._in_flight += 1
            try:
                await self._reserved()
                tasks = await self._attempt(job, attempts, accounts, first)
            finally:
                self._in_flight -= 1
                try:
                    for account in accounts:
                        self._settle(account)
                finally:
                    self._wake()
        await self._mark(tasks)
        opening, *others = [_summary(task) for task in tasks]
        return replace(opening, followers=tuple(others))

    def _attempt_number(self, job: Job) -> int:
        path = self._transcript(job)
        return self._store.earlier_attempts(path) + (1 if self._store.marker(path) is None else 2)

    async def _reserve(self, job: Job, attempts: Mapping[str, int]) -> list[Account] | None:
        """Hold the conversation's upper bound, waiting for what others settle; null if the run was stopped before.

        It is held against every process, but not yet against a power cut.
        """
        episode = job.episode
        # However much context is carried, no request is longer than `conversation_bytes`: each task has its own bound.
        bound = episode_bound(self._manifest.models[episode.model].pricing, self._manifest.scaffold)
        while not self._stopped(episode.model):
            # Flushed by the caller, for many at once: a disk that takes its time must not hold up the event loop, on
            # which the answers of all other episodes, and their timeouts, wait.
            reservations = self._ledger.reserve_all(
                bound, model=episode.model, cell=episode.cell.id, attempts=attempts, durable=False
            )
            if reservations is not None:
                return [Account(reservation) for reservation in reservations]
            if self._in_flight == 0:
                raise CapReached(episode.episode_id)
            await self._settled.wait()
        return None

    async def _attempt(
        self, job: Job, attempts: Mapping[str, int], accounts: Sequence[Account], first: bool
    ) -> list[Task]:
        """The conversation's tasks, ended; their whole transcripts are yet to be flushed to the disk."""
        adapters = [self._open_adapter(task) for task in job.conversation]
        tasks: list[Task] = []
        try:
            for one, account, adapter in zip(job.conversation, accounts, adapters, strict=True):
                tasks.append(self._opened(one, attempts[one.episode_id], account, adapter, first))
            await self._converse(tasks)
            for task in tasks:
                task.writer.record("end", **end_event(task))
        except BaseException:
            _abandon(tasks)
            raise
        return tasks

    def _opened(self, job: Job, attempt: int, account: Account, adapter: Adapter, first: bool) -> Task:
        path, session, broken = self._transcript(job), None, ""
        try:
            session = Session(job.instance, job.variant, self._manifest.scaffold.tool_output_chars)
        except Exception as error:  # noqa: BLE001 - a world that cannot be opened is one row, whatever broke
            broken = ToolCrash("opening the world", error).detail
        if not first:
            self._store.set_aside(path)
        return Task(job, attempt, path, account, adapter, session, TranscriptWriter(path), broken=broken)

    async def _converse(self, tasks: Sequence[Task]) -> None:
        """Meet every task, each in its own world; what ends the conversation ends those that it has not met.

        If infrastructure breaks one, none of them counts: another attempt starts from the first.
        """
        first, settings = tasks[0].job, self._manifest.scaffold
        history = History(opening_messages(first.instance, first.variant, settings))
        rest: Ending | None = None
        for number, task in enumerate(tasks, start=1):
            started_at, started = datetime.now(UTC), time.monotonic()
            task.writer.record("episode", **episode_event(task, self._manifest, self._provenance, started_at))
            if task.job.episode.conversation_id is not None:
                task.writer.record("conversation", **conversation_event(task, tasks))
            if number > 1 and rest is None:
                history.state(task.job.variant.prompt)
            if task.session is None:
                task.ending = Ending(INFRA_ERROR, 0, ToolCrash.kind, task.broken)
            else:
                task.ending = rest or await self._meet(task, task.session, history)
                try:
                    task.final_state = _final_state(task.session)
                except ToolCrash as error:
                    task.ending = replace(task.ending, outcome=INFRA_ERROR, kind=error.kind, detail=error.detail)
            rest = rest or _rest_after(task.ending, f"task {number} of {len(tasks)}")
            task.seconds = time.monotonic() - started
            self._settle(task.account)
            self._wake()
        _void_if_broken(tasks)

    async def _meet(self, task: Task, session: Session, history: History) -> Ending:
        """How the task ended. Raises `RunHalted`."""
        loop = TaskLoop(
            task.adapter,
            self._caller(task),
            session,
            history,
            self._manifest.scaffold,
            task.job.episode.temperature,
            task.writer,
        )
        try:
            return await loop.run()
        except AccessDenied as error:
            raise RunHalted(
                f"model {task.job.episode.model!r}: the provider refuses further calls ({error.kind}: {error.detail}); "
                "check the key and the account, then run again: finished episodes are kept"
            ) from error
        except (ModelCallError, ToolCrash) as error:
            return loop.failed(error.kind, error.detail)

    def _caller(self, task: Task) -> ModelCaller:
        model = task.job.episode.model
        return ModelCaller(
            task.adapter,
            task.account.spending,
            pricing=self._manifest.models[model].pricing,
            scaffold=self._manifest.scaffold,
            retry=self._manifest.retry,
            pace=self._paces[model],
            transcript=task.writer,
            extend=lambda usd: self._ledger.extend(task.account.reservation, usd),
            rng=derive(self._manifest.seed, "backoff", task.job.episode_id, task.attempt),
            sleep=self._sleep,
        )

    def _settle(self, account: Account) -> None:
        """Book what the account took; nothing happens if that is done."""
        if account.settled:
            return
        account.settled = True
        self._ledger.settle(
            account.reservation,
            spent_usd=account.spending.spent_usd,
            unknown_usd=account.spending.unknown_usd,
            tokens_in=account.spending.total("input_total"),
            tokens_out=account.spending.total("output_total"),
            tokens_cached=account.spending.total("input_cached"),
            tokens_reasoning=account.spending.total("output_reasoning"),
        )

    def _wake(self) -> None:
        """Let those look again who wait for room under the cap."""
        self._settled.set()
        self._settled = asyncio.Event()

    async def _mark(self, tasks: Sequence[Task]) -> None:
        """Flush the transcripts, then the books, then mark the episodes complete."""

        def close() -> None:
            for task in tasks:
                task.digest = task.writer.close()

        def mark() -> None:
            for task in tasks:
                self._store.mark_complete(task.path, _marker(task))

        try:
            await self._settled_and_marked(before=close, after=mark)
        finally:
            _abandon(tasks)

    def _transcript(self, job: Job) -> Path:
        return self._store.transcript(job.episode.model, job.episode.cell.id, job.episode_id)


def _marker(task: Task) -> dict[str, object]:
    return {
        "sha256": task.digest,
        "outcome": task.ending.outcome,
        "kind": task.ending.kind,
        "attempt": task.attempt,
        "spent_usd": task.account.spending.spent_usd,
    }


def _summary(task: Task) -> Summary:
    return Summary(task.job.episode_id, task.ending.outcome, task.ending.kind, task.account.spending.spent_usd)


def _abandon(tasks: Sequence[Task]) -> None:
    for task in tasks:
        task.writer.abandon()


def _rest_after(ending: Ending, which: str) -> Ending | None:
    """How the tasks end that come after one that ended so; null if the conversation goes on."""
    if ending.outcome == INFRA_ERROR:
        return Ending(INFRA_ERROR, 0, CONVERSATION_BROKEN, f"not met: infra_error ({ending.kind}) in {which}")
    if ending.outcome == OVERFLOW:
        return Ending(OVERFLOW, 0, detail=f"not met: the context overflowed in {which}")
    return None


def _void_if_broken(tasks: Sequence[Task]) -> None:
    """If a task is an infra_error, make one of all the others; the detail keeps how they had ended."""
    for number, culprit in enumerate(tasks, start=1):
        if culprit.ending.outcome == INFRA_ERROR:
            why = f"infra_error ({culprit.ending.kind}) in task {number} of {len(tasks)}"
            break
    else:
        return
    for task in tasks:
        if task.ending.outcome != INFRA_ERROR:
            detail = f"had ended as {task.ending.outcome}: {why}"
            task.ending = replace(task.ending, outcome=INFRA_ERROR, kind=CONVERSATION_BROKEN, detail=detail)


def _final_state(session: Session) -> FinalState:
    """The world at the end. Raises `ToolCrash` if it cannot be read, or cannot be written down."""
    try:
        state = session.final_state()
        canonical_json(state.data)
        return state
    except Exception as error:
        raise ToolCrash("final state", error) from error
