"""The canonical form against the standard library and against numbers written by hand."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.families.tabular.csv_form import (
    CsvError,
    canonical_bytes,
    canonical_lines,
    canonical_number,
    csv_text,
    parse_csv,
)
from tasks_env.families.tabular.table import Column

fields = st.text(alphabet='ab ,"\n\r\u00e9', max_size=4)


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(fields, min_size=n, max_size=n), min_size=1)))
def test_written_text_is_read_back_by_the_standard_library(lines: list[list[str]]) -> None:
    text = csv_text(lines[0], lines[1:])
    assert list(csv.reader(io.StringIO(text, newline=""))) == lines
    names, rows = parse_csv(text)
    assert [names, *rows] == lines


@given(st.lists(st.lists(st.text(alphabet="ab,' \"", max_size=4), min_size=2, max_size=2), min_size=1))
def test_quoting_is_as_minimal_as_the_standard_librarys(lines: list[list[str]]) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(lines)
    assert csv_text(lines[0], lines[1:]) == out.getvalue()


def test_a_line_with_one_empty_field_is_not_a_blank_line() -> None:
    assert csv_text(["a"], [[""], ["x"]]) == 'a\n""\nx\n'
    assert parse_csv('a\n""\nx\n') == (["a"], [[""], ["x"]])
    assert parse_csv("a\n\nx\n") == (["a"], [["x"]])


@pytest.mark.parametrize(
    ("text", "decimals", "expected"),
    [
        ("7", 2, "7.00"),
        ("7.5", 2, "7.50"),
        ("7.500", 2, "7.50"),
        ("7.505", 2, "7.505"),
        ("007.50", 2, "7.50"),
        ("-0.00", 2, "0.00"),
        ("-0", 0, "0"),
        ("-12.0", 0, "-12"),
        ("+7", 0, "+7"),
        ("1e3", 0, "1e3"),
        ("1,000", 0, "1,000"),
        (" 7", 0, " 7"),
        ("7.", 0, "7."),
        (".5", 1, ".5"),
        ("\u0667", 0, "\u0667"),
        ("", 2, ""),
        ("nan", 2, "nan"),
    ],
)
def test_numbers_gain_or_lose_zeros_and_nothing_else(text: str, decimals: int, expected: str) -> None:
    assert canonical_number(text, decimals) == expected


@given(st.decimals(-(10**9), 10**9, places=3), st.integers(3, 6))
def test_a_canonical_number_keeps_its_value(value: Decimal, decimals: int) -> None:
    text = canonical_number(format(value, "f"), decimals)
    assert Decimal(text) == value
    assert len(text.partition(".")[2]) == decimals
    assert canonical_number(text, decimals) == text


def test_only_numeric_columns_are_touched_whatever_their_place() -> None:
    columns = (Column(name="code", kind="text"), Column(name="price", kind="number", decimals=2))
    assert canonical_lines("price,code,other\n1.5,1.50,1.5\n", columns) == ["price,code,other", "1.50,1.50,1.5"]


def test_the_bytes_are_utf8_with_lf_even_for_a_lone_surrogate() -> None:
    assert canonical_bytes(["a", "\u00e9"]) == b"a\n\xc3\xa9\n"
    assert canonical_bytes(["\ud800"]) == b"\xed\xa0\x80\n"


@pytest.mark.parametrize("text", ["", "\n\n", "a,b\n1,2,3\n", 'a\n"b"c\n'])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(CsvError):
        parse_csv(text)
