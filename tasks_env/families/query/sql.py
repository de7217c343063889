"""From a question to SQL: the right statement, and the statements that wrong readings lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tasks_env.families.query.question import Operator, Predicate, Question, Ref
from tasks_env.families.query.schema import Path, Schema

_SYMBOLS: dict[Operator, str] = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@dataclass(frozen=True)
class Reading:
    """One way to read a question; only `right` in every field is the right one."""

    name: str
    predicates: tuple[Predicate, ...]
    null_satisfies: int | None = None
    """Index of a predicate that missing values are taken to meet."""
    join: str = "JOIN"
    wrong_key: Path | None = None
    """A path whose last step compares primary keys instead of following the foreign key."""
    unlinked: Path | None = None
    """A path whose last step pairs every row with every row."""
    form: str = "right"
    """Which statement of the question's kind: a key of `_FORMS`."""
    column: Ref | None = None
    """What is asked for in place of the question's own column."""
    lean: bool = False
    """Whether tables that only the left out conditions need are left out too."""


@dataclass(frozen=True)
class _Parts:
    """What the forms put together."""

    source: str
    base: str
    where: tuple[str, ...]
    column: str
    measure: str
    direction: str
    entities: str
    """`absent`: the table that the entities are counted in."""
    outer_source: str
    """`top`: every group with or without rows."""
    order: str

    @property
    def filter(self) -> str:
        return f" WHERE {' AND '.join(self.where)}" if self.where else ""

    def also(self, *conditions: str) -> str:
        """The WHERE clause with further conditions."""
        return " WHERE " + " AND ".join((*self.where, *conditions))


def right_reading(question: Question) -> Reading:
    """The question as it is meant."""
    return Reading("right", question.predicates)


def statement(question: Question, reading: Reading) -> str:
    """The SELECT statement that answers `question` under `reading`.

    `extreme` and `top` give (answer, rank) rows, the winner first; `lookup`, `list` give one column; the
    others one value.
    """
    if reading.column is not None:
        question = question.model_copy(update={"column": reading.column})
    if reading.lean:
        question = question.model_copy(update={"predicates": reading.predicates})
    schema = question.database
    column = _sql_ref(schema, question.base, question.column)
    measure = _sql_ref(schema, question.base, question.measure)
    where = [
        _condition(schema, question.base, predicate, index == reading.null_satisfies)
        for index, predicate in enumerate(reading.predicates)
    ]
    best = question.direction in ("highest", "latest")
    entity_path = question.column.path if question.column else ()
    parts = _Parts(
        source=question.base + _joins(question, schema, reading),
        base=question.base,
        where=tuple(where),
        column=column,
        measure=measure,
        direction="DESC" if best else "ASC",
        entities=schema.follow(question.base, entity_path).name,
        outer_source=_outer(question, schema, tuple(where)),
        order="DESC" if question.answer.order == "descending" else "ASC",
    )
    return _FORMS[question.kind, reading.form](parts)


def _sql_ref(schema: Schema, base: str, ref: Ref | None) -> str:
    return f"{schema.follow(base, ref.path).name}.{ref.column}" if ref else ""


def literal(value: str | int | float) -> str:
    """A value as SQL text."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _condition(schema: Schema, base: str, predicate: Predicate, null_satisfies: bool) -> str:
    column = _sql_ref(schema, base, predicate.ref)
    test = f"{column} {_SYMBOLS[predicate.operator]} {literal(predicate.value)}"
    return f"({column} IS NULL OR {test})" if null_satisfies else test


def _joins(question: Question, schema: Schema, reading: Reading) -> str:
    clauses = []
    for path, source, target in _linked(schema, question.base, question.joins):
        link = "id" if path == reading.wrong_key else path[-1]
        on = "" if path == reading.unlinked else f" ON {source}.{link} = {target}.id"
        clauses.append(f" {reading.join} {target}{on}")
    return "".join(clauses)


@lru_cache(maxsize=4096)
def _linked(schema: Schema, base: str, paths: tuple[Path, ...]) -> tuple[tuple[Path, str, str], ...]:
    """Each path with the names of the tables that its last step leads from and to."""
    return tuple((path, schema.follow(base, path[:-1]).name, schema.follow(base, path).name) for path in paths)


def _outer(question: Question, schema: Schema, where: tuple[str, ...]) -> str:
    """Every entity of the group's table, with the rows that meet the conditions where there are any."""
    if question.kind != "top" or question.column is None or not question.column.path:
        return ""
    path = question.column.path
    entity = schema.follow(question.base, path).name
    link = f"{schema.follow(question.base, path[:-1]).name}.{path[-1]}"
    others = [other for other in question.joins if other != path]
    tables = question.base + "".join(
        f" JOIN {schema.follow(question.base, other).name}"
        f" ON {schema.follow(question.base, other[:-1]).name}.{other[-1]}"
        f" = {schema.follow(question.base, other).name}.id"
        for other in others
    )
    return f"{entity} LEFT JOIN ({tables}) ON {' AND '.join((f'{link} = {entity}.id', *where))}"


def _value(expression: str) -> Callable[[_Parts], str]:
    return lambda p: f"SELECT {expression.format(p=p)} FROM {p.source}{p.filter}"


def _opposite(direction: str) -> str:
    return "ASC" if direction == "DESC" else "DESC"


def _ranked_rows(p: _Parts, direction: str, keep_nulls: bool = False) -> str:
    where = p.filter if keep_nulls else p.also(f"{p.measure} IS NOT NULL", f"{p.column} IS NOT NULL")
    return f"SELECT {p.column}, {p.measure} FROM {p.source}{where} ORDER BY 2 {direction}, 1"


def _ranked_groups(p: _Parts, direction: str, rank: str) -> str:
    present = [f"{name} IS NOT NULL" for name in (p.column, p.measure) if name]
    return f"SELECT {p.column}, {rank} FROM {p.source}{p.also(*present)} GROUP BY {p.column} ORDER BY 2 {direction}, 1"


def _total(p: _Parts) -> str:
    return f"ROUND(SUM({p.measure}), 2)" if p.measure else "COUNT(*)"


def _zero_groups(p: _Parts) -> str:
    rank = f"ROUND(COALESCE(SUM({p.measure}), 0), 2)" if p.measure else f"COUNT({p.base}.id)"
    return (
        f"SELECT {p.column}, {rank} FROM {p.outer_source} WHERE {p.column} IS NOT NULL"
        f" GROUP BY {p.column} ORDER BY 2 {p.direction}, 1"
    )


def _listed(p: _Parts, *, distinct: bool = True, ordered: bool = True, nulls: bool = False) -> str:
    where = p.filter if nulls else p.also(f"{p.column} IS NOT NULL")
    order = f" ORDER BY 1 {p.order}" if ordered else f" ORDER BY {p.base}.id"
    if distinct and not ordered:
        return f"SELECT {p.column} FROM {p.source}{where} GROUP BY 1 ORDER BY MIN({p.base}.id)"
    return f"SELECT {'DISTINCT ' if distinct else ''}{p.column} FROM {p.source}{where}{order}"


def _entities(p: _Parts, test: str, where: str) -> str:
    return f"SELECT COUNT(*) FROM {p.entities} WHERE id {test} (SELECT {p.column} FROM {p.source}{where})"


def _extremum(p: _Parts, direction: str) -> str:
    return f"SELECT {'MAX' if direction == 'DESC' else 'MIN'}({p.column}) FROM {p.source}{p.filter}"


_FORMS: dict[tuple[str, str], Callable[[_Parts], str]] = {
    ("count", "right"): _value("COUNT(*)"),
    ("count", "column counted"): _value("COUNT({p.column})"),
    ("count", "duplicates left out"): _value("COUNT(DISTINCT {p.column})"),
    ("distinct", "right"): _value("COUNT(DISTINCT {p.column})"),
    ("distinct", "duplicates counted"): _value("COUNT({p.column})"),
    ("distinct", "missing counted"): lambda p: (
        f"SELECT COUNT(*) FROM (SELECT DISTINCT {p.column} FROM {p.source}{p.filter})"
    ),
    ("sum", "right"): _value("SUM({p.column})"),
    ("sum", "mean"): _value("AVG({p.column})"),
    ("sum", "rows counted"): _value("COUNT(*)"),
    ("sum", "single row"): _value("MAX({p.column})"),
    ("sum", "duplicates left out"): _value("SUM(DISTINCT {p.column})"),
    ("average", "right"): _value("AVG({p.column})"),
    ("average", "total"): _value("SUM({p.column})"),
    ("average", "single row"): _value("MAX({p.column})"),
    ("average", "duplicates left out"): _value("AVG(DISTINCT {p.column})"),
    ("average", "missing as zero"): _value("AVG(COALESCE({p.column}, 0))"),
    ("average", "whole division"): _value("SUM({p.column}) / COUNT({p.column})"),
    ("date", "right"): lambda p: _extremum(p, p.direction),
    ("date", "opposite end"): lambda p: _extremum(p, _opposite(p.direction)),
    ("lookup", "right"): _value("{p.column}"),
    ("extreme", "right"): lambda p: _ranked_rows(p, p.direction),
    ("extreme", "opposite end"): lambda p: _ranked_rows(p, _opposite(p.direction)),
    ("extreme", "missing ranked"): lambda p: _ranked_rows(p, p.direction, keep_nulls=True),
    ("list", "right"): lambda p: _listed(p),
    ("list", "duplicates kept"): lambda p: _listed(p, distinct=False),
    ("list", "unordered"): lambda p: _listed(p, ordered=False),
    ("list", "missing listed"): lambda p: _listed(p, nulls=True),
    ("top", "right"): lambda p: _ranked_groups(p, p.direction, _total(p)),
    ("top", "opposite end"): lambda p: _ranked_groups(p, _opposite(p.direction), _total(p)),
    ("top", "rows counted"): lambda p: _ranked_groups(p, p.direction, "COUNT(*)"),
    ("top", "single row"): lambda p: _ranked_groups(
        p, p.direction, f"{'MAX' if p.direction == 'DESC' else 'MIN'}({p.measure})"
    ),
    ("top", "mean"): lambda p: _ranked_groups(p, p.direction, f"AVG({p.measure})"),
    ("top", "empty groups ranked"): _zero_groups,
    ("absent", "right"): lambda p: _entities(p, "NOT IN", p.also(f"{p.column} IS NOT NULL")),
    ("absent", "present counted"): lambda p: _entities(p, "IN", p.filter),
    ("absent", "all counted"): lambda p: f"SELECT COUNT(*) FROM {p.entities}",
    ("absent", "other rows counted"): lambda p: _entities(p, "IN", f" WHERE NOT ({' AND '.join(p.where)})"),
}
