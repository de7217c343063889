"""Whether the process behind a reservation lives: by more than its pid, and only where that can be seen."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows import owners
from flows.episodes.ledger import Ledger
from flows.owners import Owner, this_process

NOBODY = 2**22 + 1
"""Above every pid that Linux gives."""


@pytest.fixture(params=["proc", "ps"])
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Either way to ask the system; macOS has the second alone."""
    if request.param == "ps":
        monkeypatch.setattr(owners, "_BOOT", Path("/nonexistent"))
        monkeypatch.setattr(owners, "_born", owners._listed)
    elif not owners._BOOT.exists():
        pytest.skip("no /proc here")
    owners._owner.cache_clear()
    yield request.param
    owners._owner.cache_clear()


@pytest.mark.usefixtures("means")
class TestThisMachine:
    def test_this_process_lives_and_is_known_by_host_pid_and_birth(self) -> None:
        me = this_process()
        assert (me.pid, me.host) == (os.getpid(), platform.node())
        assert me.born
        assert me == this_process()
        assert not me.is_dead()
        assert not me.is_elsewhere()

    def test_process_that_ended_is_dead_also_before_its_parent_has_noticed(self) -> None:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
            owner = Owner(other.pid, platform.node(), owners._born(other.pid))
            assert owner.born
            assert not owner.is_dead()
            other.kill()
            os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
            assert owner.is_dead(), "a zombie"
        assert owner.is_dead()

    def test_pid_that_was_given_to_another_process_is_not_taken_for_alive(self) -> None:
        assert this_process()._replace(born="another moment").is_dead()

    def test_owner_of_an_earlier_version_is_known_by_its_pid_alone(self) -> None:
        assert not Owner(os.getpid()).is_dead()
        assert Owner(NOBODY).is_dead()


def test_process_of_another_machine_may_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "_born", lambda _pid: pytest.fail("asked about a pid of another machine"))
    owner = Owner(NOBODY, "another-machine", "some moment")
    assert owner.is_elsewhere()
    assert not owner.is_dead()


def test_a_system_that_does_not_tell_births_goes_by_pids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "_born", lambda _pid: None)
    assert not Owner(os.getpid(), platform.node(), "some moment").is_dead()
    assert Owner(NOBODY, platform.node(), "some moment").is_dead()


def test_a_forked_process_does_not_take_itself_for_its_parent() -> None:
    program = (
        "import os, sys\n"
        "from flows.owners import this_process\n"
        "parent = this_process()\n"
        "if os.fork() == 0:\n"
        "    os._exit(0 if this_process().pid == os.getpid() != parent.pid else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_money_held_on_another_machine_is_shown_and_freed_only_by_the_machines_name(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, 10.0)
    away = ledger.reserve(4.0, model="m", cell="c", episode="e", attempt=1)
    assert away is not None
    path.write_text(path.read_text().replace(f'"host":"{platform.node()}"', '"host":"another-machine"'))
    ledger = Ledger(path, 10.0)
    assert ledger.totals().abandoned() == {}
    assert ledger.totals().elsewhere() == {away: 4.0}
    assert ledger.release_abandoned() == {}
    assert ledger.release_abandoned(["a-third-machine"]) == {}
    assert ledger.reserve(7.0, model="m", cell="c", episode="e", attempt=1) is None
    assert ledger.release_abandoned(["another-machine"]) == {away: 4.0}
    assert ledger.totals().committed == 0
