"""From a spec and a voice to the instruction that an agent reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Template

from tasks_env.families.tabular.evaluate import working_columns
from tasks_env.families.tabular.spec import Aggregate, Filter, Spec
from tasks_env.families.tabular.table import Column
from tasks_env.families.tabular.voices import Voice


def instruction(spec: Spec, voice: Voice) -> str:
    """The whole task in one voice; placeholders for names of tools and arguments are left in."""
    columns = {column.name: column for column in working_columns(spec)}
    source = spec.tables[0].name
    statements = {
        "opening": [_fill(voice.opening, tables=_table_list(spec, voice))],
        "joins": [
            _fill(voice.joins[join.kind], table=join.table, source=source, column=join.column) for join in spec.joins
        ],
        "derive": _derive(spec, voice),
        "filters": _filters(spec, voice, columns),
        "aggregate": _aggregate(spec.aggregate, voice, columns) if spec.aggregate else [],
        "sort": _sort(spec, voice, columns) if spec.sort else [_fill(voice.unsorted, source=source)],
        "limit": [] if spec.limit is None else [_fill(voice.limit, count=str(spec.limit))],
        "columns": _columns(spec, voice),
        "closing": [voice.closing],
    }
    lines: list[str] = []
    number = 0
    for part in voice.layout:
        for statement in statements[part]:
            if part in ("opening", "closing"):
                lines.append(statement)
            else:
                number += 1
                lines.append(_fill(voice.mark, n=str(number)) + statement)
    return voice.separator.join(lines)


def _fill(template: str, **values: str) -> str:
    return Template(template).substitute(values)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _decimals(count: int) -> str:
    return "1 decimal" if count == 1 else f"{count} decimals"


def _table_list(spec: Spec, voice: Voice) -> str:
    one, several = voice.table_list
    names = [table.name for table in spec.tables]
    return _fill(one if len(names) == 1 else several, tables=_listed(names))


def _derive(spec: Spec, voice: Voice) -> list[str]:
    derive = spec.derive
    if derive is None:
        return []
    formula = _fill(voice.operators[derive.operator], left=derive.left, right=derive.right)
    return [_fill(voice.derive, column=derive.column, formula=formula, decimals=_decimals(derive.decimals))]


def _filters(spec: Spec, voice: Voice, columns: Mapping[str, Column]) -> list[str]:
    if not spec.filters:
        return []
    conditions = [_condition(condition, voice, columns[condition.column]) for condition in spec.filters]
    text = _fill(voice.filters, conditions=voice.conjunction.join(conditions))
    doubtful = [
        condition.column
        for condition in spec.filters
        if columns[condition.column].optional and condition.condition not in ("is_empty", "is_not_empty")
    ]
    return [_with_note(text, voice.empty_filtered, doubtful)]


def _condition(condition: Filter, voice: Voice, column: Column) -> str:
    template = voice.conditions[condition.condition]
    if column.kind == "date":
        template = voice.date_conditions.get(condition.condition, template)
    values = [f'"{value}"' if column.kind == "text" else value for value in condition.values]
    if condition.condition == "between":
        return _fill(template, column=condition.column, low=values[0], high=values[1])
    return _fill(template, column=condition.column, value=_listed(values), values=_listed(values))


def _aggregate(aggregate: Aggregate, voice: Voice, columns: Mapping[str, Column]) -> list[str]:
    measures = [
        _fill(
            voice.measures[measure.function],
            column=measure.column,
            of=measure.of,
            decimals=_decimals(aggregate.decimals),
        )
        for measure in aggregate.measures
    ]
    text = _fill(voice.aggregate, by=_listed(aggregate.by), measures=voice.measure_joint.join(measures))
    doubtful = [m.of for m in aggregate.measures if m.function != "count" and columns[m.of].optional]
    return [_with_note(text, voice.empty_measured, doubtful)]


def _sort(spec: Spec, voice: Voice, columns: Mapping[str, Column]) -> list[str]:
    measured = {} if spec.aggregate is None else {m.column: m for m in spec.aggregate.measures}
    keys = []
    for key in spec.sort:
        measure = measured.get(key.column)
        if measure is None:
            kind = columns[key.column].kind
        else:
            kind = "number" if measure.function == "count" else columns[measure.of].kind
        keys.append(_fill(voice.sort_keys[kind, key.order], column=key.column))
    return [_fill(voice.sort, keys=voice.tie_break.join(keys))]


def _columns(spec: Spec, voice: Voice) -> list[str]:
    text = _fill(voice.columns, columns=_listed(spec.columns))
    unique = spec.aggregate is not None or spec.tables[0].columns[0].name in spec.columns
    return [text if unique else f"{text} {voice.repeated}"]


def _with_note(text: str, note: str, columns: list[str]) -> str:
    if not columns:
        return text
    # Each column by itself: "a, b" could be read as both at once.
    either = " or ".join(columns) if len(columns) < 3 else f"{_listed(columns[:-1])} or {columns[-1]}"
    return f"{text} {_fill(note, columns=either)}"
