"""The machine-readable question: what wording, truth, and reference solution are all made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tasks_env.families.query.params import QuestionKind
from tasks_env.families.query.schema import Path, Schema, schema_of
from tasks_env.families.query.themes import theme_called
from tasks_env.types import Frozen, JsonObject

Operator = Literal["eq", "ne", "lt", "le", "gt", "ge"]
Direction = Literal["highest", "lowest", "latest", "earliest"]
AnswerKind = Literal["number", "text", "list", "date", "pair"]


@dataclass(frozen=True)
class Ref:
    """A column of the table at the end of `path`, seen from a row of the base table."""

    column: str
    path: Path = ()


@dataclass(frozen=True)
class Predicate:
    """A condition on one column; a missing value never meets it."""

    ref: Ref
    operator: Operator
    value: str | int | float


class AnswerFormat(Frozen):
    """How the answer is written and compared; the rules are in `answers`."""

    kind: AnswerKind
    decimals: int = 0
    """Numbers, and the number of a pair: decimals of the right answer; 0: whole."""
    order: Literal["ascending", "descending"] = "ascending"
    """Lists: alphabetical order, or the reverse."""


class Question(Frozen):
    """A question about the rows of `base` that meet all predicates."""

    theme: str
    tables: tuple[str, ...]
    """The tables of the database."""
    nulls: bool
    """Whether the database has missing values."""
    base: str
    kind: QuestionKind
    column: Ref | None = None
    """What is counted, summed, listed, looked up, or grouped by; `absent`: the key of the entity."""
    measure: Ref | None = None
    """`extreme` and `top`: what ranks; null with `top`: the number of rows."""
    direction: Direction | None = None
    predicates: tuple[Predicate, ...]
    answer: AnswerFormat
    states_nulls: bool
    """Whether a mentioned column may be missing, so that the wording must say what happens then."""

    @property
    def database(self) -> Schema:
        """The database that the question is about."""
        return schema_of(theme_called(self.theme), self.tables, self.nulls)

    @property
    def refs(self) -> tuple[Ref, ...]:
        """Every column that the question mentions, the predicates' first."""
        asked = [ref for ref in (self.column, self.measure) if ref is not None]
        return (*(predicate.ref for predicate in self.predicates), *asked)

    @property
    def joins(self) -> tuple[Path, ...]:
        """The paths that must be followed to reach every mentioned column, each after the ones that it
        extends."""
        return _prefixes(tuple(ref.path for ref in self.refs))

    def to_spec(self) -> JsonObject:
        """The question as stored; defaults are left out."""
        spec: JsonObject = self.model_dump(mode="json", exclude_defaults=True)
        return spec


@lru_cache(maxsize=1024)
def _prefixes(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    found = {path[:length] for path in paths for length in range(1, len(path) + 1)}
    return tuple(sorted(found, key=lambda path: (len(path), path)))
