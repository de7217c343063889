"""The ledger: what is reserved, settled or unknown never exceeds the cap, whoever works on it and whatever dies."""

from __future__ import annotations

import errno
import io
import json
import os
import platform
import signal
import stat
import subprocess
import sys
import tempfile
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from flows.episodes.ledger import Ledger, Totals
from flows.errors import StoreError
from flows.owners import this_process

OWNER: Any = {"model": "m", "cell": "c", "episode": "e", "attempt": 1}


def usage(spent: float, unknown: float = 0.0) -> dict[str, Any]:
    """What a settlement says."""
    return {"spent_usd": spent, "unknown_usd": unknown, "tokens_in": 1, "tokens_out": 1}


def reserved(ledger: Ledger, usd: float, model: str = "m") -> str:
    """A reservation that must fit."""
    reservation = ledger.reserve(usd, model=model, cell="c", episode="e", attempt=1)
    assert reservation is not None
    return reservation


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "ledger.jsonl"


def sums(totals: Totals) -> tuple[float, float, float]:
    return totals.spent, totals.unknown, totals.reserved


def test_a_missing_ledger_is_empty_and_looking_does_not_make_one(path: Path) -> None:
    assert sums(Ledger(path, 1.0).totals()) == (0, 0, 0)
    assert not path.exists()


def test_money_is_held_until_it_is_settled(path: Path) -> None:
    ledger = Ledger(path, 10.0)
    first, second = reserved(ledger, 4.0), reserved(ledger, 6.0, "other")
    assert ledger.reserve(0.5, **OWNER) is None
    ledger.settle(first, **usage(1.5, 0.5))
    assert sums(ledger.totals()) == (1.5, 0.5, 6.0)
    assert ledger.reserve(2.25, **OWNER) is None
    assert ledger.extend(second, 2.0)
    assert not ledger.extend(second, 0.25)
    ledger.settle(second, **usage(7.0))
    assert sums(ledger.totals()) == (8.5, 0.5, 0.0)
    assert ledger.totals().spent_by_model == {"m": 1.5, "other": 7.0}


def test_unknown_usage_stays_booked(path: Path) -> None:
    ledger = Ledger(path, 10.0)
    ledger.settle(reserved(ledger, 9.0), **usage(0.0, 9.0))
    assert Ledger(path, 10.0).reserve(1.5, **OWNER) is None


def test_what_costs_nothing_fits_even_at_the_cap(path: Path) -> None:
    ledger = Ledger(path, 1.0)
    ledger.settle(reserved(ledger, 1.0), **usage(1.0))
    assert ledger.reserve(0.0, **OWNER) is not None


def test_a_raised_cap_counts_what_was_spent_under_the_old_one(path: Path) -> None:
    low = Ledger(path, 1.0)
    low.settle(reserved(low, 1.0), **usage(1.0))
    high = Ledger(path, 3.0)
    assert high.reserve(2.5, **OWNER) is None
    assert high.reserve(2.0, **OWNER) is not None


def test_a_line_says_who_reserved_what_and_when(path: Path) -> None:
    ledger = Ledger(path, 1.0)
    reservation = ledger.reserve(0.5, model="m", cell="c", episode="e", attempt=3)
    (line,) = [json.loads(text) for text in path.read_text().splitlines()]
    assert line.pop("at").endswith("+00:00")
    owner = this_process()._asdict()
    assert (owner["pid"], owner["host"]) == (os.getpid(), platform.node())
    assert line == {"op": "reserve", "id": reservation, "usd": 0.5, **owner, **OWNER, "attempt": 3}


def test_what_is_billed_beyond_a_reservation_is_booked_in_full_and_leaves_no_room_for_another(path: Path) -> None:
    ledger = Ledger(path, 10.0)
    over, held = reserved(ledger, 4.0), reserved(ledger, 4.0)
    ledger.settle(over, **usage(7.0))
    assert sums(Ledger(path, 10.0).totals()) == (7.0, 0.0, 4.0)
    assert ledger.totals().committed == 11.0
    for later in (ledger, Ledger(path, 10.0)):
        assert later.reserve(0.001, **OWNER) is None
        assert not later.extend(held, 0.001)
    ledger.settle(held, **usage(1.0))
    assert ledger.reserve(2.5, **OWNER) is None
    assert ledger.reserve(2.0, **OWNER) is not None


def test_looking_takes_no_memory_for_what_is_over(path: Path) -> None:
    """The sums of a long ledger, and what a run's summary asks, are read line by line."""
    ledger = Ledger(path, 1e9)
    ledger.settle(reserved(ledger, 1.0), **usage(0.5))
    pair = path.read_text()
    key = json.loads(pair.splitlines()[0])["id"]
    with path.open("a") as file:
        file.writelines(pair.replace(key, f"{number:032x}") for number in range(5000))
    tracemalloc.start()
    try:
        assert Ledger(path, 1e9).totals().spent == 2500.5
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < path.stat().st_size / 10


def test_what_is_settled_takes_no_memory(path: Path) -> None:
    ledger = Ledger(path, 10.0)
    for _ in range(5):
        ledger.settle(reserved(ledger, 1.0), **usage(0.5))
    kept = reserved(ledger, 1.0)
    totals = ledger.totals()
    assert list(totals.open) == list(totals.owners) == list(totals.models) == [kept]
    assert totals.spent_by_model == {"m": 2.5}


def test_settling_what_was_never_reserved_or_is_settled_is_a_defect_that_shows_and_writes_nothing(path: Path) -> None:
    ledger = Ledger(path, 1.0)
    settled = reserved(ledger, 0.5)
    ledger.settle(settled, **usage(0.25))
    before = path.read_bytes()
    for reservation in ("unheard of", settled):
        with pytest.raises(KeyError):
            ledger.settle(reservation, **usage(0.1))
    assert path.read_bytes() == before
    assert sums(Ledger(path, 1.0).totals()) == (0.25, 0, 0)


def test_what_a_reservation_took_that_was_released_too_early_is_booked_all_the_same(path: Path) -> None:
    """Somebody released the money of a process that was alive: what it spends then is still spent."""
    ledger, other = Ledger(path, 10.0), Ledger(path, 10.0)
    reservation = reserved(ledger, 4.0)
    entry = {"op": "release", "id": reservation, "usd": 4.0, "pid": 1, "at": "now"}
    with path.open("a") as file:
        file.write(json.dumps(entry) + "\n")
    assert sums(other.totals()) == (0, 0, 0)
    assert not ledger.extend(reservation, 1.0), "it holds nothing that could be extended"
    ledger.settle(reservation, **usage(1.5, 0.5))
    assert sums(other.totals()) == (1.5, 0.5, 0)
    assert sums(Ledger(path, 10.0).totals()) == (1.5, 0.5, 0)
    with pytest.raises(KeyError):
        ledger.settle(reservation, **usage(1.5))


@pytest.mark.parametrize("line", [b"{}", b"[1]", b"not json", b'{"op":"settle","id":"x"}', b"\0\0\0", b""])
def test_a_damaged_line_is_named_by_its_number(path: Path, line: bytes) -> None:
    ledger = Ledger(path, 10.0)
    reserved(ledger, 1.0)
    with path.open("ab") as file:
        file.write(line + b"\n")
    for look in (ledger.totals, lambda: reserved(ledger, 1.0), lambda: reserved(Ledger(path, 1.0), 0.5)):
        with pytest.raises(StoreError, match=r"ledger\.jsonl: line 2 is no entry of a ledger"):
            look()


def test_a_ledger_that_was_cut_while_it_is_in_use_is_refused(path: Path) -> None:
    ledger = Ledger(path, 10.0)
    reserved(ledger, 1.0)
    reserved(ledger, 2.0)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(StoreError, match="was cut or replaced while it was in use"):
        reserved(ledger, 1.0)


@pytest.mark.parametrize("gone", ["removed", "replaced by an older copy"])
def test_a_ledger_that_was_taken_away_while_it_is_in_use_is_refused(path: Path, gone: str) -> None:
    ledger = Ledger(path, 10.0)
    reserved(ledger, 1.0)
    older = path.read_bytes()
    reserved(ledger, 2.0)
    path.unlink()
    if gone != "removed":
        path.write_bytes(older)
    with pytest.raises(StoreError, match="was cut or replaced while it was in use"):
        reserved(ledger, 1.0)


def test_a_ledger_that_was_restored_from_a_copy_of_its_own_is_gone_on_with(path: Path) -> None:
    ledger = Ledger(path, 4.0)
    reserved(ledger, 3.0)
    copy = path.read_bytes()
    path.unlink()
    path.write_bytes(copy)
    assert ledger.reserve(2.0, model="m", cell="c", episode="e", attempt=1) is None
    reserved(ledger, 1.0)
    assert sums(Ledger(path, 4.0).totals()) == (0, 0, 4.0), "the new line stands in the file that lies there"


def test_threads_that_share_a_ledger_stay_under_the_cap(path: Path) -> None:
    ledger = Ledger(path, 10.0)

    def reserving(number: int) -> int:
        held = [ledger.reserve(0.5, model="m", cell="c", episode=f"{number}-{n}", attempt=1) for n in range(5)]
        return sum(reservation is not None for reservation in held)

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(reserving, range(8))) == 20
    assert sums(Ledger(path, 10.0).totals()) == (0, 0, 10.0)


def reserve_in_a_fork(ledger: Ledger, usd: float) -> int:
    """The pid of a child that reserves through the very object, and ends with 0 if it could."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)  # one that waits for a lock which nobody will free must not outlive the test
        held = ledger.reserve(usd, model="m", cell="c", episode="forked", attempt=1)
        os._exit(0 if held is not None else 1)
    return pid


def test_a_forked_process_is_held_off_by_its_parents_lock_and_does_not_free_it(path: Path) -> None:
    ledger = Ledger(path, 10.0)
    reserved(ledger, 1.0)
    with ledger._lines.locked():
        child = reserve_in_a_fork(ledger, 2.0)
        time.sleep(0.5)
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "it waits for the lock"
        assert len(path.read_bytes().splitlines()) == 1
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert sums(ledger.totals()) == (0, 0, 3.0)


class FullAfter(io.FileIO):
    """A file on a disk that has room for so many more bytes."""

    room = 0

    def write(self, data: Any) -> int:
        taken = bytes(data)[: self.room]
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        type(self).room -= len(taken)
        return super().write(taken)


def test_a_disk_that_fills_up_within_a_line_takes_all_reservations_of_a_conversation_or_none(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = io.open

    def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if mode == "ab+":
            return FullAfter(file, "a+")
        return plain(file, mode, *arguments, **options)

    monkeypatch.setattr(io, "open", opened)
    monkeypatch.setattr(FullAfter, "room", 10**6)
    ledger = Ledger(path, 10.0)
    reserved(ledger, 1.0)
    before = path.read_bytes()
    for room in range(0, 600, 23):
        monkeypatch.setattr(FullAfter, "room", room)
        with pytest.raises(StoreError, match="no space left on the device"):
            ledger.reserve_all(1.0, model="m", cell="c", attempts={"a": 1, "b": 1, "c": 1})
        assert path.read_bytes() == before, "nor is the room used that is still left"
    monkeypatch.setattr(FullAfter, "room", 10**6)
    assert ledger.reserve_all(3.0, model="m", cell="c", attempts={"a": 1, "b": 1, "c": 1}) is not None
    assert sums(ledger.totals()) == sums(Ledger(path, 1.0).totals()) == (0, 0, 10.0)


class TestFlushing:
    @pytest.fixture
    def flushed(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What was flushed to the disk: `file` or `folder`, in order."""
        done: list[str] = []
        fsync = os.fsync

        def counted(descriptor: int) -> None:
            done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", counted)
        return done

    def test_a_reservation_is_on_the_disk_when_it_is_given_and_so_is_a_new_file(
        self, path: Path, flushed: list[str]
    ) -> None:
        ledger = Ledger(path, 10.0)
        reserved(ledger, 1.0)
        assert flushed == ["file", "folder"]
        reserved(ledger, 1.0)
        assert flushed == ["file", "folder", "file"]
        ledger.reserve_all(1.0, model="m", cell="c", attempts={"a": 1, "b": 1})
        assert flushed[3:] == ["file"], "one for a conversation"

    def test_a_settlement_is_on_the_disk_after_the_next_flush_or_the_next_reservation(
        self, path: Path, flushed: list[str]
    ) -> None:
        ledger = Ledger(path, 10.0)
        first, second = reserved(ledger, 1.0), reserved(ledger, 1.0)
        flushed.clear()
        ledger.settle(first, **usage(0.5))
        assert flushed == []
        ledger.flush()
        assert flushed == ["file"]
        ledger.flush()
        assert flushed == ["file"], "nothing new"
        ledger.settle(second, **usage(0.5))
        reserved(ledger, 1.0)
        ledger.flush()
        assert flushed == ["file", "file"], "the reservation took the settlement along"


def test_a_torn_reservation_never_happened(path: Path) -> None:
    ledger = Ledger(path, 10.0)
    reserved(ledger, 2.0)
    whole = path.read_bytes()
    reserved(ledger, 3.0)
    torn = path.read_bytes().removeprefix(whole)
    for cut in range(1, len(torn)):
        path.write_bytes(whole + torn[:cut])
        assert sums(Ledger(path, 10.0).totals()) == (0, 0, 2.0)
        assert path.read_bytes() == whole + torn[:cut], "looking changes nothing"
        added = reserved(Ledger(path, 10.0), 1.0)
        assert sums(Ledger(path, 10.0).totals()) == (0, 0, 3.0)
        assert path.read_bytes().startswith(whole + b"{")
        assert added in path.read_text(encoding="ascii")


def test_a_torn_settlement_leaves_the_reservation_booked(path: Path) -> None:
    ledger = Ledger(path, 10.0)
    reservation = reserved(ledger, 4.0)
    ledger.settle(reservation, **usage(1.0))
    path.write_bytes(path.read_bytes()[:-2])
    assert sums(Ledger(path, 10.0).totals()) == (0, 0, 4.0)


def test_another_ledgers_torn_tail_does_not_confuse_one_that_is_open(path: Path) -> None:
    mine, other = Ledger(path, 10.0), Ledger(path, 10.0)
    reserved(mine, 1.0)
    with path.open("ab") as file:
        file.write(b'{"op":"reserve","id":"x","usd":5')
    reserved(other, 2.0)
    assert sums(mine.totals()) == sums(other.totals()) == (0, 0, 3.0)


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"ledger\.jsonl|file"):
        Ledger(tmp_path / "file" / "ledger.jsonl", 1.0).reserve(0.1, **OWNER)


RESERVE = """
import sys, time
from pathlib import Path
from flows.episodes.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]), 10.0)
print(ledger.reserve(4.0, model="m", cell="c", episode="e", attempt=1), flush=True)
time.sleep(60)
"""


def test_a_killed_processs_reservation_stays_booked_shows_and_can_be_released(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", RESERVE, str(path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        reservation = other.stdout.readline().strip()
        ledger = Ledger(path, 10.0)
        assert ledger.totals().abandoned() == {}, "its process lives"
        assert ledger.release_abandoned() == {}
        other.send_signal(signal.SIGKILL)
    assert ledger.totals().abandoned() == {reservation: 4.0}
    assert ledger.reserve(7.0, **OWNER) is None, "it may have been spent"
    mine = reserved(ledger, 1.0)
    assert ledger.release_abandoned() == {reservation: 4.0}
    assert ledger.totals().open == {mine: 1.0}
    released = json.loads(path.read_text().splitlines()[-1])
    assert (released["op"], released["id"], released["usd"]) == ("release", reservation, 4.0)
    assert Ledger(path, 10.0).reserve(7.0, **OWNER) is not None


WORK = """
import random, sys
from pathlib import Path
from flows.episodes.ledger import Ledger
path, seed = Path(sys.argv[1]), int(sys.argv[2])
rng, ledger, held = random.Random(seed), Ledger(path, 20.0), {}
print("ready", flush=True)
sys.stdin.readline()
for _ in range(150):
    step = rng.random()
    if step < 0.5 or not held:
        usd = rng.randrange(1, 64) / 16
        key = ledger.reserve(usd, model=f"m{seed}", cell="c", episode="e", attempt=1)
        if key is not None:
            held[key] = usd
    elif step < 0.7:
        key = rng.choice(sorted(held))
        if ledger.extend(key, 0.25):
            held[key] += 0.25
    else:
        usd = held.pop(key := rng.choice(sorted(held)))
        spent = rng.randrange(0, 3) / 256
        ledger.settle(key, spent_usd=min(spent, usd), unknown_usd=0.0, tokens_in=0, tokens_out=0)
totals = ledger.totals()
print(len(held), sum(held.values()), totals.spent_by_model[f"m{seed}"])
"""


@pytest.mark.slow
def test_processes_side_by_side_stay_under_the_cap_after_every_line_and_agree_on_the_sums(path: Path) -> None:
    seeds = range(4)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORK, str(path), str(seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for seed in seeds
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    open_by_id: dict[str, Fraction] = {}
    spent = Fraction(0)
    for line in lines:
        if line["op"] == "settle":
            open_by_id.pop(line["id"])
            spent += Fraction(line["spent_usd"])
        else:
            open_by_id[line["id"]] = open_by_id.get(line["id"], Fraction(0)) + Fraction(line["usd"])
        assert spent + sum(open_by_id.values()) <= 20
    assert len({line["pid"] for line in lines if line["op"] == "reserve"}) == 4
    totals = Ledger(path, 20.0).totals()
    assert totals.spent == spent
    assert totals.open == {key: float(usd) for key, usd in open_by_id.items()}
    assert len(open_by_id) == sum(int(held) for held, _, _ in said)
    assert [totals.spent_by_model[f"m{seed}"] for seed in seeds] == [float(own) for _, _, own in said]


MICRO = st.integers(0, 4_000).map(lambda number: number / 1024)
"""Amounts that floats add up exactly."""
CAP = 10.0
WORKERS = st.integers(0, 2)
DEAD, ELSEWHERE = 2**22 + 1, "another-machine"


class Ledgers(RuleBasedStateMachine):
    """Three processes, each with a `Ledger` of its own on one file, against a plain account."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "ledger.jsonl"
        self._ledgers = [Ledger(self._path, CAP) for _ in range(3)]
        self._open: dict[str, float] = {}
        self._owner: dict[str, int] = {}
        self._dead: set[str] = set()
        self._away: set[str] = set()
        self._spent = self._unknown = self._overcharged = 0.0

    def teardown(self) -> None:
        self._folder.cleanup()

    @property
    def _committed(self) -> float:
        return self._spent + self._unknown + sum(self._open.values())

    @rule(target=held, which=WORKERS, usd=MICRO)
    def reserve(self, which: int, usd: float) -> Any:
        fits = self._committed + usd <= CAP
        reservation = self._ledgers[which].reserve(usd, **OWNER)
        assert (reservation is not None) == fits
        return multiple(*self._hold(which, [reservation] if reservation else [], usd))

    @rule(target=held, which=WORKERS, usd=MICRO, tasks=st.integers(1, 4))
    def reserve_all(self, which: int, usd: float, tasks: int) -> Any:
        fits = self._committed + tasks * usd <= CAP
        attempts = {f"e{number}": 1 for number in range(tasks)}
        reservations = self._ledgers[which].reserve_all(usd, model="m", cell="c", attempts=attempts)
        assert (reservations is not None) == fits, "all of them or none"
        return multiple(*self._hold(which, reservations or [], usd))

    def _hold(self, which: int, reservations: list[str], usd: float) -> list[str]:
        self._open |= dict.fromkeys(reservations, usd)
        self._owner |= dict.fromkeys(reservations, which)
        return reservations

    @rule(reservation=held, usd=MICRO)
    def extend(self, reservation: str, usd: float) -> None:
        fits = reservation in self._open and self._committed + usd <= CAP
        if reservation in self._open or reservation in self._dead | self._away:
            assert self._ledgers[self._owner[reservation]].extend(reservation, usd) == fits
        if fits:
            self._open[reservation] += usd

    @rule(reservation=consumes(held), which=WORKERS, spent=st.integers(0, 24), unknown=st.integers(0, 8))
    def settle(self, reservation: str, which: int, spent: int, unknown: int) -> None:
        """What is billed beyond a reservation is booked in full: no later reservation overlooks it."""
        if reservation not in self._open:
            return
        usd = self._open.pop(reservation)
        booked = usage(usd * spent / 16, usd * unknown / 16)
        self._ledgers[which].settle(reservation, **booked)
        self._spent += booked["spent_usd"]
        self._unknown += booked["unknown_usd"]
        self._overcharged += max(booked["spent_usd"] + booked["unknown_usd"] - usd, 0.0)

    @rule(which=WORKERS, away=st.booleans())
    def die(self, which: int, away: bool) -> None:
        """A process ends between two operations: from then on its reservations have an owner that is gone."""
        mine = {key for key in self._open if self._owner[key] == which} - self._dead - self._away
        whole = self._path.read_bytes().rpartition(b"\n")[0] if mine else b""
        lines = [json.loads(line) for line in whole.splitlines()]
        for line in lines:
            if line["op"] == "reserve" and line["id"] in mine:
                line |= {"host": ELSEWHERE} if away else {"pid": DEAD}
        if mine:
            self._path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            self._ledgers = [Ledger(self._path, CAP) for _ in range(3)]
        (self._away if away else self._dead).update(mine)

    @rule(which=WORKERS, of_others=st.booleans())
    def reconcile(self, which: int, of_others: bool) -> None:
        freed = {key for key in self._open if key in self._dead or (of_others and key in self._away)}
        released = self._ledgers[which].release_abandoned([ELSEWHERE] if of_others else [])
        assert released == {key: self._open.pop(key) for key in freed}

    @rule(which=WORKERS)
    def reopen(self, which: int) -> None:
        self._ledgers[which] = Ledger(self._path, CAP)

    @rule(tail=st.binary(max_size=40).filter(lambda tail: b"\n" not in tail))
    def tear(self, tail: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(tail)

    @invariant()
    def all_agree_and_stay_under_the_cap(self) -> None:
        for ledger in [*self._ledgers, Ledger(self._path, CAP)]:
            totals = ledger.totals()
            assert sums(totals) == (self._spent, self._unknown, sum(totals.open.values()))
            assert totals.open == self._open
            assert totals.committed <= CAP + self._overcharged
            assert totals.abandoned().keys() == self._dead & self._open.keys()
            assert totals.elsewhere().keys() == self._away & self._open.keys()
            assert totals.owners.keys() == totals.models.keys() - totals.released == self._open.keys()


Ledgers.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestLedgers = Ledgers.TestCase


@pytest.fixture
def long_ledger(path: Path) -> Ledger:
    ledger = Ledger(path, 1e9)
    for _ in range(300):
        ledger.settle(reserved(ledger, 1.0), **usage(0.25))
    return ledger


def test_an_operation_reads_only_what_is_new(long_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[Any] = []
    apply = Totals.apply

    def counted(self: Totals, entry: dict[str, Any]) -> None:
        applied.append(entry)
        apply(self, entry)

    monkeypatch.setattr(Totals, "apply", counted)
    other = Ledger(long_ledger.path, 1e9)
    assert other.totals().spent == 75.0
    assert len(applied) == 600
    reserved(other, 1.0)
    applied.clear()
    reserved(other, 1.0)
    assert len(applied) == 1
    reserved(long_ledger, 1.0)
    assert len(applied) == 4, "two of the other's and its own"
