"""Wrong readings of a task, each a neighbouring spec: what a careless agent makes of the wording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tasks_env.families.tabular.spec import (
    Comparison,
    Direction,
    Filter,
    Function,
    Join,
    JoinKind,
    Operator,
    SortKey,
    Spec,
)

OTHER_BOUND: Mapping[Comparison, Comparison] = {
    "at_least": "more_than",
    "more_than": "at_least",
    "at_most": "less_than",
    "less_than": "at_most",
}
OPPOSITE: Mapping[Direction, Direction] = {"ascending": "descending", "descending": "ascending"}
OTHER_JOIN: Mapping[JoinKind, JoinKind] = {"inner": "left", "left": "inner"}
_OTHER_FUNCTION: Mapping[Function, Function] = {"sum": "mean", "mean": "sum", "min": "max", "max": "min"}
_OTHER_OPERATOR: Mapping[Operator, Operator] = {
    "plus": "minus",
    "minus": "plus",
    "times": "plus",
    "divided_by": "times",
}


def filter_readings(filters: tuple[Filter, ...]) -> Iterator[tuple[str, tuple[Filter, ...]]]:
    """Wrong readings of the filters alone: one left out, or one bound taken the other way."""
    for position, condition in enumerate(filters):
        before, after = filters[:position], filters[position + 1 :]
        yield f"filter {position + 1} left out", before + after
        for other in _other_bounds(condition):
            yield f"bound of filter {position + 1}", (*before, *other, *after)


def decisive_readings(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """Readings that must change the result, with a name: a step left out, a bound taken the other way."""
    for name, filters in filter_readings(spec.filters):
        yield name, spec.model_copy(update={"filters": filters})
    for name, joins in join_readings(spec.joins):
        yield name, spec.model_copy(update={"joins": joins})
    for name, sort in sort_readings(spec.sort):
        yield name, spec.model_copy(update={"sort": sort})
    if spec.limit is not None:
        yield "limit left out", spec.model_copy(update={"limit": None})


def join_readings(joins: tuple[Join, ...]) -> Iterator[tuple[str, tuple[Join, ...]]]:
    """Wrong readings of the joins alone: one of the other kind."""
    for position, join in enumerate(joins):
        other = Join(table=join.table, column=join.column, kind=OTHER_JOIN[join.kind])
        yield f"kind of join {position + 1}", (*joins[:position], other, *joins[position + 1 :])


def sort_readings(sort: tuple[SortKey, ...]) -> Iterator[tuple[str, tuple[SortKey, ...]]]:
    """Wrong readings of the order alone: none at all, or the first key taken the other way."""
    if sort:
        yield "sort left out", ()
        first = SortKey(column=sort[0].column, order=OPPOSITE[sort[0].order])
        yield "sort reversed", (first, *sort[1:])


def careless_readings(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """Further slips that the wording excludes; they change the result more often than not."""
    if spec.limit is not None:
        yield "limit one too high", spec.model_copy(update={"limit": spec.limit + 1})
        yield "limit one too low", spec.model_copy(update={"limit": spec.limit - 1})
    if spec.derive:
        operator = _OTHER_OPERATOR[spec.derive.operator]
        yield (
            "operator",
            spec.model_copy(update={"derive": spec.derive.model_copy(update={"operator": operator})}),
        )
    if spec.aggregate:
        aggregate = spec.aggregate
        for position, measure in enumerate(aggregate.measures):
            if measure.function == "count":
                continue
            other = measure.model_copy(update={"function": _OTHER_FUNCTION[measure.function]})
            measures = (*aggregate.measures[:position], other, *aggregate.measures[position + 1 :])
            yield (
                f"function of measure {position + 1}",
                spec.model_copy(update={"aggregate": aggregate.model_copy(update={"measures": measures})}),
            )
    if len(spec.columns) > 1:
        swapped = (*spec.columns[:-2], spec.columns[-1], spec.columns[-2])
        yield "column order", spec.model_copy(update={"columns": swapped})
    if len(spec.sort) > 1:
        last = SortKey(column=spec.sort[-1].column, order=OPPOSITE[spec.sort[-1].order])
        yield "tie-break reversed", spec.model_copy(update={"sort": (*spec.sort[:-1], last)})


def _other_bounds(condition: Filter) -> list[tuple[Filter, ...]]:
    """The condition with inclusive and exclusive bounds exchanged, one bound at a time."""
    if condition.condition == "between":
        low, high = condition.values

        def one(name: Comparison, value: str) -> Filter:
            return Filter(column=condition.column, condition=name, values=(value,))

        return [
            (one("more_than", low), one("at_most", high)),
            (one("at_least", low), one("less_than", high)),
        ]
    if condition.condition in OTHER_BOUND:
        return [(condition.model_copy(update={"condition": OTHER_BOUND[condition.condition]}),)]
    return []
