"""The file tree under failure: full disks, kills, edits, two processes at once."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flows.errors import CellLocked, StoreError
from flows.files import append_lines, exclusive, storage, write_atomically
from flows.store import Store
from tests.flows.small_study import tree_bytes

ROOT = Path(__file__).parents[2]
RECORDS = [{"n": n, "text": "é\ud800\x00\n"} for n in range(50)]


def run_python(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )


SMALL_FILES_ONLY = (
    "import resource, signal, sys\n"
    "from pathlib import Path\n"
    "from flows.store import Store, append_lines, write_atomically\n"
    "from flows.errors import StoreError\n"
    "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
)
"""A process whose disk refuses every file beyond 1000 bytes."""


class TestStorageErrors:
    @pytest.mark.parametrize(
        ("number", "advice"),
        [
            (errno.ENOSPC, "no space left on the device; free some and run again, finished work is kept"),
            (errno.EDQUOT, "quota is used up"),
            (errno.EROFS, "read-only; choose a writable place"),
            (errno.EACCES, "make the study's root writable"),
            (errno.EIO, "Input/output error"),
        ],
    )
    def test_names_the_path_and_what_to_do(self, number: int, advice: str) -> None:
        with pytest.raises(StoreError) as caught, storage(Path("runs/x")):
            raise OSError(number, os.strerror(number))
        assert str(caught.value).startswith("runs/x: ")
        assert advice in str(caught.value)
        assert caught.value.exit_code == 1

    def test_names_the_file_that_the_system_named(self, tmp_path: Path) -> None:
        (tmp_path / "results").write_text("a file where a folder must be")
        with pytest.raises(StoreError, match=f"^{tmp_path}/results: File exists"):
            Store(tmp_path).append_rows([{"a": 1}])


class TestAtomicWrites:
    def test_replace_the_file_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "new folder" / "file"
        write_atomically(path, b"one")
        write_atomically(path, b"two")
        assert tree_bytes(path.parent) == {"file": b"two"}

    def test_leave_the_old_file_when_the_device_is_full(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        write_atomically(path, b"old")
        (tmp_path / f".file.{os.getpid()}.tmp").symlink_to("/dev/full")
        with pytest.raises(StoreError, match="no space left on the device"):
            write_atomically(path, b"new" * 100_000)
        assert tree_bytes(tmp_path) == {"file": b"old"}

    def test_leave_the_old_file_when_the_disk_refuses_in_the_middle(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        write_atomically(path, b"old")
        done = run_python(
            SMALL_FILES_ONLY + "try: write_atomically(Path(sys.argv[1]), b'x' * 5000)\n"
            "except StoreError as error: print(error)",
            path,
        )
        assert done.stdout == f"{path}: File too large\n"
        assert tree_bytes(tmp_path) == {"file": b"old"}


class TestSets:
    def test_round_trip_keeps_records_and_order(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        folder = store.instance_set("query-easy-base-0")
        assert not store.has_set(folder)
        store.write_set(folder, "instances.jsonl", RECORDS)
        assert store.has_set(folder)
        assert store.read_set(folder, "instances.jsonl") == RECORDS
        assert sorted(tree_bytes(tmp_path / "data" / "instances")) == [
            "query-easy-base-0/",
            "query-easy-base-0/_COMPLETE",
            "query-easy-base-0/instances.jsonl",
        ]

    def test_edited_set_is_refused_by_path(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        folder = store.instance_set("s")
        store.write_set(folder, "instances.jsonl", RECORDS)
        path = folder / "instances.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"n":3', b'"n":4'))
        with pytest.raises(StoreError, match="was edited after it was written") as caught:
            store.read_set(folder, "instances.jsonl")
        assert caught.value.path == path

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff"])
    def test_damaged_marker_is_refused_by_path(self, tmp_path: Path, content: bytes) -> None:
        store = Store(tmp_path)
        folder = store.instance_set("s")
        store.write_set(folder, "instances.jsonl", RECORDS)
        (folder / "_COMPLETE").write_bytes(content)
        with pytest.raises(StoreError, match="cut off or edited") as caught:
            store.read_set(folder, "instances.jsonl")
        assert caught.value.path == folder / "_COMPLETE"

    def test_missing_set_and_missing_file_are_refused_by_path(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        folder = store.instance_set("s")
        with pytest.raises(StoreError, match="run the stage that writes it"):
            store.read_set(folder, "instances.jsonl")
        store.write_set(folder, "instances.jsonl", RECORDS)
        (folder / "instances.jsonl").unlink()
        with pytest.raises(StoreError, match=r"instances\.jsonl: No such file"):
            store.read_set(folder, "instances.jsonl")

    def test_records_that_break_off_leave_nothing(self, tmp_path: Path) -> None:
        def records() -> Iterator[dict[str, int]]:
            yield {"n": 1}
            raise RuntimeError("generation failed")

        store = Store(tmp_path)
        with pytest.raises(RuntimeError, match="generation failed"):
            store.write_set(store.instance_set("s"), "instances.jsonl", records())
        assert tree_bytes(tmp_path / "data" / "instances") == {}

    @pytest.mark.parametrize("failing_flush", [1, 2])
    def test_disk_full_at_any_flush_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_flush: int
    ) -> None:
        flushes = 0

        def fsync(_descriptor: int) -> None:
            nonlocal flushes
            flushes += 1
            if flushes == failing_flush:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", fsync)
        store = Store(tmp_path)
        with pytest.raises(StoreError, match="no space left"):
            store.write_set(store.instance_set("s"), "instances.jsonl", RECORDS)
        assert flushes == failing_flush
        assert tree_bytes(tmp_path / "data" / "instances") == {}
        store.write_set(store.instance_set("s"), "instances.jsonl", RECORDS)
        assert store.read_set(store.instance_set("s"), "instances.jsonl") == RECORDS

    def test_disk_that_refuses_in_the_middle_leaves_nothing(self, tmp_path: Path) -> None:
        done = run_python(
            SMALL_FILES_ONLY + "store = Store(Path(sys.argv[1]))\n"
            "try: store.write_set(store.instance_set('s'), 'instances.jsonl', [{'n': n} for n in range(1000)])\n"
            "except StoreError as error: print(error)",
            tmp_path,
        )
        assert "File too large" in done.stdout
        assert str(tmp_path / "data" / "instances" / "s") in done.stdout
        assert tree_bytes(tmp_path / "data" / "instances") == {}

    def test_file_where_a_folder_must_be_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "data").write_text("")
        store = Store(tmp_path)
        with pytest.raises(StoreError, match=f"^{tmp_path}/data"):
            store.write_set(store.instance_set("s"), "instances.jsonl", RECORDS)

    def test_killed_writer_leaves_a_set_that_is_not_complete_and_is_written_again(self, tmp_path: Path) -> None:
        done = run_python(
            "import os, signal, sys\nfrom pathlib import Path\nfrom flows.store import Store\n"
            "def records():\n    yield {'n': 1}\n    os.kill(os.getpid(), signal.SIGKILL)\n"
            "store = Store(Path(sys.argv[1]))\n"
            "store.write_set(store.instance_set('s'), 'instances.jsonl', records())\n",
            tmp_path,
        )
        assert done.returncode == -signal.SIGKILL
        store = Store(tmp_path)
        assert not store.has_set(store.instance_set("s"))
        store.write_set(store.instance_set("s"), "instances.jsonl", RECORDS)
        assert store.read_set(store.instance_set("s"), "instances.jsonl") == RECORDS

    def test_folder_without_its_marker_is_made_anew(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        folder = store.instance_set("s")
        folder.mkdir(parents=True)
        (folder / "instances.jsonl").write_text("half")
        assert not store.has_set(folder)
        store.write_set(folder, "instances.jsonl", RECORDS)
        assert store.read_set(folder, "instances.jsonl") == RECORDS

    def test_set_that_is_there_is_never_replaced(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        folder = store.instance_set("s")
        store.write_set(folder, "instances.jsonl", RECORDS)
        before = tree_bytes(tmp_path)
        store.write_set(folder, "instances.jsonl", RECORDS)
        assert tree_bytes(tmp_path) == before
        with pytest.raises(StoreError, match="exists with other content"):
            store.write_set(folder, "instances.jsonl", RECORDS[1:])
        assert tree_bytes(tmp_path) == before


class TestEpisodes:
    COMPLETE = {"sha256": "0", "outcome": "infra_error", "attempt": 1}  # noqa: RUF012

    def finished(self, store: Store, text: str = "first") -> Path:
        path = store.transcript("steady", "cell", "e1")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        store.mark_complete(path, self.COMPLETE)
        return path

    def test_transcript_without_its_marker_is_not_finished(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        path = store.transcript("steady", "cell", "e1")
        assert path == tmp_path / "runs" / "steady" / "cell" / "episodes" / "e1.jsonl"
        assert store.marker(path) is None
        path.parent.mkdir(parents=True)
        path.write_text("half")
        assert store.marker(path) is None
        store.mark_complete(path, self.COMPLETE)
        assert store.marker(path) == self.COMPLETE

    def test_marker_without_its_transcript_vouches_for_nothing(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        path = self.finished(store)
        path.unlink()
        assert store.marker(path) is None

    def test_whatever_an_episode_has_left_it_is_touched(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        assert store.touched("steady", "cell") == set()
        self.finished(store).unlink()
        store.transcript("steady", "cell", "e2").write_text("half")
        store.earlier_attempt(store.transcript("steady", "cell", "e3"), 1).write_text("first")
        assert store.touched("steady", "cell") >= {"e1", "e2", "e3"}
        assert "e4" not in store.touched("steady", "cell")
        assert store.touched("steady", "other") == set()

    @pytest.mark.parametrize("content", [b"", b"{", b"3", b'{"sha256":"0"}'])
    def test_damaged_marker_is_refused_by_path(self, tmp_path: Path, content: bytes) -> None:
        store = Store(tmp_path)
        path = self.finished(store)
        marker = path.with_name("e1._COMPLETE")
        marker.write_bytes(content)
        with pytest.raises(StoreError, match="cut off or edited") as caught:
            store.marker(path)
        assert caught.value.path == marker

    def test_finished_attempts_are_kept_under_their_numbers(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        for number in (1, 2, 3):
            path = self.finished(store, f"attempt {number}")
            assert store.earlier_attempts(path) == number - 1
            store.set_aside(path)
            assert store.earlier_attempts(path) == number
            assert store.marker(path) is None
        assert tree_bytes(path.parent) == {f"e1.attempt-{n}.jsonl": f"attempt {n}".encode() for n in (1, 2, 3)}

    def test_interrupted_attempt_is_dropped_and_not_counted(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        path = store.transcript("steady", "cell", "e1")
        path.parent.mkdir(parents=True)
        path.write_text("half")
        store.set_aside(path)
        assert store.earlier_attempts(path) == 0
        assert tree_bytes(path.parent) == {}

    def test_crash_between_the_two_steps_of_setting_aside_loses_no_attempt(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = Store(tmp_path)
        path = self.finished(store)

        def crash(_self: Path, missing_ok: bool = False) -> None:  # noqa: ARG001
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", crash)
            with pytest.raises(KeyboardInterrupt):
                store.set_aside(path)
        assert sorted(tree_bytes(path.parent)) == ["e1._COMPLETE", "e1.attempt-1.jsonl"]
        assert store.marker(path) is None, "the stale marker vouches for nothing"
        assert store.earlier_attempts(path) == 1
        store.set_aside(path)
        assert store.earlier_attempts(path) == 1
        assert tree_bytes(path.parent) == {"e1.attempt-1.jsonl": b"first"}

    def test_attempts_of_another_episode_are_not_counted(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        store.set_aside(self.finished(store))
        assert store.earlier_attempts(store.transcript("steady", "cell", "e2")) == 0


class TestJournal:
    def test_rows_come_back_in_the_order_of_writing(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        assert store.journal_rows() == []
        store.append_rows(RECORDS[:2])
        store.append_rows([])
        store.append_rows(RECORDS[2:])
        assert store.journal_rows() == RECORDS

    @pytest.mark.parametrize("torn", [b"{", b'{"n":51,"text":"' + b"x" * 10_000, b"\xff\x00"])
    def test_torn_tail_costs_one_row(self, tmp_path: Path, torn: bytes) -> None:
        store = Store(tmp_path)
        store.append_rows(RECORDS)
        with store.journal.open("ab") as file:
            file.write(torn)
        assert store.journal_rows() == RECORDS
        store.append_rows([{"n": 99}])
        assert store.journal_rows() == [*RECORDS, {"n": 99}]

    def test_every_cut_of_the_last_row_costs_that_row_alone(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        store.append_rows([{"n": 1}, {"n": 2, "text": "some text"}])
        whole = store.journal.read_bytes()
        first = whole.index(b"\n") + 1
        for length in range(first, len(whole)):
            store.journal.write_bytes(whole[:length])
            assert store.journal_rows() == [{"n": 1}]
            store.append_rows([{"n": 3}])
            assert store.journal_rows() == [{"n": 1}, {"n": 3}]

    def test_first_row_torn_leaves_an_empty_journal(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        store.results.mkdir()
        store.journal.write_bytes(b'{"n":' + b"1" * 9000)
        assert store.journal_rows() == []
        store.append_rows([{"n": 2}])
        assert store.journal.read_bytes() == b'{"n":2}\n'

    @pytest.mark.parametrize("line", [b"nonsense", b"[1]", b"\xff"])
    def test_whole_line_that_is_no_row_is_refused_by_number(self, tmp_path: Path, line: bytes) -> None:
        store = Store(tmp_path)
        store.append_rows(RECORDS[:1])
        with store.journal.open("ab") as file:
            file.write(line + b"\n")
        with pytest.raises(StoreError, match="line 2 is not a row; delete the file and score again") as caught:
            store.journal_rows()
        assert caught.value.path == store.journal

    def test_full_device_is_reported_and_whole_rows_are_kept(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        store.results.mkdir()
        store.journal.symlink_to("/dev/full")
        with pytest.raises(StoreError, match=r"scores\.jsonl: no space left on the device"):
            store.append_rows(RECORDS)

    def test_disk_that_refuses_in_the_middle_costs_only_what_did_not_fit(self, tmp_path: Path) -> None:
        done = run_python(
            SMALL_FILES_ONLY + "try: append_lines(Path(sys.argv[1]), [f'{{\"n\":{n}}}' for n in range(1000)])\n"
            "except StoreError as error: print(error)",
            tmp_path / "results" / "scores.jsonl",
        )
        assert "File too large" in done.stdout
        store = Store(tmp_path)
        kept = store.journal_rows()
        assert kept == [{"n": n} for n in range(len(kept))]
        store.append_rows([{"n": "after"}])
        assert store.journal_rows() == [*kept, {"n": "after"}]

    def test_no_lines_write_no_file(self, tmp_path: Path) -> None:
        append_lines(tmp_path / "folder" / "file", [])
        assert tree_bytes(tmp_path) == {}


@contextmanager
def another_process_holding(path: Path) -> Iterator[subprocess.Popen[str]]:
    program = (
        "import sys\nfrom pathlib import Path\nfrom flows.store import exclusive\n"
        "with exclusive(Path(sys.argv[1]), 'x'):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


class TestLocks:
    def test_second_process_is_refused_with_the_holders_pid(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        lock = tmp_path / "runs" / "steady" / "some-cell" / ".lock"
        with another_process_holding(lock) as holder:
            with pytest.raises(CellLocked) as caught, store.cell_lock("steady", "some-cell"):
                raise AssertionError("entered")
            assert f"process {holder.pid};" in str(caught.value)
            assert "cell some-cell of model steady" in str(caught.value)
            with store.cell_lock("steady", "another-cell"), store.cell_lock("other", "some-cell"):
                pass

    def test_kill_releases_the_lock(self, tmp_path: Path) -> None:
        lock = tmp_path / ".lock"
        with another_process_holding(lock) as holder:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            with exclusive(lock, "it"):
                assert lock.read_text() == str(os.getpid())

    def test_lock_is_free_after_an_error_inside(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError), exclusive(tmp_path / ".lock", "it"):
            raise RuntimeError
        with exclusive(tmp_path / ".lock", "it"):
            pass

    def test_one_process_cannot_hold_a_lock_twice(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        with (
            store.results_lock(),
            pytest.raises(CellLocked, match=f"results is being worked on by process {os.getpid()}"),
            store.results_lock(),
        ):
            raise AssertionError("entered")

    def test_lock_that_cannot_be_written_is_a_store_error(self, tmp_path: Path) -> None:
        (tmp_path / ".lock").symlink_to("/dev/full")
        with pytest.raises(StoreError), exclusive(tmp_path / ".lock", "it"):
            raise AssertionError("entered")


def test_identity_stays_and_dies_with_the_runs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = store.identity()
    assert Store(tmp_path).identity() == first
    (tmp_path / "runs" / ".identity").unlink()
    assert store.identity() != first


def test_disk_bytes_counts_every_file_of_the_three_trees(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.disk_bytes() == 0
    store.append_rows(RECORDS)
    store.write_set(store.instance_set("s"), "instances.jsonl", RECORDS)
    (tmp_path / "elsewhere").write_text("not counted")
    trees = (tree_bytes(tmp_path / name) for name in ("data", "results"))
    assert store.disk_bytes() == sum(len(data) for tree in trees for data in tree.values())


def test_files_are_ascii_json_lines(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append_rows(RECORDS)
    for line in store.journal.read_text(encoding="ascii").splitlines():
        json.loads(line)
