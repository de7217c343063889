"""The operations on values worked out by hand: nulls, ties, rounding, repeated keys."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.families.tabular import operations
from tasks_env.families.tabular.spec import Comparison, Derive, Filter, Join, Measure, Operator, SortKey
from tasks_env.families.tabular.table import Column, Table, inferred_table, text_of

SALES = inferred_table(
    ["id", "town", "day", "price"],
    [
        ["a", "Ulm", "2024-01-05", "2.50"],
        ["b", "Bonn", "2024-01-02", ""],
        ["c", "Ulm", "2024-03-01", "-1.25"],
        ["d", "", "2024-01-05", "10"],
        ["e", "bonn", "", "2.5"],
    ],
)


def texts(table: Table) -> list[list[str]]:
    return [[text_of(cell) for cell in row] for row in table.rows]


def ids(table: Table) -> str:
    return "".join(row[0] for row in texts(table))


def test_kinds_are_inferred_from_the_cells_that_are_there() -> None:
    kinds = [(column.kind, column.decimals, column.optional) for column in SALES.columns]
    assert kinds == [("text", 0, False), ("text", 0, True), ("date", 0, True), ("number", 2, True)]
    assert inferred_table(["x"], [["007"], ["1"]]).columns[0].kind == "text"
    assert inferred_table(["x"], [[""]]).columns[0].kind == "text"


@pytest.mark.parametrize(
    ("column", "condition", "values", "kept"),
    [
        ("price", "at_least", ["2.5"], "ade"),
        ("price", "more_than", ["2.50"], "d"),
        ("price", "at_most", ["2.5"], "ace"),
        ("price", "less_than", ["2.5"], "c"),
        ("price", "between", ["-1.25", "2.5"], "ace"),
        ("price", "equals", ["2.500"], "ae"),
        ("price", "not_equals", ["2.5"], "cd"),
        ("price", "in", ["10.0", "2.5"], "ade"),
        ("price", "not_in", ["10", "2.5"], "c"),
        ("price", "is_empty", [], "b"),
        ("price", "is_not_empty", [], "acde"),
        ("town", "equals", ["Bonn"], "b"),
        ("town", "not_equals", ["Ulm"], "be"),
        ("town", "in", ["Ulm", "Köln"], "ac"),
        ("town", "not_in", ["Ulm"], "be"),
        ("town", "starts_with", ["B"], "b"),
        ("town", "contains", ["onn"], "be"),
        ("town", "is_empty", [], "d"),
        ("day", "at_least", ["2024-01-05"], "acd"),
        ("day", "more_than", ["2024-01-05"], "c"),
        ("day", "less_than", ["2024-01-05"], "b"),
        ("day", "between", ["2024-01-02", "2024-01-05"], "abd"),
        ("day", "starts_with", ["2024-01"], "abd"),
    ],
)
def test_filters(column: str, condition: Comparison, values: list[str], kept: str) -> None:
    assert ids(operations.filter_rows(SALES, Filter(column=column, condition=condition, values=tuple(values)))) == kept


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", [["x", "1", "red"], ["x", "1", "blue"], ["z", "1", "red"], ["z", "1", "blue"]]),
        (
            "left",
            [
                ["x", "1", "red"],
                ["x", "1", "blue"],
                ["y", "2", ""],
                ["z", "1", "red"],
                ["z", "1", "blue"],
                ["w", "", ""],
            ],
        ),
    ],
)
def test_joins_keep_the_order_of_both_and_empty_keys_never_match(kind: str, expected: list[list[str]]) -> None:
    left = inferred_table(["id", "key"], [["x", "1"], ["y", "2"], ["z", "1"], ["w", ""]])
    right = inferred_table(["color", "key"], [["red", "1"], ["green", "3"], ["blue", "1"], ["grey", ""]])
    join = Join.model_validate({"table": "right", "column": "key", "kind": kind})
    joined = operations.join_tables(left, right, join)
    assert joined.names() == ["id", "key", "color"]
    assert texts(joined) == expected


def test_a_join_stops_at_its_largest_size() -> None:
    table = inferred_table(["key", "a"], [["1", "x"]] * 10)
    other = inferred_table(["key", "b"], [["1", "y"]] * 10)
    with pytest.raises(OverflowError):
        operations.join_tables(table, other, Join(table="other", column="key", kind="inner"), max_rows=99)


@pytest.mark.parametrize(
    ("left", "operator", "right", "decimals", "expected"),
    [
        ("1", "divided_by", "8", 2, "0.13"),
        ("-1", "divided_by", "8", 2, "-0.13"),
        ("1", "divided_by", "3", 4, "0.3333"),
        ("-1", "divided_by", "300", 1, "0.0"),
        ("2.5", "times", "0.5", 1, "1.3"),
        ("2.5", "plus", "0.05", 1, "2.6"),
        ("2.5", "minus", "3", 2, "-0.50"),
        ("", "plus", "1", 0, ""),
        ("123456789012345.123456", "times", "999999999999999.999999", 0, "123456789012345123455876543211"),
    ],
)
def test_derived_cells_round_halves_away_from_zero(
    left: str, operator: Operator, right: str, decimals: int, expected: str
) -> None:
    columns = tuple(Column(name=name, kind="number", decimals=6, optional=True) for name in "ab")
    cells = tuple(Decimal(text) if text else None for text in (left, right))
    derive = Derive(column="c", left="a", operator=operator, right="b", decimals=decimals)
    result = operations.add_column(Table(columns, [cells]), derive)
    assert texts(result)[0][2] == expected


@pytest.mark.parametrize("dividend", ["1", "0"])
def test_dividing_by_zero_raises(dividend: str) -> None:
    table = inferred_table(["a", "b"], [[dividend, "0"]])
    with pytest.raises(ZeroDivisionError):
        operations.add_column(table, Derive(column="c", left="a", operator="divided_by", right="b", decimals=1))


def test_groups_come_in_order_of_appearance_and_leave_empty_cells_out() -> None:
    measures = [
        Measure(column="n", function="count"),
        Measure(column="total", function="sum", of="price"),
        Measure(column="average", function="mean", of="price"),
        Measure(column="first_day", function="min", of="day"),
    ]
    grouped = operations.group_rows(SALES, ["town"], measures, 2)
    assert texts(grouped) == [
        ["Ulm", "2", "1.25", "0.63", "2024-01-05"],
        ["Bonn", "1", "", "", "2024-01-02"],
        ["", "1", "10", "10.00", "2024-01-05"],
        ["bonn", "1", "2.5", "2.50", ""],
    ]


@given(st.lists(st.integers(-10_000, 10_000), min_size=1, max_size=20), st.integers(0, 3))
def test_a_mean_is_the_exact_fraction_rounded_half_away_from_zero(cents: list[int], decimals: int) -> None:
    rows = [("g", Decimal(value).scaleb(-2)) for value in cents]
    table = Table((Column(name="g", kind="text"), Column(name="x", kind="number", decimals=2)), list(rows))
    grouped = operations.group_rows(table, ["g"], [Measure(column="m", function="mean", of="x")], decimals)
    exact = Fraction(sum(cents), 100 * len(cents)) * 10**decimals
    nearest = int(abs(exact) + Fraction(1, 2)) * (1 if exact >= 0 else -1)
    assert Decimal(texts(grouped)[0][1]) == Decimal(nearest).scaleb(-decimals)


def test_sorting_keeps_ties_and_puts_empty_cells_last_both_ways() -> None:
    up = operations.sort_rows(SALES, [SortKey(column="price", order="ascending")])
    down = operations.sort_rows(SALES, [SortKey(column="price", order="descending")])
    assert (ids(up), ids(down)) == ("caedb", "daecb")
    both = [SortKey(column="day", order="descending"), SortKey(column="id", order="descending")]
    assert ids(operations.sort_rows(SALES, both)) == "cdabe"


def test_limit_and_choice_of_columns() -> None:
    assert ids(operations.limit_rows(SALES, 2)) == "ab"
    assert ids(operations.limit_rows(SALES, 99)) == "abcde"
    assert texts(operations.select_columns(SALES, ["price", "id"]))[0] == ["2.50", "a"]
    assert texts(operations.select_columns(SALES, ["id"]))[:2] == [["a"], ["b"]]


def test_pandas_agrees_on_filter_group_and_sort() -> None:
    rng = random.Random(7)
    lines = [[rng.choice("xyz"), rng.choice("pq"), str(rng.randint(0, 99))] for _ in range(60)]
    table = operations.filter_rows(
        inferred_table(["a", "b", "n"], lines), Filter(column="n", condition="at_least", values=("30",))
    )
    total = Measure(column="total", function="sum", of="n")
    largest = Measure(column="largest", function="max", of="n")
    grouped = operations.group_rows(table, ["a", "b"], [total, largest], 0)
    ordered = operations.sort_rows(
        grouped, [SortKey(column="total", order="descending"), *(SortKey(column=k, order="ascending") for k in "ab")]
    )
    frame = pd.DataFrame(lines, columns=["a", "b", "n"]).astype({"n": int}).query("n >= 30")
    frame = frame.groupby(["a", "b"], as_index=False).agg(total=("n", "sum"), largest=("n", "max"))
    frame = frame.sort_values(["total", "a", "b"], ascending=[False, True, True])
    assert texts(ordered) == frame.astype(str).to_numpy().tolist()
