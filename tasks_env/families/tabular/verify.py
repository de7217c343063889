"""The verifier: submission and truth in the canonical form, compared byte by byte."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from tasks_env.families.tabular.csv_form import CsvError, canonical_bytes, canonical_lines
from tasks_env.families.tabular.evaluate import result_columns
from tasks_env.families.tabular.spec import Spec
from tasks_env.types import Condition, Verdict, VerifierInput

MAX_CHARS = 1_000_000
"""Longer submissions are not read; the tools allow none, and no truth comes near."""

_SHOWN = 120


def verify(evidence: VerifierInput) -> Verdict:
    """Judge the submitted CSV text (`final_state.data["csv"]`).

    Conditions, each needing the ones before it: `submitted`, `readable` (a CSV table), `columns` (the
    header), `rows` (the same rows, counting repeats), `canonical_bytes` (the canonical forms are the same
    bytes, which adds the order of rows). The detail of the last one records, without deciding anything,
    whether the submitted bytes are already canonical (`exact_bytes`).

    The partial score is the fraction of right rows: the length of the longest common subsequence of the two
    canonical lists of rows, over the larger number of rows of the two, where a wrong header counts as one
    wrong row more. It is 1 exactly when passed, and 0 without a readable submission.
    """
    spec = Spec.model_validate(evidence.instance.spec)
    truth = str(evidence.instance.truth["csv"])
    text = evidence.final_state.data.get("csv")
    if not evidence.final_state.submitted or not isinstance(text, str):
        return _failed([Condition(name="submitted", holds=False, detail="no table was submitted")])
    conditions = [Condition(name="submitted", holds=True)]
    try:
        if len(text) > MAX_CHARS:
            raise CsvError(f"longer than {MAX_CHARS} characters")
        columns = result_columns(spec)
        got = canonical_lines(text, columns)
    except CsvError as error:
        return _failed([*conditions, Condition(name="readable", holds=False, detail=str(error)[:200])])
    want = canonical_lines(truth, columns)
    same_header = got[0] == want[0]
    same_rows = same_header and len(got) == len(want) and Counter(got) == Counter(want)
    same_bytes = canonical_bytes(got) == canonical_bytes(want)
    exact = text == truth
    conditions += [
        Condition(name="readable", holds=True),
        Condition(name="columns", holds=same_header, detail=_header_detail(got[0], want[0])),
        Condition(name="rows", holds=same_rows, detail=_rows_detail(got[1:], want[1:])),
        Condition(name="canonical_bytes", holds=same_bytes, detail=f"exact_bytes={str(exact).lower()}"),
    ]
    if all(condition.holds for condition in conditions):
        return Verdict(passed=True, partial_score=1.0, conditions=tuple(conditions))
    rows = max(len(got), len(want)) - (1 if same_header else 0)
    score = common_length(got[1:], want[1:]) / rows
    return Verdict(passed=False, partial_score=score, conditions=tuple(conditions))


_NAMES = ("submitted", "readable", "columns", "rows", "canonical_bytes")


def _failed(conditions: Sequence[Condition]) -> Verdict:
    """A verdict without anything to compare: the conditions not reached do not hold."""
    rest = [Condition(name=name, holds=False, detail="not reached") for name in _NAMES[len(conditions) :]]
    return Verdict(passed=False, partial_score=0.0, conditions=(*conditions, *rest))


def _header_detail(got: str, want: str) -> str:
    return "" if got == want else f"got {got[:_SHOWN]!r}, expected {want[:_SHOWN]!r}"


def _rows_detail(got: Sequence[str], want: Sequence[str]) -> str:
    """Counts, and the first differing line of the submission; never a row of the truth."""
    missing, extra = Counter(want) - Counter(got), Counter(got) - Counter(want)
    if not missing and not extra:
        return ""
    first = next((line for line in got if line in extra), None)
    shown = "" if first is None else f"; first extra row {first[:_SHOWN]!r}"
    return f"{len(got)} rows, expected {len(want)}; {missing.total()} missing, {extra.total()} extra{shown}"


def common_length(got: Sequence[str], want: Sequence[str]) -> int:
    """The length of the longest common subsequence (Hunt and Szymanski 1977), in O(matches · log n)."""
    places: dict[str, list[int]] = {}
    for position, line in enumerate(want):
        places.setdefault(line, []).append(position)
    ends: list[int] = []
    for line in got:
        for position in reversed(places.get(line, [])):
            slot = bisect_left(ends, position)
            ends[slot : slot + 1] = [position]
    return len(ends)
