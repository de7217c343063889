"""The near misses of a task: mutants of its right final tree, by operator."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

from tasks_env.families.base import Proposal
from tasks_env.families.filesys import goal_mutants, text_mutants, tree_mutants
from tasks_env.families.filesys.solved import Solved, solved
from tasks_env.types import FinalState, Instance, JsonObject

Mutate = Callable[[Solved, random.Random], Iterator[Mapping[str, JsonValue]]]
"""The wrong trees that a solved task offers a place for."""

KINDS = ("create", "move", "delete", "edit", "append", "count", "count_rows", "collect", "find", "purge", "conditional")


def _unmet(kind: str) -> Mutate:
    return lambda task, _: goal_mutants.unmet(task, kind)


def _misread(kind: str) -> Mutate:
    return lambda task, rng: goal_mutants.misread(task, kind, rng)


def _in_written(rewrite: text_mutants.Rewrite) -> Mutate:
    return lambda task, rng: text_mutants.rewritten(task, task.written, rewrite, rng)


def _in_untouched(rewrite: text_mutants.Rewrite) -> Mutate:
    return lambda task, rng: text_mutants.rewritten(task, task.untouched, rewrite, rng)


TREE_OPERATORS: dict[str, Mutate] = {
    **{f"{kind}: unmet": _unmet(kind) for kind in KINDS},
    **{f"{kind}: misread": _misread(kind) for kind in KINDS},
    "goal half done": goal_mutants.half_done,
    "copied instead of moved": goal_mutants.copied_instead_of_moved,
    "found by name, not content": goal_mutants.found_by_name,
    "count off by one": goal_mutants.count_off_by_one,
    "number with a word": goal_mutants.number_with_a_word,
    "number in another form": goal_mutants.number_in_another_form,
    "collected in reverse": goal_mutants.collected_in_reverse,
    "condition the wrong way": goal_mutants.condition_the_wrong_way,
    "bound the other way": goal_mutants.bound_the_other_way,
    "extra file": tree_mutants.extra_file,
    "extra empty file": tree_mutants.extra_empty_file,
    "written file missing": tree_mutants.written_file_missing,
    "deleted file kept": tree_mutants.deleted_file_kept,
    "deleted file left empty": tree_mutants.deleted_file_left_empty,
    "path in another case": tree_mutants.path_in_another_case,
    "path in another folder": tree_mutants.path_in_another_folder,
    "look-alike name": tree_mutants.look_alike_name,
    "two files exchanged": tree_mutants.two_files_exchanged,
    "line missing": _in_written(text_mutants.line_missing),
    "line duplicated": _in_written(text_mutants.line_duplicated),
    "lines swapped": _in_written(text_mutants.lines_swapped),
    "blank line added": _in_written(text_mutants.blank_line_added),
    "space added": _in_written(text_mutants.space_added),
    "letter in another case": _in_written(text_mutants.letter_in_another_case),
    "look-alike letter": _in_written(text_mutants.look_alike_letter),
    "written file emptied": _in_written(text_mutants.emptied),
    "text of a neighbour": text_mutants.text_of_a_neighbour,
    "text of the wrong type": text_mutants.text_of_the_wrong_type,
    "untouched: deleted": tree_mutants.untouched_file_deleted,
    "untouched: renamed": tree_mutants.untouched_file_moved,
    "untouched: character changed": _in_untouched(text_mutants.character_changed),
    "untouched: accent dropped": _in_untouched(text_mutants.accent_dropped),
    "untouched: lines swapped": _in_untouched(text_mutants.lines_swapped),
    "untouched: space added": _in_untouched(text_mutants.space_added),
    "untouched: emptied": _in_untouched(text_mutants.emptied),
}
NEVER_SUBMITTED = "never submitted"
NO_TREE = "no tree"
OPERATORS = (*TREE_OPERATORS, NEVER_SUBMITTED, NO_TREE)


def near_misses(instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
    """Every near miss of `right`, the tree that solves `instance`; places are drawn from `rng`."""
    task = solved(instance, right)
    for operator, mutate in TREE_OPERATORS.items():
        for files in mutate(task, rng):
            if files != task.right:
                state = FinalState(submitted=right.submitted, data={"files": dict(files)})
                yield Proposal(operator=operator, state=state)
    yield Proposal(operator=NEVER_SUBMITTED, state=FinalState(submitted=False, data=right.data))
    listed: list[JsonValue] = [[path, text] for path, text in task.right.items()]
    malformed: tuple[JsonObject, ...] = ({}, {"files": listed})
    for data in malformed:
        yield Proposal(operator=NO_TREE, state=FinalState(submitted=right.submitted, data=data))
