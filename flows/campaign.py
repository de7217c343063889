"""The run stage without its orchestration: which episodes are left, running them, stopping in good order."""

from __future__ import annotations

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

from flows.console import Console, StageProgress
from flows.context import Study
from flows.episodes.abreast import abreast
from flows.episodes.disk import run_bytes
from flows.episodes.job import Job, Summary
from flows.episodes.ledger import Ledger
from flows.episodes.pacing import Acquire, Sleep, paces
from flows.episodes.pricing import episode_bound
from flows.episodes.runner import CapReached, Runner
from flows.episodes.transcript import read_transcript
from flows.errors import RunHalted, StudyError
from flows.grid import Cell, Episode, conversations_of
from flows.manifest import HttpModel, Model, ScriptedModel
from flows.models import Client, open_adapter, open_client, resolve_endpoint
from flows.models.adapter import Adapter
from flows.models.scripted import ScriptedAdapter
from flows.store import Store

INFRA = "infra_error"


class EpisodeFailed(Exception):
    """An episode ended in infra_error, and with it its conversation; recorded, and worth another attempt."""

    def __init__(self, summary: Summary, culprit: Summary) -> None:
        super().__init__(f"infra_error ({culprit.kind}) in episode {culprit.episode_id}")
        self.summary = summary


class ModelUnusable(Exception):
    """A model's adapter cannot be built: none of its episodes can start, those of other models can."""

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"model {model!r} cannot be asked: {reason}")


class CellReport(TypedDict):
    """What one process did in one cell."""

    outcomes: dict[str, str]
    """Latest outcome by episode id."""
    attempted: int
    """Attempts at its episodes that came to an end, and what they spent."""
    spent_usd: float
    capped: bool
    unusable: dict[str, str]
    halted: list[Any] | None
    """Whether the provider refuses everything, and why it stopped."""


@dataclass
class Tally:
    """What the run has seen, by (model, cell id)."""

    planned: int = 0
    skipped: int = 0
    """Complete before this run."""
    passed_over: int = 0
    """Unfinished, and not what this run was told to run."""
    outcomes: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """The latest outcome of every episode, by this run or an earlier one."""

    @property
    def finished(self) -> int:
        """Episodes with an outcome, infra_error included."""
        return sum(counter.total() for counter in self.outcomes.values())

    @property
    def completed(self) -> int:
        """Episodes with an outcome other than infra_error: those that no later run repeats."""
        return self.finished - self.infra_errors

    @property
    def infra_errors(self) -> int:
        """Episodes whose latest attempt ended in infra_error."""
        return sum(counter[INFRA] for counter in self.outcomes.values())

    def dead_cells(self) -> list[tuple[str, str]]:
        """Cells in which every episode that has an outcome is an infra_error."""
        return sorted(key for key, counter in self.outcomes.items() if 0 < counter.total() == counter[INFRA])


class Campaign:
    """The episodes of one invocation of run.

    A halt (authentication, quota, the disk) or the cap stops new episodes; those in flight are finished and kept. A
    model whose adapter cannot be built is left out, the others go on.

    Args:
        environ: Holds the keys and addresses of the models.
        sleep: How retries wait; replaced in tests.
        acquire: Takes from the limits per minute that processes share; null where they share none.
    """

    def __init__(
        self,
        study: Study,
        console: Console,
        environ: Mapping[str, str] = os.environ,
        sleep: Sleep = asyncio.sleep,
        acquire: Acquire | None = None,
    ) -> None:
        self.study = study
        self.console = console
        self.tally = Tally()
        self.ledger = Ledger(study.store.ledger, study.manifest.budget.cap_usd)
        self.halted: StudyError | None = None
        self.capped = False
        self.attempted = 0
        """Attempts at episodes of this campaign that came to an end."""
        self.spent_usd = 0.0
        """By these."""
        self.unusable: dict[str, str] = {}
        """Model → why its adapter cannot be built."""
        self._environ = environ
        self._client: Client | None = None
        self._progress: StageProgress | None = None
        self._last: dict[str, str] = {}
        self._untouched: set[str] = set()
        """Episodes of locked cells that have left nothing yet, so that nothing has to be looked for."""
        self._runner = Runner(
            study.store,
            study.manifest,
            self.ledger,
            study.provenance,
            self._open_adapter,
            paces(study.manifest, study.models, acquire),
            self.stopped_for,
            sleep,
        )

    @property
    def stopped(self) -> bool:
        """Whether no further episode may start."""
        return self.capped or self.halted is not None

    def stopped_for(self, model: str) -> bool:
        """Whether no further episode of this model may start."""
        return self.stopped or model in self.unusable

    def jobs(self, model: str, cell: Cell) -> list[Job]:
        """The cell's unfinished episodes that are to be run, those of a conversation as one job.

        Each finished one is counted and gives one log line.
        """
        instances = self.study.instances(cell)
        variants = {variant.variant_id: variant for variant in self.study.variants(cell)}
        finished = self.study.finished(model, cell)
        jobs = []
        for conversation in conversations_of(self.study.episodes(model, cell)):
            self.tally.planned += len(conversation)
            outcomes = [finished[one.episode_id]["outcome"] for one in conversation if one.episode_id in finished]
            for episode, outcome in zip(conversation, outcomes, strict=bool(outcomes)):
                self._count(episode, outcome)
            if not outcomes or INFRA in outcomes:
                if self.study.options.only == INFRA and not self._failed_last(conversation):
                    self.tally.passed_over += len(conversation)
                    continue
                jobs.append(_job([Job(e, instances[e.instance_id], variants[e.variant_id]) for e in conversation]))
                continue
            self.tally.skipped += len(conversation)
            for episode in conversation:
                self.console.line(f"skip {model} {cell.id} {episode.episode_id}: complete")
        return jobs

    def _failed_last(self, conversation: Sequence[Episode]) -> bool:
        """Whether the latest finished attempt at any of its tasks ended in infra_error."""
        return any(
            latest_outcome(self.study.store, self.study.transcript(episode)) == INFRA for episode in conversation
        )

    def is_complete(self, model: str, cell: Cell) -> bool:
        """Whether no later run repeats any of the cell's episodes. Only after `jobs`."""
        return self.completed(model, cell) == len(self.study.episodes(model, cell))

    def completed(self, model: str, cell: Cell) -> int:
        """Episodes of the cell that no later run repeats. Only after `jobs`."""
        outcomes = self.tally.outcomes[(model, cell.id)]
        return outcomes.total() - outcomes[INFRA]

    async def run_cell(
        self, model: str, cell: Cell, jobs: Sequence[Job], attempt: Callable[[Job], Awaitable[None]]
    ) -> None:
        """Carry out the cell's jobs, side by side, against every other process.

        Another process may have finished some of them between the look that made `jobs` and the lock; these are done.

        Raises:
            CellLocked: another process works on the cell.
            StoreError: the cell cannot be locked or looked at.
        """
        with self.study.store.cell_lock(model, cell.id):
            left = self._still_left(model, cell, jobs)
            ids = {one.episode_id for job in left for one in job.conversation}
            self._untouched |= ids - self.study.store.touched(model, cell.id)
            # As many again may be at the disk, which holds up none of those who converse.
            await abreast(left, attempt, 2 * self.study.manifest.execution.concurrent_episodes)

    def halt(self, error: StudyError) -> None:
        """Start no further episode; those in flight are finished and kept. The first reason is the one told."""
        self.halted = self.halted or error

    def _still_left(self, model: str, cell: Cell, jobs: Sequence[Job]) -> list[Job]:
        finished, left = self.study.finished(model, cell), []
        for job in jobs:
            outcomes = [finished[one.episode_id]["outcome"] for one in job.conversation if one.episode_id in finished]
            if not outcomes or INFRA in outcomes:
                left.append(job)
                continue
            for one, outcome in zip(job.conversation, outcomes, strict=True):
                self._count(one.episode, outcome)
                self.console.line(f"skip {model} {cell.id} {one.episode_id}: completed by another process")
        return left

    def check_disk(self, episodes: dict[str, int]) -> None:
        """Refuse to start so many episodes of each model that would overrun the disk budget.

        Raises:
            StudyError: says what is there, what would be added, and the budget.
        """
        manifest = self.study.manifest
        there = self.study.store.disk_bytes()
        added = run_bytes(manifest, episodes)
        if there + added > manifest.budget.disk_gb * 1e9:
            raise StudyError(
                f"{self.study.store.root}: {there / 1e9:.2f} GB are there and {sum(episodes.values())} episodes would "
                f"add about {added / 1e9:.2f} GB, over the budget of {manifest.budget.disk_gb:g} GB; raise "
                f"budget.disk_gb in {self.study.manifest_path}, or make the grid smaller"
            )

    def show_on(self, progress: StageProgress) -> None:
        """Report every finished episode to `progress`."""
        self._progress = progress

    async def attempt(self, job: Job) -> Summary | None:
        """One attempt at an episode and its followers; null if the run is stopped before it starts, or by it.

        Raises:
            EpisodeFailed: it ended in infra_error; recorded.
        """
        try:
            summary = await self._runner.run(job, first=self._is_first(job))
        except ModelUnusable as error:
            self._leave_out(job.episode.model, str(error))
            return None
        except CapReached:
            self._reach_cap(job)
            return None
        except StudyError as error:
            self.halt(error)
            return None
        if summary is None:
            return None
        for task, result in zip(job.conversation, summary.conversation, strict=True):
            self._count(task.episode, result.outcome)
        spent = sum(result.spent_usd for result in summary.conversation)
        self._advance(len(job.conversation), spent)
        if summary.culprit is not None:
            raise EpisodeFailed(summary, summary.culprit)
        return summary

    def _is_first(self, job: Job) -> bool:
        """Whether nothing of the conversation was ever begun; from now on, it was."""
        ids = {one.episode_id for one in job.conversation}
        first = ids <= self._untouched
        self._untouched -= ids
        return first

    async def attempt_repeatedly(self, job: Job) -> Summary | None:
        """Attempts by the manifest's policy, for runs that track no single episode; null if none was finished."""
        summary = None
        for _ in range(self.study.manifest.retry.episode_attempts):
            try:
                return await self.attempt(job) or summary
            except EpisodeFailed as error:
                summary = error.summary
        return summary

    def report(self, model: str, cell: Cell) -> CellReport:
        """What came of a cell, as plain data for the campaign that another process leads."""
        halted = self.halted
        return {
            "outcomes": {
                episode.episode_id: self._last[episode.episode_id]
                for episode in self.study.episodes(model, cell)
                if episode.episode_id in self._last
            },
            "attempted": self.attempted,
            "spent_usd": self.spent_usd,
            "capped": self.capped,
            "unusable": self.unusable,
            "halted": None if halted is None else [isinstance(halted, RunHalted), str(halted)],
        }

    def absorb(self, model: str, cell: Cell, report: CellReport) -> None:
        """Take over what another process did in a cell, and why it stopped."""
        for episode in self.study.episodes(model, cell):
            if episode.episode_id in report["outcomes"]:
                self._count(episode, report["outcomes"][episode.episode_id])
        self._advance(report["attempted"], report["spent_usd"])
        self.capped = self.capped or report["capped"]
        for name, why in report["unusable"].items():
            self._leave_out(name, why)
        if report["halted"] is not None:
            by_provider, why = report["halted"]
            self.halt(RunHalted(why) if by_provider else StudyError(why))

    async def close(self) -> None:
        """Close the connections."""
        if self._client:
            await self._client.close()

    def _advance(self, attempted: int, spent_usd: float) -> None:
        self.attempted += attempted
        self.spent_usd += spent_usd
        if self._progress:
            self._progress.advance(attempted, spend=spent_usd)

    def _count(self, episode: Episode, outcome: str) -> None:
        key = (episode.model, episode.cell.id)
        earlier = self._last.get(episode.episode_id)
        if earlier is not None:
            self.tally.outcomes[key][earlier] -= 1
        self._last[episode.episode_id] = outcome
        self.tally.outcomes[key][outcome] += 1

    def _reach_cap(self, job: Job) -> None:
        if not self.capped:
            self.capped = True
            model, manifest = job.episode.model, self.study.manifest
            bound = episode_bound(manifest.models[model].pricing, manifest.scaffold)
            self.ledger.note_cap(model, len(job.conversation) * bound)

    def _leave_out(self, model: str, why: str) -> None:
        if model not in self.unusable:
            self.unusable[model] = why
            self.console.line(f"run: WARNING: {why}; its episodes are left, other models go on")

    def _open_adapter(self, job: Job) -> Adapter:
        name = job.episode.model
        entry, settings = self.study.manifest.models[name], self.study.manifest.scaffold
        try:
            if isinstance(entry, ScriptedModel):
                return ScriptedAdapter(entry, job, settings.max_output_tokens, settings.parallel_calls)
            return self._open_http(entry)
        except StudyError:
            raise
        except Exception as error:  # noqa: BLE001 - one model's defect is that model's, whatever it is
            raise ModelUnusable(name, f"its adapter cannot be built ({_reason(entry, error)})") from None

    def _open_http(self, entry: HttpModel) -> Adapter:
        endpoint = resolve_endpoint(entry, self._environ)
        if self._client is None:
            self._client = open_client()
        settings = self.study.manifest.scaffold
        return open_adapter(entry, endpoint, settings.max_output_tokens, self._client, settings.parallel_calls)


def _reason(entry: Model, error: Exception) -> str:
    """What may be said of an error that may quote an address or a proxy from the environment."""
    if isinstance(error, ImportError):
        return f"{error}; install the package"
    quoted = entry.base_url if isinstance(entry, HttpModel) else None
    return type(error).__name__ + (f"; look at its base_url {quoted!r}" if quoted else "; look at its entry")


def latest_outcome(store: Store, transcript: Path) -> str | None:
    """How the latest finished attempt at an episode ended; null if none was ever finished.

    An attempt that was set aside for another one, which was broken off, is still the latest finished one.
    """
    marker = store.marker(transcript)
    if marker is not None:
        return str(marker["outcome"])
    number = store.earlier_attempts(transcript)
    if number == 0:
        return None
    events = read_transcript(store.earlier_attempt(transcript, number))
    return events[-1].get("outcome") if events else None


def _job(tasks: Sequence[Job]) -> Job:
    """The tasks of one conversation as one job."""
    first, *others = tasks
    return replace(first, followers=tuple(others))
