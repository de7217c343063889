"""The tools as an agent meets them: results, bounds, and errors that name the argument."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_env import Session, ToolResult, perturbation, render
from tasks_env.families.tabular.tools import TOOLS
from tasks_env.types import JsonObject, Presentation

from .handmade import handmade


def started(shown: Presentation | None = None) -> Session:
    chosen = handmade()
    return Session(chosen, render(chosen, shown))


def call(session: Session, name: str, **arguments: Any) -> ToolResult:
    return session.call(name, arguments)


def test_tables_are_listed_and_previewed_by_pages() -> None:
    session = started()
    assert call(session, "list_tables").content == (
        "table orders: 6 rows; columns order_id, customer_id, region, quantity, unit_price, discount\n"
        "table customers: 3 rows; columns customer_id, segment"
    )
    assert call(session, "preview_table", table="customers", offset=1, count=1).content == (
        "customer_id,segment\nC-2,school\n[rows 2 to 2 of 3]\nFor more rows call preview_table with offset 2."
    )
    assert "offset" not in call(session, "preview_table", table="customers").content
    assert (
        "[no rows after row 3; the table has 3]" in call(session, "preview_table", table="customers", offset=9).content
    )


def test_notes_and_errors_use_the_names_that_the_agent_knows() -> None:
    chosen = handmade()
    [shown] = perturbation("tool_names").present([chosen], "opaque", seed=1)
    session = started(shown)
    tools, arguments = shown.naming.tools, shown.naming.arguments
    preview = session.call(tools["preview_table"], {arguments["table"]: "orders", arguments["count"]: 2})
    assert preview.content.endswith(f"call {tools['preview_table']} with {arguments['offset']} 2.")
    wrong = session.call(tools["submit"], {arguments["table"]: "nothing"})
    assert wrong.content.startswith(f"error in argument {arguments['table']!r}: there is no table 'nothing'")


def test_what_an_agent_typed_is_repeated_as_typed_in_every_error() -> None:
    typed = "{tool:submit}"
    session = started()
    assert not call(session, "write_table", text=f"{typed},b\nx,2\n", output="mine").is_error
    attempts: list[tuple[str, JsonObject]] = [
        ("preview_table", {"table": typed}),
        ("sort_rows", {"table": "mine", "columns": ["c"], "output": "o"}),
        ("sort_rows", {"table": "orders", "columns": [typed], "output": "o"}),
        ("select_columns", {"table": "mine", "columns": [typed, typed], "output": "o"}),
        ("filter_rows", {"table": "mine", "column": typed, "condition": "at_least", "values": ["1"], "output": "o"}),
        ("filter_rows", {"table": "mine", "column": "b", "condition": "equals", "values": [typed], "output": "o"}),
        ("join_tables", {"table": "mine", "other_table": "mine", "column": "b", "kind": "inner", "output": "o"}),
        (
            "add_column",
            {
                "table": "mine",
                "left": typed,
                "operator": "plus",
                "right": "b",
                "column": "c",
                "decimals": 0,
                "output": "o",
            },
        ),
        (
            "add_column",
            {
                "table": "orders",
                "left": "quantity",
                "operator": "plus",
                "right": "quantity",
                "column": "quantity",
                "decimals": 0,
                "output": "o",
            },
        ),
        (
            "group_rows",
            {"table": "mine", "by": ["b"], "functions": ["sum"], "columns": [typed], "names": ["n"], "output": "o"},
        ),
        ("write_table", {"text": f"{typed},{typed}\n1,2\n", "output": "o"}),
    ]
    for name, arguments in attempts:
        result = call(session, name, **arguments)
        assert result.is_error, name
        assert "submit" not in result.content.replace("\\x7btool:submit}", ""), result.content
    assert not session.submitted


def test_an_operation_answers_with_the_shape_and_the_first_rows() -> None:
    session = started()
    result = call(session, "sort_rows", table="orders", columns=["quantity"], directions=["descending"], output="s")
    assert result.content == (
        "table s: 6 rows\n"
        "order_id,customer_id,region,quantity,unit_price,discount\n"
        "O-4,C-9,north,9,9.00,2.00\nO-6,C-2,west,7,5.00,1.50\nO-3,C-1,north,4,0.25,0.50\n"
        "[first 3 rows]"
    )


def test_a_result_may_be_replaced_but_an_input_may_not() -> None:
    session = started()
    assert not call(session, "limit_rows", table="orders", count=4, output="few").is_error
    assert not call(session, "limit_rows", table="few", count=2, output="few").is_error
    refused = call(session, "limit_rows", table="few", count=1, output="orders")
    assert refused.is_error
    assert "input table" in refused.content


FILTER: JsonObject = {"table": "orders", "column": "quantity", "condition": "at_least", "values": ["2"], "output": "x"}
JOIN: JsonObject = {
    "table": "orders",
    "other_table": "customers",
    "column": "customer_id",
    "kind": "left",
    "output": "x",
}
ADD: JsonObject = {
    "table": "orders",
    "column": "c",
    "left": "quantity",
    "operator": "plus",
    "right": "unit_price",
    "decimals": 1,
    "output": "x",
}
GROUP: JsonObject = {
    "table": "orders",
    "by": ["region"],
    "functions": ["mean"],
    "columns": ["quantity"],
    "names": ["m"],
    "decimals": 1,
    "output": "x",
}
SORT: JsonObject = {"table": "orders", "columns": ["region"], "directions": ["ascending"], "output": "x"}


@pytest.mark.parametrize(
    ("tool", "arguments", "changes", "argument", "words"),
    [
        ("filter_rows", FILTER, {"table": "order"}, "table", "there is no table 'order'; tables: orders, customers"),
        ("filter_rows", FILTER, {"column": "amount"}, "column", "columns: order_id, customer_id"),
        ("filter_rows", FILTER, {"condition": "above"}, "condition", "expected one of equals"),
        ("filter_rows", FILTER, {"column": "region"}, "condition", "holds text"),
        ("filter_rows", FILTER, {"values": []}, "values", "at_least takes 1 of them, got 0"),
        ("filter_rows", FILTER, {"values": ["two"]}, "values", "needs a plain number such as 12.50, got 'two'"),
        ("filter_rows", FILTER, {"values": 2}, "values", "expected an array of strings"),
        ("filter_rows", FILTER, {"condition": "between"}, "values", "takes 2 of them"),
        ("filter_rows", FILTER, {"condition": "in", "values": []}, "values", "takes 1 or more"),
        ("filter_rows", FILTER, {"condition": "is_empty"}, "values", "takes 0 of them"),
        ("filter_rows", FILTER, {"output": "a b"}, "output", "does not match"),
        ("join_tables", JOIN, {"other_table": "clients"}, "other_table", "there is no table 'clients'"),
        ("join_tables", JOIN, {"column": "region"}, "column", "there is no column 'region'"),
        ("join_tables", JOIN, {"other_table": "orders"}, "other_table", "both tables have 'discount'"),
        ("join_tables", JOIN, {"kind": "outer"}, "kind", "expected one of inner, left"),
        ("add_column", ADD, {"left": "region"}, "left", "holds text, not numbers"),
        ("add_column", ADD, {"right": "price"}, "right", "there is no column 'price'"),
        ("add_column", ADD, {"column": "region"}, "column", "already has a column 'region'"),
        ("add_column", ADD, {"decimals": 7}, "decimals", "expected an integer"),
        ("group_rows", GROUP, {"names": ["a", "b"]}, "names", "one item per function (1), got 2"),
        ("group_rows", GROUP, {"columns": []}, "columns", "expected an array of strings"),
        ("group_rows", GROUP, {"columns": ["region"]}, "columns", "mean needs numbers"),
        ("group_rows", GROUP, {"by": ["region", "region"]}, "by", "the same name appears twice: 'region'"),
        ("group_rows", GROUP, {"names": ["region"]}, "names", "the same name appears twice: 'region'"),
        ("group_rows", GROUP, {"by": ["town"]}, "by", "there is no column 'town'"),
        ("sort_rows", SORT, {"directions": ["ascending"] * 2}, "directions", "one per column (1), got 2"),
        ("sort_rows", SORT, {"directions": ["up"]}, "directions", "expected"),
        ("select_columns", {"table": "orders", "output": "x"}, {"columns": ["a"]}, "columns", "no column 'a'"),
        ("write_table", {"output": "x"}, {"text": "a,b\n1\n"}, "text", "line 2 has 1 fields"),
        ("write_table", {"output": "x"}, {"text": "a,a\n1,2\n"}, "text", "the same name appears twice: 'a'"),
        ("write_table", {"output": "x"}, {"text": "a,\n1,2\n"}, "text", "a column without a name"),
        ("write_table", {"output": "x"}, {"text": "a\n" + "1\n" * 3000}, "text", "at most 2000 rows"),
        ("write_table", {"output": "x"}, {"text": "a\n" + "1" * 300}, "text", "longer than 200 characters"),
        ("submit", {}, {"table": "x"}, "table", "there is no table 'x'"),
        ("submit", {}, {}, "table", "missing"),
    ],
)
def test_a_wrong_call_names_the_argument_and_changes_nothing(
    tool: str, arguments: dict[str, Any], changes: dict[str, Any], argument: str, words: str
) -> None:
    session = started()
    before = call(session, "list_tables").content
    result = session.call(tool, {**arguments, **changes})
    assert result.is_error
    assert result.content.startswith(f"error in argument {argument!r}: ")
    assert words in result.content
    assert len(result.content) < 700
    assert call(session, "list_tables").content == before
    assert not session.submitted


def test_a_mean_without_decimals_and_a_zero_divisor_are_explained() -> None:
    session = started()
    arguments = {name: value for name, value in GROUP.items() if name != "decimals"}
    assert "error in argument 'decimals': missing" in session.call("group_rows", arguments).content
    call(session, "write_table", text="a,b\n1,0\n", output="z")
    zero = {**ADD, "table": "z", "left": "a", "right": "b", "operator": "divided_by"}
    assert "error in argument 'right': column 'b' holds a zero" in session.call("add_column", zero).content


def test_numbers_and_tables_cannot_grow_without_bound() -> None:
    session = started()
    call(session, "write_table", text="k,n\n" + "a,999999999999\n" * 60, output="n")
    grown = {**ADD, "table": "n", "left": "n", "right": "n", "operator": "times", "decimals": 0}
    assert "1000000000000000 or more" in session.call("add_column", grown).content
    call(session, "write_table", text="k,m\n" + "a,1\n" * 60, output="m")
    wide = call(session, "join_tables", table="n", other_table="m", column="k", kind="inner", output="big")
    assert "more than 2000 rows" in wide.content
    for number in range(70):
        last = call(session, "limit_rows", table="n", count=1, output=f"t{number}")
    assert "there are 60 tables already" in last.content


def test_nothing_can_be_done_after_submitting() -> None:
    session = started()
    handed = call(session, "submit", table="customers")
    assert handed.ends_episode
    assert handed.content == "handed in: table customers: 3 rows; columns customer_id, segment"
    assert "handed in" in call(session, "limit_rows", table="orders", count=1, output="x").content
    assert session.final_state().data["table"] == "customers"


def test_a_typed_table_is_handed_in_as_it_was_typed() -> None:
    session = started()
    call(session, "write_table", text='a,b\r\n"1",x\r\n', output="mine")
    call(session, "submit", table="mine")
    assert session.final_state().data == {"table": "mine", "csv": 'a,b\r\n"1",x\r\n'}


def test_a_typed_table_can_be_worked_on() -> None:
    session = started()
    call(session, "write_table", text="n,d\n10,2024-02-01\n9,2024-01-31\n,\n", output="mine")
    call(session, "sort_rows", table="mine", columns=["n"], output="mine")
    shown = call(
        session, "filter_rows", table="mine", column="d", condition="at_least", values=["2024-02-01"], output="y"
    )
    assert shown.content == "table y: 1 row\nn,d\n10,2024-02-01"


def test_the_tools_are_flat_described_and_close_with_submit() -> None:
    assert TOOLS[-1].name == "submit"
    for spec in TOOLS:
        assert spec.description
        for schema in spec.parameters["properties"].values():
            assert schema["description"]
            assert schema["type"] in ("string", "integer", "array")
            if schema["type"] == "array":
                assert schema["items"]["type"] == "string"
