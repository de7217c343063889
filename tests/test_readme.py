"""The README's example is run as it stands, and it is short."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_environment_example_runs_in_under_ten_lines() -> None:
    [example] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    statements = [line for line in example.splitlines() if line.strip()]
    assert len(statements) < 10
    exec(compile(example, "README.md", "exec"), {})


def test_the_top_shows_the_two_commands() -> None:
    block = README.split("```")[1]
    assert [line.split("#")[0].strip() for line in block.strip().splitlines()] == ["make smoke", "make test"]
