"""What a submission's process is kept from, tried out from within; what the machine cannot do, the record says."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks_env.service.benchmark import LIBRARY, Limits, load_benchmark
from tasks_env.service.evaluator import working_folder
from tasks_env.service.processes import HARNESS, Confined, constructed_environment, executing

LIMITS = load_benchmark("BE-001").contract.limits


@pytest.fixture
def work() -> Iterator[Path]:
    with working_folder() as folder:
        (folder / "tree").mkdir()
        (folder / "private").mkdir()
        yield folder


def ran(work: Path, code: str, limits: Limits = LIMITS, seconds: float = 60) -> tuple[Confined, object]:
    """The process of `code`, ended, and what it left in `found`."""
    script = work / "tree" / "script.py"
    script.write_text(
        "import json, os, sys\nfound = None\n" + textwrap.dedent(code) + "\nprint('FOUND' + json.dumps(found))\n"
    )
    command = [sys.executable, "-I", "-S", str(script)]
    process = Confined(executing(command), work / "tree", work / "private", limits)
    process.wait(seconds)
    process.end()
    told = process.tail.partition("FOUND")[2]
    return process, json.loads(told) if told else None


def needing(process: Confined, part: str) -> None:
    if not getattr(process.reach, part):
        pytest.skip(f"this machine lacks {part}; evaluation.json says so")


def test_the_environment_is_made_from_nothing(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    _, found = ran(work, "found = dict(os.environ)")
    assert isinstance(found, dict)
    found.pop("LC_CTYPE", None)  # Python's own
    assert found == constructed_environment(work / "private")
    assert "sk-very-secret" not in json.dumps(found)


def test_the_answer_cannot_be_read(work: Path) -> None:
    key = next(LIBRARY.glob("tasks/BE-002-*/known-good/app/orders/service.py"))
    probe = f"""
        found = []
        for path in ({str(key)!r}, {str(LIBRARY / "benchmark.py")!r}, "/proc/self/environ", "/root", "/home"):
            try:
                found.append(len(os.listdir(path)) if os.path.isdir(path) else len(open(path).read()))
            except OSError:
                pass
    """
    process, found = ran(work, probe)
    needing(process, "files_isolated")
    assert found == []


def test_nothing_can_be_written_or_changed_but_the_private_folder(work: Path) -> None:
    target = work / "target.txt"
    target.write_text("as it was")
    before = target.stat()
    probe = f"""
        target, found = {str(target)!r}, []
        def tried(name, action):
            try:
                action()
                found.append(name)
            except OSError:
                pass
        tried("open", lambda: os.close(os.open(target, os.O_RDWR)))
        tried("chmod", lambda: os.chmod(target, 0o600))
        tried("utime", lambda: os.utime(target, (1, 1)))
        tried("rename", lambda: os.rename(target, target + ".moved"))
        tried("unlink", lambda: os.unlink(target))
        tried("create", lambda: open({str(work)!r} + "/new", "w"))
        tried("link", lambda: os.symlink("/etc", {str(work)!r} + "/link"))
        tried("tree", lambda: open({str(work / "tree")!r} + "/new.py", "w"))
        tried("private", lambda: open(os.environ["TMPDIR"] + "/mine", "w"))
    """
    process, found = ran(work, probe)
    needing(process, "files_isolated")
    assert found == ["private"]
    after = target.stat()
    assert (after.st_mode, after.st_mtime_ns, target.read_text()) == (before.st_mode, before.st_mtime_ns, "as it was")


def test_no_server_on_this_machine_can_be_reached(work: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        probe = f"""
            import socket
            try:
                socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), timeout=2)
                found = "reached"
            except OSError:
                found = "refused"
        """
        process, found = ran(work, probe)
    needing(process, "network_isolated")
    assert found == "refused"


def test_no_process_outside_can_be_seen_or_signalled(work: Path) -> None:
    probe = f"""
        try:
            os.kill({os.getpid()}, 0)
            found = "reached"
        except OSError:
            found = os.getpid() < 10
    """
    process, found = ran(work, probe)
    needing(process, "processes_isolated")
    assert found is True


def test_what_it_started_ends_with_it(work: Path) -> None:
    mark = f"left-behind-{os.getpid()}"
    probe = f"""
        import subprocess, time
        for _ in range(2):
            subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(300)", {mark!r}],
                             start_new_session=True, stdout=subprocess.DEVNULL)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.closerange(0, 3)
                time.sleep(300)
            os._exit(0)
    """
    process, _ = ran(work, probe)
    needing(process, "processes_isolated")
    deadline = time.monotonic() + 10
    while (left := _running(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def _running(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            content = path.read_bytes()
        except OSError:
            continue
        if mark.encode() in content and b"pytest" not in content:
            found.append(path.parent.name)
    return found


def test_too_many_processes_are_the_end_of_it(work: Path) -> None:
    probe = """
        import subprocess, time
        kept = [subprocess.Popen(["/bin/sleep", "60"]) for _ in range(30)]
        time.sleep(60)
    """
    process, found = ran(work, probe, LIMITS.model_copy(update={"processes": 10}), seconds=40)
    assert found is None
    assert process.exceeded == "it ran more than 10 processes" or process.poll() != 0


def test_too_much_output_is_the_end_of_it(work: Path) -> None:
    process, _ = ran(work, "while True:\n    print('x' * 10_000)")
    assert process.exceeded == "it printed more than 1000 kB"


@pytest.mark.parametrize(
    "more",
    ["os.mkdir(str(number))", "os.mkdir('d'); os.chdir('d')", "os.mkdir('d' * 99); os.chdir('d' * 99)"],
    ids=["many", "deep", "longer-than-paths"],
)
def test_too_many_folders_are_the_end_of_it_and_are_removed(more: str) -> None:
    """The walk that counts them must neither pass folders over nor fall over their depth."""
    with working_folder() as work:
        (work / "tree").mkdir()
        (work / "private").mkdir()
        probe = f"""
            import time
            os.chdir(os.environ["TMPDIR"])
            for number in range(2000):
                {more}
            time.sleep(60)
        """
        process, _ = ran(work, probe)
    assert process.exceeded is not None
    assert process.exceeded.startswith("it wrote more than 1000 files and folders")
    assert not work.exists()


def test_memory_and_file_size_are_bounded(work: Path) -> None:
    probe = """
        found = []
        try:
            hoard = [bytearray(2**26) for _ in range(100)]
        except MemoryError:
            found.append("memory")
        try:
            with open(os.environ["TMPDIR"] + "/big", "wb") as file:
                for _ in range(100):
                    file.write(bytes(2**20))
        except OSError:
            found.append("file")
    """
    _, found = ran(work, probe)
    if sys.platform == "linux":
        assert found == ["memory", "file"]


def test_a_machine_that_refuses_everything_is_recorded_as_such(work: Path) -> None:
    script = work / "tree" / "refused.py"
    script.write_text(
        "import ctypes, json, runpy, sys\n"
        "class Refusing:\n"
        "    def __getattr__(self, name):\n"
        "        return type('call', (), {'__call__': lambda self, *a: -1})()\n"
        "ctypes.CDLL = lambda *a, **k: Refusing()\n"
        f"runpy.run_path({str(HARNESS / 'confined.py')!r})['main'](json.loads(sys.argv[1]))\n"
    )
    reading, writing = os.pipe()
    limits = {"address_mb": 1024, "cpu_s": 60, "file_mb": 16, "processes": 32, "open_files": 64}
    config = {"command": [sys.executable, "-I", "-S", "-c", "pass"], "limits": limits, "status": writing}
    config |= {"read": [], "listed": [], "write": []}
    subprocess.run([sys.executable, "-I", str(script), json.dumps(config)], pass_fds=[writing], check=True)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = json.load(pipe)
    assert told == {"network_isolated": False, "processes_isolated": False, "files_isolated": False}
