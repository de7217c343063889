"""Corrections against statsmodels and pingouin."""

from __future__ import annotations

import pingouin as pg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from flows.stats.multiplicity import benjamini_hochberg, bonferroni_confidence, holm

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_four_reference_values() -> None:
    assert holm([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert benjamini_hochberg([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04] * 4)


@settings(max_examples=12, deadline=None)
@given(P_VALUES)
def test_holm_agrees_with_statsmodels(ps: list[float]) -> None:
    assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist())


def test_holm_agrees_with_pingouin() -> None:
    ps = [0.2, 0.001, 0.04, 0.04, 0.9, 0.012]
    assert holm(ps) == pytest.approx(pg.multicomp(ps, method="holm")[1].tolist())


@given(P_VALUES)
def test_benjamini_hochberg_agrees_with_statsmodels(ps: list[float]) -> None:
    assert benjamini_hochberg(ps) == pytest.approx(multipletests(ps, method="fdr_bh")[1].tolist())


@given(P_VALUES, st.integers(0, 5))
def test_a_missing_p_value_keeps_its_place_in_the_family(ps: list[float], missing: int) -> None:
    with_nulls = holm([*ps, *[None] * missing])
    assert with_nulls[len(ps) :] == [None] * missing
    assert with_nulls[: len(ps)] == pytest.approx(holm([*ps, *[1.0] * missing])[: len(ps)])


def test_bonferroni_confidence_shares_alpha() -> None:
    assert bonferroni_confidence(0.05, 8) == pytest.approx(0.99375)
    assert bonferroni_confidence(0.05, 0) == pytest.approx(0.95)


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_values_outside_the_unit_interval_are_refused(correct: object) -> None:
    assert callable(correct)
    with pytest.raises(ValueError, match="p values"):
        correct([0.5, 1.5])
    assert correct([]) == []
