"""Mutants of the right answer, by operator: what the verifier must not let pass."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tasks_env.families.base import Proposal
from tasks_env.families.tabular.answer import answer_of
from tasks_env.families.tabular.cell_slips import CELL_OPERATORS, cell_slips
from tasks_env.families.tabular.form_slips import FORM_OPERATORS, form_slips
from tasks_env.families.tabular.reading_slips import READING_OPERATORS, reading_slips
from tasks_env.families.tabular.table_slips import TABLE_OPERATORS, table_slips
from tasks_env.types import FinalState, Instance

NEAR_MISS_OPERATORS = (*READING_OPERATORS, *TABLE_OPERATORS, *CELL_OPERATORS, *FORM_OPERATORS)


def near_misses(instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
    """Wrong readings of the task, slips in rows, columns and cells of the right answer, slips in handing it in."""
    answer = answer_of(instance, right)
    for slips in (reading_slips(instance), table_slips(answer, rng), cell_slips(answer, rng)):
        for operator, text in slips:
            yield Proposal(operator=operator, state=answer.state(text))
    for operator, state in form_slips(answer, right, rng):
        yield Proposal(operator=operator, state=state)
