"""Drawing a candidate question about generated rows: values and bounds are taken from the data, so that every
condition has rows that meet it and every bound has a row that sits on it."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tasks_env.families.query.params import QueryParams, QuestionKind
from tasks_env.families.query.question import AnswerFormat, Direction, Operator, Predicate, Question, Ref
from tasks_env.families.query.schema import Column, Path, Role, Schema
from tasks_env.types import JsonObject

_FEWEST_MATCHES: dict[QuestionKind, int] = {
    "count": 2,
    "distinct": 3,
    "sum": 2,
    "average": 3,
    "date": 2,
    "lookup": 1,
    "extreme": 3,
    "list": 3,
    "top": 4,
    "absent": 2,
}
_NUMERIC: tuple[Role, ...] = ("integer", "decimal")
LOOKED_UP: tuple[tuple[Role, ...], ...] = (("name", "category"), _NUMERIC, ("date",))
"""What a lookup may ask for: a text, a number, or a date."""
_ORDERED: tuple[Role, ...] = ("integer", "decimal", "date")
_NE_SHARE = 0.25

_TESTS: dict[Operator, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


class View:
    """The stored rows as seen from one base table: for each reference, its value in every base row."""

    def __init__(self, schema: Schema, world: JsonObject, base: str) -> None:
        tables: Any = world["tables"]
        self.schema = schema
        self.base = base
        self._rows: dict[str, list[list[Any]]] = {table["name"]: table["rows"] for table in tables}
        self._reached: dict[Path, list[list[Any] | None]] = {(): list(self._rows[base])}
        self._values: dict[Ref, list[Any]] = {}

    @property
    def size(self) -> int:
        """Rows of the base table."""
        return len(self._rows[self.base])

    def values(self, ref: Ref) -> list[Any]:
        """The value of `ref` in each base row, None where it is missing."""
        found = self._values.get(ref)
        if found is None:
            place = self._place(ref.path, ref.column)
            found = [None if row is None else row[place] for row in self._reach(ref.path)]
            self._values[ref] = found
        return found

    def _place(self, path: Path, column: str) -> int:
        table = self.schema.follow(self.base, path)
        return next(place for place, known in enumerate(table.columns) if known.name == column)

    def _reach(self, path: Path) -> list[list[Any] | None]:
        if path not in self._reached:
            place = self._place(path[:-1], path[-1])
            target = self._rows[self.schema.follow(self.base, path).name]
            # Ids are the row numbers from 1.
            self._reached[path] = [
                None if row is None or row[place] is None else target[row[place] - 1] for row in self._reach(path[:-1])
            ]
        return self._reached[path]


class Draw:
    """One candidate in the making.

    Args:
        rng: The source of every choice.
        view: The rows as seen from the question's base.
        tree: The paths that the question follows, closed under prefixes.
        looked_up: One of `LOOKED_UP`, for questions of kind `lookup`.
    """

    def __init__(
        self, rng: random.Random, params: QueryParams, view: View, tree: tuple[Path, ...], looked_up: tuple[Role, ...]
    ) -> None:
        self.rng = rng
        self.params = params
        self.view = view
        self.looked_up = looked_up
        self.schema = view.schema
        self.base = view.base
        self.paths: tuple[Path, ...] = ((), *tree)
        self.leaves = [path for path in tree if not any(path == other[:-1] for other in tree)]

    def column(self, ref: Ref) -> Column:
        return self.schema.follow(self.base, ref.path).column(ref.column)

    def refs(self, *roles: Role, paths: tuple[Path, ...] | None = None) -> list[Ref]:
        """Every column with one of `roles` at one of `paths`."""
        return list(_refs(self.schema, self.base, self.paths if paths is None else paths, roles))

    def pick(self, refs: list[Ref]) -> Ref | None:
        """One of `refs`, mostly one at the end of a path."""
        if not refs:
            return None
        deep = [ref for ref in refs if ref.path in self.leaves]
        return self.rng.choice(deep if deep and self.rng.random() < 0.7 else refs)

    def question(self, kind: QuestionKind) -> Question | None:
        """A candidate of this kind; None when the drawn parts do not fit together."""
        asked = self._asked(kind)
        if asked is None:
            return None
        column, measure, direction = asked
        predicates = self._predicates(kind, column, measure)
        if predicates is None:
            return None
        refs = [*(predicate.ref for predicate in predicates), *(ref for ref in (column, measure) if ref)]
        return Question(
            theme=self.schema.theme,
            tables=tuple(table.name for table in self.schema.tables),
            nulls=self.params.null_share > 0,
            base=self.base,
            kind=kind,
            column=column,
            measure=measure,
            direction=direction,
            predicates=predicates,
            answer=self._answer(kind, measure if kind == "top" else column),
            states_nulls=any(self.schema.nullable(self.base, ref.path, ref.column) for ref in refs),
        )

    def _asked(self, kind: QuestionKind) -> tuple[Ref | None, Ref | None, Direction | None] | None:
        """Column, measure and direction; None when the tables offer none."""
        below = self.paths[1:]
        column: Ref | None = None
        measure: Ref | None = None
        direction: Direction | None = None
        if kind == "count":
            return None, None, None
        if kind == "distinct":
            column = self.pick([*self.refs("category"), *self.refs("name", paths=below)])
        elif kind == "list":
            column = self.pick([*self.refs("category"), *self.refs("name")])
        elif kind in ("sum", "average"):
            column = self.pick(self.refs(*_NUMERIC, paths=((),)))
        elif kind == "date":
            column = self.pick(self.refs("date"))
            direction = self.rng.choice(("earliest", "latest"))
        elif kind == "lookup":
            column = self.pick(self.refs(*self.looked_up))
        elif kind == "extreme":
            measure = self.rng.choice(self.refs(*_NUMERIC, paths=((),)))
            targets = self.refs("name") or self.refs("category")
            column = self.pick([ref for ref in targets if not self.column(ref).nullable])
            direction = self.rng.choice(("highest", "lowest"))
        elif kind == "top":
            column = self.pick([*self.refs("category"), *self.refs("name", paths=below)])
            amounts: list[Ref | None] = [None, *self.refs(*_NUMERIC, paths=((),))]
            measure = self.rng.choice(amounts)
            direction = self.rng.choice(("highest", "lowest"))
        elif below:
            column = Ref(path=self.rng.choice(below), column="id")
        return None if column is None else (column, measure, direction)

    def _answer(self, kind: QuestionKind, column: Ref | None) -> AnswerFormat:
        role = "key" if column is None else self.column(column).role
        if kind in ("count", "distinct", "absent"):
            return AnswerFormat(kind="number")
        if kind == "average" or (kind in ("sum", "lookup") and role == "decimal"):
            return AnswerFormat(kind="number", decimals=2)
        if kind == "sum" or (kind == "lookup" and role == "integer"):
            return AnswerFormat(kind="number")
        if kind == "date" or (kind == "lookup" and role == "date"):
            return AnswerFormat(kind="date")
        if kind == "top":
            return AnswerFormat(kind="pair", decimals=2 if role == "decimal" else 0)
        if kind == "list":
            return AnswerFormat(kind="list", order=self.rng.choice(("ascending", "descending")))
        return AnswerFormat(kind="text")

    def _predicates(self, kind: QuestionKind, column: Ref | None, measure: Ref | None) -> tuple[Predicate, ...] | None:
        chosen = self._predicate_refs(kind, column, measure)
        if chosen is None:
            return None
        rows = list(range(self.view.size))
        for ref in chosen:
            values = self.view.values(ref)
            rows = [i for i in rows if values[i] is not None]
        if not rows:
            return None
        model = self.rng.choice(rows)
        matching = list(range(self.view.size))
        found: dict[Ref, Predicate] = {}
        # Bounds last: each is the value of a row that meets all the conditions drawn before it.
        for ref in sorted(chosen, key=lambda ref: self._is_bound(kind, ref)):
            values = self.view.values(ref)
            present = [i for i in matching if values[i] is not None]
            if not present:
                return None
            predicate = self._predicate(kind, ref, values, model, present)
            test = _TESTS[predicate.operator]
            bound = predicate.value
            matching = [i for i in present if test(values[i], bound)]
            found[ref] = predicate
        if len(matching) < _FEWEST_MATCHES[kind] or (kind == "lookup" and len(matching) > 1):
            return None
        return tuple(found[ref] for ref in chosen)

    def _is_bound(self, kind: QuestionKind, ref: Ref) -> bool:
        return kind != "lookup" and self.column(ref).role in _ORDERED

    def _predicate(self, kind: QuestionKind, ref: Ref, values: list[Any], model: int, present: list[int]) -> Predicate:
        if not self._is_bound(kind, ref):
            unequal = kind != "lookup" and self.column(ref).role == "category" and self.rng.random() < _NE_SHARE
            others = [values[i] for i in present if values[i] != values[model]] if unequal else []
            if others:
                return Predicate(ref=ref, operator="ne", value=self.rng.choice(others))
            return Predicate(ref=ref, operator="eq", value=values[model])
        bound = values[self.rng.choice(present)]
        operators: tuple[Operator, ...] = ("lt", "le", "gt", "ge")
        return Predicate(ref=ref, operator=self.rng.choice(operators), value=bound)

    def _predicate_refs(self, kind: QuestionKind, column: Ref | None, measure: Ref | None) -> list[Ref] | None:
        """Different columns for the conditions, at least one in each leaf that nothing else needs."""
        covered = {ref.path for ref in (column, measure) if ref is not None}
        options = [ref for ref in self._predicate_options(kind, column) if ref not in (column, measure)]
        if kind == "date" and column is not None:
            options.append(column)
        chosen: list[Ref] = []
        for leaf in self.leaves:
            if leaf not in covered:
                inside = [ref for ref in options if ref.path == leaf]
                if not inside:
                    return None
                chosen.append(self.rng.choice(inside))
        count = self.params.predicates
        rest = [ref for ref in options if ref not in chosen]
        if len(chosen) > count or len(chosen) + len(rest) < count:
            return None
        return [*chosen, *self.rng.sample(rest, count - len(chosen))]

    def _predicate_options(self, kind: QuestionKind, column: Ref | None) -> list[Ref]:
        below = self.paths[1:]
        if kind == "lookup":
            named = self.refs("name")
            return named if named and self.params.predicates == 1 else self.refs("name", "category", "integer", "date")
        options = [*self.refs("category", *_ORDERED), *self.refs("name", paths=below)]
        if kind == "absent" and column is not None:
            own = column.path
            options = [ref for ref in options if ref.path[: len(own)] != own]
        return options


@lru_cache(maxsize=4096)
def _refs(schema: Schema, base: str, paths: tuple[Path, ...], roles: tuple[Role, ...]) -> tuple[Ref, ...]:
    return tuple(
        Ref(path=path, column=column.name)
        for path in paths
        for column in schema.follow(base, path).columns
        if column.role in roles
    )
