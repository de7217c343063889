"""The ledger as a page of tables, and giving back what dead processes hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from flows.console import Console
from flows.context import Study
from flows.episodes.books import TOKENS, Booking, Books, read_books
from flows.episodes.ledger import Ledger
from flows.errors import ConfigurationError
from flows.outcomes import INFRA_ERROR

RUNNING = "under way"
ABANDONED = "abandoned: its process died; may have been spent"
RELEASED = "released by `agent-bench ledger reconcile`"
DISCARDED = "discarded: the episode was attempted again"
INTERRUPTED = "broken off: nothing was kept of it"
FAILED = f"ended in {INFRA_ERROR}"
KEPT = "kept: its transcript stands"
FATES = (KEPT, FAILED, DISCARDED, INTERRUPTED, RUNNING, ABANDONED, RELEASED)

_HEADINGS = ("attempts", "spent", "unknown", "reserved", "abandoned", "tokens in", "cached", "out", "reasoning")


def fate_of(study: Study, books: Books) -> dict[str, str]:
    """What became of every attempt: reservation → one of `FATES`."""
    latest = {(each.model, each.cell, each.episode): each.reservation for each in books.bookings}
    fates = {}
    for each in books.bookings:
        if each.reservation in books.abandoned:
            fate = ABANDONED
        elif each.is_open:
            fate = RUNNING
        elif not each.tokens:
            fate = RELEASED
        elif latest[(each.model, each.cell, each.episode)] != each.reservation:
            fate = DISCARDED
        else:
            fate = _fate_of_the_last(study, each)
        fates[each.reservation] = fate
    return fates


def _fate_of_the_last(study: Study, booking: Booking) -> str:
    marker = study.store.marker(study.store.transcript(booking.model, booking.cell, booking.episode))
    if marker is None or marker["attempt"] != booking.attempt:
        return INTERRUPTED
    return FAILED if marker["outcome"] == INFRA_ERROR else KEPT


def ledger_text(study: Study) -> str:
    """All that a study's root has spent, may have spent and holds, in USD: by model, cell, attempt and fate.

    Every attempt counts, the discarded and failed ones too; every cell and model of the root, whatever the manifest
    says today.

    Raises:
        StoreError: ledger or a marker cannot be read.
    """
    books, cap = read_books(study.store.ledger), study.manifest.budget.cap_usd
    totals = books.totals
    fates = fate_of(study, books)
    episodes = {(each.model, each.cell, each.episode) for each in books.bookings}
    released = sum(each.released for each in books.bookings)
    lines = [
        f"ledger {study.store.ledger}: {len(books.bookings)} attempts at {len(episodes)} episodes, USD",
        f"  spent {totals.spent:.4f}, unknown {totals.unknown:.4f}, reserved {totals.reserved:.4f} (of these "
        f"abandoned {sum(each.reserved for each in books.left_behind):.4f}): {totals.committed:.4f} of the cap of "
        f"{cap:.2f}, free {max(cap - totals.committed, 0.0):.4f}" + (f"; released {released:.4f}" if released else ""),
    ]
    if not books.bookings:
        return "\n".join(lines)
    lines += ["", *_table("model", books, lambda each: each.model)]
    lines += ["", *_table("model and cell", books, lambda each: f"{each.model} {each.cell}")]
    numbers = sorted({each.attempt for each in books.bookings})
    lines += ["", *_table("attempt", books, lambda each: str(each.attempt), [str(number) for number in numbers])]
    lines += ["", *_table("what became of it", books, lambda each: fates[each.reservation], FATES)]
    if any(value is None for each in books.bookings for value in each.tokens.values()):
        lines += ["", "  +: tokens of calls whose usage is not known, or of an earlier version's ledger, come on top"]
    return "\n".join(lines)


def _table(title: str, books: Books, group: Callable[[Booking], str], order: Sequence[str] = ()) -> list[str]:
    members: dict[str, list[Booking]] = defaultdict(list)
    for booking in books.bookings:
        members[group(booking)].append(booking)
    names = [name for name in order if name in members] or sorted(members)
    rows = [(title, *_HEADINGS), *((name, *_cells(members[name], books)) for name in names)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _cells(bookings: Sequence[Booking], books: Books) -> list[str]:
    abandoned = sum(each.reserved for each in bookings if each.reservation in books.abandoned)
    amounts = (
        sum(each.spent for each in bookings),
        sum(each.unknown for each in bookings),
        sum(each.reserved for each in bookings),
        abandoned,
    )
    tokens = (_sum([each.tokens[name] for each in bookings if each.tokens]) for name in TOKENS)
    return [str(len(bookings)), *(f"{usd:.4f}" for usd in amounts), *tokens]


def _sum(counts: Iterable[int | None]) -> str:
    """The known ones; a plus where some are not known."""
    values = list(counts)
    return f"{sum(value for value in values if value is not None)}{'+' if None in values else ''}"


def reconcile(study: Study, console: Console, ask: Callable[[str], str] | None, *, yes: bool) -> None:
    """List what dead processes hold and, if that is wanted, free it with an audit line for each.

    Args:
        ask: Puts a question to a person and returns the answer; null where nobody can be asked.
        yes: Do it without a question.

    Raises:
        ConfigurationError: there is something to free, nobody to ask, and no `yes`; nothing was changed.
        StoreError: the ledger cannot be read or written.
    """
    abandoned = read_books(study.store.ledger).left_behind
    if not abandoned:
        console.line("ledger: no process that died holds money; nothing to release")
        return
    usd = sum(each.reserved for each in abandoned)
    console.line(f"ledger: {usd:.4f} USD are held for {len(abandoned)} attempts whose process died:")
    for each in abandoned:
        console.line(
            f"  {each.reserved:.4f} USD  {each.model} {each.cell} {each.episode} attempt {each.attempt}, process "
            f"{each.pid}, since {each.at}"
        )
    if not yes and ask is None:
        raise ConfigurationError(
            "nothing was released: there is no terminal to ask on. The provider may have billed these attempts; "
            "look at its bill, then repeat with --yes"
        )
    if not yes and ask is not None:
        console.line("The provider may have billed these attempts: look at its bill first. Released money may be spent")
        console.line("again. Do it only while no other machine works on this root.")
        if ask("Release all of them? [y/N] ").strip().lower() not in ("y", "yes"):
            console.line("ledger: nothing was released")
            return
    ledger = Ledger(study.store.ledger, study.manifest.budget.cap_usd)
    released = ledger.release_abandoned(only=[each.reservation for each in abandoned])
    console.line(
        f"ledger: released {sum(released.values()):.4f} USD of {len(released)} attempts, each with a line in "
        f"{study.store.ledger}; {ledger.totals().committed:.4f} of {ledger.cap_usd:.2f} USD are committed now"
    )
