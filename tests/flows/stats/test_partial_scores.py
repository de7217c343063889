from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from flows.stats.partial_scores import partial_scores
from flows.stats.rates import pass_rates
from tests.flows.stats.frames import cell, episodes, row_of


def scored(instances: list[str], scores: dict[int, float | None]) -> pd.DataFrame:
    """One cell, whose rows have partial scores of their own at the given places."""
    frame = episodes({cell(): instances})
    for position, score in scores.items():
        frame.loc[position, "partial_score"] = pd.NA if score is None else score
    return frame


def test_an_episode_without_a_partial_score_drops_out_of_this_metric_alone() -> None:
    frame = scored(["0", "0", "1", "0"], {0: 0.25, 1: 0.75, 3: None})
    row = row_of(partial_scores(frame, seed=1, resamples=500), scope="cell")
    assert (row["n"], row["episodes"], row["without_score"]) == (3, 3, 1)
    assert row["partial_score"] == pytest.approx((0.25 + 0.75 + 1) / 3)
    rate = row_of(pass_rates(frame, seed=1, resamples=500), scope="cell")
    assert (rate["n"], rate["pass_rate"]) == (4, 0.25)


def test_scores_that_are_all_or_nothing_have_the_interval_of_the_pass_rate() -> None:
    frame = episodes({cell(): ["11", "10", "00", "01", "11"], cell("b"): ["1", "0", "1", "1", "0"]})
    partial = partial_scores(frame, seed=1, resamples=500)
    rates = pass_rates(frame, seed=1, resamples=500)
    np.testing.assert_allclose(
        partial[["partial_score", "ci_low", "ci_high"]], rates[["pass_rate", "ci_low", "ci_high"]]
    )


def test_no_partial_score_at_all_is_null_with_a_reason() -> None:
    frame = scored(["0", "1"], {0: None, 1: None})
    for table in (frame, frame.drop(columns="partial_score")):
        row = row_of(partial_scores(table, seed=1, resamples=100), scope="cell")
        assert (row["n"], row["without_score"], row["reason"]) == (0, 2, "no episode has a partial score")
        assert row[["partial_score", "ci_low", "ci_high"]].isna().all()


def test_an_infrastructure_error_is_counted_as_without_a_score() -> None:
    row = row_of(partial_scores(episodes({cell(): ["1x", "0"]}), seed=1, resamples=100), scope="cell")
    assert (row["episodes"], row["without_score"], row["partial_score"]) == (2, 1, 0.5)
