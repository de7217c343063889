"""A library written by hand, small enough to answer questions about it on paper."""

from __future__ import annotations

from typing import Any

from tasks_env import Instance

WORLD: Any = {
    "tables": [
        {
            "name": "loans",
            "columns": [
                {"name": "id", "type": "integer", "key": True},
                {"name": "member_id", "type": "integer", "references": "members"},
                {"name": "loan_date", "type": "date"},
                {"name": "duration", "type": "integer"},
                {"name": "fee", "type": "decimal", "nullable": True},
                {"name": "status", "type": "text"},
            ],
            "rows": [
                [1, 1, "2022-03-01", 7, 1.25, "returned"],
                [2, 1, "2022-03-02", 9, 2.25, "overdue"],
                [3, 2, "2022-03-03", 9, None, "overdue"],
                [4, 3, "2022-03-04", 14, 4.0, "overdue"],
                [5, 2, "2022-03-05", 21, 3.5, "lost"],
            ],
        },
        {
            "name": "members",
            "columns": [
                {"name": "id", "type": "integer", "key": True},
                {"name": "name", "type": "text"},
                {"name": "level", "type": "text", "nullable": True},
                {"name": "town", "type": "text"},
                {"name": "join_date", "type": "date"},
                {"name": "score", "type": "integer"},
            ],
            "rows": [
                [1, "Ada Abbott", "adult", "Celle", "2022-01-05", 40],
                [2, "Bruno Dahl", "child", "Emden", "2022-01-06", 55],
                [3, "Clara Novak", None, "Celle", "2022-01-07", 61],
                [4, "Dario Weber", "adult", "Dorum", "2022-01-08", 70],
            ],
        },
    ]
}

_COMMON: Any = {"theme": "library", "tables": ["loans", "members"], "nulls": True, "base": "loans"}


def handmade(truth: Any, **spec: Any) -> Instance:
    """An instance about `WORLD`; `spec` completes the question."""
    return Instance(
        instance_id="query-handmade-000000000000",
        family="query",
        difficulty="handmade",
        sample="base",
        seed=0,
        params={},
        spec={**_COMMON, **spec},
        world=WORLD,
        truth={"answer": truth},
    )


OVERDUE: Any = {"ref": {"column": "status"}, "operator": "eq", "value": "overdue"}
IN_CELLE: Any = {"ref": {"column": "town", "path": ["member_id"]}, "operator": "eq", "value": "Celle"}

COUNT = handmade("3", kind="count", predicates=[OVERDUE], answer={"kind": "number"}, states_nulls=False)
# (2.25 + 4) / 2 = 3.125 is a rounding tie, which generation rejects; here it pins the rounding rule.
AVERAGE = handmade(
    "3.13",
    kind="average",
    column={"column": "fee"},
    predicates=[OVERDUE],
    answer={"kind": "number", "decimals": 2},
    states_nulls=True,
)
LIST = handmade(
    ["Emden", "Celle"],
    kind="list",
    column={"column": "town", "path": ["member_id"]},
    predicates=[OVERDUE],
    answer={"kind": "list", "order": "descending"},
    states_nulls=False,
)
LOOKUP = handmade(
    "2022-01-06",
    base="members",
    kind="lookup",
    column={"column": "join_date"},
    predicates=[{"ref": {"column": "name"}, "operator": "eq", "value": "Bruno Dahl"}],
    answer={"kind": "date"},
    states_nulls=False,
)
EXTREME = handmade(
    "Clara Novak",
    kind="extreme",
    column={"column": "name", "path": ["member_id"]},
    measure={"column": "fee"},
    direction="highest",
    predicates=[OVERDUE],
    answer={"kind": "text"},
    states_nulls=True,
)
TOP = handmade(
    ["Celle", "6.25"],
    kind="top",
    column={"column": "town", "path": ["member_id"]},
    measure={"column": "fee"},
    direction="highest",
    predicates=[OVERDUE],
    answer={"kind": "pair", "decimals": 2},
    states_nulls=True,
)
ABSENT = handmade(
    "2",
    kind="absent",
    column={"column": "id", "path": ["member_id"]},
    predicates=[{"ref": {"column": "loan_date"}, "operator": "le", "value": "2022-03-03"}],
    answer={"kind": "number"},
    states_nulls=False,
)
EARLIEST = handmade(
    "2022-03-02",
    kind="date",
    column={"column": "loan_date"},
    direction="earliest",
    predicates=[{"ref": {"column": "loan_date"}, "operator": "gt", "value": "2022-03-01"}, IN_CELLE],
    answer={"kind": "date"},
    states_nulls=False,
)
