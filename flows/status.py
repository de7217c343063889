"""Where a study stands right now, from its files alone: also while another process works on it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flows.bookkeeping import cap_lines, host_lines
from flows.context import Study
from flows.episodes.books import Booking, read_books
from flows.episodes.ledger import Totals
from flows.files import storage
from flows.grid import Cell, episode_count
from flows.outcomes import INFRA_ERROR
from flows.store import MARKER

PACE_WINDOW_S = 600.0
"""Time left is reckoned from the episodes that were finished within so long."""


@dataclass
class CellStatus:
    """One model's episodes in one cell."""

    model: str
    cell: Cell
    planned: int
    outcomes: Counter[str] = field(default_factory=Counter)
    """The latest outcome of every finished episode."""

    @property
    def done(self) -> int:
        """Episodes that no later run repeats."""
        return self.outcomes.total() - self.outcomes[INFRA_ERROR]


@dataclass(frozen=True)
class Status:
    """The chosen part of a study; money is that of the whole root."""

    cells: Sequence[CellStatus]
    totals: Totals
    cap_usd: float
    running: int
    """Episodes of these cells that a living process of this machine holds money for."""
    elsewhere: Sequence[Booking]
    """Attempts of the whole root that other machines hold money for, whether they run or not."""
    recent: int
    """Episodes that finished within the last `PACE_WINDOW_S`."""
    recent_span_s: float
    """How long ago the first of these finished."""

    @property
    def planned(self) -> int:
        """Episodes of the grid."""
        return sum(cell.planned for cell in self.cells)

    @property
    def done(self) -> int:
        """Episodes that no later run repeats."""
        return sum(cell.done for cell in self.cells)

    @property
    def infra_errors(self) -> int:
        """Episodes whose latest attempt ended in infra_error."""
        return sum(cell.outcomes[INFRA_ERROR] for cell in self.cells)

    @property
    def seconds_left(self) -> float | None:
        """At the present pace, of whichever machine; null while nothing runs or nothing was finished lately."""
        if not (self.running or self.elsewhere) or self.recent < 2 or self.recent_span_s <= 0:
            return None
        return (self.planned - self.done) * self.recent_span_s / self.recent


def read_status(study: Study, now: float | None = None) -> Status:
    """Look at markers and ledger; nothing is locked, changed or generated.

    Args:
        now: Seconds since the epoch.
    """
    now = time.time() if now is None else now
    books = read_books(study.store.ledger)
    cells, ages = [], []
    for model, cell in study.work:
        status = CellStatus(model, cell, episode_count(study.manifest, [model], [cell]))
        if study.has_variants(cell):
            finished = study.finished(model, cell)
            status.outcomes.update(marker["outcome"] for marker in finished.values())
            folder = study.store.episodes(model, cell.id)
            ages += [now - _written(folder / f"{episode_id}.{MARKER}", now) for episode_id in finished]
        cells.append(status)
    recent = [age for age in ages if age <= PACE_WINDOW_S]
    chosen = {(model, cell.id) for model, cell in study.work}
    return Status(
        cells=cells,
        totals=books.totals,
        cap_usd=study.manifest.budget.cap_usd,
        running=sum((each.model, each.cell) in chosen for each in books.running),
        elsewhere=books.elsewhere,
        recent=len(recent),
        recent_span_s=max(recent, default=0.0),
    )


def _written(path: Path, otherwise: float) -> float:
    """When a marker was written; `otherwise` if another attempt has just set it aside."""
    with storage(path):
        try:
            return path.stat().st_mtime
        except FileNotFoundError:
            return otherwise


def status_text(study: Study, status: Status, *, list_cells: bool = False) -> str:
    """The status as a page of text."""
    totals = status.totals
    abandoned = totals.abandoned()
    left = status.planned - status.done
    lines = [
        f"study {study.manifest.study}, profile {study.manifest.profile}, seed {study.manifest.seed}, "
        f"root {study.store.root}",
        f"  episodes  {status.done} of {status.planned} done, {left} left, {status.infra_errors} infra_error "
        f"among these, {status.running} running"
        + (f" here, {len(status.elsewhere)} held by other machines" if status.elsewhere else ""),
        f"  spend     {totals.spent:.4f} USD of {status.cap_usd:.2f}; reserved {totals.reserved:.4f}, unknown "
        f"{totals.unknown:.4f}; free {max(status.cap_usd - totals.committed, 0.0):.4f}",
        f"  time left {_duration(status)}",
    ]
    if abandoned:
        lines.append(
            f"  {sum(abandoned.values()):.4f} USD of the reserved are held for {len(abandoned)} episodes whose process "
            "died; when you know that they were not spent, `agent-bench ledger reconcile` frees them"
        )
    lines += [*host_lines(status.elsewhere), *cap_lines(totals, status.cap_usd), "", *_model_lines(status)]
    lines += [
        f"  WARNING: every finished episode of cell {each.cell.id} of model {each.model} is an infra_error"
        for each in status.cells
        if 0 < each.outcomes.total() == each.outcomes[INFRA_ERROR]
    ]
    if list_cells:
        lines += ["", *(_cell_line(each) for each in status.cells)]
    return "\n".join(lines)


def _duration(status: Status) -> str:
    if status.done == status.planned:
        return "none: every episode is done"
    if not status.running and not status.elsewhere:
        return "nothing is running"
    seconds = status.seconds_left
    if seconds is None:
        return "not known yet" if status.running else "not known: nothing is running here, perhaps elsewhere"
    hours, minutes = divmod(round(seconds / 60), 60)
    pace = 60 * status.recent / status.recent_span_s
    return f"about {hours} h {minutes:02} min at {pace:.1f} episodes a minute"


def _model_lines(status: Status) -> list[str]:
    models = list(dict.fromkeys(each.model for each in status.cells))
    width = max(len("model"), *(len(model) for model in models)) if models else len("model")
    lines = [f"  {'model':{width}}  {'cells':>11} {'episodes':>13} {'infra_error':>11} {'spent USD':>10}  outcomes"]
    for model in models:
        cells = [each for each in status.cells if each.model == model]
        whole = sum(each.done == each.planned for each in cells)
        outcomes: Counter[str] = sum((each.outcomes for each in cells), Counter())
        done, planned = sum(each.done for each in cells), sum(each.planned for each in cells)
        said = ", ".join(f"{name} {count}" for name, count in outcomes.most_common() if name != INFRA_ERROR)
        lines.append(
            f"  {model:{width}}  {f'{whole}/{len(cells)}':>11} {f'{done}/{planned}':>13} {outcomes[INFRA_ERROR]:>11} "
            f"{status.totals.spent_by_model.get(model, 0.0):>10.4f}  {said or '-'}"
        )
    return lines


def _cell_line(each: CellStatus) -> str:
    said = ", ".join(f"{name} {count}" for name, count in each.outcomes.most_common())
    return f"  {each.model} {each.cell.id}: {each.done}/{each.planned}" + (f" ({said})" if said else "")
