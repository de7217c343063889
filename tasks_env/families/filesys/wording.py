"""The instruction of a task, from its spec alone."""

from __future__ import annotations

from tasks_env.errors import UnknownName
from tasks_env.families.filesys.goals import Conditional, Count, Create, Edit, Goal, Spec
from tasks_env.families.filesys.phrasings import PHRASINGS, Phrasing


def prompt(spec: Spec, phrasing: str) -> str:
    """The task worded in one of `PHRASINGS`; `{tool:submit}` is left to be resolved. Raises `UnknownName`."""
    if phrasing not in PHRASINGS:
        raise UnknownName("phrasing", phrasing, PHRASINGS)
    wording = PHRASINGS[phrasing]
    clauses = [clause(goal, wording) for goal in spec.goals]
    if len(clauses) == 1:
        only = clauses[0] if phrasing != "base" else _sentence(clauses[0])
        return wording.one.format(goals=only)
    items = [
        wording.item.format(number=number, goal=text if phrasing != "base" else _sentence(text))
        for number, text in enumerate(clauses, start=1)
    ]
    return wording.many.format(goals="\n".join(items))


def clause(goal: Goal, wording: Phrasing) -> str:
    """One goal as a clause that starts with a small letter and has no full stop."""
    template = wording.clauses[goal.kind]
    match goal:
        case Create():
            return template.format(path=goal.path, lines=_lines(goal.lines, wording))
        case Edit():
            setting = _setting(goal.section, goal.key, wording)
            return template.format(path=goal.path, setting=setting, value=goal.value)
        case Count():
            where = (wording.folder if goal.recursive else wording.file).format(scope=goal.scope)
            return template.format(text=goal.text, where=where, destination=goal.destination)
        case Conditional():
            check = goal.check
            return template.format(
                path=check.path,
                setting=_setting(check.section, check.key, wording),
                check=wording.checks[check.operator].format(value=check.value),
                then=clause(goal.then, wording),
                otherwise=clause(goal.otherwise, wording),
            )
        case _:
            return template.format(**goal.model_dump(exclude={"kind"}))


def _lines(lines: tuple[str, ...], wording: Phrasing) -> str:
    quoted = wording.joiner.join(f'"{line}"' for line in lines)
    template = wording.one_line if len(lines) == 1 else wording.many_lines
    return template.format(lines=quoted, count=len(lines))


def _setting(section: str | None, key: str, wording: Phrasing) -> str:
    if section is None:
        return wording.setting.format(key=key)
    return wording.sectioned.format(key=key, section=section)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
