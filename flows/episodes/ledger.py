"""The ledger of a study's root: money is reserved before it can be spent, under one cap for all processes.

An append-only JSONL file, changed only under its lock:

    {"op": "reserve", "id", "usd", "model", "cell", "episode", "attempt", "pid", "host", "born", "at"}
    {"op": "extend",  "id", "usd"}
    {"op": "settle",  "id", "spent_usd", "unknown_usd", "tokens_in", "tokens_cached", "tokens_out", "tokens_reasoning"}
    {"op": "release", "id", "usd", "pid", "at"}                 with "host" if somebody vouched for that machine
    {"op": "cap",     "id", "needed_usd", "cap_usd", "model", "pid", "at"}        a run ended: an episode did not fit

An episode's upper bound is one reservation; a conversation of several tasks holds all of theirs before it starts. A
reservation without its settlement belongs to an episode in flight, or to one whose process died: its money may be
spent, so it stays booked until somebody who knows better releases it. What is settled after such a release was spent
all the same, and is booked. `unknown_usd` is the part of a settled episode whose usage the provider did not say; it
stays booked for good. `tokens_in` holds the cached ones and `tokens_out` those of reasoning, `spent_usd` prices each at
its own price; null: not known. Lines of earlier versions lack the two.

A reservation is on the disk before anything is asked, and a settlement before its episode is marked complete; episodes
side by side share a flush. A power cut in between leaves the reservation, which is the safe side.
"""

from __future__ import annotations

import json
import math
import os
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from flows.errors import StoreError
from flows.files import SharedLines
from flows.owners import Owner, this_process
from tasks_env.canonical import canonical_json


class Capped(NamedTuple):
    """A run that ended at the cap."""

    model: str
    needed_usd: float
    """Upper bound of the episode that did not fit."""
    cap_usd: float
    at: str


@dataclass
class Totals:
    """Sums over a ledger, in USD."""

    spent: float = 0.0
    unknown: float = 0.0
    open: dict[str, float] = field(default_factory=dict)
    """Reservation id → USD still reserved."""
    owners: dict[str, Owner] = field(default_factory=dict)
    """Reservation id → the process that made it; of those that are open."""
    released: set[str] = field(default_factory=set)
    """Ids of the reservations that were freed without a settlement."""
    spent_by_model: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    models: dict[str, str] = field(default_factory=dict)
    """Reservation id → its model; of those that are open or released: what can still be settled."""

    capped: Capped | None = None
    """The last run that ended at the cap, whatever has changed since."""

    @property
    def reserved(self) -> float:
        """USD held by reservations that are not settled."""
        return sum(self.open.values())

    @property
    def committed(self) -> float:
        """USD that are spent or may be: what counts against the cap."""
        return self.spent + self.unknown + self.reserved

    def abandoned(self) -> dict[str, float]:
        """Reservations of this machine's processes that have ended: id → USD."""
        dead = {owner for owner in {self.owners[key] for key in self.open} if owner.is_dead()}
        return {key: usd for key, usd in self.open.items() if self.owners[key] in dead}

    def elsewhere(self) -> dict[str, float]:
        """Reservations of other machines' processes, which may live or not: id → USD."""
        return {key: usd for key, usd in self.open.items() if self.owners[key].is_elsewhere()}

    def apply(self, entry: dict[str, Any]) -> None:
        """Add one line of the ledger."""
        key = entry["id"]
        if entry["op"] == "reserve":
            self.open[key] = entry["usd"]
            self.owners[key] = Owner(entry["pid"], entry.get("host"), entry.get("born"))
            self.models[key] = entry["model"]
        elif entry["op"] == "extend":
            self.open[key] += entry["usd"]
        elif entry["op"] == "cap":
            self.capped = Capped(entry["model"], entry["needed_usd"], entry["cap_usd"], entry["at"])
        elif entry["op"] == "release":
            del self.open[key], self.owners[key]
            self.released.add(key)
        else:
            if key not in self.released:
                del self.open[key], self.owners[key]
            self.released.discard(key)
            self.spent += entry["spent_usd"]
            self.unknown += entry["unknown_usd"]
            self.spent_by_model[self.models.pop(key)] += entry["spent_usd"]


class Ledger:
    """The ledger at `path` with its cap.

    Every operation locks the file, reads what others appended since, and appends whole lines. Nothing is reserved
    that does not fit; so as long as no attempt costs more than was reserved for it, what counts against the cap never
    exceeds it in any interleaving of processes. What a provider bills beyond that is booked in full, whatever the cap:
    it counts in every later reservation. Every operation raises `StoreError` where the disk refuses.
    """

    def __init__(self, path: Path, cap_usd: float) -> None:
        self.path = path
        self.cap_usd = cap_usd
        self._lines = SharedLines(path)
        self._totals = Totals()
        self._known = 0
        """Lines that `_totals` sums up."""

    def totals(self) -> Totals:
        """The sums as of now; a missing file is an empty ledger. Changes and locks nothing."""
        totals = Totals()
        for number, line in enumerate(self._lines.whole_lines(), start=1):
            self._take_in(totals, number, line)
        return totals

    def reserve(self, usd: float, *, model: str, cell: str, episode: str, attempt: int) -> str | None:
        """Hold `usd` for an episode. Returns the reservation's id, or null if it does not fit under the cap."""
        reservations = self.reserve_all(usd, model=model, cell=cell, attempts={episode: attempt})
        return None if reservations is None else reservations[0]

    def reserve_all(
        self, usd: float, *, model: str, cell: str, attempts: Mapping[str, int], durable: bool = True
    ) -> list[str] | None:
        """Hold `usd` for each of the episodes of one conversation, a reservation each, or nothing at all.

        Args:
            attempts: Episode → number of the attempt.
            durable: Return when they are on the disk; otherwise `flush` must, before anything is asked.

        Returns:
            The reservations' ids in the order of `attempts`, or null if they do not all fit under the cap.
        """
        owner = this_process()
        entries = [
            {
                "op": "reserve",
                "id": uuid.uuid4().hex,
                "usd": usd,
                "model": model,
                "cell": cell,
                "episode": episode,
                "attempt": attempt,
                **owner._asdict(),
                "at": _now(),
            }
            for episode, attempt in attempts.items()
        ]
        return [str(entry["id"]) for entry in entries] if self._append_if_they_fit(entries, durable) else None

    def extend(self, reservation: str, usd: float) -> bool:
        """Hold `usd` more for a reservation. Returns whether it fits under the cap; never after it was released."""
        return self._append_if_they_fit([{"op": "extend", "id": reservation, "usd": usd}])

    def settle(
        self,
        reservation: str,
        *,
        spent_usd: float,
        unknown_usd: float,
        tokens_in: int | None,
        tokens_out: int | None,
        tokens_cached: int | None = None,
        tokens_reasoning: int | None = None,
    ) -> None:
        """Book what an attempt took and free the rest of its reservation; on the disk after the next `flush`.

        Raises:
            KeyError: there is no such reservation, or it is settled; nothing was written.
        """
        entry = {
            "op": "settle",
            "id": reservation,
            "spent_usd": spent_usd,
            "unknown_usd": unknown_usd,
            "tokens_in": tokens_in,
            "tokens_cached": tokens_cached,
            "tokens_out": tokens_out,
            "tokens_reasoning": tokens_reasoning,
        }
        with self._lines.locked():
            self._catch_up()
            if reservation not in self._totals.open and reservation not in self._totals.released:
                raise KeyError(reservation)
            self._append([entry], durable=False)

    def note_cap(self, model: str, needed_usd: float) -> None:
        """Put down that a run ends because an episode that may cost so much does not fit under the cap."""
        entry = {
            "op": "cap",
            "id": uuid.uuid4().hex,
            "needed_usd": needed_usd,
            "cap_usd": self.cap_usd,
            "model": model,
            "pid": os.getpid(),
            "at": _now(),
        }
        with self._lines.locked():
            self._catch_up()
            self._append([entry], durable=True)

    def flush(self) -> None:
        """Return once all that this object booked is on the disk; from any thread."""
        self._lines.flush()

    def release_abandoned(self, hosts: Collection[str] = (), only: Collection[str] | None = None) -> dict[str, float]:
        """Free the reservations of dead processes, each with a line for the record. Returns id → USD.

        Only for somebody who has looked at the provider's bill.

        Args:
            hosts: Other machines whose reservations are freed too: nothing tells from here whether anything still runs
                there.
            only: Of these, those that are still abandoned; null: all.
        """
        with self._lines.locked():
            self._catch_up()
            vouched = {
                key: usd for key, usd in self._totals.elsewhere().items() if self._totals.owners[key].host in hosts
            }
            freed = {
                key: usd for key, usd in (self._totals.abandoned() | vouched).items() if only is None or key in only
            }
            entries = [
                {"op": "release", "id": key, "usd": usd, "pid": os.getpid(), "at": _now()}
                | ({"host": self._totals.owners[key].host} if key in vouched else {})
                for key, usd in freed.items()
            ]
            if entries:
                self._append(entries, durable=True)
        return freed

    def _append_if_they_fit(self, entries: Sequence[dict[str, Any]], durable: bool = True) -> bool:
        with self._lines.locked():
            self._catch_up()
            if any(entry["id"] in self._totals.released for entry in entries):
                return False
            if self._totals.committed + math.fsum(entry["usd"] for entry in entries) > self.cap_usd:
                return False
            self._append(entries, durable=durable)
        return True

    def _catch_up(self) -> None:
        for line in self._lines.news():
            self._take_in(self._totals, self._known + 1, line)
            self._known += 1

    def _append(self, entries: Sequence[dict[str, Any]], *, durable: bool) -> None:
        self._lines.append(*map(canonical_json, entries), durable=durable)
        self._known += len(entries)
        for entry in entries:
            self._totals.apply(entry)

    def _take_in(self, totals: Totals, number: int, line: bytes) -> None:
        try:
            totals.apply(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                self.path,
                f"line {number} is no entry of a ledger ({type(error).__name__}: {error}); it was edited or damaged: "
                "restore it from a copy, since without it nobody knows what was spent",
            ) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
