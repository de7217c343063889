"""Drawing the input tables: keys, references that sometimes lead nowhere, cells, distractors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from tasks_env.families.tabular.params import TabularParams
from tasks_env.families.tabular.roles import Roles
from tasks_env.families.tabular.spec import TableSpec
from tasks_env.families.tabular.table import Cell, Column, Kind, Row, Table
from tasks_env.families.tabular.themes import EXTRA_FIELDS, Field

_DAYS = tuple(f"2024-{month:02d}-{day:02d}" for month in range(1, 7) for day in range(1, 29))


def draw_tables(
    params: TabularParams, roles: Roles, rng: random.Random
) -> tuple[tuple[TableSpec, ...], dict[str, Table]]:
    """The input tables, each with its key, the used columns and its share of the distractors."""
    theme, used = roles.theme, roles.used()
    joined = [lookup for lookup, _ in roles.joins]
    candidates = [*theme.fields, *(field for lookup in joined for field in lookup.fields)]
    unused = [field for field in candidates if field.name not in used]
    spare = rng.sample(unused, min(len(unused), params.distractor_columns))
    spare += EXTRA_FIELDS[: params.distractor_columns - len(spare)]
    kept = used | {field.name for field in spare}

    sizes = max(4, min(12, params.rows // 4))
    tables: dict[str, Table] = {}
    references: list[tuple[Field, list[str]]] = []
    for lookup in joined:
        # Some ids are referred to but unknown: an inner and a left join must not be the same.
        ids = _draw_ids(lookup.key, sizes + max(2, sizes // 3), rng)
        references.append((lookup.key, ids))
        fields = [field for field in lookup.fields if field.name in kept]
        tables[lookup.name] = _fill(params, lookup.key, ids[:sizes], [], fields, rng)
    fields = [field for field in (*theme.fields, *EXTRA_FIELDS) if field.name in kept]
    main = _fill(params, theme.key, _draw_ids(theme.key, params.rows, rng), references, fields, rng)
    tables = {theme.table: main, **tables}
    specs = tuple(TableSpec(name=name, columns=table.columns) for name, table in tables.items())
    return specs, tables


def _draw_ids(key: Field, count: int, rng: random.Random) -> list[str]:
    return [f"{key.prefix}{number:03d}" for number in rng.sample(range(100, 1000), count)]


def _fill(
    params: TabularParams,
    key: Field,
    ids: list[str],
    references: Sequence[tuple[Field, list[str]]],
    fields: Sequence[Field],
    rng: random.Random,
) -> Table:
    count = len(ids)
    cells: list[Sequence[Cell]] = [ids]
    cells += [rng.choices(targets, k=count) for _, targets in references]
    cells += [_draw_cells(field, params, count, rng) for field in fields]
    has_missing = params.missing_percent > 0
    columns = tuple(_column(field, has_missing) for field in (key, *(f for f, _ in references), *fields))
    rows: list[Row] = list(zip(*cells, strict=True))
    return Table(columns, rows)


def _draw_cells(field: Field, params: TabularParams, count: int, rng: random.Random) -> list[Cell]:
    cells: list[Cell]
    if field.kind == "number":
        cells = [*rng.choices(_numbers(field), k=count)]
    elif field.kind == "date":
        cells = [*rng.choices(_DAYS, k=count)]
    elif field.kind == "category":
        cells = [*rng.choices(rng.sample(field.values, params.groups), k=count)]
    else:
        cells = [*rng.choices(field.values, k=count)]
    if field.optional and params.missing_percent:
        cells = [None if rng.random() * 100 < params.missing_percent else cell for cell in cells]
    return cells


@lru_cache(maxsize=128)
def _numbers(field: Field) -> tuple[Decimal, ...]:
    steps = range(field.low, field.high + 1, field.step)
    return tuple(Decimal(value).scaleb(-field.decimals) for value in steps)


@lru_cache(maxsize=512)
def _column(field: Field, has_missing: bool) -> Column:
    kind: Kind = "number" if field.kind == "number" else "date" if field.kind == "date" else "text"
    return Column(name=field.name, kind=kind, decimals=field.decimals, optional=field.optional and has_missing)
