"""CSV text and its one canonical form, in which a submission and the truth are compared byte by byte.

The canonical form: UTF-8 without a byte-order mark; every line, the header included, ends in LF; fields are
separated by commas and quoted only where they must be (a comma, a quote, a line break, or a line that would
otherwise be blank); blank lines are dropped; a number in a numeric column has exactly the column's decimals,
no leading zeros, no negative zero. Zeros are added or removed, but nothing is rounded, reordered or trimmed:
rounding and order are part of the task.

What is brought to this form may have a byte-order mark, and line ends in LF, CRLF or CR. A number is an optional
minus, digits, and perhaps a point and more digits, at most 30 on either side; anything else (a plus, an exponent,
a unit, separators of thousands) stays as it is and so differs.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from tasks_env.families.tabular.table import Column, Table, text_of

_NEEDS_QUOTES = re.compile(r'[",\r\n]')
_PLAIN_NUMBER = re.compile(r"(-?)([0-9]{1,30})(?:\.([0-9]{1,30}))?")


class CsvError(ValueError):
    """The text is not a CSV table; the message says where and why."""


def _line(fields: Sequence[str]) -> str:
    line = ",".join(fields)
    # The common case needs one look at the whole line instead of one at each field.
    if line and line.count(",") == len(fields) - 1 and '"' not in line and "\n" not in line and "\r" not in line:
        return line
    if len(fields) == 1 and not line:
        return '""'
    return ",".join('"' + field.replace('"', '""') + '"' if _NEEDS_QUOTES.search(field) else field for field in fields)


def csv_text(names: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A header and rows of text fields as CSV with minimal quoting and LF line ends."""
    every = [names, *lines]
    width = len(names)
    plain = "".join([",".join(fields) + "\n" for fields in every])
    # The common case needs one look at the whole text instead of some at each line.
    if (
        width > 1
        and plain.count("\n") == len(every)
        and plain.count(",") == (width - 1) * len(every)
        and '"' not in plain
        and "\r" not in plain
        and all(len(fields) == width for fields in every)
    ):
        return plain
    return "".join([f"{_line(fields)}\n" for fields in every])


def table_csv(table: Table) -> str:
    """A table as CSV text."""
    if any(column.optional for column in table.columns):
        return csv_text(table.names(), [[text_of(cell) for cell in row] for row in table.rows])
    # As `text_of` has it where no cell is empty.
    return csv_text(table.names(), [list(map(str, row)) for row in table.rows])


def parse_csv(text: str) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a CSV text; blank lines and a byte-order mark are skipped.

    Raises:
        CsvError: there is no header, a row's length differs from it, or quotes are broken.
    """
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    lines: list[list[str]] = []
    try:
        for fields in reader:
            if not fields:
                continue
            if lines and len(fields) != len(lines[0]):
                raise CsvError(f"line {reader.line_num} has {len(fields)} fields, but the header has {len(lines[0])}")
            lines.append(fields)
    except csv.Error as error:
        raise CsvError(f"line {reader.line_num}: {error}") from None
    if not lines:
        raise CsvError("there is no header line")
    return lines[0], lines[1:]


def canonical_number(text: str, decimals: int) -> str:
    """A plain decimal number with exactly `decimals` digits after the point.

    Text that is not a plain number, or that has more significant decimals, comes back as it is.
    """
    match = _PLAIN_NUMBER.fullmatch(text)
    if match is None:
        return text
    whole = match[2].lstrip("0") or "0"
    fraction = (match[3] or "").rstrip("0")
    if len(fraction) > decimals:
        return text
    sign = match[1] if fraction or whole != "0" else ""
    return f"{sign}{whole}.{fraction.ljust(decimals, '0')}" if decimals else f"{sign}{whole}"


def canonical_lines(text: str, columns: Sequence[Column]) -> list[str]:
    """The lines of the canonical form of a CSV text, the header first, without their line ends.

    Args:
        text: Any CSV text.
        columns: The expected columns; numbers under one of these names get its decimals.

    Raises:
        CsvError: `text` is not a CSV table.
    """
    names, lines = parse_csv(text)
    decimals = {column.name: column.decimals for column in columns if column.kind == "number"}
    numeric = [(position, decimals[name]) for position, name in enumerate(names) if name in decimals]
    for fields in lines:
        for position, digits in numeric:
            fields[position] = canonical_number(fields[position], digits)
    return [_line(fields) for fields in (names, *lines)]


def canonical_bytes(lines: Iterable[str]) -> bytes:
    """Canonical lines as the bytes that are compared."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
