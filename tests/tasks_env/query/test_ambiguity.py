"""Every question has one answer: independent solvers agree, and known wrong readings lead elsewhere."""

from __future__ import annotations

import operator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tasks_env import Instance
from tasks_env.families.query import second_solver
from tasks_env.families.query.answers import parse_answer
from tasks_env.families.query.database import connect
from tasks_env.families.query.readings import READINGS, wrong_readings
from tasks_env.families.query.solver import agrees, run
from tests.tasks_env.query.handmade import LOOKUP
from tests.tasks_env.query.levels import KINDS, a_mix, made, made_of_kind, question_of

_OTHER_BOUND = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}


def _many() -> list[Instance]:
    return (
        [made("easy", seed) for seed in range(40)]
        + [made("hard", seed) for seed in range(40)]
        + [made_of_kind(kind, seed) for kind in KINDS for seed in range(6)]
    )


def test_second_solver_agrees_with_the_stored_truth() -> None:
    for instance in _many():
        assert second_solver.solve(instance.spec, instance.world) == instance.truth["answer"], instance.spec


def test_second_solver_shares_no_code_with_the_first() -> None:
    source = Path(second_solver.__file__).read_text(encoding="utf-8")
    assert "tasks_env" not in source
    assert "sqlite" not in source


def test_a_third_route_agrees_where_pandas_computes_the_answer() -> None:
    checked = 0
    for instance in a_mix(20):
        expected = _by_pandas(instance.spec, instance.world)
        if expected is not None:
            checked += 1
            assert expected == instance.truth["answer"], instance.spec
    assert checked >= 50


def test_every_wrong_reading_occurs_and_leads_to_another_answer() -> None:
    occurred = set()
    for instance in _many():
        question = question_of(instance)
        with closing(connect(instance.world)) as connection:
            readings = list(wrong_readings(question))
            assert readings
            for reading in readings:
                occurred.add(reading.name)
                rows = run(connection, question, reading)
                assert not agrees(question, instance.truth["answer"], rows), (instance.spec, reading.name)
    assert occurred == set(READINGS)


def test_what_is_shown_without_looking_is_never_the_answer() -> None:
    for instance in _many():
        form = question_of(instance).answer
        shown = [str(len(table["rows"])) for table in _tables(instance)]
        shown += [str(predicate["value"]) for predicate in _predicates(instance)]
        assert instance.truth["answer"] not in [parse_answer(text, form) for text in shown]


def test_a_wrong_reading_with_several_rows_agrees_by_its_first() -> None:
    lookup = question_of(LOOKUP)
    assert agrees(lookup, "2022-01-06", [("2022-01-06",), ("2022-01-07",)])
    assert not agrees(lookup, "2022-01-06", [("2022-01-07",), ("2022-01-06",)])
    assert not agrees(lookup, "2022-01-06", [])


def test_leaving_out_a_condition_or_moving_a_bound_changes_what_the_second_solver_finds() -> None:
    for instance in a_mix(15):
        for index, predicate in enumerate(instance.spec["predicates"]):
            others = [other for place, other in enumerate(instance.spec["predicates"]) if place != index]
            assert _solved(instance, others) != instance.truth["answer"]
            if predicate["operator"] in _OTHER_BOUND:
                moved = {**predicate, "operator": _OTHER_BOUND[predicate["operator"]]}
                assert _solved(instance, [*others, moved]) != instance.truth["answer"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_question_is_generated(kind: Any) -> None:
    assert made_of_kind(kind, 1).spec["kind"] == kind


def test_nullable_columns_that_a_question_mentions_are_announced() -> None:
    for instance in a_mix(20):
        nullable = _mentions_nullable(instance.spec, instance.world)
        assert instance.spec["states_nulls"] == nullable


def test_averages_are_far_from_a_rounding_tie() -> None:
    for seed in range(20):
        instance = made_of_kind("average", seed)
        values = [Fraction(repr(value)) for value in _flat(instance.spec, instance.world)["asked"].dropna()]
        distance = abs(sum(values, Fraction(0)) / len(values) * 100 % 1 - Fraction(1, 2))
        assert distance > Fraction(1, 10**6)


def _tables(instance: Instance) -> list[Any]:
    tables: Any = instance.world["tables"]
    return list(tables)


def _predicates(instance: Instance) -> list[Any]:
    predicates: Any = instance.spec["predicates"]
    return list(predicates)


def _solved(instance: Instance, predicates: list[Any]) -> Any:
    return second_solver.solve({**instance.spec, "predicates": predicates}, instance.world)


def _frames(world: Any) -> dict[str, pd.DataFrame]:
    return {
        table["name"]: pd.DataFrame(
            table["rows"], columns=[column["name"] for column in table["columns"]], dtype=object
        )
        for table in world["tables"]
    }


def _column(spec: Any, world: Any, frames: dict[str, pd.DataFrame], ref: Any) -> pd.Series:
    """The values of a reference for each base row, by left joins."""
    links = {
        (table["name"], column["name"]): column["references"]
        for table in world["tables"]
        for column in table["columns"]
        if "references" in column
    }
    table, frame = spec["base"], frames[spec["base"]]
    for link in ref.get("path", []):
        target = links[table, link]
        frame = frame[[link]].merge(frames[target], how="left", left_on=link, right_on="id")
        table = target
    return frame[ref["column"]]


def _flat(spec: Any, world: Any) -> pd.DataFrame:
    """The rows that meet the conditions, with the asked column and the measure."""
    parts = {}
    frames = _frames(world)
    keep = pd.Series(True, index=range(len(frames[spec["base"]])))
    for predicate in spec["predicates"]:
        values = _column(spec, world, frames, predicate["ref"])
        present = values.notna()
        compare = getattr(operator, predicate["operator"])
        met = pd.Series([compare(value, predicate["value"]) for value in values[present]], values.index[present])
        keep &= met.astype(bool).reindex(values.index, fill_value=False)
    for name in ("column", "measure"):
        if spec.get(name):
            parts["asked" if name == "column" else name] = _column(spec, world, frames, spec[name])
    parts["keep"] = keep
    frame = pd.DataFrame(parts)
    return frame[frame["keep"]]


def _by_pandas(spec: Any, world: Any) -> Any:
    """The answer, or None for kinds that this route leaves to the others."""
    flat = _flat(spec, world)
    if spec["kind"] == "count":
        return str(len(flat))
    if spec["kind"] == "distinct":
        return str(flat["asked"].nunique())
    if spec["kind"] == "date":
        dates = flat["asked"].dropna()
        return dates.max() if spec["direction"] == "latest" else dates.min()
    if spec["kind"] == "list":
        return sorted(flat["asked"].dropna().unique(), reverse=spec["answer"].get("order") == "descending")
    if spec["kind"] in ("sum", "average"):
        values = flat["asked"].astype(float)
        number = values.sum() if spec["kind"] == "sum" else values.mean()
        return f"{number:.{spec['answer'].get('decimals', 0)}f}"
    if spec["kind"] == "top":
        flat = flat.dropna()
        groups = flat.groupby("asked")
        ranks = groups["measure"].sum().astype(float) if spec.get("measure") else groups.size()
        best = ranks.idxmax() if spec["direction"] == "highest" else ranks.idxmin()
        return [best, f"{ranks[best]:.{spec['answer'].get('decimals', 0)}f}"]
    return None


def _mentions_nullable(spec: Any, world: Any) -> bool:
    columns = {(t["name"], c["name"]): c for t in world["tables"] for c in t["columns"]}
    refs = [predicate["ref"] for predicate in spec["predicates"]]
    refs += [spec[name] for name in ("column", "measure") if spec.get(name)]
    for ref in refs:
        table = spec["base"]
        for link in ref.get("path", []):
            if columns[table, link].get("nullable"):
                return True
            table = columns[table, link]["references"]
        if columns[table, ref["column"]].get("nullable"):
            return True
    return False
