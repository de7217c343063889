"""The command line: exit codes, refusals before any work, and no traceback for any mistake of a user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from flows.cli.commands import chosen_options
from flows.cli.parser import build_parser
from tests.flows.small_study import open_study, prepare, run_episodes, tree_bytes, write_manifest

ROOT = Path(__file__).parents[2]
COMMANDS = (
    *("generate", "perturb", "run", "score", "analyze", "study", "plan", "status"),
    *("ledger", "view", "replay", "verify", "calibration", "power", "import", "local"),
)
STAGES = COMMANDS[:5]
HEAVY = ("pandas", "numpy", "prefect", "pydantic", "aiohttp", "matplotlib", "scipy", "pyarrow", "tasks_env", "ruamel")


def python(program: str, *arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environ}
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def command(*arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    return python("import sys; from flows.cli import main; sys.exit(main(sys.argv[1:]))", *arguments, **environ)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What standard error says of a command that must be refused with exit code 2."""
    try:
        code: object = main([str(argument) for argument in arguments])
    except SystemExit as leaving:
        code = leaving.code
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


class TestHelp:
    @pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)], ids=lambda a: a[0] if a else "all")
    def test_imports_nothing_heavy(self, arguments: list[str]) -> None:
        done = python(
            "import sys\nfrom flows.cli import main\n"
            "try: main([*sys.argv[1:], '--help'])\n"
            "except SystemExit as leaving: print('code', leaving.code)\n"
            f"print('heavy', [name for name in {HEAVY!r} if name in sys.modules])",
            *arguments,
        )
        assert done.stdout.endswith("code 0\nheavy []\n")
        assert done.stderr == ""
        assert "usage: agent-bench" in done.stdout

    def test_names_every_command_and_exit_code(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as leaving:
            main(["--help"])
        assert leaving.value.code == 0
        text = capsys.readouterr().out
        for name in COMMANDS:
            assert f"\n    {name} " in text
        for code in ("0 done", "1 failed", "2 refused", "3 halted", "130 interrupted"):
            assert code in " ".join(text.split())

    @pytest.mark.parametrize("name", [*STAGES, "status", "view", "replay"])
    def test_every_stage_takes_the_options_of_the_study(self, capsys: pytest.CaptureFixture[str], name: str) -> None:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        text = capsys.readouterr().out
        for option in ("--manifest", "--cell", "--model", "--seed", "--smoke", "--profile"):
            assert option in text


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ([], "the following arguments are required: COMMAND"),
            (["rnu"], "invalid choice: 'rnu'"),
            (["plan", "--sede", "3"], "unrecognized arguments"),
            (["plan", "--seed", "x"], "a seed is a whole number from 0 to 2^63 - 1, got 'x'"),
            (["plan", "--seed", "-1"], "a seed is a whole number from 0 to 2^63 - 1, got '-1'"),
            (["plan", "--seed", str(2**63)], "a seed is a whole number"),
            (["plan", "--seed", "9" * 5000], "a seed is a whole number"),
            (["plan", "--seed", "٣"], "a seed is a whole number"),
            (["plan", "--smoke", "--profile", "full"], "not allowed with argument"),
            (["run", "--profile", "full", "--smoke"], "not allowed with argument"),
            (["run", "--only", "completed"], "invalid choice: 'completed'"),
            (["score", "--only", "infra_error"], "unrecognized arguments"),
        ],
    )
    def test_mistakes_are_refused(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
    ) -> None:
        assert expected in refused(capsys, *arguments)

    def test_options_reach_the_study(self) -> None:
        parsed = build_parser().parse_args(
            ["run", "--manifest", "m.yaml", "--seed", "5", "--model", "a", "--cell", "b", "--profile", "p"]
        )
        assert chosen_options(parsed).model_dump() == {
            "manifest": "m.yaml",
            "profile": "p",
            "seed": 5,
            "model": "a",
            "cell": "b",
            "only": None,
        }
        assert chosen_options(build_parser().parse_args(["run", "--only", "infra_error"])).only == "infra_error"

    def test_smoke_is_the_smoke_profile(self) -> None:
        assert chosen_options(build_parser().parse_args(["score", "--smoke"])).profile == "smoke"
        assert chosen_options(build_parser().parse_args(["score"])).profile == "full"


class TestRefusals:
    """Exit code 2, one message, nothing written."""

    @pytest.mark.parametrize("name", [*STAGES, "study", "plan", "status", "ledger", "view", "replay", "verify"])
    def test_missing_manifest(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
        message = refused(capsys, name, "--manifest", tmp_path / "none.yaml")
        assert message == f"agent-bench: {tmp_path}/none.yaml: no such manifest; give its path with --manifest\n"
        assert tree_bytes(tmp_path) == {}

    @pytest.mark.parametrize("name", [*STAGES, "study", "plan", "status", "view", "replay"])
    @pytest.mark.parametrize(
        ("options", "changes", "expected"),
        [
            (["--cell", "query-easy-none-basline"], {}, "nearest: query-easy-none-baseline"),
            (["--model", "nobody"], {}, "no model 'nobody'; its models: steady"),
            (["--profile", "mor"], {}, "did you mean 'more'?"),
            (["--smoke"], {}, "no profile 'smoke'; known: full, more"),
            ([], {"grid/instances": "many"}, "grid.instances: expected a valid integer, got 'many'"),
            ([], {"families/query/easy/rows": 0}, "family 'query', parameter 'rows'"),
        ],
    )
    def test_mistakes_in_options_and_manifest(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        name: str,
        options: list[str],
        changes: dict[str, Any],
        expected: str,
    ) -> None:
        path = write_manifest(tmp_path, changes)
        before = tree_bytes(tmp_path)
        message = refused(capsys, name, "--manifest", path, *options)
        assert message.startswith("agent-bench: ")
        assert expected in message
        assert tree_bytes(tmp_path) == before

    def test_missing_key_refuses_before_any_episode_and_names_the_variable(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("SMALL_STUDY_KEY", raising=False)
        path = write_manifest(tmp_path, {"grid/models": ["served"]})
        before = tree_bytes(tmp_path)
        message = refused(capsys, "run", "--manifest", path, "--model", "served", "--cell", "query-easy-none-baseline")
        assert "model 'served': the environment variable SMALL_STUDY_KEY is not set" in message
        assert tree_bytes(tmp_path) == before
        assert "SMALL_STUDY_KEY" in refused(capsys, "study", "--manifest", path)
        assert tree_bytes(tmp_path) == before

    def test_model_that_is_not_named_yet_refuses(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = write_manifest(tmp_path, {"grid/models": ["cool"], "models/cool/model": None})
        before = tree_bytes(tmp_path)
        assert "models.cool.model" in refused(capsys, "run", "--manifest", path)
        assert tree_bytes(tmp_path) == before

    def test_bytes_that_are_no_text_are_a_mistake_like_any_other(self, tmp_path: Path) -> None:
        path = write_manifest(tmp_path)
        for arguments in (["--manifest", b"\xff.yaml"], ["--manifest", str(path), "--cell", b"\xff"]):
            done = subprocess.run(
                [
                    sys.executable,
                    "-c",
                    "import sys; from flows.cli import main; sys.exit(main(sys.argv[1:]))",
                    "plan",
                    *arguments,
                ],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                check=False,
            )
            assert done.returncode == 2
            assert done.stderr.startswith(b"agent-bench: ")
            assert b"Traceback" not in done.stderr

    def test_refusal_does_not_wait_for_prefect(self, tmp_path: Path) -> None:
        path = write_manifest(tmp_path)
        done = python(
            "import sys\nfrom flows.cli import main\n"
            "for words in (['plan'], ['run', '--model', 'nobody'], ['view']):\n"
            "    print('code', main([*words, '--manifest', sys.argv[1]]), 'prefect' in sys.modules)",
            path,
        )
        codes = [line for line in done.stdout.splitlines() if line.startswith("code")]
        assert codes == ["code 0 False", "code 2 False", "code 1 False"]


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a study that has been run."""
    folder = tmp_path_factory.mktemp("study")
    study = open_study(folder)
    prepare(study)
    run_episodes(study)
    return folder / "experiments.yaml"


class TestWork:
    def test_plan_prints_and_writes_nothing(self, manifest: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = tree_bytes(manifest.parent)
        assert main(["plan", "--manifest", str(manifest), "--cells", "--seed", "3"]) == 0
        text = capsys.readouterr().out
        assert text.startswith("study small, profile full, seed 3\n")
        assert "\ncells:\n" in text
        assert tree_bytes(manifest.parent) == before

    def test_view_lists_and_shows(self, manifest: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["view", "--manifest", str(manifest)]) == 0
        listing = capsys.readouterr().out
        episode = listing.splitlines()[1].split()[0]
        assert main(["view", episode, "--manifest", str(manifest)]) == 0
        assert capsys.readouterr().out.startswith(f"# Episode {episode}\n")
        assert "whose id begins with 'nothing'" in refused(capsys, "view", "nothing", "--manifest", manifest)

    def test_edited_set_is_a_failure_that_names_the_file(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        study = open_study(tmp_path)
        prepare(study)
        run_episodes(study)
        [path] = study.store.variant_set("query-easy-none-baseline", "*").parent.glob("*/variants.jsonl")
        path.write_bytes(path.read_bytes() + b"\n")
        assert main(["view", "--manifest", str(study.manifest_path)]) == 1
        captured = capsys.readouterr()
        assert captured.err.startswith(f"agent-bench: {path}: was edited after it was written")
        assert captured.out == ""

    def test_nothing_to_view_is_a_failure(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["view", "--manifest", str(write_manifest(tmp_path))]) == 1
        assert "run `agent-bench run` first" in capsys.readouterr().err

    def test_interrupt_is_130_and_says_that_work_is_kept(
        self, manifest: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_arguments: object, **_options: object) -> str:
            raise KeyboardInterrupt

        monkeypatch.setattr("flows.plan.plan_text", interrupted)
        assert main(["plan", "--manifest", str(manifest)]) == 130
        assert "finished work is kept" in capsys.readouterr().err

    @pytest.mark.parametrize("command", ["verify", "replay"])
    def test_interrupt_of_a_command_that_keeps_nothing_does_not_say_that_it_does(
        self, command: str, manifest: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_arguments: object, **_options: object) -> str:
            raise KeyboardInterrupt

        monkeypatch.setattr(f"flows.{command}.{command}", interrupted)
        assert main([command, "--manifest", str(manifest)]) == 130
        assert capsys.readouterr().err == "agent-bench: interrupted; the same command starts over\n"

    def test_reader_that_leaves_early_is_no_traceback(self, manifest: Path) -> None:
        program = "import sys; from flows.cli import main; sys.exit(main(sys.argv[1:]))"
        reading, writing = os.pipe()
        os.close(reading)
        try:
            done = subprocess.run(
                [sys.executable, "-c", program, "plan", "--manifest", str(manifest)],
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""},
                stdout=writing,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        finally:
            os.close(writing)
        assert done.returncode == 1
        assert done.stderr == ""

    def test_locale_without_the_characters_of_a_page_is_no_traceback(self, tmp_path: Path) -> None:
        path = write_manifest(tmp_path, {"expectation/source": "gesch\u00e4tzt"})
        done = command("plan", "--manifest", path, PYTHONIOENCODING="ascii")
        assert done.returncode == 0, done.stderr
        assert "(gesch\\xe4tzt)" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_line_and_exit_code_1(manifest: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "flows.cli", "plan", "--manifest", str(manifest)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "agent-bench: the output cannot be written: No space left on device\n"
