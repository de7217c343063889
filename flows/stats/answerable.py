"""What can be asked of a results table: every analysis, and why the table does not allow it where it does not.

The tables of an analysis give a reason in every row that lacks a number; this says it once, before any of them is
made. Light to import.
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from flows.stats.cells import BASELINE, UNPAIRED_AXES
from flows.stats.clusters import NEGATIVE_CONTROLS

_CELL = ["model", "family", "difficulty", "axis", "level"]
_TASK = ["family", "difficulty", "instance_id"]
_WORDINGS = ("paraphrase", "tool_names", "distractors")
"""Axes whose levels are wordings and tools of the same task: the sample behind "any equivalent prompt"."""


class Answer(NamedTuple):
    """One analysis."""

    analysis: str
    allowed: bool
    reason: str | None
    """Why not, and what it would take; null if allowed."""


def analyses(frame: pd.DataFrame) -> list[Answer]:
    """Every analysis in the order of the report; `frame` is the results of one benchmark."""
    nothing = _pass_rates(frame)
    reasons = {
        "noise floor": _noise_floor(frame),
        "pass rates": None,
        "partial scores": _column(frame, "partial_score", "scores between pass and fail"),
        "changes by axis": _changes(frame),
        "spread over paraphrases": _spread(frame),
        "ranking": _ranking(frame),
        "repetitions (pass^k)": _repetitions(frame),
        "tool-call trajectories": _trajectories(frame),
        "variance components": _components(frame),
        "tasks needed for this exact prompt": _exact(frame),
        "tasks needed for any equivalent prompt": _general(frame),
        "costs": _column(frame, "cost_usd", "prices or costs of the episodes"),
    }
    return [Answer(name, nothing is None and reason is None, nothing or reason) for name, reason in reasons.items()]


def refusals(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """What the table does not allow: each reason once, behind the analyses that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for answer in analyses(frame):
        if answer.reason is not None:
            by_reason.setdefault(answer.reason, []).append(answer.analysis)
    return [(", ".join(names), reason) for reason, names in by_reason.items()]


def _scored(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[~frame["infra_error"]]


def _pass_rates(frame: pd.DataFrame) -> str | None:
    return None if len(_scored(frame)) else "no episode has a verdict: every one ended in an infrastructure error"


def _column(frame: pd.DataFrame, name: str, what: str) -> str | None:
    return None if frame[name].notna().any() else f"the results hold no {what} (column {name})"


def _axes(frame: pd.DataFrame) -> list[str]:
    return sorted(set(_scored(frame)["axis"]) - {BASELINE.axis})


def _no_baseline(frame: pd.DataFrame) -> str | None:
    if (_scored(frame)["axis"] == BASELINE.axis).any():
        return None
    return "the results hold no unperturbed run (axis none, level baseline) to compare with"


def _changes(frame: pd.DataFrame) -> str | None:
    if missing := _no_baseline(frame):
        return missing
    if not _axes(frame):
        return (
            "the results hold the unperturbed task alone; a second run under a change (an axis and a level) is needed"
        )
    return None if _shared(frame) else "no task was run by the same model both unperturbed and under a change"


def _shared(frame: pd.DataFrame) -> bool:
    """Whether a model has tasks in both arms of any axis: the same ones, or, for new instances, any."""
    scored = _scored(frame)
    stratum = ["model", "family", "difficulty"]
    base = scored[scored["axis"] == BASELINE.axis]
    other = scored[scored["axis"] != BASELINE.axis]
    new = other[other["axis"].isin(UNPAIRED_AXES)]
    return bool(
        len(base[[*stratum, "instance_id"]].merge(other[[*stratum, "instance_id"]]))
        or len(base[stratum].merge(new[stratum]))
    )


def _noise_floor(frame: pd.DataFrame) -> str | None:
    if missing := _no_baseline(frame):
        return missing
    if set(_axes(frame)) & set(NEGATIVE_CONTROLS):
        return None
    return (
        "no axis that cannot move a score was run; a plain repetition of the unperturbed run (axis order) or one with "
        "new tasks of the same kind (axis resample) would measure it"
    )


def _spread(frame: pd.DataFrame) -> str | None:
    levels = _scored(frame).loc[lambda rows: rows["axis"] == "paraphrase", "level"].nunique()
    return None if levels > 1 else f"needs two or more levels of the axis paraphrase; there {_are(levels)}"


def _ranking(frame: pd.DataFrame) -> str | None:
    return _several_models(frame) or _changes(frame)


def _several_models(frame: pd.DataFrame) -> str | None:
    return None if _scored(frame)["model"].nunique() > 1 else "needs two or more models; there is one"


def _repetitions(frame: pd.DataFrame) -> str | None:
    scored = _scored(frame)
    base = scored[scored["axis"] == BASELINE.axis]
    if len(base) and base.groupby([*_CELL, "instance_id"], sort=False).size().max() > 1:
        return None
    return "no task was run twice by the same model without a change; two or more runs (epochs, repeats) are needed"


def _trajectories(frame: pd.DataFrame) -> str | None:
    if missing := _column(frame, "trajectory_hash", "sequences of tool calls"):
        return missing
    known = _scored(frame)[_scored(frame)["trajectory_hash"].notna()]
    pairs = known.groupby(["model", *_TASK], sort=False).size()
    return None if len(pairs) and pairs.max() > 1 else "no task was run twice by the same model"


def _components(frame: pd.DataFrame) -> str | None:
    own = _scored(frame).loc[lambda rows: rows["axis"].isin([BASELINE.axis, *_WORDINGS])]
    if own.groupby(["family", "difficulty"])["instance_id"].nunique().max() < 2 if len(own) else True:
        return "needs two or more tasks of one family and difficulty, unperturbed or under other wordings or tools"
    return None if own["passed"].nunique() > 1 else "no outcome differs: every episode passed, or every one failed"


def _exact(frame: pd.DataFrame) -> str | None:
    scored = _scored(frame)
    base = scored[scored["axis"] == BASELINE.axis]
    models = base.groupby(_TASK, sort=False)["model"].nunique()
    if (models > 1).sum() > 1:
        return None
    return (
        "needs two or more unperturbed tasks that two models share; without them the study's own rates are unknown, "
        "and the reference values alone are printed"
    )


def _general(frame: pd.DataFrame) -> str | None:
    scored = _scored(frame)
    own = scored[scored["axis"].isin([BASELINE.axis, *_WORDINGS])]
    if missing := _several_models(own):
        return missing
    levels = own[["axis", "level"]].drop_duplicates()
    if len(levels) > 1:
        return None
    foreign = [axis for axis in _axes(frame) if axis not in (*_WORDINGS, *NEGATIVE_CONTROLS, "temperature")]
    hint = f"; if {', '.join(foreign)} means other wordings, import it as the axis paraphrase" if foreign else ""
    return (
        "needs the same tasks under two or more equivalent wordings or tool sets (axes "
        f"{', '.join(_WORDINGS)}), which tell how models and prompts interact{hint}"
    )


def _are(count: int) -> str:
    return "is none" if count == 0 else "is one" if count == 1 else f"are {count}"
