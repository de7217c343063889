from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import cochrans_q
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from flows.stats.paired_tests import cochran, mcnemar


@pytest.mark.parametrize(
    ("gained", "lost", "exact", "mid_p"),
    [(12, 2, 0.0129395, 0.0073853), (10, 3, 0.0922852, 0.0573730), (5, 5, 1, 0.753906), (0, 0, 1, 1)],
)
def test_mcnemar_reproduces_published_values(gained: int, lost: int, exact: float, mid_p: float) -> None:
    assert mcnemar(gained, lost) == pytest.approx((exact, mid_p), abs=1e-6)
    assert mcnemar(lost, gained) == mcnemar(gained, lost)


@pytest.mark.parametrize(("gained", "lost"), [(1, 0), (7, 3), (40, 55)])
def test_exact_mcnemar_is_the_binomial_test(gained: int, lost: int) -> None:
    assert mcnemar(gained, lost).exact == pytest.approx(stats.binomtest(gained, gained + lost).pvalue)
    table = [[10, gained], [lost, 10]]
    assert mcnemar(gained, lost).exact == pytest.approx(statsmodels_mcnemar(table, exact=True).pvalue)


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar(-1, 2)


def outcomes(*rows: str) -> np.ndarray:
    return np.array([[float(character) for character in row] for row in rows])


def test_cochran_reproduces_the_published_value_and_statsmodels() -> None:
    table = outcomes("110", "111", "100", "110", "010", "100")
    result = cochran(table)
    assert result == pytest.approx((5.2, 0.0742736), abs=1e-7)
    theirs = cochrans_q(table)
    assert result == pytest.approx((theirs.statistic, theirs.pvalue))


@pytest.mark.parametrize("rows", [("111", "111"), ("000", "000", "000"), ("111", "000")])
def test_cochran_without_variation_within_instances_has_p_one(rows: tuple[str, ...]) -> None:
    assert cochran(outcomes(*rows)) == (0.0, 1.0)


def test_cochran_refuses_what_is_not_binary_or_not_repeated() -> None:
    with pytest.raises(ValueError, match="0/1"):
        cochran(np.array([[0.5, 1.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="two instances"):
        cochran(np.array([[0.0, 1.0]]))
