"""The ledger: what is reserved, settled or unknown never exceeds the cap, whoever works on it and whatever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from flows.episodes.ledger import Ledger, Totals
from flows.errors import StoreError

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
    assert line == {"op": "reserve", "id": reservation, "usd": 0.5, "pid": os.getpid(), **OWNER, "attempt": 3}


def test_settling_what_was_never_reserved_is_a_defect_that_shows(path: Path) -> None:
    ledger = Ledger(path, 1.0)
    with pytest.raises(KeyError):
        ledger.settle("unheard of", **usage(0.1))


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


class Ledgers(RuleBasedStateMachine):
    """Several `Ledger` objects on one file against a plain account."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "ledger.jsonl"
        self._ledgers = [Ledger(self._path, CAP) for _ in range(3)]
        self._open: dict[str, float] = {}
        self._spent = self._unknown = 0.0

    def teardown(self) -> None:
        self._folder.cleanup()

    @property
    def _committed(self) -> float:
        return self._spent + self._unknown + sum(self._open.values())

    @rule(target=held, which=st.integers(0, 2), usd=MICRO)
    def reserve(self, which: int, usd: float) -> Any:
        fits = self._committed + usd <= CAP
        reservation = self._ledgers[which].reserve(usd, **OWNER)
        assert (reservation is not None) == fits
        if reservation is None:
            return multiple()
        self._open[reservation] = usd
        return reservation

    @rule(reservation=held, which=st.integers(0, 2), usd=MICRO)
    def extend(self, reservation: str, which: int, usd: float) -> None:
        fits = self._committed + usd <= CAP
        assert self._ledgers[which].extend(reservation, usd) == fits
        if fits:
            self._open[reservation] += usd

    @rule(reservation=consumes(held), which=st.integers(0, 2), spent=st.integers(0, 8), unknown=st.integers(0, 8))
    def settle(self, reservation: str, which: int, spent: int, unknown: int) -> None:
        usd = self._open.pop(reservation)
        booked = usage(usd * spent / 16, usd * unknown / 16)
        self._ledgers[which].settle(reservation, **booked)
        self._spent += booked["spent_usd"]
        self._unknown += booked["unknown_usd"]

    @rule(which=st.integers(0, 2))
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
            assert totals.committed <= CAP


Ledgers.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
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
