"""What the importers' tests share: the command run in this process, and what it wrote or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from flows.cli import main
from flows.results_file import read_results

Import = Callable[..., pd.DataFrame]
Refusal = Callable[..., str]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out" / "results.parquet"


@pytest.fixture
def imported(out: Path, capsys: pytest.CaptureFixture[str]) -> Import:
    """The rows that an import writes; what it prints is left to `capsys`, alone."""

    def run(*arguments: object) -> pd.DataFrame:
        capsys.readouterr()
        assert main(["import", *map(str, arguments), "--out", str(out)]) == 0
        return read_results(out)[0]

    return run


@pytest.fixture
def refusal(out: Path, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """The one paragraph that a refused import prints; exit code 2, and nothing is written or changed."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        before = out.read_bytes() if out.exists() else None
        assert main(["import", *map(str, arguments), "--out", str(out)]) == 2
        assert (out.read_bytes() if out.exists() else None) == before
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    return run


def written(folder: Path, text: str, name: str = "runs.csv", encoding: str = "utf-8") -> Path:
    """A source file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding, newline="")
    return path
