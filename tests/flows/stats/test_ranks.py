from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from flows.stats.gaps import pair_gaps
from flows.stats.ranks import compare_ranks, rank_stability, tau_b
from tests.flows.stats.frames import cell, episodes, row_of
from tests.flows.stats.synthetic import Plan, Spread, synthetic_results


def reversal() -> pd.DataFrame:
    """Two models, five instances: A 11110 and 11100, B 10000 and 11110, at baseline and perturbed."""
    return episodes(
        {
            cell("a"): list("11110"),
            cell("a", "paraphrase", "p1"): list("11100"),
            cell("b"): list("10000"),
            cell("b", "paraphrase", "p1"): list("11110"),
        }
    )


@pytest.mark.parametrize(
    ("first", "second", "tau"),
    [
        ((0.9, 0.7, 0.5), (0.7, 0.7, 0.5), 0.816497),
        ((0.9, 0.7, 0.5), (0.6, 0.8, 0.4), 1 / 3),
        ((0.9, 0.7, 0.7), (0.8, 0.6, 0.6), 1),
        ((0.9, 0.8, 0.7, 0.6, 0.5), (0.9, 0.8, 0.8, 0.6, 0.5), 0.948683),
    ],
)
def test_tau_b_reproduces_published_values(first: tuple[float, ...], second: tuple[float, ...], tau: float) -> None:
    assert tau_b(np.array(first), np.array(second)) == (pytest.approx(tau, abs=1e-6), None)


def test_tau_b_is_null_with_a_reason_when_all_models_tie() -> None:
    assert tau_b(np.array([0.9, 0.7]), np.array([0.7, 0.7])) == (None, "all models tie at the level")
    assert tau_b(np.array([0.7, 0.7]), np.array([0.9, 0.7])) == (None, "all models tie at the baseline")
    assert tau_b(np.array([0.7]), np.array([0.7])) == (None, "fewer than two models")


def test_rounding_noise_does_not_break_a_tie() -> None:
    assert tau_b(np.array([0.1 + 0.2, 0.3]), np.array([0.9, 0.7]))[0] is None
    assert compare_ranks(np.array([[0.1 + 0.2, 0.3], [0.9, 0.7]])).concordance.tolist() == [0]


def test_full_reversal_and_its_null_agree_with_enumeration() -> None:
    row = row_of(rank_stability(reversal(), seed=1, permutations=20_000), level="p1")
    assert (row["tau_b"], row["concordance"], row["pair_agreement"], row["top1_flip"]) == (-1, -1, 0, 1)
    a0, a1, b0, b1 = (np.array(list(s), dtype=float) for s in ("11110", "11100", "10000", "11110"))
    taus, concordances = [], []
    for swap in itertools.product([False, True], repeat=5):
        mask = np.array(swap)
        scores = np.array(
            [[np.where(mask, a1, a0).mean(), np.where(mask, b1, b0).mean()],
             [np.where(mask, a0, a1).mean(), np.where(mask, b0, b1).mean()]]
        )  # fmt: skip
        taus.append(tau_b(*scores)[0])
        concordances.append(float(compare_ranks(scores).concordance[0]))
    defined = [tau for tau in taus if tau is not None]
    assert len(defined) == 16
    assert np.mean(defined) == 0
    assert np.mean([tau <= -1 for tau in defined]) == 0.5
    assert np.mean([value <= -1 for value in concordances]) == 0.25
    assert row["p"] == pytest.approx(0.25, abs=0.015)
    assert row["concordance_floor"] == pytest.approx(np.mean(concordances), abs=0.02)
    assert row["excess"] == pytest.approx(row["concordance_floor"] - row["concordance"])
    assert row["conservative"]


def test_gap_change_of_the_reversal() -> None:
    row = row_of(pair_gaps(reversal(), seed=1, resamples=2_000), level="p1")
    assert (row["model_a"], row["model_b"]) == ("a", "b")
    assert row["gap_baseline"] == pytest.approx(0.6)
    assert row["gap_perturbed"] == pytest.approx(-0.2)
    assert row["gap_change"] == pytest.approx(-0.8)
    assert not row["confirmed_flip"]
    assert row["win_baseline"] > 0.9
    assert row["win_perturbed"] < 0.5


def test_tied_models_agree_by_half() -> None:
    frame = episodes(
        {cell(m, *c): list("1100") for m in ("a", "b") for c in (("none", "baseline"), ("order", "shuffled"))}
    )
    row = row_of(rank_stability(frame, seed=1, permutations=200), level="shuffled")
    assert (row["concordance"], row["pair_agreement"], row["top1_flip"]) == (0, 0.5, 0)
    assert pd.isna(row["tau_b"])
    gaps = row_of(pair_gaps(frame, seed=1, resamples=200), level="shuffled")
    assert (gaps["win_baseline"], gaps["win_perturbed"]) == (0.5, 0.5)


def test_one_model_has_null_ranks_with_a_reason() -> None:
    frame = episodes({cell("a"): ["1", "0"], cell("a", "order", "shuffled"): ["1", "1"]})
    table = rank_stability(frame, seed=1, permutations=50)
    assert (table["reason"] == "fewer than two models").all()
    assert table[["tau_b", "concordance", "p", "top1_flip"]].isna().all(axis=None)
    assert pair_gaps(frame, seed=1, resamples=50).empty


def test_mean_tau_is_null_when_any_level_is_undefined() -> None:
    frame = episodes(
        {
            cell("a"): list("1110"),
            cell("b"): list("1000"),
            cell("a", "paraphrase", "p1"): list("1110"),
            cell("b", "paraphrase", "p1"): list("1000"),
            cell("a", "paraphrase", "p2"): list("1100"),
            cell("b", "paraphrase", "p2"): list("0011"),
        }
    )
    row = row_of(rank_stability(frame, seed=1, permutations=100), level="mean")
    assert pd.isna(row["tau_b"])
    assert row["tau_reason"] == "undefined at 1 of 2 levels: all models tie at the level"
    assert row["concordance"] == 0.5


def test_a_planted_crossover_is_confirmed_and_nothing_else_is() -> None:
    plan = Plan(
        models=("a", "b"),
        instances=60,
        runs=2,
        base=0.5,
        skill={"a": 0.15, "b": -0.15},
        effects={("a", "tool_names", "opaque"): -0.2, ("b", "tool_names", "opaque"): 0.2},
        spread=Spread(instance=0.05, model_instance=0),
    )
    frame = synthetic_results(plan, seed=4)
    gaps = pair_gaps(frame, seed=1, resamples=2_000)
    assert gaps.loc[gaps["confirmed_flip"].fillna(False), "level"].tolist() == ["opaque"]
    ranks = rank_stability(frame, seed=1, permutations=1_000)
    # Full reversal with exchangeable labels happens by chance in at most half of the permutations.
    assert row_of(ranks, level="opaque")["excess"] > 0.5
    assert row_of(ranks, level="p1")["concordance"] == 1


def test_unpaired_axis_changes_a_gap_by_mover() -> None:
    frame = episodes(
        {
            cell("a"): list("1111100000"),
            cell("b"): list("1110000000"),
            cell("a", "resample", "s1"): list("1111000000"),
            cell("b", "resample", "s1"): list("1100000000"),
        }
    )
    row = row_of(pair_gaps(frame, seed=1, resamples=500), level="s1")
    assert row["gap_change"] == pytest.approx(0)
    assert row["method"].startswith("mover")
    width = np.hypot(row["gap_perturbed"] - row["gap_perturbed_low"], row["gap_baseline_high"] - row["gap_baseline"])
    assert row["gap_change_low"] == pytest.approx(row["gap_change"] - width)
    ranks = row_of(rank_stability(frame, seed=1, permutations=500), level="s1")
    assert ranks["concordance"] == 1


def test_swapping_the_two_models_mirrors_the_gap() -> None:
    frame = reversal()
    swapped = frame.assign(model=frame["model"].map({"a": "b", "b": "a"}))
    one, two = (row_of(pair_gaps(f, seed=1, resamples=500), level="p1") for f in (frame, swapped))
    assert one["gap_change"] == -two["gap_change"]
    assert one["gap_change_low"] == pytest.approx(-two["gap_change_high"])
    assert one["win_baseline"] == pytest.approx(1 - two["win_baseline"])
