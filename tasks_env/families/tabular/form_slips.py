"""Near misses of the handing in: nothing handed in, nothing in it, or the right table in another format."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from tasks_env.families.tabular.answer import Answer
from tasks_env.types import FinalState

FORM_OPERATORS = ("not submitted", "no table", "not a text", "empty text", "words around the table", "another format")


def form_slips(answer: Answer, right: FinalState, rng: random.Random) -> Iterator[tuple[str, FinalState]]:
    """Operator and final state of each mutant."""
    yield "not submitted", right.model_copy(update={"submitted": False})
    yield "no table", right.model_copy(update={"data": {"table": None, "csv": None}})
    rows = [answer.header, *answer.lines]
    for wrong in (rows, [",".join(row) for row in rows]):
        yield "not a text", right.model_copy(update={"data": {**right.data, "csv": wrong}})
    yield "empty text", answer.state(rng.choice(("", "\n", " ", "\ufeff", '"')))
    text = answer.text()
    yield "words around the table", answer.state(rng.choice(_WRAPPINGS).format(text))
    for text in _formats(answer, rng):
        yield "another format", answer.state(text)


_WRAPPINGS = ("The result:\n{}", "```\n{}```\n", "{}Total rows as asked.\n", '"{}', "{}\x1a", "# table\n{}")


def _formats(answer: Answer, rng: random.Random) -> Iterator[str]:
    """Another mark between the fields, where there are several, and no lines of fields at all."""
    if len(answer.header) > 1:
        mark = rng.choice(("\t", ";", " | ", ", "))
        yield "".join(f"{mark.join(row)}\n" for row in (answer.header, *answer.lines))
    records = [dict(zip(answer.header, line, strict=True)) for line in answer.lines]
    yield rng.choice((json.dumps(records), " ".join(answer.text().splitlines())))
