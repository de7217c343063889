"""The known wrong readings: each leads to another result, or every wording states the case.

Also: what a spec can say is really drawn, in every combination that the family promises.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from string import Template

import pytest

from tasks_env import family, generate_instance
from tasks_env.families.tabular.evaluate import evaluate, parse_tables, working_columns
from tasks_env.families.tabular.reading_slips import operator_of, reading_slips
from tasks_env.families.tabular.readings import decisive_readings
from tasks_env.families.tabular.spec import Spec
from tasks_env.families.tabular.voices import VOICES, Voice
from tasks_env.families.tabular.wording import instruction
from tasks_env.proofs import prove
from tasks_env.session import verify
from tasks_env.types import FinalState, Instance, Presentation

from .levels import EASY, LEVELS, SHIPPED, changed, instance, shipped

SEEDS = range(25)


@cache
def instances() -> list[tuple[Instance, Spec]]:
    """Drawn by the first test that asks, not by every process that collects."""
    drawn = [instance(level, seed) for level in LEVELS for seed in SEEDS]
    drawn += [shipped(difficulty, seed) for difficulty in SHIPPED for seed in SEEDS]
    return [(chosen, Spec.model_validate(chosen.spec)) for chosen in drawn]


def specs() -> list[Spec]:
    return [spec for _, spec in instances()]


DECISIVE = {
    "filter left out",
    "bound taken the other way",
    "join of the other kind",
    "sort left out",
    "sort reversed",
    "limit left out",
}
"""Told apart at generation: an instance where one of these gives the right result is rejected."""


def fixed(template: str) -> str:
    """The longest part of a wording that no value goes into."""
    pieces = [piece for _, piece in _pieces(template)]
    return max(pieces, key=len)


def _pieces(template: str) -> Iterator[tuple[int, str]]:
    start = 0
    for found in Template.pattern.finditer(template):
        yield start, template[start : found.start()]
        start = found.end()
    yield start, template[start:]


def first_sort(spec: Spec, voice: Voice) -> str:
    kinds = {column.name: column.kind for column in working_columns(spec)}
    kinds |= {m.column: "number" for m in spec.aggregate.measures} if spec.aggregate else {}
    key = spec.sort[0]
    return fixed(voice.sort_keys[kinds[key.column], key.order])


def means(spec: Spec) -> bool:
    return spec.aggregate is not None and any(m.function == "mean" for m in spec.aggregate.measures)


def rounding(spec: Spec, voice: Voice) -> str:
    return fixed(voice.measures["mean"]) if means(spec) and not spec.derive else fixed(voice.derive)


def empty_cells(spec: Spec, voice: Voice) -> str:
    """What the wording says of empty cells that a filter or a measure meets."""
    optional = {column.name for column in working_columns(spec) if column.optional}
    filtered = [f for f in spec.filters if f.column in optional]
    if any(f.condition not in ("is_empty", "is_not_empty") for f in filtered):
        return fixed(voice.empty_filtered)
    if filtered:
        # Only cells that are not empty, or only those that are, is what the condition itself says.
        return fixed(voice.conditions[filtered[0].condition])
    if spec.aggregate and optional & {m.of for m in spec.aggregate.measures}:
        return fixed(voice.empty_measured)
    # Nothing is computed from an empty cell; it is shown as it is, and so is a row that a left join did not match.
    left = [join for join in spec.joins if join.kind == "left"]
    return fixed(voice.joins["left"]) if left else fixed(voice.columns)


STATED: dict[str, Callable[[Spec, Voice], str]] = {
    "row beyond the limit added": lambda _, voice: fixed(voice.limit),
    "row within the limit left out": lambda _, voice: fixed(voice.limit),
    "limit before the sort": lambda _, voice: fixed(voice.limit),
    "operator of the derived column": lambda spec, voice: fixed(voice.operators[spec.derive.operator]),  # type: ignore[union-attr]
    "function of a measure": lambda spec, voice: fixed(voice.measures[spec.aggregate.measures[0].function]),  # type: ignore[union-attr]
    "last columns exchanged": lambda _, voice: fixed(voice.columns),
    "tie-break reversed or ignored": lambda _, voice: fixed(voice.tie_break),
    "numbers sorted as text": first_sort,
    "empty cells counted": empty_cells,
    "truncated instead of rounded": rounding,
    "rounded the other way": rounding,
    "rounded too late or not at all": rounding,
}
"""Excluded by the wording: the words, in every phrasing, wherever the reading leads to another result."""


def test_every_wrong_reading_is_told_apart_or_excluded_by_the_wording_and_each_occurs() -> None:
    differs: Counter[str] = Counter()
    for chosen, spec in instances():
        prompts = {name: instruction(spec, voice) for name, voice in VOICES.items()}
        for operator, text in reading_slips(chosen):
            if operator in DECISIVE:
                assert text != chosen.truth["csv"], operator
                differs[operator] += 1
            elif text != chosen.truth["csv"]:
                differs[operator] += 1
                for name, voice in VOICES.items():
                    assert STATED[operator](spec, voice) in prompts[name], (operator, name, prompts[name])
    assert set(differs) == DECISIVE | set(STATED)
    assert all(count >= 15 for count in differs.values()), differs


def test_decisive_readings_are_those_that_generation_rejects_on() -> None:
    assert {operator_of(name) for spec in specs() for name, _ in decisive_readings(spec)} == DECISIVE


SAID = {
    "base": ("both included", "halves away from zero", "Keep rows that are equal."),
    "p1": ("$low <= $column <= $high", "round half away from zero", "no deduplication"),
    "p2": ("up to and including $high (with $low itself allowed)", "halves rounded away from zero", "all be there"),
    "p3": ("neither less than $low nor greater than $high", "halfway between two candidates", "to be retained"),
    "p4": ("ends included", "an exact half goes away from zero", "more than once; nothing is merged"),
    "p5": ("those two count as well", "halves go away from zero", "leave them all in"),
}
"""By phrasing: that both ends of a range belong to it, where halves are rounded to, that equal rows stay."""


@pytest.mark.parametrize("name", VOICES)
def test_the_wording_says_what_is_included_how_halves_round_and_that_equal_rows_stay(name: str) -> None:
    voice, (ends, halves, equal) = VOICES[name], SAID[name]
    assert ends in voice.conditions["between"]
    assert halves in voice.derive
    assert halves in voice.measures["mean"]
    assert "away from zero" in voice.derive
    assert "away from zero" in voice.measures["mean"]
    assert equal in voice.repeated
    without_key = [s for s in specs() if s.aggregate is None and s.tables[0].columns[0].name not in s.columns]
    assert len(without_key) > 10
    assert all(voice.repeated in instruction(spec, voice) for spec in without_key)


def test_ties_in_the_first_sort_key_really_occur() -> None:
    tied = 0
    for chosen, spec in instances():
        if len(spec.sort) > 1:
            primary = spec.model_copy(update={"columns": (spec.sort[0].column,), "limit": None})
            tied += max(Counter(evaluate(primary, parse_tables(spec.tables, texts(chosen))).rows).values()) > 1
    assert tied > 30


def test_equal_rows_can_occur_and_leaving_them_out_fails() -> None:
    params = changed(EASY, rows=100, groups=2, filters=0)
    drawn = (generate_instance("tabular", params, seed) for seed in range(60))
    chosen = next(i for i in drawn if len(set(lines(i))) < len(lines(i)))
    assert VOICES["base"].repeated in instruction(Spec.model_validate(chosen.spec), VOICES["base"])
    fewer = "".join(f"{line}\n" for line in dict.fromkeys(lines(chosen)))
    for text, passes in ((str(chosen.truth["csv"]), True), (fewer, False)):
        state = FinalState(submitted=True, data={"table": "x", "csv": text})
        assert verify(chosen, (), state).passed == passes
        assert family("tabular").second_opinion(chosen)(state) == passes
    found = list(prove(chosen, Presentation(), rng=random.Random(1)))
    assert not [finding for finding in found if finding.outcome != "held"]


def lines(chosen: Instance) -> list[str]:
    return str(chosen.truth["csv"]).splitlines()


def texts(chosen: Instance) -> dict[str, str]:
    return {name: str(text) for name, text in chosen.world["tables"].items()}  # type: ignore[union-attr]


def test_every_kind_of_condition_sort_and_aggregate_is_drawn() -> None:
    conditions, sorts, keys, decimals = set(), set(), set(), set()
    functions: dict[str, set[int]] = defaultdict(set)
    limits = {True: 0, False: 0}
    for spec in specs():
        columns = {column.name: column for column in working_columns(spec)}
        for condition in spec.filters:
            column = columns[condition.column]
            conditions.add((column.kind, condition.condition))
        limits[spec.limit is not None] += 1
        for key in spec.sort:
            sorts.add((columns[key.column].kind if key.column in columns else "measure", key.order))
        if spec.aggregate:
            keys.add(len(spec.aggregate.by))
            decimals.add(spec.aggregate.decimals)
            for measure in spec.aggregate.measures:
                functions[measure.function].add(len(spec.aggregate.by))
    ordered = ("at_least", "at_most", "more_than", "less_than", "between")
    expected = {(kind, name) for kind in ("number", "date") for name in ordered}
    expected |= {("text", name) for name in ("equals", "not_equals", "in", "not_in", "starts_with", "contains")}
    expected |= {("number", "is_empty"), ("number", "is_not_empty")}
    assert conditions == expected
    assert sorts == {(k, order) for k in ("number", "date", "text", "measure") for order in ("ascending", "descending")}
    assert keys == {1, 2}
    assert decimals == {1, 2, 3}
    assert functions == {name: {1, 2} for name in ("count", "sum", "mean", "min", "max")}
    assert min(limits.values()) > 50
