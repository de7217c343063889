"""Calibration finds what is right right, and what is broken broken; its truth comes by other routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from flows.calibration.command import read_command
from flows.calibration.measures import BIAS, COVERAGE, FALSE, POWER, Found, Key, Tables
from flows.calibration.population import Frames, Population, draw, populations
from flows.calibration.study import Series, analyze, boundary_hypotheses, run_studies
from flows.calibration.summary import FIELDS, missed, summarise
from flows.calibration.truth import Truth
from flows.cli import main
from flows.errors import ConfigurationError
from flows.manifest import load_manifest
from flows.stats.hypotheses import Registration
from flows.stats.rates import pass_rates
from flows.stats.variance import variance_components
from tests.flows.small_study import write_manifest

ROOT = Path(__file__).parents[3]
CONDITIONS = (("none", "baseline"), ("paraphrase", "p1"), ("paraphrase", "p2"), ("order", "shuffled"))


def small(shared: float = 0.75) -> Population:
    """Two models that differ in one stratum and under one paraphrase."""
    chances = np.full((2, 2, 4), 0.5)
    chances[0, 0] += 0.1
    chances[:, 1, 2] -= 0.2
    return Population(
        name="small",
        models=("a", "b"),
        strata=(("query", "easy"), ("tabular", "easy")),
        conditions=CONDITIONS,
        runs=(2, 1, 1, 2),
        chances=chances,
        spreads=np.array([0.2, 0.1]),
        shared=shared,
    )


def test_the_documented_error_model_is_the_population() -> None:
    scripted, correlated, unmoved = populations(load_manifest(ROOT / "experiments.yaml", "smoke"))
    truth = Truth(scripted)
    # by hand from the manifest: .74, opaque names -.10; .30, tabular -.05, p5 +.03
    assert truth.rate("scripted-strong", "query", "hard", "tool_names", "opaque") == pytest.approx(0.64)
    assert truth.rate("scripted-weak", "tabular", "hard", "paraphrase", "p5") == pytest.approx(0.28)
    assert truth.delta("tool_names", "opaque") == pytest.approx((-0.10 - 0.02 - 0.10 - 0.08) / 4)
    assert truth.delta("paraphrase", "mean", model="scripted-strong") == pytest.approx((-0.02 - 0.03) / 5)
    assert truth.gap("scripted-strong", "scripted-steady", "tool_names", "opaque") == pytest.approx(-0.02)
    assert not truth.moves("order", "mean")
    assert truth.moves("paraphrase", "mean")
    np.testing.assert_array_equal(correlated.chances, scripted.chances)
    assert not any(Truth(unmoved).moves(axis, "mean") for axis, _ in unmoved.conditions)


@pytest.mark.parametrize("shared", [0.0, 0.75])
def test_draws_have_the_chances_and_covariances_of_the_truth(shared: float) -> None:
    population = small(shared)
    passed = draw(population, 60_000, np.random.default_rng(1)).astype(float)
    np.testing.assert_allclose(passed.mean(axis=(3, 4)), population.chances, atol=0.01)
    chosen = passed[:, :, :3] - population.chances[:, :, :3, None, None]
    one, other = chosen[..., 0], chosen[..., 1]
    product = np.einsum("smli,snki->mlnk", one, other) / (2 * 60_000)
    true = Truth(population).components()
    same = np.mean([product[m, v, m, v] for m in range(2) for v in range(3)])
    neither = np.mean([product[m, v, 1 - m, k] for m in range(2) for v in range(3) for k in range(3) if k != v])
    model = np.mean([product[m, v, m, k] for m in range(2) for v in range(3) for k in range(3) if k != v])
    assert true["instance"] == pytest.approx(neither, abs=0.003)
    assert true["model x instance"] == pytest.approx(model - neither, abs=0.003)
    both = Truth(population).passes_twice(
        {"model": "a", "family": "tabular", "difficulty": "easy", "axis": "paraphrase", "level": "p1"}
    )
    assert both == pytest.approx(passed[1, 0, 1].prod(axis=-1).mean(), abs=0.01)
    single = float(np.mean(population.chances[:, :, :3] * (1 - population.chances[:, :, :3])))
    assert true["run"] == pytest.approx(single - same, abs=0.003)


def test_components_of_models_and_levels_are_their_variances_when_effects_add() -> None:
    chances = 0.5 + np.array([0.0, 0.2])[None, :, None] + np.array([0.0, 0.1, -0.1, 0.0])[None, None, :]
    true = Truth(replace(small(), chances=np.repeat(chances, 2, axis=0))).components()
    assert true["model"] == pytest.approx(0.02)
    assert true["level"] == pytest.approx(0.01)
    for term in ("model x level", "model x stratum", "level x stratum", "model x level x stratum"):
        assert true[term] == pytest.approx(0, abs=1e-12)


def test_resampled_levels_have_instances_of_their_own() -> None:
    population = replace(small(1.0), conditions=(*CONDITIONS[:3], ("resample", "s1")))
    passed = draw(population, 40, np.random.default_rng(1))
    assert (passed[:, 0, 0, :, 0] == passed[:, 0, 1, :, 0]).all()
    assert (passed[:, 0, 0, :, 0] != passed[:, 0, 3, :, 0]).any()
    frame = Frames(population, 40).full(passed)
    samples = frame.groupby("axis")["instance_id"].agg(set)
    assert samples["none"] == samples["paraphrase"]
    assert samples["none"].isdisjoint(samples["resample"])


def test_frames_hold_the_draws_where_they_belong() -> None:
    population = small()
    passed = draw(population, 3, np.random.default_rng(2))
    frames = Frames(population, 3)
    row = frames.full(passed).query(
        "model == 'b' and family == 'tabular' and level == 'p2' and instance_id.str.endswith('2') and run_seed == 2"
    )
    assert row["passed"].tolist() == [passed[1, 1, 2, 2, 1]]
    assert frames.as_run(passed).groupby("level")["run_seed"].max().to_dict() == {
        "baseline": 2,
        "p1": 1,
        "p2": 1,
        "shuffled": 2,
    }


def series(instances: int = 15) -> Series:
    return Series(small(), instances, (), seed=5, resamples=200)


def only_rates(
    frame: pd.DataFrame, balanced: pd.DataFrame, registrations: Sequence[Registration], seed: int, resamples: int
) -> Tables:
    """The real rates; of the rest no row, to save time."""
    return {
        **nothing(frame, balanced, registrations, seed),
        "pass_rates": pass_rates(frame, seed=seed, resamples=resamples),
    }


def episodes_as_independent(
    frame: pd.DataFrame, balanced: pd.DataFrame, registrations: Sequence[Registration], seed: int, resamples: int
) -> Tables:
    """A broken estimator: every run of an instance is taken as another instance."""
    split = frame.assign(instance_id=frame["instance_id"].astype(str) + "/" + frame["run_seed"].astype(str))
    table = pass_rates(split, seed=seed, resamples=resamples)
    true_n = pass_rates(frame, seed=seed, resamples=1)["n"]
    return {**nothing(frame, balanced, registrations, seed), "pass_rates": table.assign(n=true_n)}


_EMPTY: dict[str, pd.DataFrame] = {}


def nothing(
    frame: pd.DataFrame, balanced: pd.DataFrame, registrations: Sequence[Registration], seed: int
) -> dict[str, pd.DataFrame]:
    """Every table without a row."""
    if not _EMPTY:
        tables = analyze(frame, balanced, registrations, seed, 10)
        _EMPTY.update({name: table.iloc[:0] for name, table in tables.items()})
    return dict(_EMPTY)


def coverage(table: pd.DataFrame) -> pd.Series:
    chosen = table[(table["quantity"] == "95% interval, several runs") & (table["scope"] == "cell")]
    return chosen.iloc[0]


@pytest.mark.slow
def test_episodes_taken_as_independent_fail_the_calibration_and_the_real_analysis_does_not() -> None:
    strata = tuple(("query", f"d{number}") for number in range(6))
    repeated = Population("repeated", ("a",), strata, CONDITIONS[:1], (2,), np.full((6, 1, 1), 0.5), np.zeros(1), 1.0)
    chosen = replace(series(), population=repeated)
    right = coverage(summarise("small", 15, run_studies(chosen, 0, 60, only_rates)))
    broken = coverage(summarise("small", 15, run_studies(chosen, 0, 60, episodes_as_independent)))
    assert not right["misses"]
    assert right["value"] > 0.92
    assert broken["misses"]
    assert broken["value"] < 0.91


def only_components(
    frame: pd.DataFrame, balanced: pd.DataFrame, registrations: Sequence[Registration], seed: int, _: int
) -> Tables:
    """The real components; of the rest no row."""
    return {
        **nothing(frame, balanced, registrations, seed),
        "variance_components": variance_components(balanced),
    }


def strata_left_out(
    frame: pd.DataFrame, balanced: pd.DataFrame, registrations: Sequence[Registration], seed: int, _: int
) -> Tables:
    """A broken estimator: easy and hard tasks are taken for one kind, so that their difference is one of instances."""
    merged = balanced.assign(family="any")
    return {
        **nothing(frame, balanced, registrations, seed),
        "variance_components": variance_components(merged),
    }


@pytest.mark.slow
def test_strata_left_out_of_the_components_fail_the_calibration_and_the_real_ones_do_not() -> None:
    chances = np.full((2, 2, 4), 0.5) + np.array([0.25, -0.25])[:, None, None]
    chosen = replace(series(), population=replace(small(), chances=chances))
    found = {}
    for name, analysis in (("right", only_components), ("broken", strata_left_out)):
        table = summarise("small", 15, run_studies(chosen, 0, 60, analysis))
        found[name] = table[table["measure"] == BIAS].set_index("quantity").loc["instance"]
    assert not found["right"]["misses"]
    assert found["broken"]["misses"]
    assert found["broken"]["value"] > 0.05


def test_a_study_is_the_same_whoever_runs_it_and_measures_every_table() -> None:
    together = run_studies(series(), 0, 2)
    assert together[1] == run_studies(series(), 1, 1)[0]
    assert {found.key.table for found in together[0]} == {
        "pass_rates",
        "deltas",
        "negative_controls",
        "pair_gaps",
        "rank_stability",
        "paraphrase_spread",
        "consistency",
        "costs",
        "variance_components",
        "verdicts",
    }


def test_boundary_hypotheses_are_just_not_to_be_concluded() -> None:
    truth = Truth(small())
    by_id = {one.id: one for one in boundary_hypotheses(truth, ["order", "paraphrase"])}
    assert by_id["BOUNDARY-paraphrase-equivalence"].smallest_effect == pytest.approx(0.05)
    assert by_id["BOUNDARY-paraphrase-direction"].sign == -1
    assert by_id["BOUNDARY-order"].kind == "directional"


def studies_of(values: Sequence[Sequence[float]], key: Key) -> list[list[Found]]:
    return [[Found(key, value) for value in study] for study in values]


def test_a_share_is_pooled_over_rows_and_its_error_is_over_studies() -> None:
    key = Key("t", "q", "s", COVERAGE, 0.95)
    row = summarise("p", 9, studies_of([[1, 1], [0, 0]] * 50, key)).iloc[0]
    assert (row["value"], row["studies"], row["rows"]) == (0.5, 100, 200)
    assert row["mc_error"] == pytest.approx(0.05, rel=0.01)  # not .035, as 200 independent rows would have
    assert row["misses"]


@pytest.mark.parametrize(
    ("measure", "nominal", "value", "misses"),
    [
        (COVERAGE, 0.95, 1.0, False),
        (COVERAGE, 0.95, 0.0, True),
        (FALSE, 0.05, 1.0, True),
        (FALSE, 0.05, 0.0, False),
        (POWER, None, 0.0, None),
        (BIAS, 0.0, 0.3, True),
        (BIAS, 0.0, 0.0, False),
    ],
)
def test_each_measure_misses_on_its_own_side(
    measure: str, nominal: float | None, value: float, misses: bool | None
) -> None:
    table = summarise("p", 9, studies_of([[value]] * 40, Key("t", "q", "s", measure, nominal)))
    assert list(table.columns) == list(FIELDS)
    assert (None if pd.isna(table["misses"].iloc[0]) else table["misses"].iloc[0]) == misses
    assert len(missed(table)) == bool(misses)


def test_few_studies_call_no_miss() -> None:
    assert pd.isna(summarise("p", 9, studies_of([[0]] * 3, Key("t", "q", "s", COVERAGE, 0.95)))["misses"].iloc[0])


def test_without_a_scripted_agent_there_is_no_truth(tmp_path: Path) -> None:
    path = write_manifest(tmp_path, {"grid/models": ["served"]})
    with pytest.raises(ConfigurationError, match="no scripted agent"):
        populations(load_manifest(path))


@pytest.mark.slow
def test_the_command_writes_the_table_and_how_it_was_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = write_manifest(tmp_path)
    out = tmp_path / "results" / "calibration.parquet"
    arguments = ["calibration", "--manifest", str(manifest), "--profile", "full", "--studies", "2", "--processes", "1"]
    assert main([*arguments, "--resamples", "50", "--instances", "5"]) == 0
    table = pd.read_parquet(out)
    assert set(table["population"]) == {"scripted", "correlated", "no effects"}
    assert len(pd.read_csv(out.with_suffix(".csv"))) == len(table)
    assert read_command(out).startswith("agent-bench calibration --studies 2 --instances 5")
    assert "measures miss what is promised" in capsys.readouterr().out
