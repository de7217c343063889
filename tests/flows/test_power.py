"""How many tasks a claim needs: the command's two tables against the reference values."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtrit

from flows.cli import main
from flows.stats.claims import (
    Assumptions,
    Prompts,
    averaged_variance,
    exact_detectable,
    exact_instances,
    general_claim,
    general_detectable,
)


@pytest.mark.parametrize(
    ("base", "delta", "unpaired", "paired"),
    [
        (0.7, 0.05, 1374, 688),
        (0.7, 0.03, 3760, 1881),
        (0.7, 0.10, 354, 177),
        (0.9, 0.05, 683, 347),
        (0.5, 0.03, 4353, 2177),
    ],
)
def test_the_exact_prompt_needs_the_reference_sizes(base: float, delta: float, unpaired: int, paired: int) -> None:
    assert exact_instances(delta, Assumptions(base, 0.5)) == (unpaired, paired)


def test_what_a_size_detects_is_what_it_was_sized_for() -> None:
    given = Assumptions(0.7, 0.5, runs=3)
    n = exact_instances(0.05, given).paired
    assert exact_detectable(n, given)[1] == pytest.approx(0.05, rel=0.002)
    prompts = Prompts(0.0001, 8)
    size = general_claim(0.05, given, prompts).n
    assert size is not None
    assert general_detectable(size, given, prompts) == pytest.approx(0.05, rel=0.005)


def test_a_known_correlation_of_runs_says_what_more_runs_buy() -> None:
    single, many = (exact_instances(0.05, Assumptions(0.7, 0.2, runs, icc=0.2)).paired for runs in (1.0, 1e6))
    assert many < 0.01 * single
    fixed = [exact_instances(0.05, Assumptions(0.7, 0.2, runs, icc=1.0)).paired for runs in (1.0, 1e6)]
    assert fixed[0] == fixed[1] == single


def test_many_prompts_follow_the_closed_form_and_few_have_a_floor() -> None:
    """n = k² sigma_d² / (delta² - 2 k² sigma_ML²/L), with the variance after averaging over L levels."""
    k = 2.801585
    variance = 0.7 * 0.3 + 0.65 * 0.35 - 2 * 0.5 * math.sqrt(0.7 * 0.3 * 0.65 * 0.35)
    given, prompts = Assumptions(0.7, 0.5), Prompts(0.0004, 40, remaining=0.6)
    expected = k**2 * 0.6 * variance / (0.05**2 - k**2 * 2 * 0.0004 / 40)
    assert general_claim(0.05, given, prompts).n == math.ceil(expected)
    few = general_claim(0.03, given, Prompts(0.0025, 5))
    assert few.n is None
    assert few.floor > 0.03
    assert general_detectable(10**6, given, Prompts(0.0025, 5)) == pytest.approx(few.floor, rel=0.01)


def test_the_command_prints_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--delta", "0.05", "--base", "0.7", "--rho", "0.5", "--sigma-ml", "0.05", "--n", "500"]) == 0
    text = capsys.readouterr().out
    assert "for this exact prompt" in text
    assert "688" in text
    assert "1,374" in text
    assert "unreachable" in text
    assert "smallest difference that 500 tasks find" in text
    assert "500 tasks are too few for a difference of 5 points\n  this exact prompt: no, 688 are needed\n" in text


def test_what_no_number_of_tasks_finds_says_how_many_prompts_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--delta", "0.05", "--sigma-ml", "0.05", "--levels", "5"]) == 0
    text = capsys.readouterr().out
    assert "unreachable: under 5 prompts no number of tasks finds less than 11.8 points; it takes " in text
    levels = int(text.split("it takes ")[1].split()[0])
    given = Assumptions(0.7, 0.5)
    assert general_claim(0.05, given, Prompts(0.0025, levels)).n is not None
    assert general_claim(0.05, given, Prompts(0.0025, levels - 1)).n is None
    assert main(["power", "--delta", "0.05", "--sigma-ml", "0.05", "--levels", "1"]) == 0
    assert "unreachable: one prompt says nothing of others" in capsys.readouterr().out


def test_the_exact_size_has_the_power_that_it_was_made_for() -> None:
    """Simulated pairs: with chance s both models answer from the same draw, which makes rho = .5."""
    rng, first, second, simulations = np.random.default_rng(5), 0.7, 0.65, 4000
    n = exact_instances(0.05, Assumptions(first, 0.5)).paired
    shared = 0.5 * math.sqrt(first * (1 - first) * second * (1 - second)) / (second - first * second)
    draws = rng.random((simulations, n))
    other = np.where(rng.random((simulations, n)) < shared, draws, rng.random((simulations, n)))
    differences = (draws < first).astype(float) - (other < second)
    z = differences.mean(axis=1) / (differences.std(axis=1, ddof=1) / math.sqrt(n))
    assert (abs(z) > 1.959964).mean() == pytest.approx(0.8, abs=0.02)


def test_the_general_size_has_the_power_that_it_was_made_for() -> None:
    """Prompts drawn anew in each simulation: model x prompt effects with their variance estimated from L prompts."""
    rng, delta, levels, simulations = np.random.default_rng(6), 0.05, 12, 20_000
    given, prompts = Assumptions(0.7, 0.5), Prompts(0.0004, levels)
    n = general_claim(delta, given, prompts).n
    assert n is not None
    noise = averaged_variance(delta, given, prompts) / n
    effects = rng.normal(delta, math.sqrt(2 * prompts.variance_ml), (simulations, levels))
    estimate = effects.mean(axis=1) + rng.normal(0, math.sqrt(noise), simulations)
    level_part = effects.var(axis=1, ddof=1) / levels
    df = (noise + level_part) ** 2 / (noise**2 / (n - 1) + level_part**2 / (levels - 1))
    found = abs(estimate) > stdtrit(df, 0.975) * np.sqrt(noise + level_part)
    assert found.mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "give a difference (--delta), a number of tasks (--n), or both"),
        (["--delta", "0"], "a difference of nothing is never found"),
        (["--delta", "0.9", "--base", "0.5"], "leaves the range of a pass rate"),
        (["--delta", "0.1", "--power", "0"], "must lie between 0 and 1, both ends excluded"),
        (["--delta", "0.1", "--power", "0.04"], "mere chance would find as much"),
        (["--delta", "0.1", "--sigma-ml", "0.9"], "cannot vary by more than 0.5"),
        (["--n", "1"], "one task says nothing of others"),
        (["--delta", "0.1", "--from", "nowhere"], "--from nowhere: there is no such file or folder"),
    ],
)
def test_impossible_questions_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    assert main(["power", *arguments]) == 2
    assert expected in capsys.readouterr().err


def test_a_studys_results_stand_in_for_assumptions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    records = [
        {"model": model, "family": "f", "instance_id": str(i), "axis": axis, "level": level, "passed": passed}
        for i, hard in enumerate(rng.random(40))
        for model, skill in (("a", 0.2), ("b", 0.0))
        for axis, level in (("none", "baseline"), ("paraphrase", "p1"), ("paraphrase", "p2"))
        for passed in (bool(rng.random() < hard * 0.8 + skill) for _ in range(2))
    ]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    results = tmp_path / "results.parquet"
    assert main(["import", "table", str(tmp_path / "runs.jsonl"), "--out", str(results)]) == 0
    capsys.readouterr()
    assert main(["power", "--delta", "0.2", "--from", str(results)]) == 0
    text = capsys.readouterr().out
    assert "3 prompts and tool sets" in text
    assert "estimate of the spread, " in text
    assert "upper limit of its 95% interval" in text


def test_a_studys_spread_over_prompts_is_also_what_moves_within_families(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Wordings move the second model in one of two families alone, and its mean by half as much."""
    gain = {("f", "p1"): 0.4, ("f", "p2"): -0.4}
    rng = np.random.default_rng(2)
    records = [
        {"model": model, "family": family, "instance_id": f"{family}{i}", "axis": axis, "level": level}
        | {"passed": bool(rng.random() < 0.5 + (gain.get((family, level), 0.0) if model == "b" else 0.0))}
        for family in ("f", "g")
        for i in range(100)
        for model in ("a", "b")
        for axis, level in (("none", "baseline"), ("paraphrase", "p1"), ("paraphrase", "p2"))
    ]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    results = tmp_path / "results.parquet"
    assert main(["import", "table", str(tmp_path / "runs.jsonl"), "--out", str(results)]) == 0
    capsys.readouterr()
    assert main(["power", "--delta", "0.2", "--from", str(results)]) == 0
    spread = float(capsys.readouterr().out.split("estimate of the spread, ")[1].split(" points")[0])
    # Interactions of the means: 0.1 (each with an error of 0.025) in two models and two of three levels, on two
    # degrees of freedom.
    assert spread == pytest.approx(100 * math.sqrt(0.02), abs=5), "what is common to both families is nothing of it"
