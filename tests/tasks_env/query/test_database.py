"""A database that is opened again is the one that was built, and its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from tasks_env import Instance, family, generate_instance
from tasks_env.families.query.database import connect, connect_again


@pytest.fixture(params=[3, 4, 5])
def instance(request: pytest.FixtureRequest) -> Instance:
    return generate_instance("query", family("query").demonstration, request.param)


def dump(connection: sqlite3.Connection) -> Iterator[str]:
    yield from connection.iterdump()


def test_it_has_the_same_schema_and_rows_each_time(instance: Instance) -> None:
    with closing(connect(instance.world)) as built:
        expected = list(dump(built))
    assert any("INSERT" in line for line in expected)
    for _ in range(2):
        with closing(connect_again(instance.world)) as opened:
            assert list(dump(opened)) == expected


def test_what_is_done_to_one_is_not_seen_in_the_next(instance: Instance) -> None:
    with closing(connect_again(instance.world)) as spoilt:
        [table, *_] = [row[0] for row in spoilt.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        spoilt.execute(f"DELETE FROM {table}")
        spoilt.execute("CREATE TABLE left_behind (x)")
        with closing(connect_again(instance.world)) as opened, closing(connect(instance.world)) as built:
            assert list(dump(opened)) == list(dump(built))


def test_worlds_that_are_equal_but_for_a_row_are_told_apart(instance: Instance) -> None:
    other = instance.model_copy(deep=True)
    rows = other.world["tables"][0]["rows"]  # type: ignore[call-overload,index]
    rows.pop()  # type: ignore[union-attr]
    with closing(connect_again(instance.world)) as first, closing(connect_again(other.world)) as second:
        assert list(dump(first)) != list(dump(second))
