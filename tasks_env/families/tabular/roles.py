"""Which columns of a theme a task uses, and for what: drawn before any table exists."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from tasks_env.families.tabular.params import TabularParams
from tasks_env.families.tabular.spec import Function, JoinKind, Measure
from tasks_env.families.tabular.themes import THEMES, Field, Formula, Lookup, Theme


@dataclass(frozen=True, slots=True)
class Roles:
    """The choice of columns for one task."""

    theme: Theme
    joins: tuple[tuple[Lookup, JoinKind], ...]
    formula: Formula | None
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    filtered: tuple[str, ...]
    shown: tuple[str, ...]
    """Columns of the result that no other role needs; only without grouping."""

    def used(self) -> set[str]:
        """Every column of the input tables that the task needs, key columns of the tables aside."""
        names = {*self.keys, *(m.of for m in self.measures), *self.filtered, *self.shown}
        if self.formula:
            names |= {self.formula.left, self.formula.right}
        return names


def draw_roles(params: TabularParams, rng: random.Random) -> Roles:
    """A theme, its joins and the columns for every operation that `params` asks for.

    A left-joined table gives measures and shown columns only: a filter, a group key or a formula over its cells,
    which may be empty, would raise questions that no short wording answers.
    """
    theme = rng.choice(THEMES)
    chosen = sorted(rng.sample(range(2), params.joins))
    left = chosen and rng.random() < 0.35 and (not params.group_keys or params.measures > 1)
    left_one = rng.choice(chosen) if left else None
    joins = tuple((theme.lookups[i], _join_kind(i == left_one)) for i in chosen)
    inner = [field for lookup, kind in joins if kind == "inner" for field in lookup.fields]
    outer = [field for lookup, kind in joins if kind == "left" for field in lookup.fields]
    sure = [*theme.fields, *inner]

    formula = None
    if params.derived_columns:
        operands = set(_named(sure, "number"))
        formula = rng.choice([f for f in theme.formulas if {f.left, f.right} <= operands])

    keys: list[str] = []
    if params.group_keys:
        far = _named(inner, "category")
        keys = [rng.choice(far)] if far else []
        near = [name for name in _named(sure, "category") if name not in keys]
        keys += rng.sample(near, params.group_keys - len(keys))
    derived = [formula.column] if formula else []
    measures = _draw_measures(params, derived, _named(sure, "number"), _named(outer, "number"), rng)

    optional = {field.name for field in theme.fields if field.optional}
    free = [field.name for field in sure if field.name not in keys]
    rng.shuffle(free)
    if params.missing_percent and rng.random() < 0.4:
        first = next(name for name in free if name in optional)
        free.remove(first)
        free.insert(0, first)
    filtered = [*derived, *free] if derived and rng.random() < 0.3 else free
    filtered = filtered[: params.filters]

    shown: list[str] = []
    if not params.group_keys:
        shown = [rng.choice(_named(lookup.fields, kind)) for lookup, _ in joins for kind in ("category", "number")]
        sure_numbers = _named(theme.fields, "number", optional=False)
        numbers = [name for name in sure_numbers if name not in filtered]
        shown += [rng.choice(numbers or sure_numbers), rng.choice(_named(theme.fields, "category"))]
    return Roles(theme, joins, formula, tuple(keys), measures, tuple(filtered), tuple(shown))


def _join_kind(left: bool) -> JoinKind:
    return "left" if left else "inner"


def _draw_measures(
    params: TabularParams, derived: list[str], sure: list[str], outer: list[str], rng: random.Random
) -> tuple[Measure, ...]:
    """The derived column first, then a column of a left-joined table, then any, the last of these often a count."""
    first = [*derived, *([rng.choice(outer)] if outer else [])]
    others = [name for name in sure if name not in first]
    rng.shuffle(others)
    sources = [*first, *others][: params.measures]
    measures = [_measure(rng.choice(("sum", "mean", "mean", "min", "max")), name) for name in sources]
    if len(measures) > len(first) and rng.random() < 0.5:
        measures[-1] = Measure(column="row_count", function="count")
    return tuple(measures)


def _measure(function: Function, source: str) -> Measure:
    prefix = "total" if function == "sum" else function
    return Measure(column=f"{prefix}_{source}", function=function, of=source)


def _named(fields: Iterable[Field], kind: str, *, optional: bool = True) -> list[str]:
    return [field.name for field in fields if field.kind == kind and (optional or not field.optional)]
