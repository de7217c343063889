"""The tools: what they show, what they refuse, and that no statement can do harm."""

from __future__ import annotations

import gc
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_env import Naming, Presentation, Session, ToolError, render
from tasks_env.families.query import idle
from tasks_env.families.query.database import connect
from tasks_env.families.query.guard import MAX_RESULT_CHARS, MAX_ROWS, GuardedDatabase
from tasks_env.families.query.tools import QueryWorld
from tests.tasks_env.query.handmade import COUNT, WORLD
from tests.tasks_env.query.levels import a_mix

_ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "


@pytest.fixture
def world() -> Iterator[QueryWorld]:
    opened = QueryWorld(WORLD)
    yield opened
    opened.close()


def _query(world: QueryWorld, statement: str) -> str:
    return world.call("run_query", {"query": statement}).text


def _refusal(world: QueryWorld, statement: str) -> str:
    with pytest.raises(ToolError) as caught:
        _query(world, statement)
    assert caught.value.argument == "query"
    assert len(caught.value.message) < 600
    return caught.value.message


def test_description_shows_types_keys_and_missing_values(world: QueryWorld) -> None:
    assert world.call("describe_table", {"table": "loans"}).text.split("\n") == [
        "table loans, 5 rows; columns:",
        "- id: INTEGER, primary key",
        "- member_id: INTEGER, refers to members.id",
        "- loan_date: TEXT (date, YYYY-MM-DD)",
        "- duration: INTEGER",
        "- fee: REAL, may be NULL",
        "- status: TEXT",
    ]


def test_unknown_table_is_an_error_that_names_the_known_ones(world: QueryWorld) -> None:
    with pytest.raises(ToolError) as caught:
        world.call("describe_table", {"table": "loan"})
    assert caught.value.argument == "table"
    assert "loans, members; did you mean loans?" in caught.value.message


def test_result_shows_a_header_missing_values_and_the_number_of_rows(world: QueryWorld) -> None:
    assert _query(world, "SELECT id, fee FROM loans WHERE id > 2 ORDER BY id;") == (
        "id | fee\n3 | NULL\n4 | 4.0\n5 | 3.5\n(3 rows)"
    )
    assert _query(world, "SELECT id FROM loans WHERE id > 9") == "id\n(0 rows)"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM loans",
        "UPDATE loans SET fee = 0",
        "INSERT INTO loans VALUES (9, 1, '2022-01-01', 1, 1.0, 'lost')",
        "DROP TABLE loans",
        "CREATE TABLE extra (a)",
        "CREATE TEMP TABLE extra (a)",
        "CREATE VIEW extra AS SELECT 1",
        "ALTER TABLE loans RENAME TO gone",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "PRAGMA query_only = OFF",
        "PRAGMA table_info(loans)",
        "SELECT * FROM pragma_table_info('loans')",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "ANALYZE",
        "REINDEX",
        "BEGIN",
        "SAVEPOINT here",
        "EXPLAIN DELETE FROM loans",
        "WITH n AS (SELECT 1) DELETE FROM loans",
        "SELECT load_extension('extension')",
        "SELECT random()",
        "SELECT randomblob(8)",
        "SELECT zeroblob(100000000)",
        "SELECT CURRENT_TIMESTAMP",
        "SELECT date('now')",
        "SELECT date()",
        "SELECT date('subsec')",
        "SELECT strftime('%s', 'Subsecond')",
        "SELECT strftime('%Y')",
        "SELECT strftime('%Y', 'no' || 'w')",
        "SELECT julianday(CAST('NOW' AS BLOB))",
        "SELECT datetime('2022-01-01', 'localtime')",
        "SELECT 1; DELETE FROM loans",
        "SELECT 1; SELECT 2",
        "SELECT ?",
        "SELECT :name",
        "",
        "   -- nothing",
        "SELECT 'a\x00b'",
        "SELECT '" + "x" * 5000 + "'",
        "SELECT group_concat(printf('%0900d', id)) FROM loans",
        "SELECT date(x'ff', 'start of' || x'ff')",
        "SELECT CAST(x'c328' AS TEXT)",
        "SELECT * FROM generate_series(1, 9)",
        "SELECT * FROM json_each('[1]')",
        "SELECT * FROM pragma_database_list",
        "SELECT readfile('/etc/passwd')",
        "SELECT sqlite_version()",
        "SELECT " + "(" * 500 + "1" + ")" * 500,
        "SELECT * FROM (" * 80 + "SELECT 1" + ")" * 80,
        " UNION ALL ".join(["SELECT 1"] * 40),
        "INSERT INTO loans (id) VALUES (99) RETURNING id",
        "SELECT 1 /* one */; -- two\nSELECT 2",
    ],
)
def test_refused_statements_are_errors_and_change_nothing(world: QueryWorld, statement: str) -> None:
    before = _query(world, "SELECT * FROM loans")
    assert _refusal(world, statement)
    assert _query(world, "SELECT * FROM loans") == before


def test_a_mistake_in_sql_brings_the_message_of_sqlite_and_where_to_look() -> None:
    naming = Naming(tools={"describe_table": "explain_dataset", "run_query": "execute"}, arguments={"query": "text"})
    session = Session(COUNT, render(COUNT, Presentation(naming=naming)))
    result = session.call("execute", {"text": "SELECT price FROM loans"})
    assert result.is_error
    assert result.content == (
        "error in argument 'text': SQLite: no such column: price; see list_tables and explain_dataset for the names"
        " of tables and columns"
    )


def test_an_agents_own_text_is_never_taken_for_a_placeholder() -> None:
    session = Session(COUNT, render(COUNT, Presentation(naming=Naming(tools={"submit": "deliver"}))))
    result = session.call("run_query", {"query": 'SELECT * FROM "{tool:submit}"'})
    assert "deliver" not in result.content
    shown = session.call("run_query", {"query": "SELECT '{tool:submit}' AS x"})
    assert shown.content == "x\n{tool:submit}\n(1 row)"


@pytest.mark.parametrize(
    "statement",
    [
        _ENDLESS + "SELECT COUNT(*) FROM n",
        _ENDLESS + "SELECT x FROM n ORDER BY x",
        "SELECT COUNT(*) FROM loans a, loans b, loans c, loans d, loans e, loans f, loans g, loans h, loans i",
    ],
)
def test_endless_work_is_stopped_at_the_same_point_each_time(world: QueryWorld, statement: str) -> None:
    messages = [_refusal(world, statement) for _ in range(2)]
    assert messages[0] == messages[1]
    assert "stopped after" in messages[0]
    assert _query(world, "SELECT COUNT(*) FROM loans").startswith("COUNT(*)\n5\n")


def test_many_harmless_statements_do_not_add_up_to_the_step_limit(world: QueryWorld) -> None:
    long = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5000) SELECT COUNT(*) FROM n"
    assert {_query(world, long) for _ in range(20)} == {"COUNT(*)\n5000\n(1 row)"}


def test_long_results_are_cut_and_say_so(world: QueryWorld) -> None:
    assert _query(world, _ENDLESS + "SELECT x FROM n").endswith(
        f"{MAX_ROWS}\n(cut after {MAX_ROWS} rows; there are more)"
    )
    wide = _query(world, _ENDLESS + "SELECT printf('%0190d', x), printf('%0190d', x) FROM n LIMIT 40")
    assert len(wide) <= MAX_RESULT_CHARS + 100
    assert wide.endswith("rows; there are more)")
    assert len(_query(world, "SELECT printf('%01999d', 1)")) < 300


def test_cells_stay_on_one_line_and_control_nothing(world: QueryWorld) -> None:
    assert _query(world, "SELECT 'a' || char(10) || 'b' AS x, x'00ff' AS y") == "x | y\na\\nb | x'00ff'\n(1 row)"
    shown = _query(world, "SELECT char(27) || '[31m', char(0), char(8232), char(8238), 'é'")
    assert shown.split("\n")[1] == r"\x1b[31m | \x00 | \u2028 | \u202e | é"


_LONG = "replace(printf('%0950d', a.id), '0', 'aa')"
_ROWS = "FROM loans a, loans b, loans c, loans d, loans e, loans f, loans g, loans h"
_PATHOLOGICAL = [
    f"SELECT COUNT(*) {_ROWS} WHERE {_LONG} LIKE '%{'a' * 90}b' || h.id",
    f"SELECT COUNT(*) {_ROWS} WHERE {_LONG} || h.id GLOB '*{'[a-z]' * 15}b'",
    f"SELECT SUM(INSTR({_LONG}, '{'a' * 900}b' || h.id)) {_ROWS}",
    f"SELECT SUM(LENGTH(REPLACE({_LONG}, '{'a' * 900}b' || h.id, ''))) {_ROWS}",
    f"SELECT SUM(LENGTH(TRIM({_LONG}, '{'b' * 100}a' || h.id))) {_ROWS}",
    f"SELECT SUM(LENGTH(UPPER(LOWER(UPPER(LOWER({_LONG})))))) {_ROWS}",
    f"SELECT COUNT(*) FROM (SELECT DISTINCT printf('%1900d', a.id * 1000 + h.id) {_ROWS})",
    f"SELECT SUM(julianday('2022-01-01', '+' || (a.id + h.id) || ' days')) {_ROWS}",
    "WITH RECURSIVE n(x) AS (SELECT printf('%1900d', 1) UNION SELECT printf('%1900d', x + 1) FROM n)"
    " SELECT COUNT(*) FROM n",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT n.x + 1 FROM n, loans) SELECT COUNT(*) FROM n",
]


@pytest.mark.parametrize("statement", _PATHOLOGICAL)
def test_costly_statements_are_stopped_within_seconds(world: QueryWorld, statement: str) -> None:
    start = time.thread_time()
    message = _refusal(world, statement)
    assert "stopped" in message
    assert time.thread_time() - start < 4
    assert _query(world, "SELECT trim('xax', 'x'), 'abc' LIKE 'A%'").split("\n")[1] == "a | 1"


_MEMORY = """
import resource, sys
from tasks_env import ToolError
from tasks_env.families.query.tools import QueryWorld
from tests.tasks_env.query.handmade import WORLD
from tests.tasks_env.query.test_tools import _PATHOLOGICAL
QueryWorld(WORLD).call("run_query", {"query": "SELECT 1"})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for statement in _PATHOLOGICAL[6:9:2]:
    try:
        shown = QueryWorld(WORLD).call("run_query", {"query": statement}).text
    except ToolError as error:
        shown = error.message
    assert "stopped" in shown
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(used // (1024 * 1024 if sys.platform == "darwin" else 1024))
"""


def test_memory_of_a_statement_is_bounded() -> None:
    run = subprocess.run([sys.executable, "-c", _MEMORY], capture_output=True, text=True, check=True, timeout=120)
    assert 0 <= int(run.stdout) < 150


@settings(max_examples=60, deadline=None)
@given(
    call=st.sampled_from(["like", "glob", "instr", "replace", "trim", "ltrim", "rtrim"]),
    values=st.lists(
        st.none() | st.integers(-99, 99) | st.floats(-9, 9) | st.text("aAb%_*?[]é1. ", max_size=6),
        min_size=3,
        max_size=3,
    ),
)
def test_bounded_text_functions_are_those_of_sqlite(call: str, values: list[Any]) -> None:
    arguments = ", ".join(_literal(value) for value in values[: 3 if call == "replace" else 2])
    statement = f"SELECT quote({call}({arguments})) AS x"
    with closing(sqlite3.connect(":memory:")) as plain, closing(QueryWorld(WORLD)) as world:
        assert _query(world, statement) == f"x\n{plain.execute(statement).fetchone()[0]}\n(1 row)"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def test_dates_can_be_worked_with(world: QueryWorld) -> None:
    statement = "SELECT strftime('%Y', loan_date), date(loan_date, '+1 month') FROM loans WHERE id = 1"
    assert _query(world, statement).split("\n")[1] == "2022 | 2022-04-01"


def test_schema_table_of_sqlite_can_be_read(world: QueryWorld) -> None:
    assert _query(world, "SELECT name FROM sqlite_master ORDER BY name") == "name\nloans\nmembers\n(2 rows)"


def test_empty_answer_is_an_error_and_a_second_one_too(world: QueryWorld) -> None:
    with pytest.raises(ToolError) as caught:
        world.call("submit", {"answer": "  "})
    assert caught.value.argument == "answer"
    assert not world.submitted
    assert world.state() == {"answer": None}
    world.call("submit", {"answer": "5"})
    with pytest.raises(ToolError):
        world.call("submit", {"answer": "6"})
    assert world.state() == {"answer": "5"}


def test_wrong_arguments_are_errors_that_name_the_argument() -> None:
    session = Session(COUNT, render(COUNT))
    for name, arguments, argument in (
        ("run_query", {}, "query"),
        ("run_query", {"query": 5}, "query"),
        ("describe_table", {"table": ["loans"]}, "table"),
        ("submit", {"answer": 3}, "answer"),
        ("submit", {"answer": "x" * 2001}, "answer"),
    ):
        result = session.call(name, arguments)
        assert result.is_error
        assert f"argument '{argument}'" in result.content
    assert not session.submitted


def test_the_database_of_an_abandoned_episode_is_closed() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            world = QueryWorld(WORLD)
            _query(world, "SELECT date('2022-01-01')")
            connection = world._database._connection
            del world
            gc.collect()
            with pytest.raises(sqlite3.ProgrammingError, match="closed"):
                connection.execute("SELECT 1")
    assert not caught


def test_the_next_episode_of_a_world_is_lent_the_database_of_the_last_and_no_other_world_is() -> None:
    world, same, other = QueryWorld(WORLD), QueryWorld(WORLD), QueryWorld(deepcopy(WORLD))
    _query(world, "SELECT 1")
    database = world._database
    world.call("submit", {"answer": "1"})
    for later in (other, same):
        _query(later, "SELECT 1")
    assert same._database is database
    assert other._database is not database
    for later in (other, same):
        later.close()


def test_no_more_databases_are_kept_than_said_and_the_others_are_closed() -> None:
    worlds = [QueryWorld(deepcopy(WORLD)) for _ in range(idle.MOST + 3)]
    for world in worlds:
        _query(world, "SELECT 1")
    connections = [world._database._connection for world in worlds]
    for world in worlds:
        world.close()
    for connection in connections[:3]:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
    assert connections[3].execute("SELECT 1").fetchone() == (1,)


def test_an_episode_may_move_from_thread_to_thread() -> None:
    world = QueryWorld(WORLD)
    for _ in range(3):
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(_query, world, "SELECT COUNT(*) FROM loans").result() == "COUNT(*)\n5\n(1 row)"
    world.close()


def test_episodes_side_by_side_do_not_share_a_database() -> None:
    first, second = QueryWorld(WORLD), QueryWorld(WORLD)
    assert _query(first, "SELECT COUNT(*) FROM loans") == _query(second, "SELECT COUNT(*) FROM loans")
    first.close()
    assert _query(second, "SELECT 1") == "1\n1\n(1 row)"
    second.close()


def test_stored_tables_are_what_the_statements_see() -> None:
    for instance in a_mix(3):
        world = QueryWorld(instance.world)
        for table in instance.world["tables"]:
            shown = _query(world, f"SELECT * FROM {table['name']} ORDER BY id").split("\n")
            expected = [" | ".join("NULL" if v is None else str(v) for v in row) for row in table["rows"]]
            assert shown[1 : 1 + min(MAX_ROWS, len(expected))] == expected[:MAX_ROWS]
        world.close()


_FRAGMENTS = (
    "SELECT",
    "*",
    "FROM",
    "loans",
    "members",
    "WHERE",
    "fee",
    "IS NULL",
    "(",
    ")",
    ",",
    "'x'",
    ";",
    "--",
    "COUNT(*)",
    "UNION",
    "JOIN",
    "ON",
    "1",
    "PRAGMA",
    "ATTACH",
    "{tool:submit}",
    "GROUP BY",
    "\x00",
    "é",
    "OVER",
    "LIMIT",
    "\ud800",
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(_FRAGMENTS) | st.text(max_size=6), max_size=12).map(" ".join))
def test_any_statement_gives_a_bounded_result_or_a_tool_error(statement: str) -> None:
    with closing(QueryWorld(WORLD)) as world:
        assert len(_answered(world, statement)) <= MAX_RESULT_CHARS + 400


def _in_a_new_database(statement: str) -> str:
    guarded = GuardedDatabase(connect(WORLD))
    try:
        return guarded.select(statement)
    except ToolError as error:
        return error.message
    finally:
        guarded.close()


_TELLING = (
    "SELECT * FROM loans ORDER BY id",
    "SELECT name, sql FROM sqlite_master ORDER BY name",
    "SELECT strftime('%Y', loan_date), LENGTH(REPLACE('aXa', 'X', 'y')) FROM loans",
    "SELECT date('now')",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT MAX(x) FROM n",
    "SELECT REPLACE(HEX(ZEROBLOB(1500)), '00', 'abc')",
    "PRAGMA table_info(loans)",
    "SELECT changes(), total_changes(), last_insert_rowid()",
)
"""What would tell a database that was used from one that was not: its tables, its limits, its refusals."""


@pytest.fixture(scope="module")
def told_by_a_new_one() -> dict[str, str]:
    return {statement: _in_a_new_database(statement) for statement in _TELLING}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *_TELLING,
                "INSERT INTO loans DEFAULT VALUES",
                "CREATE TEMP TABLE t AS SELECT 1",
                "BEGIN",
                "SAVEPOINT s",
                "ATTACH ':memory:' AS other",
                "PRAGMA query_only = OFF",
                "PRAGMA case_sensitive_like = ON",
                "DROP TABLE loans",
                "SELECT",
            ]
        )
        | st.lists(st.sampled_from(_FRAGMENTS), max_size=8).map(" ".join),
        max_size=6,
    )
)
def test_whatever_an_episode_has_asked_the_next_one_cannot_tell(
    told_by_a_new_one: dict[str, str], statements: list[str]
) -> None:
    with closing(QueryWorld(WORLD)) as world:
        for statement in statements:
            _answered(world, statement)
        used = world._database
    with closing(QueryWorld(WORLD)) as world:
        told = {statement: _answered(world, statement) for statement in _TELLING}
        assert world._database is used or used is None
    assert told == told_by_a_new_one


def _answered(world: QueryWorld, statement: str) -> str:
    try:
        return _query(world, statement)
    except ToolError as error:
        return error.message
