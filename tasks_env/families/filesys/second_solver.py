"""An independent solution of a task, by another route: real files in a temporary folder.

It shares no code with the generator, the verifier or the reference. It reads the stored JSON of the spec and
works with `pathlib`, `configparser`, `csv`, `re` and `shutil`, so that agreement with the stored truth is
evidence that the goals mean one thing.
"""

from __future__ import annotations

import configparser
import csv
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MEMORY = "/dev/shm"
"""Where files cost no disk access, on systems that have it; elsewhere the usual temporary folder serves."""


def solve(spec: Mapping[str, Any], files: Mapping[str, str], order: Sequence[int] | None = None) -> dict[str, str]:
    """The tree after all goals.

    Args:
        spec: `Instance.spec`.
        files: The start tree, `Instance.world["files"]`.
        order: Indices of the goals in the order to carry them out; default: as they stand.
    """
    goals = spec["goals"]
    place = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="filesys-", dir=place) as folder:
        root = Path(folder)
        for path, text in files.items():
            _write(root / path[1:], text)
        for index in range(len(goals)) if order is None else order:
            _carry_out(goals[index], root)
        return {
            "/" + entry.relative_to(root).as_posix(): entry.read_bytes().decode("utf-8")
            for entry in sorted(root.rglob("*"))
            if entry.is_file()
        }


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode("utf-8"))


def _carry_out(goal: Mapping[str, Any], root: Path) -> None:
    kind = goal["kind"]
    if kind == "conditional":
        branch = "then" if _answer(goal["check"], root) else "otherwise"
        _carry_out(goal[branch], root)
    elif kind == "create":
        _write(root / goal["path"][1:], "\n".join([*goal["lines"], ""]))
    elif kind == "move":
        _move(root / goal["source"][1:], root / goal["destination"][1:])
    elif kind == "delete":
        (root / goal["path"][1:]).unlink()
    elif kind == "edit":
        _edit(root / goal["path"][1:], goal["section"], goal["key"], goal["value"])
    elif kind == "append":
        with (root / goal["path"][1:]).open("ab") as handle:
            handle.write(goal["line"].encode("utf-8") + b"\n")
    elif kind == "count":
        scope = root / goal["scope"][1:]
        texts = [_text(file) for file in (_files(scope) if goal["recursive"] else [scope])]
        hits = [re.findall(rf"^.*{re.escape(goal['text'])}.*$", text, flags=re.MULTILINE) for text in texts]
        _write(root / goal["destination"][1:], str(sum(map(len, hits))) + "\n")
    elif kind == "count_rows":
        with (root / goal["path"][1:]).open(encoding="utf-8", newline="") as handle:
            cells = [row[goal["column"]] for row in csv.DictReader(handle)]
        _write(root / goal["destination"][1:], str(cells.count(goal["value"])) + "\n")
    elif kind == "collect":
        pattern = re.compile(rf"^{re.escape(goal['prefix'])}[^\n]*\n?", flags=re.MULTILINE)
        chunks = [chunk for file in _files(root / goal["directory"][1:]) for chunk in pattern.findall(_text(file))]
        _write(root / goal["destination"][1:], "".join(chunks))
    elif kind == "find":
        (owner,) = [file for file in _files(root / goal["directory"][1:]) if goal["line"] in _text(file).splitlines()]
        _move(owner, root / goal["destination"][1:] / owner.name)
    elif kind == "purge":
        for file in (root / goal["directory"][1:]).rglob("*" + goal["suffix"]):
            file.unlink()
    else:
        raise ValueError(f"unknown kind of goal {kind!r}")


def _files(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.rglob("*") if entry.is_file())


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8")


def _move(source: Path, target: Path) -> None:
    if target.exists():
        raise FileExistsError(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)


def _answer(check: Mapping[str, Any], root: Path) -> bool:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(root / check["path"][1:], encoding="utf-8")
    if check["operator"] == "is":
        return parser.get(check["section"], check["key"]) == str(check["value"])
    margin = parser.getint(check["section"], check["key"]) - int(check["value"])
    return margin >= {"at_least": 0, "more_than": 1}[check["operator"]]


def _edit(file: Path, section: str | None, key: str, value: str) -> None:
    start = "" if section is None else rf"\[{re.escape(section)}\]\n(?:(?!\[).*\n)*?"
    pattern = re.compile(rf"(^{start}{re.escape(key)} = ).*$", flags=re.MULTILINE)
    text, number = pattern.subn(lambda match: match[1] + value, _text(file))
    if number != 1:
        raise ValueError(f"{file.name}: the setting {key} was found {number} times")
    file.write_bytes(text.encode("utf-8"))
