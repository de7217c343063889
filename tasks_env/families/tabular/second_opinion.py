"""The second judge: what the second solver finds, compared with a submission by rules read anew.

It shares no code with the generator, the tools, the reference or the verifier, and never reads the truth. The
documented rules of equality, as this module reads them:

- The submission is a CSV text of at most a million characters. Lines end in LF, CRLF or CR, the last one
  perhaps in nothing; lines without a character are no rows; one byte-order mark may stand before the header.
- A field is the text up to a comma or a line end, or, if it starts with a quote, the text up to the closing
  quote, in which two quotes stand for one. Every row has as many fields as the header.
- The header is the result's column names, and the rows are the result's rows, both in order.
- Text and dates are equal if all characters are. An empty cell is an empty field.
- A number is an optional minus, digits, and perhaps a point and more digits, at most 30 digits on either side;
  it is equal if its value is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from tasks_env.families.tabular.second_solver import Shape, Solution, solution
from tasks_env.types import FinalState, Instance

_LONGEST = 1_000_000
_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")
_FIELD_END = re.compile(r"[,\r\n]|\Z")


def second_opinion(instance: Instance) -> Callable[[FinalState], bool]:
    """A judge of final states of the instance: whether the table that was handed in is the right one."""
    solved = solution(instance.spec, instance.world)

    def is_right(state: FinalState) -> bool:
        text = state.data.get("csv")
        return state.submitted and isinstance(text, str) and len(text) <= _LONGEST and _says(text, solved)

    return is_right


def _says(text: str, solved: Solution) -> bool:
    records = _records(text)
    if records is None or len(records) != len(solved.rows) + 1 or records[0] != [*solved.names]:
        return False
    return all(
        len(record) == len(row) and all(map(_equal, record, row, solved.shapes))
        for record, row in zip(records[1:], solved.rows, strict=True)
    )


def _equal(field: str, cell: str | int | None, shape: Shape) -> bool:
    if cell is None or not shape.numeric:
        return field == ("" if cell is None else cell)
    return _NUMBER.fullmatch(field) is not None and Fraction(field) == Fraction(int(cell), 10**shape.decimals)


def _records(text: str) -> list[list[str]] | None:
    """The rows of a CSV text, header included; None where a quoted field does not end or goes on after its end."""
    records: list[list[str]] = []
    fields: list[str] = []
    place = 1 if text.startswith("\ufeff") else 0
    while place < len(text):
        if not fields and text[place] in "\r\n":
            place += 1
            continue
        if text[place] == '"':
            pieces, end = _quoted(text, place)
            if pieces is None:
                return None
            fields.append('"'.join(pieces))
        else:
            end = _end_of_field(text, place)
            fields.append(text[place:end])
        if text[end : end + 1] == ",":
            place = end + 1
            if place == len(text) or text[place] in "\r\n":
                fields.append("")
                end = place
            else:
                continue
        records.append(fields)
        fields = []
        place = end + 1
    return records


def _end_of_field(text: str, start: int) -> int:
    found = _FIELD_END.search(text, start)
    return len(text) if found is None else found.start()


def _quoted(text: str, start: int) -> tuple[Sequence[str] | None, int]:
    """The pieces between doubled quotes of the field that opens at `start`, and the place after its end."""
    pieces: list[str] = []
    place = start + 1
    while (quote := text.find('"', place)) >= 0:
        pieces.append(text[place:quote])
        if text[quote + 1 : quote + 2] != '"':
            ended = _end_of_field(text, quote + 1) == quote + 1
            return (pieces if ended else None), quote + 1
        place = quote + 2
    return None, len(text)
