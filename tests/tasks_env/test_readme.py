"""The README of the environment: whatever it shows is so."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tomllib
from typing import Any

import pytest

import tasks_env
from flows.cli.parser import build_parser
from tasks_env.contract.family import DECLARED, GENERATES, KEPT, PROOFS_HOLD
from tasks_env.families.registration import GROUP
from tests.tasks_env.readme_tasks import README, SEEDS, example, rendered

TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


def test_examples_run_in_order_and_print_what_is_shown() -> None:
    names: dict[str, Any] = {"__name__": "readme"}
    ran = 0
    for number, (language, text) in enumerate(BLOCKS):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, f"{README.name}, block {number}", "exec"), names)
        follows = BLOCKS[number + 1] if number + 1 < len(BLOCKS) else ("", "")
        assert printed.getvalue() == (follows[1] if follows[0] == "output" else "")
        ran += 1
    assert ran >= 10


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {language for language, _ in BLOCKS} == {"python", "output", "toml", "sh"}
    assert TEXT.count("```") == 2 * len(BLOCKS)


@pytest.mark.parametrize("name", SEEDS)
def test_example_task_is_what_is_rendered_today(name: str) -> None:
    """Stale? `python -m tests.tasks_env.readme_tasks` writes them anew."""
    assert f"<!-- example: {name} -->\n{example(name)}<!-- end of example -->" in TEXT


def test_rendering_anew_changes_nothing() -> None:
    assert rendered(TEXT) == TEXT
    assert example("query") != example("tabular")


def test_checklist_has_every_promise() -> None:
    promises = re.findall(
        r"^\| ([^|`]+?) \| ", TEXT[TEXT.index("| promise |") : TEXT.index("A mistake is named")], re.M
    )
    assert set(promises) - {"promise"} == {*DECLARED, *KEPT, GENERATES, PROOFS_HOLD}


def test_commands_are_commands() -> None:
    lines = [line for text in blocks("sh") for line in text.splitlines()]
    assert len(lines) == 5
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "agent-bench"
        assert build_parser().parse_args(arguments).command


def test_entry_point_is_in_the_group_that_is_read() -> None:
    [text] = blocks("toml")
    assert tomllib.loads(text)["project"]["entry-points"] == {GROUP: {"sums": "my_package.sums:Sums"}}


def test_nouns_and_verbs_exist() -> None:
    for name, fields in re.findall(r"^\| `([A-Z]\w+)` \| ([^|]+) \|", TEXT, re.M):
        kind = getattr(tasks_env, name)
        for field in re.findall(r"`([a-z_]+)`", fields):
            assert field in kind.model_fields, (name, field)
    for call in re.findall(r"^\| `([a-z_]+)\(", TEXT, re.M):
        assert callable(getattr(tasks_env, call))
