"""What generated tasks are like: parameters kept, bounds met, wrong readings told apart."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args

import pytest

from tasks_env import GenerationError
from tasks_env.canonical import canonical_json
from tasks_env.families.tabular import generate as generation
from tasks_env.families.tabular.csv_form import parse_csv, table_csv
from tasks_env.families.tabular.draw import draw
from tasks_env.families.tabular.evaluate import evaluate, filtered, parse_tables, widened
from tasks_env.families.tabular.generate import accepted_result, generate
from tasks_env.families.tabular.readings import decisive_readings, join_readings
from tasks_env.families.tabular.second_solver import solve
from tasks_env.families.tabular.spec import Comparison, Spec
from tasks_env.families.tabular.themes import EXTRA_FIELDS, THEMES
from tasks_env.seeding import derive

from .levels import EASY, HARD, LEVELS, changed, instance

SEEDS = range(12)


def drawn(level: str, seeds: range = SEEDS) -> list[tuple[Spec, dict[str, str], str]]:
    """Spec, CSV texts and truth of a few instances."""
    found = []
    for seed in seeds:
        chosen = instance(level, seed)
        texts = {name: str(text) for name, text in chosen.world["tables"].items()}  # type: ignore[union-attr]
        found.append((Spec.model_validate(chosen.spec), texts, str(chosen.truth["csv"])))
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_the_parameters_are_kept(level: str) -> None:
    params = LEVELS[level]
    for spec, texts, truth in drawn(level):
        assert len(parse_csv(texts[spec.tables[0].name])[1]) == params.rows
        assert len(spec.joins) == params.joins == len(spec.tables) - 1
        assert len(spec.filters) == params.filters
        assert (spec.derive is not None) == bool(params.derived_columns)
        if spec.aggregate:
            assert len(spec.aggregate.by) == params.group_keys
            assert len(spec.aggregate.measures) == params.measures
        else:
            assert params.group_keys == 0
        assert (spec.limit is not None) == params.limit
        assert len(spec.sort) >= params.sort_keys
        assert truth.startswith(",".join(spec.columns) + "\n")
        assert truth.count("\n") >= 3


def needed(spec: Spec) -> set[str]:
    names = {join.column for join in spec.joins} | {condition.column for condition in spec.filters}
    names |= {key.column for key in spec.sort} | set(spec.columns)
    if spec.derive:
        names |= {spec.derive.left, spec.derive.right}
    if spec.aggregate:
        names |= {*spec.aggregate.by, *(measure.of for measure in spec.aggregate.measures)}
    return names


@pytest.mark.parametrize("level", LEVELS)
def test_exactly_the_stated_number_of_columns_is_idle(level: str) -> None:
    for spec, _, _ in drawn(level):
        keys = {table.columns[0].name for table in spec.tables}
        idle = [c.name for table in spec.tables for c in table.columns if c.name not in needed(spec) | keys]
        assert len(idle) == LEVELS[level].distractor_columns


@pytest.mark.parametrize("level", LEVELS)
def test_no_operation_is_for_nothing(level: str) -> None:
    for spec, _, _ in drawn(level):
        for join, table in zip(spec.joins, spec.tables[1:], strict=True):
            if join.kind == "left":
                assert needed(spec) & {column.name for column in table.columns[1:]}
        if spec.derive:
            assert spec.derive.column in needed(spec)


@pytest.mark.parametrize("level", LEVELS)
def test_every_decisive_wrong_reading_changes_the_result(level: str) -> None:
    for spec, texts, truth in drawn(level):
        readings = list(decisive_readings(spec))
        assert readings
        for name, reading in readings:
            result = evaluate(reading, parse_tables(spec.tables, texts))
            assert table_csv(result) != truth, name
            if reading.sort or spec.aggregate is None:
                # Groups without a stated order have none in SQL.
                assert solve(reading.to_json(), {"tables": texts}) != truth, name


@pytest.mark.parametrize("level", LEVELS)
def test_a_candidate_is_accepted_exactly_if_its_result_is_telling_and_every_decisive_wrong_reading_differs(
    level: str,
) -> None:
    rng = derive(7, level)
    outcomes: Counter[bool] = Counter()
    for candidate in [draw(LEVELS[level], rng) for _ in range(60)]:
        if candidate is None:
            continue
        spec, tables = candidate.spec, candidate.tables
        right = evaluate(spec, tables)
        groups = evaluate(spec.model_copy(update={"limit": None}), tables)
        telling = len(right.rows) >= 2 and not any(
            right.rows == table.rows and right.names() == table.names() for table in tables.values()
        )
        sure = not (spec.aggregate and any(None in row for row in groups.rows))
        differ = all(evaluate(reading, tables).rows != right.rows for _, reading in decisive_readings(spec))
        found = accepted_result(candidate)
        assert (found is not None) == (telling and sure and differ), spec
        assert found is None or (found.rows, found.names()) == (right.rows, right.names())
        outcomes[found is not None] += 1
    assert outcomes[True]
    assert outcomes[False] or level in ("easy", "easy_missing", "source_order")


@pytest.mark.parametrize("level", LEVELS)
def test_each_filter_and_each_inner_join_has_a_row_that_it_alone_drops(level: str) -> None:
    """What the smallest number of rows is counted from."""
    for spec, texts, _ in drawn(level):
        tables = parse_tables(spec.tables, texts)
        kept = len(filtered(spec, widened(spec, tables)).rows)
        dropped = 0
        for position in range(len(spec.filters)):
            fewer = spec.model_copy(update={"filters": spec.filters[:position] + spec.filters[position + 1 :]})
            alone = len(filtered(fewer, widened(fewer, tables)).rows) - kept
            assert alone > 0
            dropped += alone
        for name, joins in join_readings(spec.joins):
            other = spec.model_copy(update={"joins": joins})
            if spec.joins[int(name[-1]) - 1].kind == "inner":
                alone = len(filtered(other, widened(other, tables)).rows) - kept
                assert alone > 0
                dropped += alone
        assert LEVELS[level].least_rows <= kept + dropped <= LEVELS[level].rows


@pytest.mark.parametrize("level", LEVELS)
def test_every_bound_lies_on_a_row_and_the_order_is_total(level: str) -> None:
    for spec, texts, _ in drawn(level):
        cells: dict[str, set[str]] = {}
        for table in spec.tables:
            names, lines = parse_csv(texts[table.name])
            cells |= {name: {line[i] for line in lines} for i, name in enumerate(names)}
        for condition in spec.filters:
            if condition.condition in ("at_least", "at_most", "more_than", "less_than", "between"):
                known = cells.get(condition.column)
                assert known is None or set(condition.values) <= known
        if spec.sort:
            unsorted = spec.model_copy(update={"limit": None, "columns": tuple(key.column for key in spec.sort)})
            rows = evaluate(unsorted, parse_tables(spec.tables, texts)).rows
            assert max(Counter(rows).values()) == 1
            assert not any(None in row for row in rows)


def test_every_theme_condition_and_operation_occurs() -> None:
    specs = [spec for level in LEVELS for spec, _, _ in drawn(level, range(25))]
    assert {spec.tables[0].name for spec in specs} == {theme.table for theme in THEMES}
    conditions = {condition.condition for spec in specs for condition in spec.filters}
    assert conditions == set(get_args(Comparison))
    assert {join.kind for spec in specs for join in spec.joins} == {"inner", "left"}
    functions = {m.function for spec in specs if spec.aggregate for m in spec.aggregate.measures}
    assert functions == {"count", "sum", "mean", "min", "max"}
    operators = {spec.derive.operator for spec in specs if spec.derive}
    assert operators == {"plus", "minus", "times", "divided_by"}


def test_missing_cells_occur_only_where_the_spec_says_so() -> None:
    empty = 0
    for spec, texts, _ in drawn("easy_missing") + drawn("hard"):
        for table in spec.tables:
            _, lines = parse_csv(texts[table.name])
            for position, column in enumerate(table.columns):
                count = sum(not line[position] for line in lines)
                assert column.optional or not count
                empty += count
    assert empty > 20


def test_generated_data_holds_no_placeholder() -> None:
    for level in LEVELS:
        for seed in SEEDS:
            chosen = instance(level, seed)
            stored = canonical_json([chosen.spec, chosen.world, chosen.truth])
            assert not re.search(r"\{(tool|arg):", stored)
            assert "$" not in stored


def test_a_seed_without_an_acceptable_task_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "MAX_TRIES", 0)
    with pytest.raises(GenerationError, match=r"family 'tabular'.* seed 5 .*rows=12.*more rows"):
        generate(EASY, 5)


@pytest.mark.parametrize(
    "params",
    [
        changed(EASY, rows=3, groups=2, distractor_columns=6),
        changed(HARD, rows=200, groups=8, missing_percent=40, joins=2, filters=3, measures=3, sort_keys=2),
        changed(HARD, rows=16, filters=0, derived_columns=0, distractor_columns=0),
        changed(EASY, filters=0, derived_columns=1, distractor_columns=0),
        changed(EASY, rows=20, groups=8, joins=2, filters=3, distractor_columns=5, missing_percent=15, limit=True),
    ],
    ids=["smallest", "largest", "few_rows", "derived_only", "every_number_filtered"],
)
def test_the_corners_of_the_parameters_are_feasible(params: object) -> None:
    for seed in range(8):
        assert generate(params, seed).truth  # type: ignore[arg-type]


def test_the_words_of_a_theme_are_safe_to_sort_and_compare() -> None:
    for theme in THEMES:
        fields = [*theme.fields, *(field for lookup in theme.lookups for field in lookup.fields), *EXTRA_FIELDS]
        names = [theme.key.name, *(lookup.key.name for lookup in theme.lookups), *(field.name for field in fields)]
        names += [formula.column for formula in theme.formulas]
        assert len(set(names)) == len(names)
        for field in fields:
            if field.kind == "category":
                assert len(set(field.values)) == 8, field.name
                assert all(re.fullmatch("[a-z]{2,}", value) for value in field.values), field.name
        own = {field.name for field in theme.fields if field.kind == "number" and not field.optional}
        assert len(own) >= 3
        assert any({formula.left, formula.right} <= own for formula in theme.formulas)
