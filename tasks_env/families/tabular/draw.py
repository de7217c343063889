"""Drawing candidate tasks: roles for columns first, then the tables, then everything that needs their cells."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tasks_env.families.tabular.conditions import draw_filters
from tasks_env.families.tabular.evaluate import widened_by
from tasks_env.families.tabular.inputs import draw_tables
from tasks_env.families.tabular.operations import count_groups
from tasks_env.families.tabular.params import TabularParams
from tasks_env.families.tabular.roles import Roles, draw_roles
from tasks_env.families.tabular.spec import Aggregate, Derive, Direction, Join, SortKey, Spec
from tasks_env.families.tabular.table import Table
from tasks_env.families.tabular.themes import Formula

_DIRECTIONS: tuple[Direction, ...] = ("ascending", "descending")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A drawn task that has not been checked yet."""

    spec: Spec
    tables: dict[str, Table]
    wide: Table
    """The main table with the columns of its joins and the derived one."""
    kept: Table
    """The rows of `wide` that meet every filter."""

    @property
    def main(self) -> Table:
        """The main table."""
        return self.tables[self.spec.tables[0].name]


def draw(params: TabularParams, rng: random.Random) -> Candidate | None:
    """A candidate task, or None if the draw left too little to work with."""
    roles = draw_roles(params, rng)
    specs, tables = draw_tables(params, roles, rng)
    joins = tuple([Join(table=far.name, column=far.key.name, kind=kind) for far, kind in roles.joins])
    derive = _derive(roles.formula) if roles.formula else None
    wide = widened_by(tables[roles.theme.table], joins, derive, tables)
    drawn = draw_filters(wide, roles.filtered, rng)
    if drawn is None:
        return None
    filters, kept = drawn
    if roles.keys:
        aggregate = Aggregate(by=roles.keys, measures=roles.measures, decimals=rng.choice((1, 2, 3)))
        columns = (*roles.keys, *(m.column for m in roles.measures))
    else:
        aggregate = None
        columns = _shown_columns(params, roles, wide, rng)
    sort = _draw_sort(params, roles, wide, columns, rng)
    if sort is None:
        return None
    limit = None
    if params.limit:
        count = count_groups(kept, roles.keys) if roles.keys else len(kept.rows)
        if count < 3:
            return None
        limit = rng.randint(max(2, count // 2), count - 1)
    spec = Spec(
        tables=specs,
        joins=joins,
        derive=derive,
        filters=filters,
        aggregate=aggregate,
        sort=sort,
        limit=limit,
        columns=columns,
    )
    return Candidate(spec, tables, wide, kept)


def _derive(formula: Formula) -> Derive:
    return Derive(
        column=formula.column,
        left=formula.left,
        operator=formula.operator,
        right=formula.right,
        decimals=formula.decimals,
    )


def _shown_columns(params: TabularParams, roles: Roles, wide: Table, rng: random.Random) -> tuple[str, ...]:
    """The result's columns: all in the table's order, or, with distractors, the needed ones shuffled."""
    if not params.distractor_columns:
        return tuple(wide.names())
    needed = roles.used() | ({roles.formula.column} if roles.formula else set())
    names = [name for name in wide.names() if name in needed]
    rng.shuffle(names)
    return tuple(names) if rng.random() < 0.2 else (roles.theme.key.name, *names)


def _draw_sort(
    params: TabularParams, roles: Roles, wide: Table, columns: tuple[str, ...], rng: random.Random
) -> tuple[SortKey, ...] | None:
    """Sort keys and the tie-breaks that make the order total; None if too few columns can be sorted by."""
    if not params.sort_keys:
        return ()
    if roles.keys:
        ties = list(roles.keys)
        choices = [m.column for m in roles.measures]
        if params.sort_keys > len(choices) or rng.random() < 0.2:
            choices += roles.keys
    else:
        ties = [roles.theme.key.name]
        unusable = {*ties, *(lookup.key.name for lookup, _ in roles.joins)}
        choices = [c.name for c in wide.columns if c.name in columns and not c.optional and c.name not in unusable]
    if len(choices) < params.sort_keys:
        return None
    primary = rng.sample(choices, params.sort_keys)
    keys = [SortKey(column=name, order=rng.choice(_DIRECTIONS)) for name in primary]
    return (*keys, *(SortKey(column=name, order="ascending") for name in ties if name not in primary))
