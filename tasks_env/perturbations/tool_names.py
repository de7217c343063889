"""Axis `tool_names`: the same tools and arguments under other names.

`synonyms` replaces each word of a name by the fixed table in `synonyms.py`: `read_file` becomes
`fetch_document`. A name without a known word becomes `run_NAME` (a tool) or `NAME_value` (an argument), as
does a name whose replacement is taken or too long; if that is taken too, it is `tool_1`, `value_1` and so on.
`opaque` numbers tools t1, t2, ... and arguments a1, a2, ... . Descriptions stay, except that a mention of a
name follows the renaming.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tasks_env.errors import UnknownName
from tasks_env.families import family
from tasks_env.perturbations.base import SameSample
from tasks_env.perturbations.synonyms import replace_words
from tasks_env.seeding import derive
from tasks_env.types import Instance, Naming, Presentation, ToolSpec

LEVELS = ("opaque", "synonyms")
LONGEST_NAME = 64


class ToolNames(SameSample):
    """Levels `synonyms` (the seed changes nothing) and `opaque` (the seed assigns the numbers)."""

    axis: str = "tool_names"

    def check_level(self, level: str) -> None:
        """Raises `UnknownName` unless `level` is `synonyms` or `opaque`."""
        if level not in LEVELS:
            raise UnknownName(f"{self.axis} level", level, LEVELS)

    def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:
        """One naming per family, shared by all of its instances."""
        self.check_level(level)
        names = sorted({instance.family for instance in instances})
        namings = {name: rename(family(name).tools(), level, seed) for name in names}
        return [Presentation(naming=namings[instance.family]) for instance in instances]


def rename(specs: Sequence[ToolSpec], level: str, seed: int) -> Naming:
    """Every tool and argument of a tool list renamed.

    Within tools, and within arguments, shown names are distinct and none is a canonical name of the list, so
    an old name is never understood as something else.

    Raises:
        UnknownName: no such level.
    """
    tools = list(dict.fromkeys(spec.name for spec in specs))
    arguments = list(dict.fromkeys(name for spec in specs for name in spec.parameters["properties"]))
    if level == "synonyms":
        return Naming(
            tools=_by_synonyms(tools, lambda name: f"run_{name}", "tool"),
            arguments=_by_synonyms(arguments, lambda name: f"{name}_value", "value"),
        )
    if level == "opaque":
        return Naming(
            tools=_by_number(tools, "t", seed),
            arguments=_by_number(arguments, "a", seed),
        )
    raise UnknownName("tool_names level", level, LEVELS)


def _by_synonyms(names: Sequence[str], marked: Callable[[str], str], stem: str) -> dict[str, str]:
    """The first usable wish of each name: word by word, then `marked`, then numbered after `stem`."""
    taken = set(names)
    shown: dict[str, str] = {}
    for name in names:
        wishes = [replace_words(name), marked(name), *(f"{stem}_{i}" for i in range(1, 2 * len(names) + 2))]
        shown[name] = next(wish for wish in wishes if wish not in taken and len(wish) <= LONGEST_NAME)
        taken.add(shown[name])
    return shown


def _by_number(names: Sequence[str], letter: str, seed: int) -> dict[str, str]:
    free = _first_free(len(names), (f"{letter}{i}" for i in range(1, 2 * len(names) + 1)), set(names))
    derive(seed, "tool_names", "opaque", letter, *names).shuffle(free)
    return dict(zip(names, free, strict=True))


def _first_free(count: int, wishes: Iterable[str], taken: set[str]) -> list[str]:
    return [wish for wish in wishes if wish not in taken][:count]
