"""Whether every wording of a task carries every acceptance criterion, each in an item of the list of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks_env.service.benchmark import Benchmark

_ITEM = re.compile(r"^(\d+)\. (.+(?:\n   .+)*)", re.MULTILINE)


def numbered_items(text: str) -> dict[int, str]:
    """The items of a numbered list in Markdown, each on one line."""
    return {int(match[1]): " ".join(match[2].split()) for match in _ITEM.finditer(text)}


def missing_statements(benchmark: Benchmark) -> list[str]:
    """A line for everything that a wording does not say; empty if each states each criterion, under its number."""
    return [problem for name, text in wordings(benchmark).items() for problem in _missing(benchmark, name, text)]


def wordings(benchmark: Benchmark) -> dict[str, str]:
    """task.md (`base`) and the paraphrases."""
    return {"base": benchmark.prompt, **benchmark.paraphrases}


def _missing(benchmark: Benchmark, name: str, text: str) -> Iterator[str]:
    items = numbered_items(text)
    expected = list(range(1, len(benchmark.contract.criteria) + 1))
    if list(items) != expected:
        yield f"{name}: items {', '.join(map(str, items))}, expected 1 to {len(expected)}"
        return
    for number, criterion in enumerate(benchmark.contract.criteria, start=1):
        for pattern in criterion.says:
            if not re.search(pattern, items[number], re.IGNORECASE):
                yield f"{name}: item {number} does not say {pattern!r} ({criterion.id}): {items[number]}"
