"""From parameters and a seed to a task without ambiguity."""

from __future__ import annotations

from tasks_env.errors import GenerationError
from tasks_env.families.tabular.csv_form import table_csv
from tasks_env.families.tabular.draw import Candidate, draw
from tasks_env.families.tabular.evaluate import filtered_by, grouped, ranked, widened_by
from tasks_env.families.tabular.params import TabularParams
from tasks_env.families.tabular.readings import filter_readings, join_readings, sort_readings
from tasks_env.families.tabular.spec import Join, Spec
from tasks_env.families.tabular.table import Table
from tasks_env.seeding import derive
from tasks_env.types import Content

MAX_TRIES = 2000


def generate(params: TabularParams, seed: int) -> Content:
    """The first acceptable candidate for `seed`.

    Raises:
        GenerationError: none within `MAX_TRIES`.
    """
    rng = derive(seed, "tabular")
    for _ in range(MAX_TRIES):
        candidate = draw(params, rng)
        if candidate is None:
            continue
        result = accepted_result(candidate)
        if result is not None:
            # Texts and a dumped model are JSON; a test validates what comes out of here.
            return Content.model_construct(
                spec=candidate.spec.to_json(),
                world={"tables": {name: table_csv(table) for name, table in candidate.tables.items()}},
                truth={"csv": table_csv(result)},
            )
    raise GenerationError(
        f"family 'tabular': no acceptable task for seed {seed} in {MAX_TRIES} tries with {params}; more rows, fewer"
        " filters, joins or empty cells make one likelier"
    )


def accepted_result(candidate: Candidate) -> Table | None:
    """The candidate's result, or None if it is trivial or a decisive wrong reading gives the same."""
    # The checks are independent of each other; what rejects most for the least work comes first.
    spec, kept = candidate.spec, candidate.kept
    if not all(_other_rows(candidate, joins) for _, joins in join_readings(spec.joins)):
        return None
    groups = grouped(spec, kept)
    # Of all groups, not only of those within the limit: where an empty measure sorts would be open.
    if spec.aggregate and _has_empty(groups):
        return None
    result = ranked(groups, spec.sort, spec.limit, spec.columns)
    if len(result.rows) < 2 or any(_same(result, table) for table in candidate.tables.values()):
        return None
    for _, sort in sort_readings(spec.sort):
        if ranked(groups, sort, spec.limit, spec.columns).rows == result.rows:
            return None
    # Without the limit there would be more rows: it was drawn below their number.
    for _, filters in filter_readings(spec.filters):
        if _same_result(spec, filtered_by(filters, candidate.wide), result):
            return None
    for _, joins in join_readings(spec.joins):
        wide = widened_by(candidate.main, joins, spec.derive, candidate.tables)
        if _same_result(spec, filtered_by(spec.filters, wide), result):
            return None
    return result


def _other_rows(candidate: Candidate, joins: tuple[Join, ...]) -> bool:
    """Whether joins of which one is of the other kind give any other row that meets the filters.

    A join decides about each row of the main table alone, so the kinds can differ only in the rows whose reference
    leads nowhere: the left join of those says which rows one kind has and the other lacks.
    """
    spec, tables = candidate.spec, candidate.tables
    own = next(join for join, other in zip(spec.joins, joins, strict=True) if join.kind != other.kind)
    lookup = tables[own.table]
    known = {row[lookup.index(own.column)] for row in lookup.rows}
    position = candidate.main.index(own.column)
    lost = Table(candidate.main.columns, [row for row in candidate.main.rows if row[position] not in known])
    left = spec.joins if own.kind == "left" else joins
    return bool(filtered_by(spec.filters, widened_by(lost, left, spec.derive, tables)).rows)


def _same_result(spec: Spec, kept: Table, result: Table) -> bool:
    """Whether other rows would give the same result."""
    if not spec.aggregate:
        count = len(kept.rows) if spec.limit is None else min(spec.limit, len(kept.rows))
        if count != len(result.rows):
            return False
    return ranked(grouped(spec, kept), spec.sort, spec.limit, spec.columns).rows == result.rows


def _same(table: Table, other: Table) -> bool:
    return table.rows == other.rows and table.names() == other.names()


def _has_empty(table: Table) -> bool:
    return any(column.optional for column in table.columns) and any(None in row for row in table.rows)
