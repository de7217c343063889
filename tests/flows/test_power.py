"""How many tasks a claim needs: the command's two tables against the reference values."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from flows.cli import main
from flows.stats.claims import (
    Assumptions,
    Prompts,
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


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "give a difference (--delta), a number of tasks (--n), or both"),
        (["--delta", "0"], "must lie between 0 and 1"),
        (["--delta", "0.9", "--base", "0.5"], "leaves the range of a pass rate"),
        (["--delta", "0.1", "--power", "0"], "power must lie strictly between 0 and 1"),
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
    assert "estimate of the model x prompt variance" in text
    assert "upper limit of its 95% interval" in text
