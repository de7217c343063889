"""The goals that a task is made of: the machine-readable spec, and how it is read from JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tasks_env.types import Frozen

Files = dict[str, str]
"""A tree: absolute path → text. A folder exists as long as a file lies below it."""


class Create(Frozen):
    """A new file with these lines."""

    kind: Literal["create"] = "create"
    path: str
    lines: tuple[str, ...]


class Move(Frozen):
    """A file gets another path; its text stays."""

    kind: Literal["move"] = "move"
    source: str
    destination: str


class Delete(Frozen):
    """One file goes."""

    kind: Literal["delete"] = "delete"
    path: str


class Edit(Frozen):
    """A setting `key = value` gets another value; the rest of the file stays."""

    kind: Literal["edit"] = "edit"
    path: str
    section: str | None
    """Null: the file has no `[section]` headings."""
    key: str
    value: str


class Append(Frozen):
    """One more line at the end of a file."""

    kind: Literal["append"] = "append"
    path: str
    line: str


class Count(Frozen):
    """The number of lines that contain `text` (case counts, a line counts once) goes into a new file."""

    kind: Literal["count"] = "count"
    scope: str
    """A file, or with `recursive` a folder whose files at every level count."""
    recursive: bool
    text: str
    destination: str


class CountRows(Frozen):
    """The number of CSV rows whose cell in `column` is `value` goes into a new file."""

    kind: Literal["count_rows"] = "count_rows"
    path: str
    column: str
    value: str
    destination: str


class Collect(Frozen):
    """The whole lines that start with `prefix`, by path and then as they stand, go into a new file."""

    kind: Literal["collect"] = "collect"
    directory: str
    prefix: str
    destination: str


class Find(Frozen):
    """The one file below `directory` that has the whole line `line` moves into the folder `destination`."""

    kind: Literal["find"] = "find"
    directory: str
    line: str
    destination: str


class Purge(Frozen):
    """Every file below `directory` whose name ends with `suffix` goes."""

    kind: Literal["purge"] = "purge"
    directory: str
    suffix: str


SimpleGoal = Annotated[Create | Move | Delete | Edit | Append, Field(discriminator="kind")]
Operator = Literal["is", "at_least", "more_than"]


class Check(Frozen):
    """A question to a setting in a file; `at_least` and `more_than` compare integers."""

    path: str
    section: str
    key: str
    operator: Operator
    value: str


class Conditional(Frozen):
    """`then` if the check holds, `otherwise` if not."""

    kind: Literal["conditional"] = "conditional"
    check: Check
    then: SimpleGoal
    otherwise: SimpleGoal


Goal = Create | Move | Delete | Edit | Append | Count | CountRows | Collect | Find | Purge | Conditional


class Spec(Frozen):
    """A whole task: goals that can be carried out in any order."""

    goals: tuple[Annotated[Goal, Field(discriminator="kind")], ...]


def tree(value: JsonValue) -> Files:
    """The tree stored as JSON. Raises `TypeError` unless it maps paths to texts."""
    if not isinstance(value, dict):
        raise TypeError(f"a tree is an object of paths and texts, not {type(value).__name__}")
    files: Files = {}
    for path, text in value.items():
        if not isinstance(text, str):
            raise TypeError(f"the text of {path!r} is a string, not {type(text).__name__}")
        files[path] = text
    return files
