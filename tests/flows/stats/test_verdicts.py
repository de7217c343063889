"""Verdicts: every rule on its boundary, p values against TOST by other routes, corrections, and missing data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pingouin as pg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from flows.stats.cells import score_cube
from flows.stats.estimate import Estimate, undefined
from flows.stats.hypotheses import Hypothesis, Registration
from flows.stats.verdicts import VERDICT_FIELDS, ceiling_or_floor, final_labels, judge, verdict_table
from tests.flows.stats.synthetic import Plan, Spread, synthetic_results


def directional(sign: int = -1, m: float = 0.03, **changes: object) -> Hypothesis:
    values = {"id": "H", "axis": "tool_names", "level": "opaque", "kind": "directional", "smallest_effect": m}
    return Hypothesis.model_validate({**values, "sign": sign, **changes})


def equivalence(m: float = 0.03, **changes: object) -> Hypothesis:
    values = {"id": "E", "axis": "paraphrase", "level": "mean", "kind": "equivalence", "smallest_effect": m}
    return Hypothesis.model_validate({**values, **changes})


def _normal_bounds(value: float, se: float, confidence: float) -> tuple[float, float]:
    half = float(stats.norm.isf((1 - confidence) / 2)) * se
    return value - half, value + half


def normal(value: float, se: float) -> Estimate:
    return Estimate(value, 100, "normal", bounds=partial(_normal_bounds, value, se))


SE = 0.01
Z95, Z90 = 1.959964, 1.644854


@pytest.mark.parametrize(
    ("theta", "label", "magnitude"),
    [
        (0.03 + Z95 * SE + 1e-4, "supported", "meaningful"),
        (0.03 + Z95 * SE - 1e-4, "supported", "uncertain"),
        (Z95 * SE + 1e-4, "supported", "uncertain"),
        (Z95 * SE - 1e-4, "inconclusive", "uncertain"),
        (0.03 - Z95 * SE + 1e-4, "inconclusive", "uncertain"),
        (0.03 - Z95 * SE - 1e-4, "refuted", "negligible"),
        (-0.2, "refuted", "negligible"),
    ],
)
@pytest.mark.parametrize("sign", [-1, 1])
def test_directional_rules_at_their_boundaries(theta: float, label: str, magnitude: str, sign: int) -> None:
    found = judge(directional(sign), normal(sign * theta, SE))
    assert (found.label, found.magnitude) == (label, magnitude)


def test_a_certain_but_negligible_effect_is_supported_and_negligible() -> None:
    found = judge(directional(1), normal(0.01, 0.002))
    assert (found.label, found.magnitude) == ("supported", "negligible")
    assert found.supports
    assert found.refutes


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize(
    ("delta", "label"),
    [
        (0.0, "supported"),
        (0.03 - Z90 * SE - 1e-4, "supported"),
        (0.03 - Z90 * SE + 1e-4, "inconclusive"),
        (0.03 + Z95 * SE - 1e-4, "inconclusive"),
        (0.03 + Z95 * SE + 1e-4, "refuted"),
    ],
)
def test_equivalence_rules_at_their_boundaries(delta: float, label: str, side: int) -> None:
    found = judge(equivalence(), normal(side * delta, SE))
    assert (found.label, found.magnitude) == (label, None)


@settings(deadline=None, max_examples=50)
@given(st.floats(-0.2, 0.2), st.floats(0.001, 0.1), st.booleans())
def test_unadjusted_labels_agree_with_their_p_values(delta: float, se: float, is_directional: bool) -> None:
    found = judge(directional() if is_directional else equivalence(), normal(delta, se))
    assert found.p_support is not None
    assert found.p_refute is not None
    if abs(found.p_support - 0.05) > 1e-6 and abs(found.p_refute - 0.05) > 1e-6:
        assert found.supports == (found.p_support < 0.05)
        assert found.refutes == (found.p_refute < 0.05)


def _t_bounds(d: np.ndarray, confidence: float) -> tuple[float, float]:
    low, high = stats.t.interval(confidence, len(d) - 1, d.mean(), stats.sem(d))
    return float(low), float(high)


def test_equivalence_p_value_is_that_of_two_one_sided_tests() -> None:
    base = np.array([int(digit) for digit in "1111001101"], dtype=float)
    perturbed = np.array([int(digit) for digit in "1011000111"], dtype=float)
    d = perturbed - base
    estimate = Estimate(float(d.mean()), len(d), "t", bounds=partial(_t_bounds, d))
    found = judge(equivalence(0.3), estimate)
    assert found.p_support == pytest.approx(0.147037, abs=1e-6)
    assert found.p_support == pytest.approx(
        float(pg.tost(perturbed, base, bound=0.3, paired=True)["pval"].iloc[0]), abs=1e-6
    )
    assert found.p_support == pytest.approx(ttost_paired(perturbed, base, -0.3, 0.3)[0], abs=1e-6)
    assert estimate.interval(0.9) == pytest.approx((-0.42905, 0.22905), abs=1e-5)


def test_directional_p_value_is_the_two_sided_one_in_the_registered_direction() -> None:
    found = judge(directional(-1), normal(-0.02, SE))
    assert found.p_support == pytest.approx(2 * stats.norm.sf(2.0), abs=1e-6)
    assert judge(directional(1), normal(-0.02, SE)).p_support == pytest.approx(1.0)


def test_holm_decides_the_final_label_and_leaves_the_unadjusted_one() -> None:
    found = [judge(directional(1), normal(z * SE, SE)) for z in (2.0, 2.2, 4.0, 1.8)]
    assert [one.label for one in found] == ["supported", "supported", "supported", "inconclusive"]
    assert final_labels(found) == ["inconclusive", "inconclusive", "supported", "inconclusive"]


def test_support_and_refutation_are_corrected_separately() -> None:
    supported = [judge(directional(1), normal(2.5 * SE, SE))]
    refuted = [judge(directional(1), normal(-0.1, SE)) for _ in range(5)]
    assert final_labels(supported) == ["supported"]
    assert final_labels(supported + refuted) == ["inconclusive", *["refuted"] * 5]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.floats(-0.1, 0.1), st.floats(0.002, 0.05)), min_size=1, max_size=8))
def test_correction_never_makes_a_conclusion_of_none(cases: list[tuple[float, float]]) -> None:
    found = [judge(directional(1), normal(*case)) for case in cases]
    for one, final in zip(found, final_labels(found), strict=True):
        assert final == "inconclusive" or (one.supports if final == "supported" else one.refutes)


def test_an_undefined_estimate_is_inconclusive_with_its_reason() -> None:
    for hypothesis in (directional(), equivalence()):
        found = judge(hypothesis, undefined("fewer than two instances", n=1, value=0.5))
        assert (found.label, found.reason) == ("inconclusive", "fewer than two instances")
        assert found.p_support is None
        assert found.magnitude is None


PLAN = Plan(
    models=("a", "b"),
    strata=(("tabular", "easy"), ("query", "easy")),
    levels={"none": ("baseline",), "tool_names": ("opaque",), "paraphrase": ("p1", "p2"), "order": ("shuffled",)},
    instances=60,
    runs=3,
    spread=Spread(instance=0.2, model_instance=0.0),
)
HYPOTHESES = (
    directional(-1, id="H-OPAQUE"),
    directional(1, id="H-OPAQUE-RISES"),
    equivalence(0.08, id="H-PARAPHRASE"),
    equivalence(0.08, id="H-ABSENT", axis="temperature"),
)


def verdicts(frame: pd.DataFrame, *registrations: Registration) -> pd.DataFrame:
    chosen = registrations or (Registration(HYPOTHESES),)
    return verdict_table(frame, chosen, seed=1, resamples=500).set_index("id")


def test_known_effects_are_found() -> None:
    plan = replace(PLAN, effects={(None, "tool_names", "opaque"): -0.25})
    table = verdicts(synthetic_results(plan, 2))
    assert table.loc["H-OPAQUE", "final_label"] == "supported"
    assert table.loc["H-OPAQUE", "magnitude"] == "meaningful"
    assert table.loc["H-OPAQUE-RISES", "final_label"] == "refuted"
    assert table.loc["H-PARAPHRASE", "label"] == "supported"
    assert table.loc["H-ABSENT", "label"] == "inconclusive"
    assert table.loc["H-ABSENT", "reason"] == "no row for axis temperature"


def test_the_table_is_documented_and_its_intervals_are_nested() -> None:
    table = verdict_table(synthetic_results(PLAN, 2), [Registration(HYPOTHESES)], seed=1, resamples=500)
    assert list(table.columns) == list(VERDICT_FIELDS)
    known = table[table["delta"].notna()]
    assert (known["family_size"] == 4).all()
    assert (known["bonferroni_confidence"] == 1 - 0.05 / 4).all()
    assert (known["lo_bonferroni"] <= known["lo_95"]).all()
    assert (known["lo_95"] <= known["lo_90"]).all()
    assert (known["lo_90"] <= known["hi_90"]).all()
    assert (known["hi_90"] <= known["hi_95"]).all()
    assert (known["hi_95"] <= known["hi_bonferroni"]).all()
    assert (known["p_support_holm"] >= known["p_support"]).all()


@pytest.mark.parametrize(("passed", "word"), [(True, "ceiling"), (False, "floor")])
def test_at_a_ceiling_or_floor_nothing_is_concluded(passed: bool, word: str) -> None:
    frame = synthetic_results(PLAN, 2)
    frame["passed"] = pd.array([passed] * len(frame), dtype="boolean")
    table = verdicts(frame)
    for name in ("H-OPAQUE", "H-PARAPHRASE"):
        assert table.loc[name, "label"] == table.loc[name, "final_label"] == "inconclusive"
        assert word in table.loc[name, "reason"]


def test_models_at_opposite_ends_are_ceiling_and_floor() -> None:
    frame = synthetic_results(PLAN, 2)
    frame["passed"] = (frame["model"] == "a").astype("boolean")
    reason = ceiling_or_floor(score_cube(frame), "paraphrase", "mean")
    assert reason is not None
    assert reason.startswith("ceiling and floor")
    frame.loc[frame.index[frame["axis"] == "paraphrase"][0], "passed"] = True
    frame.loc[frame.index[frame["axis"] == "paraphrase"][1], "passed"] = False
    assert ceiling_or_floor(score_cube(frame), "paraphrase", "mean") is None


def test_a_single_model_at_the_ceiling_does_not_block_the_others() -> None:
    frame = synthetic_results(PLAN, 2)
    frame["passed"] = frame["passed"].where(frame["model"] != "a", True)
    assert ceiling_or_floor(score_cube(frame), "paraphrase", "mean") is None


def test_one_instance_is_inconclusive() -> None:
    frame = synthetic_results(replace(PLAN, instances=1, strata=(("tabular", "easy"),)), 2)
    frame.loc[frame["axis"] == "paraphrase", "passed"] = ~frame.loc[frame["axis"] == "none", "passed"].iloc[0]
    table = verdicts(frame)
    assert (table["label"] == "inconclusive").all()
    assert table["reason"].notna().all()


MIDDLE = pd.Timestamp("2026-06-01T00:00:00Z").to_pydatetime()


def in_two_halves(late: pd.DataFrame, early: pd.DataFrame) -> pd.DataFrame:
    """Rows before and after `MIDDLE`, as runs 1 to 3 and 4 to 6 of the same instances."""
    later = late.assign(
        started_at=pd.Timestamp("2026-07-01T00:00:00Z"),
        episode_id="late-" + late["episode_id"].astype(str),
        run_seed=late["run_seed"] + 3,
    ).astype({"started_at": "datetime64[us, UTC]"})
    return pd.concat([early, later], ignore_index=True)


def amended(before: tuple[Hypothesis, ...], after: tuple[Hypothesis, ...]) -> list[Registration]:
    return [
        Registration(before, "first", started_until=MIDDLE, before_rows=False),
        Registration(after, "second", started_from=MIDDLE, before_rows=True),
    ]


def test_an_amended_hypothesis_is_two_each_judged_by_its_own_rows() -> None:
    frame = synthetic_results(PLAN, 2)
    late = frame.assign(passed=frame["passed"].mask(frame["axis"] == "tool_names", False))
    stricter = directional(-1, m=0.1, id="H-OPAQUE")
    table = verdict_table(
        in_two_halves(late, frame), amended(HYPOTHESES[:1], (stricter,)), seed=1, resamples=200
    ).set_index("registration")
    alone = verdicts(frame, Registration(HYPOTHESES[:1]))
    assert table.loc["first", "delta"] == pytest.approx(alone.loc["H-OPAQUE", "delta"])
    assert table.loc["second", "delta"] < -0.4
    assert not table.loc["first", "before_rows"]
    assert (table["family_size"] == 2).all(), "the amended and the amending hypothesis are both judged"


def test_an_amendment_elsewhere_does_not_split_a_hypothesis() -> None:
    """Baseline before the amendment, perturbed arm after it: the hypothesis was registered for both."""
    frame = synthetic_results(PLAN, 2)
    perturbed = frame["axis"] != "none"
    whole = frame.assign(started_at=frame["started_at"].mask(perturbed, pd.Timestamp("2026-07-01T00:00:00Z")))
    other = equivalence(0.09, id="H-PARAPHRASE")
    reworded = HYPOTHESES[0].model_copy(update={"text": "in other words", "line": 40, "amended": "2026-06-01"})
    table = verdict_table(
        whole, amended(HYPOTHESES[:1] + HYPOTHESES[2:3], (reworded, other)), seed=1, resamples=500
    ).set_index("registration")
    alone = verdicts(frame, Registration((HYPOTHESES[0], HYPOTHESES[2], other)))
    kept = table.loc["first; second"]
    columns = ["delta", "lo_95", "hi_95", "p_support", "n", "label", "bonferroni_confidence"]
    assert kept[columns].tolist() == alone.loc["H-OPAQUE", columns].tolist()
    assert not kept["before_rows"]
    for name in ("first", "second"):
        assert table.loc[name, "final_label"] == "inconclusive"
        assert table.loc[name, "reason"].endswith("among the rows that started while it was registered")
    assert "no baseline row" in table.loc["second", "reason"]


def test_a_hypothesis_withdrawn_and_registered_again_is_another_one() -> None:
    frame = synthetic_results(PLAN, 2)
    times = frame["started_at"].sort_values()
    first, second = (times.iloc[len(times) * k // 3].to_pydatetime() for k in (1, 2))
    texts = [
        Registration(HYPOTHESES[:1], "first", started_until=first),
        Registration(HYPOTHESES[2:3], "between", started_from=first, started_until=second),
        Registration(HYPOTHESES[:1], "last", started_from=second),
    ]
    table = verdict_table(frame, texts, seed=1, resamples=50)
    assert table["registration"].tolist() == ["first", "between", "last"]
    assert table["id"].tolist() == ["H-OPAQUE", "H-PARAPHRASE", "H-OPAQUE"]
    assert (table["family_size"] == 3).all()


def test_no_registration_gives_an_empty_table_and_no_rows_give_reasons() -> None:
    frame = synthetic_results(PLAN, 2)
    empty = verdict_table(frame, [], seed=1, resamples=10)
    assert list(empty.columns) == list(VERDICT_FIELDS)
    assert len(empty) == 0
    nothing = verdicts(frame.iloc[:0])
    assert (nothing["final_label"] == "inconclusive").all()
    assert nothing["reason"].notna().all()


def test_row_order_changes_no_byte() -> None:
    frame = synthetic_results(PLAN, 2)
    pd.testing.assert_frame_equal(verdicts(frame), verdicts(frame.sample(frac=1, random_state=1)))
