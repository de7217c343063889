"""The ledger as tables, and giving back what dead processes hold: nothing without being told to, nothing in silence."""

from __future__ import annotations

import io
import json
import os
import platform
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flows.bookkeeping import (
    ABANDONED,
    DISCARDED,
    ELSEWHERE,
    FAILED,
    INTERRUPTED,
    KEPT,
    RELEASED,
    RUNNING,
    fate_of,
    ledger_text,
    reconcile,
)
from flows.cli import main
from flows.console import Console
from flows.context import Study
from flows.episodes.books import read_books
from flows.episodes.ledger import Ledger
from flows.episodes.pricing import call_bound
from flows.errors import ConfigurationError
from flows.status import read_status, status_text
from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import http_entry, run_study
from tests.flows.episodes.support import open_study as open_tiny
from tests.flows.models.fault_server import Reply
from tests.flows.small_study import open_study, prepare, run_episodes, tree_bytes, write_manifest

ROOT = Path(__file__).parents[2]
DEAD_PID = 2**22 + 1
"""Beyond what Linux gives out."""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return open_study(tmp_path)


def reserve(study: Study, usd: float, *, dead: bool = False, host: str | None = None, **owner: Any) -> str:
    """A reservation, of a process that died if `dead`, of another machine if a `host` is named."""
    whose = {"model": "m", "cell": "c", "episode": "e", "attempt": 1, **owner}
    reservation = Ledger(study.store.ledger, 100.0).reserve(usd, **whose)
    assert reservation is not None
    if dead or host:
        lines = [json.loads(line) for line in study.store.ledger.read_text().splitlines()]
        lines[-1] |= {"pid": DEAD_PID} if dead else {"host": host}
        study.store.ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return reservation


def settle(study: Study, reservation: str, spent: float, unknown: float = 0.0, **tokens: int | None) -> None:
    counts: dict[str, Any] = {"tokens_in": 10, "tokens_out": 5, "tokens_cached": 4, "tokens_reasoning": 2, **tokens}
    Ledger(study.store.ledger, 100.0).settle(reservation, spent_usd=spent, unknown_usd=unknown, **counts)


def table(text: str, title: str) -> dict[str, list[str]]:
    """A table of the page: the first cell of each row → the others."""
    lines = iter(text.splitlines())
    rows = {}
    for line in lines:
        if line.strip().startswith(f"{title}  "):
            width = line.index("  attempts")
            for row in lines:
                if not row.strip():
                    break
                cut = min(width, len(row))
                name, rest = row[:cut].strip(), row[cut:]
                rows[name] = rest.split()
            return rows
    raise AssertionError(f"no table {title!r} in\n{text}")


def reconciled(study: Study, *hosts: str, yes: bool = False, answer: str | None = None) -> str:
    out = io.StringIO()
    reconcile(study, Console(out), None if answer is None else lambda _question: answer, yes=yes, hosts=hosts)
    return out.getvalue()


# --- the tables ---------------------------------------------------------------------------------------------------


def test_an_empty_ledger_is_said_to_be_empty_and_not_made(study: Study) -> None:
    assert "0 attempts at 0 episodes" in ledger_text(study)
    assert "free 100.00" in ledger_text(study)
    assert not study.store.ledger.exists()


def test_every_attempt_is_counted_by_model_cell_and_number(study: Study) -> None:
    settle(study, reserve(study, 9.0, attempt=1), 1.0, 0.5)
    settle(study, reserve(study, 9.0, attempt=2), 2.0)
    settle(study, reserve(study, 9.0, model="n", cell="d", episode="f"), 4.0, tokens_in=None)
    settle(study, reserve(study, 9.0, model="n", cell="d", episode="g", attempt=10), 8.0)
    text = ledger_text(study)
    assert "4 attempts at 3 episodes" in text
    assert "spent 15.0000, unknown 0.5000, reserved 0.0000 (of these abandoned 0.0000)" in text
    assert "15.5000 of the cap of 100.00, free 84.5000" in text
    assert table(text, "model")["m"] == ["2", "3.0000", "0.5000", "0.0000", "0.0000", "20", "8", "10", "4"]
    assert table(text, "model")["n"] == ["2", "12.0000", "0.0000", "0.0000", "0.0000", "10+", "8", "10", "4"]
    assert list(table(text, "model and cell")) == ["m c", "n d"]
    assert [(name, row[1]) for name, row in table(text, "attempt").items()] == [
        ("1", "5.0000"),
        ("2", "2.0000"),
        ("10", "8.0000"),
    ]


def test_what_is_held_shows_as_reserved_and_what_dead_processes_hold_as_abandoned(study: Study) -> None:
    reserve(study, 3.0)
    reserve(study, 4.0, dead=True)
    text = ledger_text(study)
    assert "reserved 7.0000 (of these abandoned 4.0000)" in text
    assert table(text, "model")["m"][:5] == ["2", "0.0000", "0.0000", "7.0000", "4.0000"]


def test_lines_of_earlier_versions_are_read_and_their_missing_counts_are_unknown(study: Study) -> None:
    settle(study, reserve(study, 3.0), 1.0)
    lines = [json.loads(line) for line in study.store.ledger.read_text().splitlines()]
    for name in ("tokens_cached", "tokens_reasoning"):
        del lines[-1][name]
    study.store.ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = ledger_text(study)
    assert table(text, "model")["m"][5:] == ["10", "0+", "5", "0+"]
    assert "of an earlier version's ledger, come on top" in text


def test_each_attempt_says_what_became_of_it(tmp_path: Path) -> None:
    server = AnsweringServer()
    with server.running():
        study = open_tiny(
            tmp_path,
            {"model": http_entry("openai", server.url, limits={"concurrent_episodes": 1})},
            instances=2,
            retry={"http_attempts": 1, "episode_attempts": 2},
        )
        submit = Reply(body=said("openai", Turn(calls=(("submit", {"answer": "4"}),))))
        lost, refused = Reply(502, {"error": {"message": "lost"}}), Reply(401, {"error": {"message": "bad key"}})
        server.script(submit, lost, submit, lost, lost, refused)
        ran = run_study(study)
    books = read_books(study.store.ledger)
    fates = fate_of(study, books)
    by_episode: dict[str, list[str]] = {}
    for each in books.bookings:
        by_episode.setdefault(each.episode, []).append(fates[each.reservation])
    assert sorted(by_episode.values()) == sorted([[KEPT], [KEPT], [DISCARDED, FAILED], [DISCARDED, INTERRUPTED]])
    bound = call_bound(study.manifest.models["model"].pricing, study.manifest.scaffold)
    text = ledger_text(study)
    rows = table(text, "what became of it")
    assert rows[DISCARDED][:3] == ["2", "0.0000", f"{2 * bound:.4f}"], "what was thrown away is booked"
    assert rows[KEPT][5:] == ["2000", "1600", "200", "0"], "cached tokens are counted"
    end = next(ran.events(i)[-1] for i in range(4) if (ran.marker(i) or {}).get("outcome") == "completed")
    assert float(rows[KEPT][1]) == pytest.approx(2 * end["cost_usd"], abs=5e-5)


def test_sums_are_those_of_the_transcripts_of_a_scripted_run(study: Study) -> None:
    prepare(study)
    run_episodes(study)
    ends = [
        json.loads(study.transcript(episode).read_bytes().splitlines()[-1])
        for model, cell in study.work
        for episode in study.episodes(model, cell)
    ]
    row = table(ledger_text(study), "model")["steady"]
    assert float(row[1]) == pytest.approx(sum(end["cost_usd"] for end in ends), abs=5e-5)
    names = ("tokens_in", "tokens_cached", "tokens_out", "tokens_reasoning")
    assert row[5:] == [str(sum(end[name] for end in ends)) for name in names]
    assert table(ledger_text(study), "what became of it")[KEPT][0] == "14"


def test_looking_writes_nothing(study: Study) -> None:
    reserve(study, 3.0, dead=True)
    before = tree_bytes(study.store.root)
    ledger_text(study)
    assert tree_bytes(study.store.root) == before


def test_a_run_that_ended_at_the_cap_shows_until_there_is_room_again(study: Study) -> None:
    ledger = Ledger(study.store.ledger, 100.0)
    settle(study, reserve(study, 95.0), 94.0)
    assert "CAP REACHED" not in ledger_text(study)
    ledger.note_cap("steady", 7.5)
    text = ledger_text(study)
    assert "CAP REACHED: at 2" in text
    assert "a run ended under a cap of 100.00 USD, since one more episode of steady may cost 7.5000" in text
    assert "1 attempts at 1 episodes" in text, "it is no attempt"
    assert "CAP REACHED" in status_text(study, read_status(study))
    raised = open_study(study.manifest_path.parent, {"budget/cap_usd": 102.0})
    assert "CAP REACHED" not in ledger_text(raised)
    assert "CAP REACHED" not in status_text(raised, read_status(raised))


def test_what_was_billed_over_the_cap_shows(study: Study) -> None:
    settle(study, reserve(study, 90.0), 100.0)
    assert "OVER THE CAP" not in ledger_text(study)
    settle(study, reserve(study, 0.0), 0.5)
    assert "OVER THE CAP: 100.5000 USD are spent, unknown or held, of 100.00" in ledger_text(study)
    assert "OVER THE CAP" in status_text(study, read_status(study))


# --- reconcile ----------------------------------------------------------------------------------------------------


def test_nothing_to_release_says_so(study: Study) -> None:
    reserve(study, 3.0)
    assert "nothing to release" in reconciled(study)
    assert Ledger(study.store.ledger, 1.0).totals().reserved == 3.0


def test_without_a_terminal_it_lists_and_refuses_until_told_yes(study: Study) -> None:
    reserve(study, 3.0, dead=True)
    with pytest.raises(ConfigurationError, match=r"nothing was released: there is no terminal.*repeat with --yes"):
        reconciled(study)
    assert Ledger(study.store.ledger, 1.0).totals().reserved == 3.0


@pytest.mark.parametrize("answer", ["", "n", "no", "yess", "ja"])
def test_any_other_answer_than_yes_releases_nothing(study: Study, answer: str) -> None:
    reserve(study, 3.0, dead=True)
    assert "nothing was released" in reconciled(study, answer=answer)
    assert Ledger(study.store.ledger, 1.0).totals().reserved == 3.0


@pytest.mark.parametrize(("yes", "answer"), [(True, None), (False, " Y "), (False, "yes")])
def test_releases_what_dead_processes_hold_and_nothing_else(study: Study, yes: bool, answer: str | None) -> None:
    free, dead, alive = (
        reserve(study, 0.0, dead=True, episode="free"),
        reserve(study, 3.0, dead=True, episode="dead"),
        reserve(study, 4.0, episode="alive"),
    )
    out = reconciled(study, yes=yes, answer=answer)
    assert f"3.0000 USD  m c dead attempt 1, process {DEAD_PID}, which died, since 2" in out
    assert "released 3.0000 USD of 2 attempts" in out
    assert "4.0000 of 100.00 USD are committed now" in out
    assert Ledger(study.store.ledger, 1.0).totals().open == {alive: 4.0}
    audit = [json.loads(line) for line in study.store.ledger.read_text().splitlines()][-2:]
    assert [(line["op"], line["id"], line["usd"], line["pid"]) for line in audit] == [
        ("release", free, 0.0, os.getpid()),
        ("release", dead, 3.0, os.getpid()),
    ]
    assert all(line["at"].endswith("+00:00") for line in audit)
    books = read_books(study.store.ledger)
    assert fate_of(study, books) == {free: RELEASED, dead: RELEASED, alive: RUNNING}
    assert "released 3.0000" in ledger_text(study)
    assert "nothing to release" in reconciled(study, yes=True)


def test_releases_only_what_was_listed(study: Study) -> None:
    listed = reserve(study, 3.0, dead=True)
    later = []

    def answer(_question: str) -> str:
        later.append(reserve(study, 4.0, dead=True, episode="later"))
        return "y"

    out = io.StringIO()
    reconcile(study, Console(out), answer, yes=False)
    totals = Ledger(study.store.ledger, 1.0).totals()
    assert totals.open == {later[0]: 4.0}
    assert fate_of(study, read_books(study.store.ledger)) == {listed: RELEASED, later[0]: ABANDONED}


def test_what_another_machine_holds_is_told_apart_and_is_no_dead_processs(study: Study) -> None:
    away, here = reserve(study, 3.0, host="big-one", episode="away"), reserve(study, 4.0, episode="here")
    since = json.loads(study.store.ledger.read_text().splitlines()[0])["at"]
    told = f"3.0000 USD of the reserved are held by another machine (big-one) for 1 episodes, the first since {since}"
    assert told in ledger_text(study)
    assert "`agent-bench ledger reconcile --host big-one` frees them" in ledger_text(study)
    assert fate_of(study, read_books(study.store.ledger)) == {away: ELSEWHERE, here: RUNNING}
    assert table(ledger_text(study), "what became of it")[ELSEWHERE][:4] == ["1", "0.0000", "0.0000", "3.0000"]
    out = reconciled(study, yes=True)
    assert told in out
    assert "nothing to release" in out
    assert Ledger(study.store.ledger, 1.0).totals().open == {away: 3.0, here: 4.0}


def test_what_another_machine_holds_is_freed_once_somebody_vouches_for_it(study: Study) -> None:
    first, second, third, dead, here = (
        reserve(study, 1.0, host="one", episode="first"),
        reserve(study, 2.0, host="two", episode="second"),
        reserve(study, 4.0, host="three", episode="third"),
        reserve(study, 8.0, dead=True, episode="dead"),
        reserve(study, 16.0, episode="here"),
    )
    listed = reconciled(study, "one", "two", answer="n")
    assert "1.0000 USD  m c first attempt 1, process" in listed
    assert f"process {os.getpid()} of one, since 2" in listed
    assert "You vouch that nothing on one, two works on this root any more" in listed
    assert Ledger(study.store.ledger, 1.0).totals().reserved == 31.0
    assert "released 11.0000 USD of 3 attempts" in reconciled(study, "one", "two", yes=True)
    assert Ledger(study.store.ledger, 1.0).totals().open == {third: 4.0, here: 16.0}
    audit = [json.loads(line) for line in study.store.ledger.read_text().splitlines()][-3:]
    assert {(line["op"], line["id"], line["usd"], line.get("host")) for line in audit} == {
        ("release", dead, 8.0, None),
        ("release", first, 1.0, "one"),
        ("release", second, 2.0, "two"),
    }
    assert fate_of(study, read_books(study.store.ledger))[first] == RELEASED


def test_nobody_vouches_for_this_machine_or_for_one_that_holds_nothing(study: Study) -> None:
    reserve(study, 3.0, host="big-one")
    reserve(study, 4.0, dead=True)
    with pytest.raises(ConfigurationError, match=f"--host {platform.node()} is this machine"):
        reconciled(study, platform.node(), yes=True)
    with pytest.raises(ConfigurationError, match=r"--host bigone: a machine of this name holds nothing.*are big-one"):
        reconciled(study, "big-one", "bigone", yes=True)
    assert Ledger(study.store.ledger, 1.0).totals().reserved == 7.0


# --- the command line ---------------------------------------------------------------------------------------------


def test_yes_alone_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["ledger", "--yes", "--manifest", str(write_manifest(tmp_path))])
    assert leaving.value.code == 2
    assert "--yes belongs to `ledger reconcile`" in capsys.readouterr().err


def test_a_host_alone_is_a_mistake_and_several_may_be_named(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = ["--manifest", str(study.manifest_path)]
    with pytest.raises(SystemExit) as leaving:
        main(["ledger", "--host", "one", *manifest])
    assert leaving.value.code == 2
    assert "--host belongs to `ledger reconcile`" in capsys.readouterr().err
    for host in ("one", "two"):
        reserve(study, 1.0, host=host)
    assert main(["ledger", "reconcile", "--yes", "--host", "one", "--host", "two", *manifest]) == 0
    assert "released 2.0000 USD of 2 attempts" in capsys.readouterr().out


def test_command_prints_the_tables_and_reconciles(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    reserve(study, 3.0, dead=True)
    manifest = ["--manifest", str(study.manifest_path)]
    assert main(["ledger", *manifest]) == 0
    assert table(capsys.readouterr().out, "what became of it")[ABANDONED][0] == "1"
    assert main(["ledger", "reconcile", "--yes", *manifest]) == 0
    assert "released 3.0000 USD" in capsys.readouterr().out


def test_asks_on_a_terminal_and_an_end_of_input_is_no_answer(study: Study) -> None:
    reserve(study, 3.0, dead=True)
    program = "import sys; from flows.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "ledger", "reconcile", "--manifest", str(study.manifest_path)]
    for typed, said_then, left in ((b"\x04", "nothing was released", 3.0), (b"y\n", "released 3.0000 USD", 0.0)):
        controller, terminal = pty.openpty()
        with subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=terminal, stdout=subprocess.PIPE, text=True
        ) as process:
            os.close(terminal)
            os.write(controller, typed)
            out, _ = process.communicate(timeout=60)
        os.close(controller)
        assert process.returncode == 0
        assert "Release all of them? [y/N]" in out
        assert said_then in out
        assert Ledger(study.store.ledger, 1.0).totals().reserved == left
