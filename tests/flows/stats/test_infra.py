from __future__ import annotations

import pandas as pd
import pytest

from flows.stats.infra import infra_errors
from flows.stats.intervals import wilson
from tests.flows.stats.frames import cell, episodes, row_of


def test_rate_bounds_and_difference_from_the_baseline() -> None:
    frame = episodes(
        {cell(): ["11", "00", "1x"], cell(axis="distractors", level="5"): ["1x", "xx", "00"]},
    )
    row = row_of(infra_errors(frame), scope="cell", axis="distractors")
    assert (row["episodes"], row["infra_errors"], row["infra_rate"]) == (6, 3, 0.5)
    # by hand: residuals 0, 1, -1 of six episodes, so n_eff = .25 / (3/2 · 2 / 36) = 3
    assert (row["infra_rate_low"], row["infra_rate_high"]) == pytest.approx(wilson(1.5, 3))
    assert row["minus_baseline"] == pytest.approx(0.5 - 1 / 6)
    assert row["pass_rate"] == 0.5
    assert row["if_infra_failed"] == pytest.approx(0.5 / 3)
    assert row["if_infra_passed"] == pytest.approx(2 / 3)
    assert not row["nothing_scored"]


def test_errors_that_come_together_count_as_one_instance_and_scattered_ones_as_episodes() -> None:
    def interval(instances: list[str]) -> tuple[float, float]:
        row = row_of(infra_errors(episodes({cell(): instances})), scope="cell")
        assert row["infra_rate"] == 0.25
        return row["infra_rate_low"], row["infra_rate_high"]

    assert interval(["xxxx", "1111", "1010", "0110"] * 5) == pytest.approx(wilson(5, 20))
    assert interval(["x111", "1x11", "10x0", "011x"] * 5) == pytest.approx(wilson(20, 80))


def test_a_cell_of_nothing_but_errors_stands_out() -> None:
    frame = episodes({cell("a"): ["1", "0"], cell("b"): ["x", "x"]})
    row = row_of(infra_errors(frame), scope="cell", model="b")
    assert row["nothing_scored"]
    assert pd.isna(row["pass_rate"])
    assert row["reason"] == "no scored episode"
    assert (row["if_infra_failed"], row["if_infra_passed"]) == (0, 1)
    assert row_of(infra_errors(frame), scope="overall")["infra_errors"] == 2


def test_without_errors_the_bounds_are_the_rate() -> None:
    table = infra_errors(episodes({cell(): ["11", "10"]}))
    assert (table["if_infra_failed"] == table["pass_rate"]).all()
    assert (table["if_infra_passed"] == table["pass_rate"]).all()


def test_without_a_baseline_there_is_no_difference() -> None:
    row = row_of(infra_errors(episodes({cell(axis="order", level="s"): ["1", "x"]})), scope="cell")
    assert pd.isna(row["minus_baseline"])
    assert row["infra_rate"] == 0.5
