"""Whether a benchmark discriminates: what an interval allows to be said of the share of failures."""

from __future__ import annotations

from typing import Any

import pytest

from flows.service.band import HIGH, LOW, band_of, firing, runs_to_decide


def test_five_runs_decide_nothing_that_the_band_could_hold() -> None:
    words = {failures: band_of(5, failures).word.partition(":")[0] for failures in range(6)}
    assert set(words.values()) == {"undecided"}
    assert (band_of(5, 1).low, band_of(5, 1).high) == pytest.approx((0.00505, 0.71642), abs=1e-5)  # Clopper, Pearson


@pytest.mark.parametrize(
    ("runs", "failures", "word"),
    [
        (17, 0, "does not discriminate: too few runs fail"),
        (17, 17, "does not discriminate: too few runs pass"),
        (40, 3, "does not discriminate: too few runs fail"),
        (100, 50, "discriminates"),
        (100, 35, "undecided"),
        (10, 5, "undecided"),
        (1, 0, "undecided"),
    ],
)
def test_the_word_is_what_the_interval_says(runs: int, failures: int, word: str) -> None:
    assert band_of(runs, failures).word.startswith(word)


def test_the_fewest_runs_that_can_lie_in_the_band() -> None:
    enough = runs_to_decide()
    assert band_of(enough, enough // 2).word.startswith("discriminates")
    for runs in range(1, enough):
        for failures in range(runs + 1):
            band = band_of(runs, failures)
            assert not (band.low >= LOW and band.high <= HIGH)


def test_no_runs_have_no_share() -> None:
    with pytest.raises(ValueError, match="need n > 0"):
        band_of(0, 0)


def test_a_criterion_fires_among_the_runs_that_reached_it() -> None:
    def evaluation(*statuses: str) -> dict[str, Any]:
        return {"criteria": [{"id": f"AC{n}", "status": status} for n, status in enumerate(statuses, start=1)]}

    evaluations = [
        evaluation("pass", "fail", "not_reached"),
        evaluation("pass", "pass", "fail"),
        evaluation("pass", "pass", "pass"),
    ]
    assert firing(evaluations) == {"AC1": (0, 3), "AC2": (1, 3), "AC3": (1, 2)}
    assert firing([]) == {}
