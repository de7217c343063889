"""The ledger as a page of tables, and giving back what dead processes hold."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from flows.console import Console
from flows.context import Study
from flows.episodes.books import TOKENS, Booking, Books, by_host, read_books
from flows.episodes.ledger import Ledger, Totals
from flows.errors import ConfigurationError
from flows.outcomes import INFRA_ERROR

RUNNING = "under way"
ELSEWHERE = "held by another machine: from here nobody sees whether it runs"
ABANDONED = "abandoned: its process died; may have been spent"
RELEASED = "released by `agent-bench ledger reconcile`"
DISCARDED = "discarded: the episode was attempted again"
INTERRUPTED = "broken off: nothing was kept of it"
FAILED = f"ended in {INFRA_ERROR}"
KEPT = "kept: its transcript stands"
FATES = (KEPT, FAILED, DISCARDED, INTERRUPTED, RUNNING, ELSEWHERE, ABANDONED, RELEASED)

_HEADINGS = ("attempts", "spent", "unknown", "reserved", "abandoned", "tokens in", "cached", "out", "reasoning")


def fate_of(study: Study, books: Books) -> dict[str, str]:
    """What became of every attempt: reservation → one of `FATES`."""
    latest = {(each.model, each.cell, each.episode): each.reservation for each in books.bookings}
    fates = {}
    for each in books.bookings:
        if each.reservation in books.abandoned:
            fate = ABANDONED
        elif each.reservation in books.away:
            fate = ELSEWHERE
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
        *host_lines(books.elsewhere),
        *cap_lines(totals, cap),
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


def cap_lines(totals: Totals, cap_usd: float) -> list[str]:
    """That a run ended at the cap, as long as it would end there again, and that more was billed than fits under it."""
    lines = []
    last = totals.capped
    if last is not None and totals.committed + last.needed_usd > cap_usd:
        lines.append(
            f"  CAP REACHED: at {last.at} a run ended under a cap of {last.cap_usd:.2f} USD, since one more episode of "
            f"{last.model} may cost {last.needed_usd:.4f}; raise budget.cap_usd and run again to go on"
        )
    if totals.committed > cap_usd * (1 + 1e-9):
        lines.append(
            f"  OVER THE CAP: {totals.committed:.4f} USD are spent, unknown or held, of {cap_usd:.2f}: a provider "
            "billed more than the requests' own limits allow, or the cap was lowered; all is booked"
        )
    return lines


def host_lines(elsewhere: Iterable[Booking]) -> list[str]:
    """What other machines hold: a line each, with the first moment since when."""
    return [
        f"  {sum(each.reserved for each in held):.4f} USD of the reserved are held by another machine ({host}) for "
        f"{len(held)} episodes, the first since {min(each.at for each in held)}; once you know that nothing runs "
        f"there, `agent-bench ledger reconcile --host {host}` frees them"
        for host, held in by_host(elsewhere).items()
    ]


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


def reconcile(
    study: Study, console: Console, ask: Callable[[str], str] | None, *, yes: bool, hosts: Collection[str] = ()
) -> None:
    """List what dead processes hold and, if that is wanted, free it with an audit line for each.

    Args:
        ask: Puts a question to a person and returns the answer; null where nobody can be asked.
        yes: Do it without a question.
        hosts: Other machines on which, as the user vouches, nothing works on this root any more: what they hold is
            freed as well.

    Raises:
        ConfigurationError: there is something to free, nobody to ask, and no `yes`; or a host that is this machine, or
            holds nothing. Nothing was changed.
        StoreError: the ledger cannot be read or written.
    """
    books = read_books(study.store.ledger)
    for host in hosts:
        _check_host(host, books)
    vouched = [each for each in books.elsewhere if each.host in hosts]
    others = [each for each in books.elsewhere if each.host not in hosts]
    held = [*books.left_behind, *vouched]
    for line in host_lines(others):
        console.line(f"ledger: {line.strip()}")
    if not held:
        console.line("ledger: no process of this machine that died holds money; nothing to release")
        return
    console.line(f"ledger: {sum(each.reserved for each in held):.4f} USD can be released, of {len(held)} attempts:")
    for each in held:
        whose = f"process {each.pid} of {each.host}" if each in vouched else f"process {each.pid}, which died"
        console.line(
            f"  {each.reserved:.4f} USD  {each.model} {each.cell} {each.episode} attempt {each.attempt}, {whose}, "
            f"since {each.at}"
        )
    if vouched:
        console.line(
            f"You vouch that nothing on {', '.join(sorted(set(hosts)))} works on this root any more: from here nobody "
            "can see that. What still runs there would go on spending money that is then free to be spent again."
        )
    if not yes and ask is None:
        raise ConfigurationError(
            "nothing was released: there is no terminal to ask on. The provider may have billed these attempts; "
            "look at its bill, then repeat with --yes"
        )
    if not yes and ask is not None:
        console.line("The provider may have billed these attempts: look at its bill first. Released money may be spent")
        console.line("again.")
        if ask("Release all of them? [y/N] ").strip().lower() not in ("y", "yes"):
            console.line("ledger: nothing was released")
            return
    ledger = Ledger(study.store.ledger, study.manifest.budget.cap_usd)
    released = ledger.release_abandoned(hosts, only=[each.reservation for each in held])
    console.line(
        f"ledger: released {sum(released.values()):.4f} USD of {len(released)} attempts, each with a line in "
        f"{study.store.ledger}; {ledger.totals().committed:.4f} of {ledger.cap_usd:.2f} USD are committed now"
    )


def _check_host(host: str, books: Books) -> None:
    """Raise `ConfigurationError` where to vouch for a machine makes no sense."""
    if host == platform.node():
        raise ConfigurationError(
            f"--host {host} is this machine: which of its processes live is looked up, nobody has to vouch for them; "
            "leave the option out"
        )
    known = by_host(books.elsewhere)
    if host not in known:
        holding = f"those that hold money are {', '.join(known)}" if known else "no other machine holds money"
        raise ConfigurationError(f"--host {host}: a machine of this name holds nothing; {holding}")
