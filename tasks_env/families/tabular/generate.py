"""From parameters and a seed to a task without ambiguity."""

from __future__ import annotations

from tasks_env.errors import GenerationError
from tasks_env.families.tabular.csv_form import table_csv
from tasks_env.families.tabular.draw import Candidate, draw
from tasks_env.families.tabular.evaluate import filtered, finished, widened
from tasks_env.families.tabular.params import TabularParams
from tasks_env.families.tabular.readings import decisive_readings
from tasks_env.families.tabular.spec import Spec
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
        f"tabular: no acceptable task for seed {seed} in {MAX_TRIES} tries with {params!r}; more rows or fewer "
        "operations make one likelier"
    )


def accepted_result(candidate: Candidate) -> Table | None:
    """The candidate's result, or None if it is trivial or a decisive wrong reading gives the same."""
    spec, tables = candidate.spec, candidate.tables
    kept = filtered(spec, candidate.wide)
    result = finished(spec, kept)
    if len(result.rows) < 2:
        return None
    if spec.aggregate:
        # Of all groups, not only of those within the limit: where an empty measure sorts would be open.
        groups = finished(spec.model_copy(update={"limit": None}), kept)
        if any(None in row for row in groups.rows):
            return None
    if any(result.rows == table.rows and result.names() == table.names() for table in tables.values()):
        return None
    for _, reading in decisive_readings(spec):
        # A reading shares what it does not change with the spec, and so the work up to there.
        if reading.joins is not spec.joins:
            rows = filtered(reading, widened(reading, tables))
        else:
            rows = kept if reading.filters is spec.filters else filtered(reading, candidate.wide)
        if not _surely_other(reading, rows, result) and finished(reading, rows).rows == result.rows:
            return None
    return result


def _surely_other(reading: Spec, rows: Table, result: Table) -> bool:
    """Whether the number of rows alone tells a reading's result from the right one."""
    if reading.aggregate:
        return False
    count = len(rows.rows) if reading.limit is None else min(reading.limit, len(rows.rows))
    return count != len(result.rows)
