"""The Prefect server that a study brings along: where it may live, and that it dies with its study."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from flows.errors import StoreError
from flows.orchestration import serving
from flows.orchestration.server import ServerNotReady, wait_until_ready
from flows.orchestration.settings import API_URL
from tests.flows.orchestration.standing import clean_environment

STUDY = """
import sys, time
from pathlib import Path
from flows.orchestration import serving
environ = {}
with serving(Path(sys.argv[1]), environ) as server:
    server.wait()
    print(server.address, flush=True)
    time.sleep(120)
"""


def listens(address: str) -> bool:
    parts = urlsplit(address)
    with socket.socket() as probe:
        return probe.connect_ex((str(parts.hostname), int(parts.port or 0))) == 0


def test_root_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("a file where a folder must be")
    with pytest.raises(StoreError, match=r"root/\.prefect"), serving(tmp_path / "root", {}):
        pytest.fail("a server was started")


def test_root_without_room_for_the_database_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from flows.errors import StoreError\n"
        "from flows.orchestration import serving\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    with serving(Path(sys.argv[1]), {}):\n"
        "        print('started')\n"
        "except StoreError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith(f"{tmp_path / '.prefect'}: "), done.stdout + done.stderr
    assert list((tmp_path / ".prefect").iterdir()) == []


def test_a_server_that_the_user_named_is_used_and_nothing_is_written(tmp_path: Path) -> None:
    environ = {API_URL: "http://127.0.0.1:1/api"}
    with serving(tmp_path, environ) as server:
        server.wait()
        assert environ[API_URL] == "http://127.0.0.1:1/api"
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_ended_is_not_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"]) as process:
        process.wait()
    with pytest.raises(ServerNotReady, match="ended with code 7"):
        wait_until_ready("http://127.0.0.1:1", process, within_s=5)


def test_a_silent_server_is_given_up() -> None:
    with pytest.raises(ServerNotReady, match="did not answer within 0 s"):
        wait_until_ready("http://127.0.0.1:1", within_s=0.2)


@pytest.mark.slow
def test_two_servers_that_start_at_once_on_a_new_root_both_come_up_and_that_of_a_killed_study_ends(
    tmp_path: Path,
) -> None:
    """Both make the database: without taking turns one of them, or both, would fail at it."""
    command = [sys.executable, "-c", STUDY, str(tmp_path)]
    with (
        serving(tmp_path, clean_environment()) as own,
        subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, text=True) as study,
    ):
        assert study.stdout is not None
        address = study.stdout.readline().strip()
        own.wait()
        assert own.address is not None
        assert listens(address)
        study.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 60
        while listens(address) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not listens(address)
        assert listens(own.address)
