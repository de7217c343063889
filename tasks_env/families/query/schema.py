"""The shape of a generated database: tables, columns, and the foreign keys that lead from table to table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tasks_env.errors import UnknownName

Role = Literal["key", "link", "name", "category", "integer", "decimal", "date"]
"""key: primary key; link: foreign key; name: unique text; category: text with few values."""

Path = tuple[str, ...]
"""Foreign keys followed one after another from a base table; empty: the base table itself."""

WORLD_TYPES: dict[Role, str] = {
    "key": "integer",
    "link": "integer",
    "name": "text",
    "category": "text",
    "integer": "integer",
    "decimal": "decimal",
    "date": "date",
}


@dataclass(frozen=True)
class Column:
    """One column. `values`: the pool of a category; `low` and `high`: the range of a number (decimals:
    cents)."""

    name: str
    role: Role
    nullable: bool = False
    values: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    target: str = ""
    """The table that a link refers to."""

    @property
    def label(self) -> str:
        """The column in prose: `loan_date` is "loan date", the link `member_id` is "member"."""
        return self.name.removesuffix("_id").replace("_", " ")


@dataclass(frozen=True)
class Table:
    """One table. `names` are the two word pools whose pairs name its rows."""

    name: str
    singular: str
    columns: tuple[Column, ...]
    names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def plural(self) -> str:
        """The rows in prose; tables are named after them."""
        return self.name

    def column(self, name: str) -> Column:
        """The column called `name`. Raises `UnknownName`."""
        for column in self.columns:
            if column.name == name:
                return column
        raise UnknownName(f"column of {self.name}", name, [column.name for column in self.columns])


@dataclass(frozen=True, eq=False)
class Theme:
    """Four tables: the events, two tables that they refer to (second and last), and one (third) that the
    second does."""

    name: str
    scene: str
    tables: tuple[Table, Table, Table, Table]


@dataclass(frozen=True, eq=False)
class Schema:
    """The tables of one database, with the links and missing values that it really has.

    Compared by identity: `schema_of` gives the same object for the same arguments.
    """

    theme: str
    scene: str
    tables: tuple[Table, ...]

    def table(self, name: str) -> Table:
        """The table called `name`. Raises `UnknownName`."""
        for table in self.tables:
            if table.name == name:
                return table
        raise UnknownName("table", name, [table.name for table in self.tables])

    def follow(self, base: str, path: Path) -> Table:
        """The table that `path` leads to from `base`."""
        return _follow(self, base, path)

    def paths(self, base: str) -> tuple[Path, ...]:
        """Every path from `base`, the empty one first, shorter ones before their extensions."""
        return _paths(self, base)

    def nullable(self, base: str, path: Path, column: str) -> bool:
        """Whether a row of `base` may have no value for `column` at the end of `path`."""
        table = self.table(base)
        for link in path:
            if table.column(link).nullable:
                return True
            table = self.table(table.column(link).target)
        return table.column(column).nullable


@lru_cache(maxsize=4096)
def _follow(schema: Schema, base: str, path: Path) -> Table:
    if not path:
        return schema.table(base)
    return schema.table(_follow(schema, base, path[:-1]).column(path[-1]).target)


@lru_cache(maxsize=1024)
def _paths(schema: Schema, base: str) -> tuple[Path, ...]:
    found: list[Path] = [()]
    for path in found:
        table = schema.follow(base, path)
        found += [(*path, column.name) for column in table.columns if column.role == "link"]
    return tuple(found)


@lru_cache(maxsize=256)
def schema_of(theme: Theme, names: tuple[str, ...], missing: bool) -> Schema:
    """The part of `theme` with the tables `names`; links to other tables are left out.

    Args:
        missing: Whether columns that may hold NULL do; otherwise none of them is nullable.
    """
    tables = []
    for table in theme.tables:
        if table.name not in names:
            continue
        columns = tuple(
            Column(**{**column.__dict__, "nullable": column.nullable and missing})
            for column in table.columns
            if column.role != "link" or column.target in names
        )
        tables.append(Table(table.name, table.singular, columns, table.names))
    return Schema(theme.name, theme.scene, tuple(tables))
