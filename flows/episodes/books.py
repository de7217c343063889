"""The ledger as people ask about it: every attempt that held money, whose it was and what became of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flows.episodes.ledger import Totals
from flows.files import SharedLines

TOKENS = ("tokens_in", "tokens_cached", "tokens_out", "tokens_reasoning")
"""Of a settlement; ledgers of earlier versions lack those of cache and reasoning."""


@dataclass
class Booking:
    """One attempt at an episode as the ledger has it, amounts in USD."""

    reservation: str
    model: str
    cell: str
    episode: str
    attempt: int
    """Its number; an attempt of which nothing was kept is followed by one of the same number."""
    pid: int
    host: str | None
    """The machine of that process; null in ledgers of earlier versions."""
    at: str
    """When it began, ISO 8601, UTC."""
    reserved: float
    """Still held: the attempt is under way, its process died, or it is another machine's."""
    spent: float = 0.0
    unknown: float = 0.0
    """Upper bound of calls whose usage nobody said."""
    released: float = 0.0
    """Freed by `agent-bench ledger reconcile`."""
    tokens: dict[str, int | None] = field(default_factory=dict)
    """Of a settled one, by the names of `TOKENS`; null: not known."""
    is_open: bool = True
    """Whether it is neither settled nor released; one that costs nothing is as open as others."""


@dataclass(frozen=True)
class Books:
    """A whole ledger."""

    bookings: list[Booking]
    """In the order in which they were reserved."""
    totals: Totals
    abandoned: frozenset[str]
    """Reservations of this machine whose process died."""
    away: frozenset[str]
    """Reservations of other machines: nothing tells from here whether their processes live."""

    @property
    def running(self) -> list[Booking]:
        """Attempts that a living process of this machine holds money for."""
        gone = self.abandoned | self.away
        return [each for each in self.bookings if each.is_open and each.reservation not in gone]

    @property
    def elsewhere(self) -> list[Booking]:
        """Attempts that another machine holds money for."""
        return [each for each in self.bookings if each.reservation in self.away]

    @property
    def left_behind(self) -> list[Booking]:
        """Attempts whose process died before it settled them."""
        return [each for each in self.bookings if each.reservation in self.abandoned]


def read_books(path: Path) -> Books:
    """The ledger at `path` in one look; a missing file is an empty ledger. Changes and locks nothing.

    Raises:
        StoreError: the disk refuses.
    """
    return books_of(json.loads(line) for line in SharedLines(path).whole_lines())


def books_of(entries: Iterable[dict[str, Any]]) -> Books:
    """The books that a ledger's lines make up."""
    totals, bookings = Totals(), dict[str, Booking]()
    for entry in entries:
        totals.apply(entry)
        key = entry["id"]
        if entry["op"] == "cap":
            continue
        if entry["op"] == "reserve":
            names = ("model", "cell", "episode", "attempt", "pid", "at")
            bookings[key] = Booking(
                **{name: entry[name] for name in names},
                host=entry.get("host"),
                reservation=key,
                reserved=entry["usd"],
            )
            continue
        booking = bookings[key]
        if entry["op"] == "extend":
            booking.reserved += entry["usd"]
            continue
        booking.is_open = False
        if entry["op"] == "release":
            booking.released, booking.reserved = booking.reserved, 0.0
        else:
            booking.reserved, booking.spent, booking.unknown = 0.0, entry["spent_usd"], entry["unknown_usd"]
            booking.tokens = {name: entry.get(name) for name in TOKENS}
    return Books(list(bookings.values()), totals, frozenset(totals.abandoned()), frozenset(totals.elsewhere()))


def by_host(bookings: Iterable[Booking]) -> dict[str, list[Booking]]:
    """Machine → its bookings, both in order."""
    hosts: dict[str, list[Booking]] = {}
    for each in bookings:
        hosts.setdefault(str(each.host), []).append(each)
    return dict(sorted(hosts.items()))
