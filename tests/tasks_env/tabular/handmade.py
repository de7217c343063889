"""A small task worked out by hand: the result is not computed by any code of the family."""

from __future__ import annotations

from tasks_env import Instance

ORDERS = """\
order_id,customer_id,region,quantity,unit_price,discount
O-1,C-1,north,2,2.50,
O-2,C-2,south,1,10.00,1.00
O-3,C-1,north,4,0.25,0.50
O-4,C-9,north,9,9.00,2.00
O-5,C-2,north,3,1.25,
O-6,C-2,west,7,5.00,1.50
"""
CUSTOMERS = """\
customer_id,segment
C-1,retail
C-2,school
C-3,retail
"""
RESULT = """\
segment,mean_line_total,row_count
retail,3.0,2
school,6.9,2
"""
"""
Matched, and region north or south: O-1 (5.00), O-2 (10.00), O-3 (1.00), O-5 (3.75). The mean of retail is 6.00 / 2,
of school 13.75 / 2 = 6.875. Smallest mean first.
"""


def handmade() -> Instance:
    """Inner join, derived column, set filter, grouping with a mean, sorting."""

    def column(name: str, kind: str, decimals: int = 0, optional: bool = False) -> dict[str, object]:
        return {"name": name, "kind": kind, "decimals": decimals, "optional": optional}

    return Instance.model_validate(
        {
            "instance_id": "tabular-hand-000000000000",
            "family": "tabular",
            "difficulty": "hand",
            "sample": "base",
            "seed": 0,
            "params": {},
            "spec": {
                "tables": [
                    {
                        "name": "orders",
                        "columns": [
                            column("order_id", "text"),
                            column("customer_id", "text"),
                            column("region", "text"),
                            column("quantity", "number"),
                            column("unit_price", "number", 2),
                            column("discount", "number", 2, optional=True),
                        ],
                    },
                    {"name": "customers", "columns": [column("customer_id", "text"), column("segment", "text")]},
                ],
                "joins": [{"table": "customers", "column": "customer_id", "kind": "inner"}],
                "derive": {
                    "column": "line_total",
                    "left": "quantity",
                    "operator": "times",
                    "right": "unit_price",
                    "decimals": 2,
                },
                "filters": [{"column": "region", "condition": "in", "values": ["north", "south"]}],
                "aggregate": {
                    "by": ["segment"],
                    "measures": [
                        {"column": "mean_line_total", "function": "mean", "of": "line_total"},
                        {"column": "row_count", "function": "count"},
                    ],
                    "decimals": 1,
                },
                "sort": [
                    {"column": "mean_line_total", "order": "ascending"},
                    {"column": "segment", "order": "ascending"},
                ],
                "columns": ["segment", "mean_line_total", "row_count"],
            },
            "world": {"tables": {"orders": ORDERS, "customers": CUSTOMERS}},
            "truth": {"csv": RESULT},
        }
    )
