"""`agent-bench verify`: what it proves, what it prints, and when it fails."""

from __future__ import annotations

import io
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flows.verify
from flows.cli import main
from flows.errors import ConfigurationError, StudyError
from flows.manifest import Manifest, load_manifest
from flows.verify import Selection, report_lines, trials_of, verify
from tasks_env import FinalState, Instance, Verdict, VerifierInput
from tasks_env.families import Proposal, registered
from tasks_env.proofs import Proof, run_trial
from tasks_env.types import Condition
from tests.flows.small_study import tree_bytes, write_manifest
from tests.tasks_env.distributions import LEDGER, install
from tests.tasks_env.stranger import Ledger

ROOT = Path(__file__).parents[2]
EASY, HARD = {"accounts": 3, "entries": 12}, {"accounts": 4, "entries": 30}
CHANGES: dict[str, Any] = {
    "families": {"ledger": {"easy": EASY, "hard": HARD}},
    "grid/families": {"ledger": ["easy", "hard"]},
    "grid/axes": {"tool_names": ["opaque"], "order": ["shuffled"]},
    "models/steady/pass_rate": {"easy": 0.5, "hard": 0.4},
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Lax(Ledger):
    """Forgets whether the books were closed."""

    def verify(self, evidence: VerifierInput) -> Verdict:
        closed = evidence.final_state.model_copy(update={"submitted": True})
        return super().verify(evidence.model_copy(update={"final_state": closed}))


class Repetitive(Ledger):
    """Gives the right answer for a near miss, so many times."""

    near_miss_operators = (*Ledger.near_miss_operators, "nothing new")

    def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
        yield from super().near_misses(instance, right, rng)
        yield Proposal(operator="nothing new", state=right)


def manifest_with(ledger: Ledger, folder: Path, changes: dict[str, Any] | None = None) -> Manifest:
    with registered(ledger):
        return load_manifest(write_manifest(folder, {**CHANGES, **(changes or {})}))


def verified(ledger: Ledger, folder: Path, out: io.StringIO | None = None, instances: int = 4) -> tuple[bool, str]:
    """Whether it is proven, and what was printed."""
    manifest, printed = manifest_with(ledger, folder), out or io.StringIO()
    with registered(ledger):
        proven = verify(manifest, trials_of(manifest, Selection(), instances), workers=1, out=printed)
    return proven, printed.getvalue()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A manifest of a study over a family that a distribution registers."""
    monkeypatch.syspath_prepend(str(install(tmp_path / "site", LEDGER)))
    return write_manifest(tmp_path, CHANGES)


class TestSelection:
    def trials(self, tmp_path: Path, *names: str | None) -> list[str]:
        manifest = manifest_with(Ledger(), tmp_path)
        return [trial.name for trial in trials_of(manifest, Selection(*names), 2)]

    def test_whole_grid_by_default_the_baseline_included(self, tmp_path: Path) -> None:
        assert self.trials(tmp_path) == [
            f"ledger-{difficulty}-{cell}"
            for difficulty in ("easy", "hard")
            for cell in ("none-baseline", "tool_names-opaque", "order-shuffled")
        ]

    def test_one_family_difficulty_and_axis(self, tmp_path: Path) -> None:
        assert self.trials(tmp_path, "ledger", "hard", "none") == ["ledger-hard-none-baseline"]
        assert len(self.trials(tmp_path, None, "easy")) == 3

    @pytest.mark.parametrize(
        ("names", "problem"),
        [
            (("legder",), r"--family: .* no family 'legder'; known: ledger; did you mean 'ledger'\?"),
            ((None, "medium"), "--difficulty: .* no difficulty 'medium'; known: easy, hard"),
            ((None, None, "paraphrase"), "--axis: .* no axis 'paraphrase'; known: none, tool_names, order"),
        ],
    )
    def test_unknown_names_are_refused(self, tmp_path: Path, names: tuple[str | None, ...], problem: str) -> None:
        with pytest.raises(ConfigurationError, match=problem):
            self.trials(tmp_path, *names)

    def test_names_that_do_not_go_together_are_refused(self, tmp_path: Path) -> None:
        query = {"families/query": {"deep": {**QUERY}}, "grid/families": {"ledger": ["easy"], "query": ["deep"]}}
        manifest = manifest_with(Ledger(), tmp_path, {**query, "models/steady/pass_rate": {"easy": 0.5, "deep": 0.5}})
        with pytest.raises(ConfigurationError, match="family 'ledger' has no 'deep' in the grid"):
            trials_of(manifest, Selection("ledger", "deep"), 2)


QUERY = {
    "tables": 1,
    "rows": 8,
    "min_hops": 0,
    "max_hops": 0,
    "predicates": 1,
    "null_share": 0.0,
    "questions": ["count"],
}


class TestPrinted:
    def test_proven_study_ends_in_verify_ok(self, tmp_path: Path) -> None:
        proven, text = verified(Ledger(), tmp_path)
        lines = text.splitlines()
        assert proven
        assert lines[0] == "verify: study small, profile full, seed 7: 6 cells, 4 instances each"
        assert re.fullmatch(
            r"VERIFY OK: every verifier judged as it must; 6 cells, 24 variants, [0-9]+ proposals in [0-9.]+ s",
            lines[-1],
        )
        assert "equivalent to" not in text

    def test_table_has_a_row_for_every_operator_in_80_columns(self, tmp_path: Path) -> None:
        _, text = verified(Ledger(), tmp_path)
        assert max(map(len, text.splitlines()[1:-1])) <= 80
        rows = [
            [cell.strip() for cell in re.split("[│┃]", line)] for line in text.splitlines() if re.search("[│┃]", line)
        ]
        assert rows[0] == ["family", "proposal", "operator", "tried", "held", "equiv.", "rate"]
        assert [row[2] for row in rows[1:]] == [
            *("reference", "do nothing", "hand in the input", "one wrong step"),
            *Ledger.restatement_operators,
            *Ledger.near_miss_operators,
        ]
        assert ["ledger", "near miss", "a cent off", "24", "24", "0", "100%"] in rows
        assert ["ledger", "reference", "reference", "24", "24", "0", "100%"] in rows
        assert ["ledger", "no-op", "do nothing", "24", "24", "0", "100%"] in rows

    def test_what_was_judged_wrongly_is_printed_in_full(self, tmp_path: Path) -> None:
        proven, text = verified(Lax(), tmp_path)
        assert not proven
        broken = [line for line in text.splitlines() if "'never closed': ledger-" in line]
        assert len(broken) == 24
        assert all("verifier: passed; second opinion: wrong; state {" in line for line in broken)
        assert re.search(r"never closed +│ +24 │ +0 │ +0 │ +0%", text)
        assert text.splitlines()[-1].startswith("VERIFY FAILED: 24 judged wrongly, 0 not proven; 6 cells, ")

    def test_equivalents_are_listed_up_to_a_bound_and_counted(self, tmp_path: Path) -> None:
        proven, text = verified(Repetitive(), tmp_path)
        assert not proven
        assert "equivalent to the right answer, and so no evidence (24):" in text
        assert text.count("'nothing new': ledger-") == 20
        assert "  … and 4 more" in text
        assert "'nothing new': no evidence, each of 24 is equivalent" in text
        assert re.search(r"ledger: [0-9.]+% of the near misses are equivalent, not under 2%", text)
        assert re.search(r"nothing new +│ +24 │ +0 │ +24 │ +none", text)
        assert text.splitlines()[-1].startswith("VERIFY FAILED: 0 judged wrongly, 2 not proven;")

    def test_operator_that_was_never_tried_fails(self, tmp_path: Path) -> None:
        class Boastful(Ledger):
            near_miss_operators = (*Ledger.near_miss_operators, "never made")

        proven, text = verified(Boastful(), tmp_path)
        assert not proven
        assert "  ledger, near_miss 'never made': never tried; more instances are needed" in text
        assert "VERIFY FAILED: 0 judged wrongly, 1 not proven" in text.splitlines()[-1]

    def test_rate_is_never_rounded_up_to_100(self, tmp_path: Path) -> None:
        class Slipping(Ledger):
            """Passes one near miss of all."""

            slipped = False

            def verify(self, evidence: VerifierInput) -> Verdict:
                verdict = super().verify(evidence)
                if (
                    not Slipping.slipped
                    and not evidence.final_state.submitted
                    and evidence.final_state.data["balances"]
                ):
                    Slipping.slipped = True
                    return Verdict(passed=True, partial_score=1, conditions=(Condition(name="slip", holds=True),))
                return verdict

        proven, text = verified(Slipping(), tmp_path)
        assert not proven
        assert re.search(r"never closed +│ +24 │ +23 │ +0 │ 95.8%", text)

    def test_terminal_shows_a_bar_and_the_same_lines(self, tmp_path: Path) -> None:
        out = Terminal()
        proven, text = verified(Ledger(), tmp_path, out)
        assert proven
        assert "6/6" in text
        assert "VERIFY OK" in text

    def test_nothing_that_cannot_be_shown_is_passed_over(self, tmp_path: Path) -> None:
        class Barren(Ledger):
            def _draw(self, params: Any, rng: random.Random) -> None:  # noqa: ARG002
                return None

        with pytest.raises(StudyError, match="cell ledger-easy-none-baseline cannot be shown: GenerationError: ledger"):
            verified(Barren(), tmp_path)


def test_report_of_the_same_proof_is_the_same_but_for_seconds(tmp_path: Path) -> None:
    manifest = manifest_with(Ledger(), tmp_path)
    with registered(Ledger()):
        proofs = []
        for _ in range(2):
            proof = Proof(["ledger"])
            for trial in trials_of(manifest, Selection(), 3):
                proof.merge(run_trial(trial))
            proofs.append(proof)
    first, second = (report_lines(proof, 1.0) for proof in proofs)
    assert first == second


class TestCommand:
    def test_two_processes_prove_what_one_does(self, installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = tree_bytes(installed.parent)
        assert main(["verify", "--manifest", str(installed), "--instances", "3", "--difficulty", "easy"]) == 0
        several = capsys.readouterr().out
        manifest = load_manifest(installed)
        out = io.StringIO()
        assert verify(manifest, trials_of(manifest, Selection(difficulty="easy"), 3), workers=1, out=out)
        without_seconds = [re.sub(r"in [0-9.]+ s$", "", text) for text in (several, out.getvalue())]
        assert without_seconds[0] == without_seconds[1]
        assert several.splitlines()[-1].startswith("VERIFY OK")
        after = tree_bytes(installed.parent)
        assert {name for name in after if "__pycache__" not in name} == set(before)

    def test_seed_of_the_command_draws_other_instances(self, installed: Path) -> None:
        seeds = [load_manifest(installed, "full", seed) for seed in (None, 8)]
        first, second = (trials_of(manifest, Selection(), 2)[0] for manifest in seeds)
        assert (first.seed, second.seed) == (7, 8)

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (["--instances", "0"], "a whole number from 1 to 999999, got '0'"),
            (["--instances", "many"], "a whole number from 1 to 999999, got 'many'"),
            (["--family", "query"], "no family 'query'; known: ledger"),
            (["--smoke"], "no profile 'smoke'"),
        ],
    )
    def test_mistakes_are_refused(
        self, installed: Path, capsys: pytest.CaptureFixture[str], options: list[str], problem: str
    ) -> None:
        try:
            code: object = main(["verify", "--manifest", str(installed), *options])
        except SystemExit as leaving:
            code = leaving.code
        captured = capsys.readouterr()
        assert code == 2
        assert problem in captured.err
        assert captured.out == ""

    def test_failure_is_exit_code_1_and_imports_no_prefect(self, tmp_path: Path) -> None:
        site = install(tmp_path / "site", {"ledger": "tests.flows.test_verify:Lax"})
        path = write_manifest(tmp_path, CHANGES)
        program = (
            "import sys\nfrom flows.cli import main\n"
            "if __name__ == '__main__':\n"
            "    code = main(['verify', '--manifest', sys.argv[1], '--instances', '1', '--axis', 'none',"
            " '--difficulty', 'hard'])\n"
            "    print('code', code, 'prefect' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "code 1 False"
        assert "VERIFY FAILED: 1 judged wrongly" in done.stdout


def test_an_interrupt_in_the_terminal_leaves_no_traceback_of_a_worker(tmp_path: Path) -> None:
    """Ctrl-C reaches the whole process group, so also workers that are still importing."""
    path = write_manifest(tmp_path)
    program = (
        "import sys, threading, time, os, signal\n"
        "import flows.verify\n"
        "from flows.cli import main\n"
        "plain = flows.verify.ProcessPoolExecutor.map\n"
        "def interrupted(pool, *arguments):\n"
        "    results = plain(pool, *arguments)\n"
        "    threading.Timer(0.2, os.killpg, (os.getpgrp(), signal.SIGINT)).start()\n"
        "    return results\n"
        "flows.verify.ProcessPoolExecutor.map = interrupted\n"
        "if __name__ == '__main__':\n"
        "    sys.exit(main(['verify', '--manifest', sys.argv[1]]))\n"
    )
    script = tmp_path / "verify.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, str(script), str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        timeout=60,
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("agent-bench: interrupted")


def test_a_process_started_while_interrupts_are_held_back_never_sees_one() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    program = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    printed = []

    def interrupted() -> None:
        with flows.verify._interrupts_held_back():
            signal.raise_signal(signal.SIGINT)
            printed.append(subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True).stdout)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert printed == [b"True\n"]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
