"""What the data say about each registered hypothesis.

theta = sign x difference, with its 95% interval (L, U) and 90% interval (l, u); m is the smallest effect of
interest.

* directional: supported if L > 0; otherwise refuted if U < m; otherwise inconclusive. Its magnitude is
  meaningful if L >= m, negligible if U < m, otherwise uncertain.
* equivalence (two one-sided tests, Schuirmann 1987): supported if -m < l and u < m; refuted if L >= m or
  U <= -m; otherwise inconclusive.

P values invert the reported interval. Holm's correction over all registered hypotheses, for support and for
refutation separately, gives the final label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from flows.stats.cells import BASELINE, Condition, ScoreCube, score_cube
from flows.stats.columns import Field, build_table
from flows.stats.deltas import scope_contrasts
from flows.stats.estimate import Estimate
from flows.stats.hypotheses import MEAN, Hypothesis, Registration
from flows.stats.multiplicity import bonferroni_confidence, holm
from flows.stats.scopes import overall_scope

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


def ceiling_or_floor(cube: ScoreCube, axis: str, level: str) -> str | None:
    """Why nothing could have moved: every model passes everything, or fails everything, in both arms.

    Args:
        level: A level of the axis, or `mean` for all of them.
    """
    arms = [[BASELINE], [Condition(axis, one) for one in cube.levels(axis) if level in (one, MEAN)]]
    positions = [[k for one in arm if (k := cube.index(one)) is not None] for arm in arms]
    scored = [sum(int(runs[:, :, arm].sum()) for runs in cube.runs.values()) for arm in positions]
    if not all(scored):
        return None
    both = [*positions[0], *positions[1]]
    reached = set()
    for model in range(len(cube.models)):
        means = np.concatenate([cube.means[h][:, model, both].ravel() for h in cube.strata])
        rates = np.unique(means[~np.isnan(means)])
        if len(rates) and rates.tolist() not in ([0.0], [1.0]):
            return None
        reached |= {"ceiling" if rate else "floor" for rate in rates}
    return f"{' and '.join(sorted(reached))}: every model passes or fails everything, so nothing could have moved"


VERDICT_FIELDS: dict[str, Field] = {
    "registration": Field(
        "str", "which registered texts judge, `; ` between them: commit and hash, or why there is none"
    ),
    "before_rows": Field("boolean", "whether those texts were committed before the rows they judge; null if unknown"),
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
    "final_label": Field("str", "label after Holm's correction over all registered hypotheses"),
    "magnitude": Field("str", "meaningful, negligible or uncertain; null for equivalence"),
    "p_support": Field("Float64", "p value for support, from inverting the interval"),
    "p_support_holm": Field("Float64", "the same after Holm's correction"),
    "p_refute": Field("Float64", "p value for refutation, from inverting the interval"),
    "p_refute_holm": Field("Float64", "the same after Holm's correction"),
    "family_size": Field(
        "int64", "registered hypotheses, amended ones beside what they replace: the family corrected over"
    ),
    "n": Field("int64", "instances that entered"),
    "method": Field("str", "method of the interval"),
    "missing": Field("str", "what was dropped because an arm lacked it"),
    "reason": Field("str", "why nothing could be concluded, if not for the width of the interval"),
}
"""Columns of `verdict_table`."""


@dataclass(frozen=True)
class _Judged:
    """One hypothesis and the registrations that make it, as positions in the order of the texts."""

    hypothesis: Hypothesis
    by: tuple[int, ...]


def verdict_table(
    frame: pd.DataFrame, registrations: Sequence[Registration], *, seed: int, resamples: int
) -> pd.DataFrame:
    """One row per registered hypothesis, in the order first registered; columns as in `VERDICT_FIELDS`.

    Every row is judged by the text in force when it started. A hypothesis that successive texts register alike (wording
    aside) is one, and all their rows judge it: an amendment elsewhere does not split its arms. One that was amended is
    two, each judged by the rows of its own texts alone: rows that were known when it was written must not decide it,
    nor lend it a baseline, since a baseline that is high by chance foretells a fall. All of them are one family.

    Args:
        frame: Results of one benchmark.
        registrations: In the order in which they came into force.
    """
    judged = _distinct(registrations)
    estimates: dict[int, tuple[Estimate, str | None]] = {}
    for by in dict.fromkeys(one.by for one in judged):
        own = [k for k, one in enumerate(judged) if one.by == by]
        texts = [registrations[k] for k in by]
        estimates |= zip(
            own, _estimates(frame, texts, [judged[k].hypothesis for k in own], seed, resamples), strict=True
        )
    return build_table(_verdicts(judged, registrations, [estimates[k] for k in range(len(judged))]), VERDICT_FIELDS)


def _distinct(registrations: Sequence[Registration]) -> list[_Judged]:
    """One per hypothesis and unbroken run of texts: what was withdrawn and registered again is another one, since
    whoever did so knew the rows before."""
    found: list[tuple[Hypothesis, list[int]]] = []
    latest: dict[tuple[object, ...], list[int]] = {}
    for position, registration in enumerate(registrations):
        for hypothesis in registration.hypotheses:
            by = latest.get(hypothesis.claim())
            if by is not None and by[-1] == position - 1:
                by.append(position)
            else:
                latest[hypothesis.claim()] = [position]
                found.append((hypothesis, latest[hypothesis.claim()]))
    return [_Judged(hypothesis, tuple(by)) for hypothesis, by in found]


def _estimates(
    frame: pd.DataFrame,
    texts: Sequence[Registration],
    hypotheses: Sequence[Hypothesis],
    seed: int,
    resamples: int,
) -> list[tuple[Estimate, str | None]]:
    """Each hypothesis's difference in the rows that the texts judge, and what forbids a conclusion."""
    own = np.logical_or.reduce([text.judges(frame).to_numpy(dtype=bool) for text in texts])
    cube = score_cube(frame[own])
    wanted = [(one.axis, one.level) for one in hypotheses]
    found = scope_contrasts(cube, overall_scope(cube), wanted, seed=seed, resamples=resamples)
    split = "" if own.all() else ", among the rows that started while it was registered"
    found = [one if one.reason is None else replace(one, reason=one.reason + split) for one in found]
    return [(one, ceiling_or_floor(cube, *level)) for one, level in zip(found, wanted, strict=True)]


def _verdicts(
    judged: Sequence[_Judged],
    registrations: Sequence[Registration],
    estimates: Sequence[tuple[Estimate, str | None]],
) -> list[Mapping[str, object]]:
    family = len(judged)
    confidence = bonferroni_confidence(ALPHA, family)
    judgements = [
        judge(one.hypothesis, estimate, blocked=blocked)
        for one, (estimate, blocked) in zip(judged, estimates, strict=True)
    ]
    support = holm([judgement.p_support for judgement in judgements])
    refute = holm([judgement.p_refute for judgement in judgements])
    final = final_labels(judgements)
    rows: list[Mapping[str, object]] = []
    for k, (one, (estimate, _), judgement) in enumerate(zip(judged, estimates, judgements, strict=True)):
        bounds: dict[str, float | None] = {}
        for name, level in (("95", 1 - ALPHA), ("90", 1 - 2 * ALPHA), ("bonferroni", confidence)):
            bounds[f"lo_{name}"], bounds[f"hi_{name}"] = estimate.interval(level)
        texts = [registrations[position] for position in one.by]
        rows.append(
            {
                "registration": "; ".join(text.name for text in texts),
                "before_rows": _all_before(texts),
                **one.hypothesis.model_dump(
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


def _all_before(texts: Sequence[Registration]) -> bool | None:
    """Whether each text was committed before the rows it judges; null if that is unknown of one, true of the rest."""
    known = {text.before_rows for text in texts}
    return False if False in known else None if None in known else True
