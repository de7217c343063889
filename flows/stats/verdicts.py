"""What the data say about each registered hypothesis.

theta = sign x difference, with its 95% interval (L, U) and 90% interval (l, u); m is the smallest effect of
interest.

* directional: supported if L > 0; otherwise refuted if U < m; otherwise inconclusive. Its magnitude is
  meaningful if L >= m, negligible if U < m, otherwise uncertain.
* equivalence (two one-sided tests, Schuirmann 1987): supported if -m < l and u < m; refuted if L >= m or
  U <= -m; otherwise inconclusive.

P values invert the reported interval. Holm's correction over the whole registration, for support and for
refutation separately, gives the final label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from flows.stats.cells import BASELINE
from flows.stats.columns import Field, build_table
from flows.stats.deltas import axis_contrast
from flows.stats.estimate import Estimate
from flows.stats.hypotheses import MEAN, Hypothesis, Registration
from flows.stats.multiplicity import bonferroni_confidence, holm

Label = Literal["supported", "refuted", "inconclusive"]
Magnitude = Literal["meaningful", "negligible", "uncertain"]

ALPHA = 0.05


@dataclass(frozen=True)
class Judgement:
    """One hypothesis against one estimate, before any correction."""

    label: Label
    supports: bool
    """The condition for support holds."""
    refutes: bool
    """The condition for refutation holds; both can, for a small but certain effect."""
    p_support: float | None
    p_refute: float | None
    magnitude: Magnitude | None
    """Null for an equivalence hypothesis and without an interval."""
    reason: str | None
    """Why nothing could be concluded, if not for the width of the interval."""


def judge(hypothesis: Hypothesis, estimate: Estimate, *, blocked: str | None = None) -> Judgement:
    """Section by section as in the module's docstring.

    Args:
        estimate: Perturbed minus baseline pass rate.
        blocked: A reason that forbids a conclusion whatever the interval (a ceiling or floor).
    """
    low, high = estimate.interval(1 - ALPHA)
    inner_low, inner_high = estimate.interval(1 - 2 * ALPHA)
    reason = blocked or (estimate.reason if low is None else None)
    if low is None and reason is None:
        reason = "no interval"
    if reason is not None or low is None or high is None or inner_low is None or inner_high is None:
        return Judgement("inconclusive", False, False, None, None, None, reason)
    m = hypothesis.smallest_effect
    if hypothesis.kind == "directional":
        rising = hypothesis.sign == 1
        lower, upper = (low, high) if rising else (-high, -low)
        supports, refutes = lower > 0, upper < m
        p_support = _doubled(estimate.p_value(0.0, "greater" if rising else "less"))
        p_refute = _doubled(estimate.p_value(m if rising else -m, "less" if rising else "greater"))
        magnitude: Magnitude | None = "meaningful" if lower >= m else "negligible" if upper < m else "uncertain"
    else:
        supports, refutes = -m < inner_low and inner_high < m, low >= m or high <= -m
        above, below = estimate.p_value(-m, "greater"), estimate.p_value(m, "less")
        beyond, beneath = estimate.p_value(m, "greater"), estimate.p_value(-m, "less")
        p_support = None if above is None or below is None else max(above, below)
        p_refute = None if beyond is None or beneath is None else _doubled(min(beyond, beneath))
        magnitude = None
    label: Label = "supported" if supports else "refuted" if refutes else "inconclusive"
    return Judgement(label, supports, refutes, p_support, p_refute, magnitude, None)


def _doubled(p: float | None) -> float | None:
    return None if p is None else min(1.0, 2 * p)


def final_labels(judgements: Sequence[Judgement], alpha: float = ALPHA) -> list[Label]:
    """Labels after Holm's correction over all judgements given, support and refutation separately."""
    support = holm([judgement.p_support for judgement in judgements])
    refute = holm([judgement.p_refute for judgement in judgements])
    labels: list[Label] = []
    for judgement, for_support, for_refute in zip(judgements, support, refute, strict=True):
        if judgement.supports and for_support is not None and for_support <= alpha:
            labels.append("supported")
        elif judgement.refutes and for_refute is not None and for_refute <= alpha:
            labels.append("refuted")
        else:
            labels.append("inconclusive")
    return labels


def ceiling_or_floor(frame: pd.DataFrame, axis: str, level: str) -> str | None:
    """Why nothing could have moved: every model passes everything, or fails everything, in both arms.

    Args:
        frame: Results of one benchmark.
        level: A level of the axis, or `mean` for all of them.
    """
    scored = frame[frame["passed"].notna()]
    baseline = (scored["axis"] == BASELINE.axis) & (scored["level"] == BASELINE.level)
    perturbed = (scored["axis"] == axis) & ((scored["level"] == level) | (level == MEAN))
    if not baseline.any() or not perturbed.any():
        return None
    rates = scored[baseline | perturbed].groupby("model")["passed"].agg(["min", "max"])
    if (rates["min"] != rates["max"]).any():
        return None
    reached = sorted({"ceiling" if passes else "floor" for passes in rates["max"].astype(bool)})
    return f"{' and '.join(reached)}: every model passes or fails everything, so nothing could have moved"


VERDICT_FIELDS: dict[str, Field] = {
    "registration": Field("str", "which registered text judges: its commit and hash, or why there is none"),
    "before_rows": Field("boolean", "whether that text was committed before the rows it judges; null if unknown"),
    "id": Field("str", "the hypothesis"),
    "text": Field("str", "its registered prose"),
    "amended": Field("str", "date of the amendment that registers it; null if there is none"),
    "axis": Field("str", "perturbation axis"),
    "level": Field("str", "level of the axis, or `mean`"),
    "kind": Field("str", "directional or equivalence"),
    "sign": Field("Int64", "registered direction; null for equivalence"),
    "smallest_effect": Field("Float64", "smallest difference of interest, as a fraction"),
    "delta": Field("Float64", "perturbed minus baseline pass rate"),
    "lo_95": Field("Float64", "lower end of the 95% interval of delta, unadjusted"),
    "hi_95": Field("Float64", "upper end of the 95% interval of delta, unadjusted"),
    "lo_90": Field("Float64", "lower end of the 90% interval of delta, unadjusted"),
    "hi_90": Field("Float64", "upper end of the 90% interval of delta, unadjusted"),
    "bonferroni_confidence": Field("Float64", "confidence at which the hypotheses' 95% intervals hold jointly"),
    "lo_bonferroni": Field("Float64", "lower end of the interval of delta at that confidence"),
    "hi_bonferroni": Field("Float64", "upper end of the interval of delta at that confidence"),
    "label": Field("str", "unadjusted label: supported, refuted or inconclusive"),
    "final_label": Field("str", "label after Holm's correction over the registration"),
    "magnitude": Field("str", "meaningful, negligible or uncertain; null for equivalence"),
    "p_support": Field("Float64", "p value for support, from inverting the interval"),
    "p_support_holm": Field("Float64", "the same after Holm's correction"),
    "p_refute": Field("Float64", "p value for refutation, from inverting the interval"),
    "p_refute_holm": Field("Float64", "the same after Holm's correction"),
    "family_size": Field("int64", "hypotheses in the registration: the family of the corrections"),
    "n": Field("int64", "instances that entered"),
    "method": Field("str", "method of the interval"),
    "missing": Field("str", "what was dropped because an arm lacked it"),
    "reason": Field("str", "why nothing could be concluded, if not for the width of the interval"),
}
"""Columns of `verdict_table`."""

Contrast = Callable[[pd.DataFrame, Hypothesis], Estimate]


def verdict_table(
    frame: pd.DataFrame, registrations: Sequence[Registration], *, seed: int, resamples: int
) -> pd.DataFrame:
    """One row per registration and hypothesis, in the order registered; columns as in `VERDICT_FIELDS`.

    Every registration judges its own rows; its hypotheses are one family.

    Args:
        frame: Results of one benchmark.
    """

    def contrast(rows: pd.DataFrame, hypothesis: Hypothesis) -> Estimate:
        return axis_contrast(rows, hypothesis.axis, hypothesis.level, seed=seed, resamples=resamples)

    rows = [row for registration in registrations for row in _verdicts(frame, registration, contrast)]
    return build_table(rows, VERDICT_FIELDS)


def _verdicts(frame: pd.DataFrame, registration: Registration, contrast: Contrast) -> list[dict[str, object]]:
    own = registration.rows(frame)
    family = len(registration.hypotheses)
    confidence = bonferroni_confidence(ALPHA, family)
    estimates = [contrast(own, hypothesis) for hypothesis in registration.hypotheses]
    judgements = [
        judge(hypothesis, estimate, blocked=ceiling_or_floor(own, hypothesis.axis, hypothesis.level))
        for hypothesis, estimate in zip(registration.hypotheses, estimates, strict=True)
    ]
    support = holm([judgement.p_support for judgement in judgements])
    refute = holm([judgement.p_refute for judgement in judgements])
    final = final_labels(judgements)
    rows: list[dict[str, object]] = []
    for k, (hypothesis, estimate, judgement) in enumerate(
        zip(registration.hypotheses, estimates, judgements, strict=True)
    ):
        bounds: dict[str, float | None] = {}
        for name, level in (("95", 1 - ALPHA), ("90", 1 - 2 * ALPHA), ("bonferroni", confidence)):
            bounds[f"lo_{name}"], bounds[f"hi_{name}"] = estimate.interval(level)
        rows.append(
            {
                "registration": registration.name,
                "before_rows": registration.before_rows,
                **hypothesis.model_dump(
                    include={"id", "text", "amended", "axis", "level", "kind", "sign", "smallest_effect"}
                ),
                "delta": estimate.value,
                **bounds,
                "bonferroni_confidence": confidence,
                "label": judgement.label,
                "final_label": final[k],
                "magnitude": judgement.magnitude,
                "p_support": judgement.p_support,
                "p_support_holm": support[k],
                "p_refute": judgement.p_refute,
                "p_refute_holm": refute[k],
                "family_size": family,
                "n": estimate.n,
                "method": estimate.method,
                "missing": "; ".join(estimate.notes) or None,
                "reason": judgement.reason,
            }
        )
    return rows
