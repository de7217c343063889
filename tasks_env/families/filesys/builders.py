"""The makers of goals: each adds the files that its goal needs, near misses included."""

from __future__ import annotations

from collections.abc import Callable

from tasks_env.families.filesys import content
from tasks_env.families.filesys.draft import Draft
from tasks_env.families.filesys.goals import (
    Append,
    Check,
    Collect,
    Conditional,
    Count,
    CountRows,
    Create,
    Delete,
    Edit,
    Find,
    Goal,
    Move,
    Operator,
    Purge,
    SimpleGoal,
)
from tasks_env.families.filesys.readings import sorts_one_way

PREFIXES = ("TODO:", "ACTION:", "DECISION:", "RISK:", "QUESTION:")
LEVELS = ("ERROR", "WARN", "FATAL")
STATES = (("open", "reopened", "closed"), ("paid", "unpaid", "void"), ("active", "inactive", "paused"))
SUFFIXES = (".tmp", ".bak", ".old", ".swp")
LABELS = ("Reference", "Ticket", "Contract", "Invoice", "Case")

AnyMaker = Callable[[Draft], tuple[Goal, str, str]]
"""Returns the goal, the path that decoys resemble, and the folder in which they lie."""


def create(draft: Draft, area: str) -> Create:
    """A new file of one to three lines."""
    rng = draft.rng
    lines = [
        f"owner: {rng.choice(content.PEOPLE)}",
        f"city: {rng.choice(content.CITIES)}",
        f"due: {content.date(rng)}",
        f"next: {rng.choice(content.TASKS)}",
        f"team: {rng.choice(content.TEAMS)}",
    ]
    path = draft.reserve(draft.fresh(draft.folder(area), "md"))
    return Create(path=path, lines=tuple(rng.sample(lines, rng.randint(1, 3))))


def move(draft: Draft, area: str) -> Move:
    """A file that goes to a folder for results, sometimes under another name."""
    rng = draft.rng
    kind = rng.choice(list(content.KINDS))
    source = draft.add(draft.fresh(draft.folder(area), kind), content.KINDS[kind](rng))
    name = source.rsplit("/", 1)[1]
    if rng.random() < 0.5:
        name = f"{rng.choice(content.TEAMS)}-{name}"
    return Move(source=source, destination=draft.output(name))


def delete(draft: Draft, area: str) -> Delete:
    """A file to be deleted."""
    kind = draft.rng.choice(list(content.KINDS))
    return Delete(path=draft.add(draft.fresh(draft.folder(area), kind), content.KINDS[kind](draft.rng)))


def edit(draft: Draft, area: str) -> Edit:
    """A setting whose key also stands in an earlier section, or begins an earlier, longer key."""
    rng = draft.rng
    key = rng.choice((*content.INTEGER_KEYS, *content.WORD_KEYS))
    old, new = content.setting_value(rng, key), content.setting_value(rng, key)
    while new == old:
        new = content.setting_value(rng, key)
    section: str | None = None
    if rng.random() < 0.6:
        first, section = rng.sample(content.SECTIONS, 2)
        lines = [
            *content.section(rng, first, 1, without=key),
            f"{key} = {content.setting_value(rng, key)}",
            *content.section(rng, section, 1, without=key),
            f"{key} = {old}",
        ]
    else:
        longer = f"{key}_{rng.choice(content.SECTIONS)}"
        others = content.section(rng, "", 2, without=key)[1:]
        lines = [others[0], f"{longer} = {content.setting_value(rng, key)}", f"{key} = {old}", others[1]]
    path = draft.add(draft.fresh(draft.folder(area), "ini"), lines)
    return Edit(path=path, section=section, key=key, value=new)


def append(draft: Draft, area: str) -> Append:
    """One more note, or one more row."""
    rng = draft.rng
    kind = rng.choice(("md", "csv"))
    path = draft.add(draft.fresh(draft.folder(area), kind), content.KINDS[kind](rng))
    row = f"{rng.choice(content.THINGS)},{rng.choice(content.CITIES)},{rng.randint(41, 90)}"
    return Append(path=path, line=row if kind == "csv" else f"- {content.task(rng)}")


SIMPLE: dict[str, Callable[[Draft, str], SimpleGoal]] = {
    "create": create,
    "move": move,
    "delete": delete,
    "edit": edit,
    "append": append,
}


def simple(draft: Draft, kind: str) -> tuple[Goal, str, str]:
    """A goal of one of the simple kinds."""
    area = draft.area("ini" if kind == "edit" else "md")
    goal = SIMPLE[kind](draft, area)
    return goal, goal.source if isinstance(goal, Move) else goal.path, area


def count(draft: Draft) -> tuple[Goal, str, str]:
    """Lines with a level, in one log or in several; some say it twice, some only in small letters."""
    rng = draft.rng
    level = rng.choice(LEVELS)

    def lines(hits: int, *, tricky: bool) -> list[str]:
        plain = [content.log_line(rng, level, rng.choice(content.FAILURES)) for _ in range(hits)]
        plain += [content.log_line(rng, "INFO", rng.choice(content.EVENTS)) for _ in range(2)]
        if tricky:
            plain[0] += f" after {level} in {rng.choice(content.SERVICES)}"
            misses = rng.randint(2, 3)
            plain += [content.log_line(rng, "INFO", f"no {level.lower()} pending") for _ in range(misses)]
        rng.shuffle(plain)
        return content.timed(rng, plain)

    if draft.params.matches == 1 or rng.random() < 0.5:
        area = draft.area("log")
        path = draft.fresh(draft.folder(area), "log")
        draft.add(path, lines(draft.params.matches + rng.randint(1, 3), tricky=True))
        scope, recursive = path, False
    else:
        area, outside = draft.search_scope("log")
        scope, recursive = area, True
        for number, path in enumerate(draft.spread(area, draft.params.matches, "log")):
            draft.add(path, lines(2 if number == 0 else rng.randint(1, 2), tricky=number == 0))
        path = draft.add(draft.fresh(outside, "log"), lines(1, tricky=False))
    destination = draft.output(f"{level.lower()}-count.txt")
    return Count(scope=scope, recursive=recursive, text=level, destination=destination), path, area


def count_rows(draft: Draft) -> tuple[Goal, str, str]:
    """Rows in a state, in a table where that word stands in other columns and inside other words too."""
    rng = draft.rng
    value, longer, other = rng.choice(STATES)
    hits = draft.params.matches + rng.randint(1, 3)
    pairs = [(value, rng.choice((longer, other))) for _ in range(hits)]
    pairs += [(longer, value), (longer, other), (other, value), (value.capitalize(), other)]
    pairs += [(other, rng.choice((longer, other))) for _ in range(rng.randint(0, 3))]
    rng.shuffle(pairs)
    number = rng.randint(100, 800)
    rows = ["id,city,status,previous"]
    for status, previous in pairs:
        number += rng.randint(1, 9)
        rows.append(f"T-{number},{rng.choice(content.CITIES)},{status},{previous}")
    area = draft.area("csv")
    path = draft.add(draft.fresh(draft.folder(area), "csv"), rows)
    destination = draft.output(f"{value}-rows.txt")
    return CountRows(path=path, column="status", value=value, destination=destination), path, area


def collect(draft: Draft) -> tuple[Goal, str, str]:
    """Marked lines of several notes, one of them twice; others mention the mark or write it small."""
    rng = draft.rng
    prefix = rng.choice(PREFIXES)
    scope, outside = draft.search_scope("md")
    paths = _sortable(draft, scope)
    marked = rng.sample(content.TASKS, len(paths) + 2)
    for number, path in enumerate(paths):
        head, *rest = content.notes(rng)
        extra = [f"{prefix} {marked[number]}"]
        if number == 0:
            extra += [f"- the {prefix} list moved", f"{prefix.lower()} {marked[-2]}"]
        if number == len(paths) - 1:
            extra += [f"{prefix} {marked[-1]}", f"{prefix} {marked[0]}"]
        draft.add(path, [head, *rest[:2], *extra])
    draft.add(draft.fresh(outside, "md"), [*content.notes(rng)[:2], f"{prefix} {content.task(rng)}"])
    destination = draft.output(f"{prefix[:-1].lower()}-lines.txt")
    return Collect(directory=scope, prefix=prefix, destination=destination), paths[0], scope


def _sortable(draft: Draft, scope: str) -> list[str]:
    """Sorted paths for notes, in an order that does not depend on the way of sorting."""
    for _ in range(4):
        paths = sorted(draft.spread(scope, draft.params.matches, "md"))
        if sorts_one_way(paths):
            return paths
        draft.release(paths)
    return sorted(draft.spread(scope, draft.params.matches, "md", one_level=True))


def find(draft: Draft) -> tuple[Goal, str, str]:
    """The note with a code; others have another code, a longer one, or lie outside."""
    rng = draft.rng
    label, start = rng.choice(LABELS), rng.randint(1000, 9000)
    scope, outside = draft.search_scope("md")
    paths = draft.spread(scope, draft.params.matches + 1, "md")
    codes = [f"{start}", f"{start}-B", *(f"{start + rng.randint(1, 400)}" for _ in paths[2:])]
    for path, code in zip(paths, codes, strict=True):
        draft.add(path, [*content.notes(rng)[:3], f"{label}: {code}"])
    draft.add(draft.fresh(outside, "md"), [*content.notes(rng)[:2], f"{label}: {start}"])
    destination = draft.output_folder()
    draft.reserve(destination + paths[0][paths[0].rindex("/") :])
    return Find(directory=scope, line=f"{label}: {start}", destination=destination), paths[0], scope


def purge(draft: Draft) -> tuple[Goal, str, str]:
    """Leftovers by the end of their names; one name has it in the middle, one file lies outside."""
    rng = draft.rng
    suffix = rng.choice(SUFFIXES)
    kind = rng.choice(list(content.KINDS))
    scope, outside = draft.search_scope(kind)
    make = content.KINDS[kind]
    paths = draft.spread(scope, draft.params.matches, f"{kind}{suffix}")
    for path in paths:
        draft.add(path, make(rng)[:3])
    draft.add(draft.fresh(draft.folder(scope), f"{suffix[1:]}.{kind}"), make(rng)[:3])
    draft.add(draft.fresh(outside, f"{kind}{suffix}"), make(rng)[:3])
    return Purge(directory=scope, suffix=suffix), paths[0], scope


SEARCHES: dict[str, AnyMaker] = {
    "count": count,
    "count_rows": count_rows,
    "collect": collect,
    "find": find,
    "purge": purge,
}


def conditional(draft: Draft) -> tuple[Goal, str, str]:
    """Two simple goals and a setting that decides; the same key elsewhere in the file says the opposite."""
    rng = draft.rng
    operator: Operator = rng.choice(("is", "at_least", "more_than"))
    key = rng.choice(list(content.WORD_KEYS) if operator == "is" else content.INTEGER_KEYS)
    if operator == "is":
        value, other = rng.sample(content.WORD_KEYS[key], 2)
        yes, no = value, other
    else:
        bound = rng.randint(10, 60)
        above, under = rng.choice((1, 1, rng.randint(2, 20))), rng.choice((1, 1, rng.randint(2, 8)))
        value = str(bound)
        yes, no = (
            (str(bound + above - 1), str(bound - under))
            if operator == "at_least"
            else (str(bound + above), str(bound - under + 1))
        )
    real, false = rng.sample((yes, no), 2)
    first, section = rng.sample(content.SECTIONS, 2)
    area = draft.area("ini")
    path = draft.add(
        draft.fresh(draft.folder(area), "ini"),
        [
            *content.section(rng, first, 1, without=key),
            f"{key} = {false}",
            *content.section(rng, section, 1, without=key),
            f"# {key} = {false}",
            f"{key} = {real}",
        ],
    )
    kinds = rng.sample(list(SIMPLE), 2)
    then, otherwise = (SIMPLE[kind](draft, area) for kind in kinds)
    check = Check(path=path, section=section, key=key, operator=operator, value=value)
    return Conditional(check=check, then=then, otherwise=otherwise), path, area
