"""The right answer taken apart: what restatements and near misses are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from tasks_env.families.tabular.csv_form import csv_text, parse_csv
from tasks_env.families.tabular.evaluate import result_columns
from tasks_env.families.tabular.spec import Spec
from tasks_env.families.tabular.table import Cell, Column, is_number
from tasks_env.types import FinalState, Instance, JsonObject

Lines = list[list[str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A right final state as text cells under known columns."""

    spec: Spec
    columns: tuple[Column, ...]
    header: list[str]
    lines: Lines
    data: JsonObject
    """Of the final state that it was read from."""

    def places(self, kind: str) -> list[tuple[int, int]]:
        """Row and column of every non-empty cell in the columns of a kind."""
        of_kind = [position for position, column in enumerate(self.columns) if column.kind == kind]
        return [(row, column) for row, line in enumerate(self.lines) for column in of_kind if line[column]]

    def value(self, column: int, text: str) -> Cell:
        """What a text means in a column: numbers by value."""
        if not text:
            return None
        return Decimal(text) if self.columns[column].kind == "number" and is_number(text) else text

    def values(self, line: Sequence[str]) -> tuple[Cell, ...]:
        """What the cells of a row mean."""
        return tuple(self.value(column, text) for column, text in enumerate(line))

    def text(self, header: Sequence[str] | None = None, lines: Lines | None = None) -> str:
        """CSV text with a part of the answer replaced."""
        return csv_text(self.header if header is None else header, self.lines if lines is None else lines)

    def with_cell(self, place: tuple[int, int], text: str) -> str:
        """CSV text with one cell replaced."""
        lines = [*self.lines]
        row, column = place
        lines[row] = [*lines[row][:column], text, *lines[row][column + 1 :]]
        return self.text(lines=lines)

    def state(self, text: str) -> FinalState:
        """A final state in which this text was typed and submitted."""
        return FinalState(submitted=True, data={**self.data, "table": "typed", "csv": text})


def answer_of(instance: Instance, right: FinalState) -> Answer:
    """The right final state of an instance, taken apart."""
    spec = Spec.model_validate(instance.spec)
    header, lines = parse_csv(str(right.data["csv"]))
    return Answer(spec, result_columns(spec), header, lines, right.data)
