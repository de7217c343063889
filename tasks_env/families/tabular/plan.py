"""Plans of tool calls: the reference solution, read off the spec, and plausible failures."""

from __future__ import annotations

import random
from collections.abc import Iterator

from pydantic import JsonValue

from tasks_env.errors import ToolError
from tasks_env.families.tabular.csv_form import csv_text
from tasks_env.families.tabular.evaluate import evaluate, parse_tables, working_columns
from tasks_env.families.tabular.readings import careless_readings, decisive_readings
from tasks_env.families.tabular.spec import Spec
from tasks_env.families.tabular.table import text_of
from tasks_env.families.tabular.tools import CLOSING_TOOL
from tasks_env.families.tabular.verify import verify
from tasks_env.families.tabular.world import TabularWorld
from tasks_env.types import FinalState, Instance, ToolCall, VerifierInput

_READING = "reading"
_KINDS = (_READING, _READING, _READING, "stops early", "mistypes", "forgets")


def open_world(instance: Instance) -> TabularWorld:
    """A fresh world with the instance's tables."""
    spec = Spec.model_validate(instance.spec)
    return TabularWorld(parse_tables(spec.tables, _texts(instance)))


def reference(spec: Spec) -> tuple[ToolCall, ...]:
    """A plan that passes: look around, then one call per operation of the spec, then submit."""
    look = [_call("list_tables"), *(_call("preview_table", table=table.name) for table in spec.tables)]
    steps = _steps(spec)
    last = str(steps[-1].arguments["output"]) if steps else spec.tables[0].name
    return (*look, *steps, _call(CLOSING_TOOL, table=last))


def mistake(instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:
    """A plausible plan that fails: drawn plans are carried out until one does."""
    spec = Spec.model_validate(instance.spec)
    for plan in _wrong_plans(instance, spec, rng):
        if _fails(instance, plan):
            return plan
    # Generation rejects tasks whose result is an input table.
    return (_call("list_tables"), _call(CLOSING_TOOL, table=spec.tables[0].name))


def untouched(spec: Spec) -> Iterator[tuple[ToolCall, ...]]:
    """Plans that hand in an input table as it is."""
    for table in spec.tables:
        yield (_call("list_tables"), _call(CLOSING_TOOL, table=table.name))


def _call(name: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def _texts(instance: Instance) -> dict[str, str]:
    tables = instance.world["tables"]
    if not isinstance(tables, dict):
        raise TypeError(f"instance {instance.instance_id}: world.tables is not an object")
    return {name: str(text) for name, text in tables.items()}


def _steps(spec: Spec) -> list[ToolCall]:
    """The operations as calls, each working on the result of the one before."""
    table = spec.tables[0].name
    names = [column.name for column in working_columns(spec)]
    steps: list[ToolCall] = []

    def add(tool: str, output: str, **arguments: JsonValue) -> None:
        nonlocal table
        steps.append(_call(tool, table=table, **arguments, output=output))
        table = output

    for join in spec.joins:
        add("join_tables", f"with_{join.table}", other_table=join.table, column=join.column, kind=join.kind)
    if spec.derive:
        add(
            "add_column",
            f"with_{spec.derive.column}",
            column=spec.derive.column,
            left=spec.derive.left,
            operator=spec.derive.operator,
            right=spec.derive.right,
            decimals=spec.derive.decimals,
        )
    for number, condition in enumerate(spec.filters, 1):
        values: dict[str, JsonValue] = {"values": [*condition.values]} if condition.values else {}
        add(
            "filter_rows",
            f"filtered_{number}",
            column=condition.column,
            condition=condition.condition,
            **values,
        )
    if spec.aggregate:
        measures = spec.aggregate.measures
        decimals: dict[str, JsonValue] = {}
        if any(measure.function == "mean" for measure in measures):
            decimals = {"decimals": spec.aggregate.decimals}
        add(
            "group_rows",
            "grouped",
            by=[*spec.aggregate.by],
            functions=[measure.function for measure in measures],
            columns=[measure.of for measure in measures],
            names=[measure.column for measure in measures],
            **decimals,
        )
        names = [*spec.aggregate.by, *(measure.column for measure in measures)]
    if spec.sort:
        add(
            "sort_rows",
            "sorted",
            columns=[key.column for key in spec.sort],
            directions=[key.order for key in spec.sort],
        )
    if spec.limit is not None:
        add("limit_rows", "limited", count=spec.limit)
    if names != [*spec.columns]:
        add("select_columns", "result", columns=[*spec.columns])
    return steps


def _wrong_plans(instance: Instance, spec: Spec, rng: random.Random) -> Iterator[tuple[ToolCall, ...]]:
    """Wrong plans in random order: a wrong reading, an operation forgotten, stopping early, a typing slip."""
    readings = [*decisive_readings(spec), *careless_readings(spec)]
    rng.shuffle(readings)
    wrong = iter([reading for _, reading in readings])
    kinds = list(_KINDS)
    rng.shuffle(kinds)
    for kind in kinds:
        if kind == _READING:
            reading = next(wrong, None)
            if reading is not None:
                yield reference(reading)
        elif kind == "mistypes":
            yield _mistyped(instance, spec, rng)
        else:
            plan = reference(spec)
            steps = plan[1 + len(spec.tables) : -1]
            # Stopping early leaves out the last operation, forgetting any one.
            skipped = len(steps) - 1 if kind == "stops early" else rng.randrange(len(steps))
            yield _without_step(plan, 1 + len(spec.tables) + skipped)
    for reading in wrong:
        yield reference(reading)


def _without_step(plan: tuple[ToolCall, ...], position: int) -> tuple[ToolCall, ...]:
    """The plan with one operation left out: the call after it works on what that one worked on."""
    skipped, after = plan[position], plan[position + 1]
    patched = after.model_copy(update={"arguments": {**after.arguments, "table": skipped.arguments["table"]}})
    return (*plan[:position], patched, *plan[position + 2 :])


def _mistyped(instance: Instance, spec: Spec, rng: random.Random) -> tuple[ToolCall, ...]:
    """The right result typed as CSV, with one digit or letter of one cell changed."""
    result = evaluate(spec, parse_tables(spec.tables, _texts(instance)))
    lines = [[text_of(cell) for cell in row] for row in result.rows]
    line = rng.choice(lines)
    position = rng.randrange(len(line))
    cell = line[position]
    changed = chr(ord(cell[-1]) ^ 1) if cell else "0"
    line[position] = cell[:-1] + changed
    text = csv_text(result.names(), lines)
    look = [_call("list_tables"), *(_call("preview_table", table=table.name) for table in spec.tables)]
    write = _call("write_table", text=text, output="typed")
    return (*look, write, _call(CLOSING_TOOL, table="typed"))


def _fails(instance: Instance, plan: tuple[ToolCall, ...]) -> bool:
    """Whether the plan can be carried out and fails the verifier."""
    world = open_world(instance)
    for call in plan:
        try:
            world.call(call.name, call.arguments)
        except ToolError:
            return False
    state = FinalState(submitted=world.submitted, data=world.state())
    return not verify(VerifierInput(instance=instance, calls=plan, final_state=state)).passed
