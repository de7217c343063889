"""Partial and degenerate studies through the command line: what each must say, and the same bytes every time."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, norm

from flows.analysis.outputs import TABLE_COLUMNS
from flows.cli import main
from flows.report.figures import FIGURES
from flows.results_file import write_results
from tests.flows.stats.synthetic import Plan, Spread, synthetic_results

ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(
    models=("alpha", "beta"),
    strata=(("query", "easy"), ("tabular", "hard")),
    levels={
        "none": ("baseline",),
        "paraphrase": ("p1", "p2"),
        "temperature": ("0.7",),
        "order": ("shuffled",),
        "resample": ("s1",),
    },
    instances=5,
    skill={"alpha": 0.2},
    spread=Spread(instance=0.1),
)
FULL = synthetic_results(PLAN, 3)
Z2 = float(norm.ppf(0.975)) ** 2


@dataclass(frozen=True)
class Analysis:
    """What the command wrote and said."""

    folder: Path
    said: str

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables, as Parquet, checked against its CSV."""
        found = pd.read_parquet(self.folder / "tables" / f"{name}.parquet")
        assert list(found.columns) == list(TABLE_COLUMNS[name])
        shown = pd.read_csv(self.folder / "tables" / f"{name}.csv", encoding="utf-8-sig")
        assert list(shown.columns) == list(found.columns)
        assert len(shown) == len(found)
        return found

    @property
    def report(self) -> str:
        """The page."""
        return (self.folder / "report.html").read_text(encoding="utf-8")


def written(folder: Path, frame: pd.DataFrame, planned: pd.DataFrame = FULL) -> Path:
    """A results file of `frame` whose grid is that of `planned`, with the shipped hypotheses beside it."""
    cells = planned.groupby(["model", "cell_id"], sort=True).size()
    metadata: dict[str, Any] = {
        "study": "small",
        "seed": 1,
        "analysis": {"resamples": 200},
        "planned": [
            {"model": model, "cell_id": cell, "episodes": int(size)}
            for (model, cell), size in zip(cells.index, cells, strict=True)
        ],
    }
    rows = [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
    path = folder / "results.parquet"
    write_results(path, rows, metadata)
    (folder / "HYPOTHESES.md").write_text((ROOT / "HYPOTHESES.md").read_text(encoding="utf-8"), encoding="utf-8")
    return path


@pytest.fixture
def analyze(prefect_api_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command on a frame of results."""
    assert prefect_api_url

    def command(frame: pd.DataFrame, planned: pd.DataFrame = FULL) -> Analysis:
        results = written(tmp_path, frame, planned)
        out = tmp_path / "out"
        assert main(["analyze", "--results", str(results), "--out", str(out)]) == 0
        for name in FIGURES:
            assert {path.suffix for path in (out / "figures").glob(f"{name}.*")} == {".png", ".svg", ".parquet"}
        assert {path.stem for path in (out / "tables").iterdir()} == set(TABLE_COLUMNS)
        return Analysis(out, capsys.readouterr().out)

    return command


def overall(table: pd.DataFrame, **wanted: str) -> pd.Series:
    """The one row over all models and strata."""
    rows = table[table["scope"] == "overall"]
    for name, value in wanted.items():
        rows = rows[rows[name] == value]
    [row] = (row for _, row in rows.iterrows())
    return row


@pytest.mark.slow
def test_a_study_that_the_cap_stopped_lists_what_is_missing_and_judges_what_is_there(analyze: Any) -> None:
    kept = FULL[~((FULL["model"] == "beta") & FULL["axis"].isin(["order", "resample"]))]
    lost = (kept["model"] == "beta") & (kept["level"] == "p2") & (kept["run_seed"] == 2)
    done = analyze(kept[~lost])
    cells = done.table("coverage")
    assert cells["state"].value_counts().to_dict() == {"complete": 18, "missing": 4, "partial": 2}
    assert "analyze: WARNING: 6 of 24 cells are not complete (cell scored/planned):" in done.said
    assert "analyze: partial: beta: query-easy-paraphrase-p2 5/10, tabular-hard-paraphrase-p2 5/10" in done.said
    assert "analyze: missing: beta: query-easy-order-shuffled 0/10" in done.said
    alert = done.report.split('role="alert"')[1].split("</div>")[0]
    assert "4 of 24 cells have no episode yet." in alert
    deltas = done.table("deltas")
    order = overall(deltas, axis="order", level="shuffled")
    assert "beta" in str(order["missing_strata"])
    assert order["n"] == 10
    assert order["ci_low"] < order["delta"] < order["ci_high"]


@pytest.mark.slow
def test_a_study_of_infrastructure_errors_alone_has_no_rate_and_says_so_loudly(analyze: Any) -> None:
    broken = FULL.assign(
        passed=pd.array([None] * len(FULL), dtype="boolean"),
        partial_score=pd.array([None] * len(FULL), dtype="Float64"),
        infra_error=True,
        outcome="infra_error",
        failure_class="server_error",
    )
    done = analyze(broken)
    rates = done.table("pass_rates")
    assert len(rates) > 10
    assert rates["pass_rate"].isna().all()
    assert rates["ci_low"].isna().all()
    assert set(rates["n"]) == {0}
    assert rates["reason"].notna().all()
    assert done.table("infra_errors")["nothing_scored"].all()
    assert set(done.table("verdicts")["final_label"]) == {"inconclusive"}
    assert done.table("verdicts")["reason"].notna().all()
    assert "analyze: all infra_error: alpha: all 12 cells" in done.said
    alert = done.report.split('role="alert"')[1].split("</div>")[0]
    assert "24 of 24 cells have infrastructure errors only." in alert
    assert "of 240 episodes (100.0%) ended in an infrastructure error" in alert
    assert not re.search(r"(?<!\d)0\.0%", done.report.split("<main>")[0])


@pytest.mark.slow
def test_one_model_has_no_ranking_and_no_model_terms(analyze: Any) -> None:
    own = FULL[FULL["model"] == "alpha"]
    done = analyze(own, own)
    ranks = done.table("rank_stability")
    assert ranks["concordance"].isna().all()
    assert ranks["reason"].notna().all()
    assert done.table("pair_gaps").empty
    components = done.table("variance_components").set_index("term")
    assert not components.loc["model", "estimable"]
    assert components.loc["model", "reason"]
    assert components.loc["instance", "estimable"]
    assert overall(done.table("deltas"), axis="temperature", level="0.7")["ci_low"] < 0.5


@pytest.mark.slow
def test_one_level_has_no_spread_and_no_level_terms(analyze: Any) -> None:
    own = FULL[FULL["axis"].isin(["none", "temperature"])]
    done = analyze(own, own)
    assert set(done.table("deltas")["axis"]) == {"temperature"}
    assert done.table("paraphrase_spread").empty
    assert done.table("negative_controls").empty
    assert "No negative control has results" in done.report
    components = done.table("variance_components").set_index("term")
    assert not components.loc["level", "estimable"]
    assert not components.loc["model x level", "estimable"]
    verdicts = done.table("verdicts").set_index("id")
    assert verdicts.loc["H-TEMPERATURE", "n"] == 10
    assert verdicts.loc["H-PARAPHRASE", "final_label"] == "inconclusive"
    assert verdicts.loc["H-PARAPHRASE", "reason"]


@pytest.mark.slow
def test_unbalanced_run_seeds_weigh_instances_alike(analyze: Any) -> None:
    odd = FULL["instance_id"].str.endswith(("1", "3"))
    rows = FULL.assign(passed=FULL["passed"] & ~odd, failure_class=FULL["failure_class"].where(~odd, "wrong_answer"))
    rows = rows[~odd | (rows["run_seed"] == 1)]
    done = analyze(rows)
    rates = done.table("pass_rates")
    base = rows[(rows["axis"] == "none") & (rows["model"] == "alpha")]
    strata = base.groupby(["family", "difficulty", "instance_id"])["passed"].mean().groupby(["family"]).mean()
    own = rates[(rates["scope"] == "model") & (rates["model"] == "alpha") & (rates["axis"] == "none")]
    assert own["pass_rate"].iloc[0] == pytest.approx(float(strata.mean()))
    assert own["pass_rate"].iloc[0] != pytest.approx(float(base["passed"].mean()))
    assert own["episodes"].iloc[0] == len(base)


@pytest.mark.slow
def test_where_everything_passes_nothing_could_have_moved(analyze: Any) -> None:
    done = analyze(synthetic_results(replace(PLAN, floor=1.0), 1))
    rates = done.table("pass_rates")
    assert (rates["ci_high"] == 1.0).all()
    assert (rates["ci_low"] < 1.0).all()
    assert rates["degenerate"].all()
    cells = done.table("deltas").query("scope == 'cell' and axis == 'temperature'")
    assert np.allclose(cells["ci_high"], Z2 / (5 + Z2), atol=1e-6)
    assert np.allclose(cells["ci_low"], -Z2 / (5 + Z2), atol=1e-6)
    verdicts = done.table("verdicts")
    judged = verdicts[verdicts["axis"].isin(["paraphrase", "temperature", "order"]) & (verdicts["level"] != "opaque")]
    assert set(judged["final_label"]) == {"inconclusive"}
    assert judged["reason"].str.contains("ceiling").all()


@pytest.mark.slow
def test_one_instance_has_a_jeffreys_interval_and_an_undecided_delta(analyze: Any) -> None:
    one = synthetic_results(replace(PLAN, strata=(("query", "easy"),), instances=1, runs=1, floor=1.0), 1)
    done = analyze(one, one)
    rate = done.table("pass_rates").query("scope == 'cell' and axis == 'none'").iloc[0]
    assert rate["ci_low"] == pytest.approx(float(beta.ppf(0.025, 1.5, 0.5)), abs=0.02)
    assert rate["ci_high"] == 1.0
    assert set(done.table("verdicts")["final_label"]) == {"inconclusive"}
    assert done.table("verdicts")["reason"].notna().all()


@pytest.mark.slow
def test_missing_partial_scores_and_lopsided_infrastructure_errors_are_counted(analyze: Any) -> None:
    rows = FULL.copy()
    ungraded = rows.index[rows["axis"] == "none"][:7]
    rows.loc[ungraded, "partial_score"] = pd.NA
    broken = rows.index[(rows["level"] == "0.7") & (rows["model"] == "alpha")][:6]
    rows.loc[broken, ["passed", "partial_score"]] = pd.NA
    rows.loc[broken, ["infra_error", "outcome", "failure_class"]] = [True, "infra_error", "server_error"]
    done = analyze(rows)
    scores = overall(done.table("partial_scores"), axis="none", level="baseline")
    assert scores["without_score"] == 7
    assert not math.isnan(scores["partial_score"])
    infra = done.table("infra_errors").query("scope == 'model' and model == 'alpha' and level == '0.7'").iloc[0]
    assert infra["infra_errors"] == 6
    assert infra["minus_baseline"] == pytest.approx(6 / 20)
    own = rows[(rows["model"] == "alpha") & (rows["level"] == "0.7")]
    for name, value in (("if_infra_failed", False), ("if_infra_passed", True)):
        means = own["passed"].fillna(value).astype(float).groupby([own["family"], own["instance_id"]]).mean()
        assert infra[name] == pytest.approx(float(means.groupby("family").mean().mean()))
    assert infra["if_infra_failed"] < infra["pass_rate"] <= infra["if_infra_passed"]
    assert "6 of 240 episodes (2.5%) ended in an infrastructure error" in done.report


@pytest.mark.slow
def test_two_processes_give_the_same_bytes_whatever_the_order_of_the_rows_the_place_and_the_users_settings(
    tmp_path: Path, study_environment: dict[str, str]
) -> None:
    made: list[dict[str, bytes]] = []
    for number, zone, locale, size in (("1", "UTC", "C", 10), ("2", "Asia/Tokyo", "C.UTF-8", 17)):
        folder = tmp_path / number
        folder.mkdir()
        (folder / "matplotlibrc").write_text(f"font.size: {size}\n")
        results = written(folder, FULL.sample(frac=1, random_state=int(number)))
        command = [sys.executable, "-m", "flows.analyze", "--results", str(results), "--out", str(folder / "out")]
        place = {"PYTHONHASHSEED": number, "TZ": zone, "LC_ALL": locale, "MATPLOTLIBRC": str(folder / "matplotlibrc")}
        environment = {**study_environment, **place, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert f"{len(TABLE_COLUMNS)} tables" in done.stdout
        files = [
            path for path in (folder / "out").rglob("*") if path.suffix in (".parquet", ".csv", ".svg", ".png", ".html")
        ]
        made.append({str(path.relative_to(folder)): path.read_bytes() for path in files})
    assert len(made[0]) > 2 * len(TABLE_COLUMNS) + 3 * len(FIGURES)
    assert made[0].keys() == made[1].keys()
    assert [name for name in made[0] if made[0][name] != made[1][name]] == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--results", "none.parquet", "--out", "out"], "none.parquet"),
        (["--results", "none.parquet"], "--results and --out go together"),
    ],
)
def test_results_that_are_not_there_are_refused_in_one_paragraph(
    options: list[str], expected: str, tmp_path: Path, study_environment: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "flows.analyze", *options]
    environment = {**study_environment, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode in (1, 2)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert not os.path.lexists(tmp_path / "out" / "report.html")


def test_results_of_two_benchmarks_are_refused_in_one_paragraph_and_nothing_is_written(
    prefect_api_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prefect_api_url
    both = pd.concat([FULL, FULL.assign(benchmark="other", episode_id="x" + FULL["episode_id"])], ignore_index=True)
    results = written(tmp_path, both)
    assert main(["analyze", "--results", str(results), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert f"{results}: cannot be analyzed: analyse one benchmark at a time" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out" / "tables").exists()
