"""What is the same for every format: levels, several files, one study out of several imports, and what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.importers import Episode
from flows.importers.rows import result_rows
from flows.results_file import read_results, write_results
from tests.flows.importers.conftest import Import, Refusal, written

HEADER = "model,instance_id,passed\n"


def runs(model: str, passed: str, header: str = "") -> str:
    """A row per instance: 1 passed, 0 did not."""
    return header + "".join(f"{model},t{number},{each}\n" for number, each in enumerate(passed))


def test_a_column_of_variants_becomes_levels_beside_the_baseline(tmp_path: Path, imported: Import) -> None:
    text = "model,instance_id,passed,prompt\na,t1,1,plain\na,t1,0,polite\na,t1,1,loud\n"
    path = written(tmp_path, text)
    frame = imported(
        "table", path, "--map", "level=prompt", "--set", "axis=paraphrase", "--baseline", "plain", "--benchmark", "qa"
    )
    assert dict(zip(frame["level"], frame["axis"], strict=True)) == {
        "baseline": "none",
        "loud": "paraphrase",
        "polite": "paraphrase",
    }
    assert set(frame["family"]) == {"qa"}


def test_imports_add_up_to_one_study(tmp_path: Path, imported: Import, out: Path) -> None:
    plain = written(tmp_path, runs("a", "1100", HEADER), "plain.csv")
    polite = written(tmp_path, runs("a", "1000", HEADER), "polite.csv")
    again = written(tmp_path, runs("a", "0000", HEADER), "again.csv")
    imported("table", plain)
    imported("table", polite, "--set", "axis=paraphrase", "--set", "level=polite", "--add")
    frame = imported("table", again, "--add")
    assert frame.groupby(["level", "run_seed"])["passed"].sum().to_dict() == {
        ("baseline", 1): 2,
        ("baseline", 2): 0,
        ("polite", 1): 1,
    }
    sources = read_results(out)[1]["imported"]
    assert [file["name"] for source in sources for file in source["files"]] == ["plain.csv", "polite.csv", "again.csv"]


def test_without_add_an_import_replaces_what_was_imported_before(tmp_path: Path, imported: Import) -> None:
    path = written(tmp_path, runs("a", "1100", HEADER))
    assert len(imported("table", path)) == len(imported("table", path)) == 4


def test_results_that_were_not_imported_are_never_replaced(tmp_path: Path, out: Path, refusal: Refusal) -> None:
    path = written(tmp_path, runs("a", "10", HEADER))
    rows, _ = result_rows([Episode({"model": "a", "instance_id": "1", "passed": True}, path, "line 1")], "own")
    out.parent.mkdir()
    write_results(out, rows, {"study": "own"})
    assert "holds results that were not imported" in refusal("table", path)


def test_what_cannot_be_added_is_refused(tmp_path: Path, imported: Import, refusal: Refusal) -> None:
    path = written(tmp_path, runs("a", "10", HEADER))
    other = written(tmp_path, runs("a", "11", HEADER), "other.csv")
    assert "there is nothing to add to" in refusal("table", path, "--add")
    imported("table", path)
    assert "is already in" in refusal("table", path, "--add")
    assert "holds the benchmark 'imported', these are of 'mine'" in refusal(
        "table", other, "--add", "--benchmark", "mine"
    )


def test_files_and_folders_are_one_study_and_no_file_counts_twice(tmp_path: Path, imported: Import) -> None:
    folder = tmp_path / "runs"
    first = written(folder, runs("a", "10", HEADER), "a.csv")
    written(folder / "deeper", runs("b", "11", HEADER), "b.csv")
    frame = imported("table", folder, first)
    assert frame.groupby("model")["passed"].agg(["size", "sum"]).to_numpy().tolist() == [[2, 1], [2, 2]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--set", "passed=1"], "--set passed=1: expected COLUMN=VALUE, with a column of model"),
        (["--map", "passed"], "--map passed: expected COLUMN=VALUE"),
        (["--map", "passed=x", "--map", "passed=y"], "passed is already --map passed=x"),
        (["--map", "passed=passed", "--pass-at", "1"], "both say what passes; give one of them"),
        (["--pass-at", "0.5"], "line 2, score: there is none for --pass-at"),
        (["--pass-at", "40"], "--pass-at 40: expected a score from 0 to 1"),
        (["--range", "1"], "--range 1: expected WORST:BEST"),
        (["--range", "1:1"], "--range 1:1: expected WORST:BEST"),
        (["--set", "axis=paraphrase"], "axis 'paraphrase' does not go with level 'baseline'"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, refusal: Refusal, options: list[str], expected: str
) -> None:
    assert expected in refusal("table", written(tmp_path, runs("a", "10", HEADER)), *options)


def test_missing_sources_and_formats_are_named(tmp_path: Path, refusal: Refusal) -> None:
    assert "there is no such file or folder" in refusal("table", tmp_path / "absent.csv")
    assert "has no file like *.csv or *.tsv or *.jsonl" in refusal("table", tmp_path)
    assert "no such format; known: inspect, lm-eval, table; did you mean 'table'?" in refusal("tabel", tmp_path)


def test_runs_of_one_cell_under_different_settings_are_refused_until_told_apart_or_ignored(tmp_path: Path) -> None:
    def episode(number: int, settings: dict[str, object], **values: object) -> Episode:
        own = {"model": "m", "instance_id": "i", "passed": True, **values}
        return Episode(own, tmp_path / f"log{number}", "sample 1", settings=settings)

    differing = [episode(1, {"args": {"style": "plain"}}), episode(2, {"args": {"style": "polite"}})]
    with pytest.raises(Exception, match=r"log2, sample 1, args\.style: 'polite' here, 'plain' in log1"):
        result_rows(differing, "b")
    rows, _ = result_rows(differing, "b", ignored={"args.style"})
    assert [row["run_seed"] for row in rows] == [1, 2]
    apart = [differing[0], episode(2, {"args": {"style": "polite"}}, axis="paraphrase", level="polite")]
    assert len(result_rows(apart, "b")[0]) == 2


def test_the_summary_gives_the_figures_that_the_harness_printed_and_what_cannot_be_asked(
    tmp_path: Path, imported: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    imported("table", written(tmp_path, runs("a", "1110", HEADER) + runs("b", "1000")), "--benchmark", "qa")
    text = capsys.readouterr().out
    assert "import: 8 episodes from 1 file; " in text
    assert "2 models, 4 instances, 1 run of each in a cell, 0 infra_error" in text
    assert "  qa, a: passed 0.7500 of 4\n" in text
    assert "not possible with these results: noise floor: no axis that cannot move a score was run" in text
    assert "costs: the results hold no prices or costs of the episodes (column cost_usd)" in text
    assert "pass rates:" not in text


def test_many_rows_are_one_import(tmp_path: Path, imported: Import) -> None:
    lines = [f"m{row % 4},t{row // 4 % 2500},{row // 4 % 2},{row // 10_000}" for row in range(20_000)]
    frame = imported("table", written(tmp_path, "model,instance_id,passed,run_seed\n" + "\n".join(lines)))
    assert frame.groupby("model").size().tolist() == [5_000] * 4
    assert frame["passed"].mean() == 0.5
