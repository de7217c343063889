"""An importer of another distribution takes part under its name; one that cannot is refused by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.flows.importers.conftest import Import, Refusal, written

SOURCE = '''
from flows.importers import Episode, Importer


class Lines(Importer):
    """`model task passed`, a line each."""

    name = "lines"
    reads = "lines of model, task and 1 or 0"
    patterns = ("*.txt",)

    def episodes(self, files, choices, note):
        for path in files:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                model, task, passed = line.split()
                yield Episode({"model": model, "instance_id": task, "passed": passed == "1"}, path, f"line {number}")
            note(f"{path.name} was read")


class Nameless(Importer):
    name = "other"
    reads = ""
    patterns = ("*.txt",)

    def episodes(self, files, choices, note):
        return iter(())


broken = 3
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed distributions; the module that the entry points name is in it."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "foreign_harness.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "foreign_harness", raising=False)
    return site


def distribution(site: Path, name: str, points: str) -> None:
    """A distribution that registers `points`."""
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text(f"[agent_bench_stability.importers]\n{points}\n", encoding="utf-8")


def test_an_installed_importer_takes_part(
    tmp_path: Path, install: Path, imported: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    distribution(install, "foreign", "lines = foreign_harness:Lines")
    written(tmp_path / "logs", "a t1 1\na t2 0\n", "one.txt")
    frame = imported("lines", tmp_path / "logs", "--set", "family=qa")
    assert frame["passed"].tolist() == [True, False]
    assert "import: note: one.txt was read" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("points", "name", "expected"),
    [
        ("table = foreign_harness:Lines", "table", "the name is taken; also claimed by distribution 'foreign 1.0'"),
        ("gone = foreign_harness:Absent", "gone", "cannot be loaded: AttributeError"),
        ("broken = foreign_harness:broken", "broken", "gives int, not a flows.importers Importer"),
        ("nameless = foreign_harness:Nameless", "nameless", "gives an importer called 'other'"),
        ("lines = foreign_harness:Lines", "line", "known: inspect, lines, lm-eval, table; did you mean 'lines'?"),
    ],
)
def test_one_that_cannot_take_part_is_named(
    tmp_path: Path, install: Path, refusal: Refusal, points: str, name: str, expected: str
) -> None:
    distribution(install, "foreign", points)
    assert expected in refusal(name, tmp_path)


def test_a_name_claimed_twice_is_refused(tmp_path: Path, install: Path, refusal: Refusal) -> None:
    distribution(install, "foreign", "lines = foreign_harness:Lines")
    distribution(install, "rival", "lines = foreign_harness:Lines")
    assert "the name is taken twice: by distribution 'foreign 1.0'" in refusal("lines", tmp_path)
