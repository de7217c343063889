"""Every wording carries every parameter of the spec, and the wordings really differ."""

from __future__ import annotations

import difflib
import re
from itertools import combinations
from typing import Any

import pytest
from pydantic import JsonValue

from tasks_env.errors import UnknownName
from tasks_env.families.filesys.goals import (
    Check,
    Conditional,
    Count,
    Create,
    Delete,
    Edit,
    Goal,
    Operator,
    Spec,
)
from tasks_env.families.filesys.phrasings import PHRASINGS, Phrasing
from tasks_env.families.filesys.wording import clause, prompt
from tasks_env.types import Instance
from tests.tasks_env.filesys.levels import FAMILY, LEVELS, goals, instance
from tests.tasks_env.perturbations.recovery import pattern

FORMS = {"kind", "operator", "recursive"}
"""Fields that choose a wording rather than being quoted in it."""
OPERATORS: tuple[Operator, ...] = ("is", "at_least", "more_than")


def quoted(spec: JsonValue) -> list[str]:
    """Every text of a spec that a wording has to carry as it stands."""
    if isinstance(spec, dict):
        return [text for name, value in spec.items() if name not in FORMS for text in quoted(value)]
    if isinstance(spec, list):
        return [text for value in spec for text in quoted(value)]
    return [] if spec is None else [str(spec)]


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_each_wording_carries_every_parameter(phrasing: str) -> None:
    for level in LEVELS:
        for seed in range(20 if level != "largest" else 3):
            task = instance(level, seed)
            text = FAMILY.prompt(task, phrasing)
            for goal in goals(task):
                words = clause(goal, PHRASINGS[phrasing])
                assert words in text or words[1:] in text
                for parameter in quoted(goal.model_dump(mode="json")):
                    assert parameter in words, (phrasing, parameter)
            numbers = sum(len(re.findall(r"\d+", parameter)) for parameter in quoted(task.spec))
            assert len(re.findall(r"\d+", text)) >= numbers


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_each_wording_quotes_the_parameters_and_nothing_more(phrasing: str) -> None:
    for level in ("easy", "medium", "hard"):
        for seed in range(12):
            task = instance(level, seed)
            text = FAMILY.prompt(task, phrasing)
            said = [one or two for one, two in re.findall(r"`([^`]*)`|\"([^\"]*)\"", text)]
            sections = {f"[{goal.section}]" for goal in edits_and_checks(task) if goal.section is not None}
            bare = {goal.section for goal in edits_and_checks(task)}
            assert set(said) == {word for word in quoted(task.spec) if word not in bare} | sections
            outside = re.sub(r"`[^`]*`|\"[^\"]*\"", "", text)
            counts = {str(len(goal.lines)) for goal in every_goal(task) if isinstance(goal, Create)}
            numbers = {str(number) for number in range(1, len(goals(task)) + 1)}
            assert set(re.findall(r"\d+", outside)) <= counts | numbers


def every_goal(task: Instance) -> list[Goal]:
    """Its goals, and those in the branches of its conditions."""
    nested = [branch for goal in goals(task) if isinstance(goal, Conditional) for branch in (goal.then, goal.otherwise)]
    return [*goals(task), *nested]


def edits_and_checks(task: Instance) -> list[Edit | Check]:
    """Everything that names a setting."""
    return [
        goal.check if isinstance(goal, Conditional) else goal
        for goal in every_goal(task)
        if isinstance(goal, Conditional | Edit)
    ]


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_each_wording_states_every_rule(phrasing: str) -> None:
    frame = (PHRASINGS[phrasing].one, PHRASINGS[phrasing].many)
    for text in frame:
        assert "{{tool:submit}}" in text
        assert re.search(r"newline", text)
        assert re.search(r"(no|any) (other |stray |additional |further )?files?|add nothing else", text)
        assert re.search(r"[Ee]very other|Touch nothing|alter any|remaining files|no file changed|hands off", text)
    assert re.search(
        r"any order|do not depend|whatever order|independent|by itself|none of which", PHRASINGS[phrasing].many
    )
    clauses = PHRASINGS[phrasing].clauses
    case = r"case differ|case-sensitive|small letters|letter case|lower case|capitals and all"
    for kind in ("count", "count_rows", "collect"):
        assert re.search(case, clauses[kind]), kind
        assert "new" in clauses[kind]
    for kind in ("collect", "find", "purge"):
        assert re.search(r"subfolders|any level", clauses[kind]), kind
    assert re.search(r"subfolders|any level", PHRASINGS[phrasing].folder)
    assert re.search(r"digits", clauses["count"])
    assert re.search(r"digits", clauses["count_rows"])
    assert re.search(r"once|one count|still one line|single time|one line", clauses["count"])
    assert re.search(r"repe|doubles|twice", clauses["collect"])
    assert re.search(r"whole|complete|in full|uncut|one piece", clauses["collect"])
    assert re.search(r"full( file)? path", clauses["collect"])
    assert re.search(r"A to Z|A-Z|alphabetical", clauses["collect"])
    assert re.search(r"stand|position|bottom|original order|sequence|order they have", clauses["collect"])
    assert re.search(r"directly|right into", clauses["find"])
    assert "name" in clauses["find"]
    assert "comment" in clauses["conditional"]
    assert "#" in clauses["conditional"]
    assert "spacing" in clauses["edit"]
    assert "full" in clauses["move"]
    assert re.search(r"text|content", clauses["move"])


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_fields_that_choose_a_form_show_in_the_words(phrasing: str) -> None:
    words = PHRASINGS[phrasing]
    checks = {
        operator: clause(
            Conditional(
                check=Check(path="/a.ini", section="s", key="k", operator=operator, value="7"),
                then=Delete(path="/x.md"),
                otherwise=Create(path="/y.md", lines=("z",)),
            ),
            words,
        )
        for operator in OPERATORS
    }
    assert len(set(checks.values())) == 3
    assert re.search(r"at least|>=|or higher|or equal|or above|anything bigger", checks["at_least"])
    assert re.search(r"more than|> |higher than|strictly|above|bigger than", checks["more_than"])
    assert not re.search(r"at least|>=|or higher|or equal|or above|anything bigger", checks["more_than"])
    counts = {
        clause(Count(scope="/a", recursive=recursive, text="t", destination="/d"), words) for recursive in (True, False)
    }
    assert len(counts) == 2
    edits = {clause(Edit(path="/a", section=section, key="k", value="v"), words) for section in (None, "part", "other")}
    assert len(edits) == 3
    for text in checks.values():
        assert text.index("/x.md") < text.index("/y.md")


def test_lines_keep_their_order_in_every_wording() -> None:
    goal = Create(path="/a.md", lines=("zulu", "alpha", "mike"))
    for words in PHRASINGS.values():
        text = clause(goal, words)
        assert text.index('"zulu"') < text.index('"alpha"') < text.index('"mike"')
        assert "order" in text or "first to last" in text or "top to bottom" in text


def test_wordings_really_differ() -> None:
    for seed in range(6):
        task = instance("hard", seed)
        texts = {name: FAMILY.prompt(task, name) for name in FAMILY.phrasings}
        for one, other in combinations(texts, 2):
            left, right = (re.findall(r"\w+", texts[name].lower()) for name in (one, other))
            assert difflib.SequenceMatcher(None, left, right, autojunk=False).ratio() < 0.75, (one, other)


def test_tools_are_named_by_placeholders_alone() -> None:
    names = [spec.name for spec in FAMILY.tools() if "_" in spec.name]
    for phrasing in FAMILY.phrasings:
        for level in ("easy", "hard"):
            text = FAMILY.prompt(instance(level, 2), phrasing)
            assert re.findall(r"\{[^}]*\}", text) == ["{tool:submit}"]
            assert not [name for name in names if name in text]


def test_no_wording_leaves_punctuation_next_to_bare_data() -> None:
    for level in ("easy", "medium", "hard"):
        for seed in range(15):
            for phrasing in FAMILY.phrasings:
                text = FAMILY.prompt(instance(level, seed), phrasing)
                assert text.count("`") % 2 == 0
                assert text.count('"') % 2 == 0
                outside = re.sub(r"`[^`]*`|\"[^\"]*\"", "", text)
                assert not re.search(r"/\w", outside)


def test_the_wording_comes_from_the_spec_alone() -> None:
    task = instance("hard", 4)
    bare = task.model_copy(update={"world": {}, "truth": {}, "seed": 0, "params": {}})
    for phrasing in FAMILY.phrasings:
        assert FAMILY.prompt(bare, phrasing) == FAMILY.prompt(task, phrasing)


def test_an_unknown_wording_is_refused() -> None:
    with pytest.raises(UnknownName, match="known: base, p1, p2, p3, p4, p5"):
        prompt(Spec(goals=goals(instance("easy", 0))), "p9")
    assert tuple(PHRASINGS) == FAMILY.phrasings


def test_easy_prompts_are_short() -> None:
    assert max(len(FAMILY.prompt(instance("easy", seed), "base")) for seed in range(60)) < 700


QUOTED = r"[^`\"\[\]]+"
"""Texts, paths, keys and values: none holds a quote or a bracket."""
LISTED = r".+"
"""What is taken apart by itself."""


def any_of(*templates: str) -> str:
    """The pattern of whatever one of the templates makes."""
    return "|".join(
        "".join(QUOTED if odd % 2 else re.escape(part) for odd, part in enumerate(parts))
        for parts in (re.split(r"\{(\w+)\}", template) for template in templates)
    )


def matched(template: str, text: str, words: Phrasing) -> dict[str, str] | None:
    """What stands in the slots of a template that made the whole `text`."""
    slots = {
        **dict.fromkeys(re.findall(r"\{(\w+)\}", template), QUOTED),
        **dict.fromkeys(("lines", "then", "otherwise", "goal", "goals"), LISTED),
        **dict.fromkeys(("count", "number"), r"\d+"),
        "setting": any_of(words.sectioned, words.setting),
        "where": any_of(words.file, words.folder),
        "check": any_of(*words.checks.values()),
    }
    match = pattern(template, slots).fullmatch(text)
    return match.groupdict() if match else None


def read_setting(text: str, words: Phrasing) -> dict[str, str | None]:
    found = matched(words.sectioned, text, words) or matched(words.setting, text, words)
    assert found is not None, text
    return {"section": found.get("section"), "key": found["key"]}


def read_lines(text: str, words: Phrasing) -> list[str]:
    several = matched(words.many_lines, text, words)
    listed = several or matched(words.one_line, text, words)
    assert listed is not None, text
    lines = listed["lines"].removeprefix('"').removesuffix('"').split(f'"{words.joiner}"')
    assert len(lines) == int(several["count"] if several else 1)
    return lines


def read_clause(text: str, words: Phrasing) -> list[Goal]:
    """Every goal that the clause can be read as."""
    goals: list[Goal] = []
    for kind, template in words.clauses.items():
        found: dict[str, Any] | None = matched(template, text, words)
        if found is None:
            continue
        if kind == "create":
            found["lines"] = read_lines(found["lines"], words)
        if kind == "edit":
            found |= read_setting(found.pop("setting"), words)
        if kind == "count":
            where = found.pop("where")
            folder = matched(words.folder, where, words)
            found |= {"recursive": folder is not None, **(folder or matched(words.file, where, words) or {})}
        if kind == "conditional":
            [(operator, value)] = [
                (operator, each["value"])
                for operator, template in words.checks.items()
                if (each := matched(template, found["check"], words)) is not None
            ]
            [then], [otherwise] = (read_clause(found[branch], words) for branch in ("then", "otherwise"))
            check = {
                "path": found["path"],
                "operator": operator,
                "value": value,
                **read_setting(found["setting"], words),
            }
            found = {"check": check, "then": then.model_dump(), "otherwise": otherwise.model_dump()}
        goals += Spec.model_validate({"goals": [{"kind": kind, **found}]}).goals
    return goals


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_the_goals_can_be_read_back_from_every_wording(phrasing: str) -> None:
    words = PHRASINGS[phrasing]
    kinds: set[str] = set()
    for level in ("easy", "medium", "hard"):
        for seed in range(25):
            for goal in goals(instance(level, seed)):
                text = clause(goal, words)
                assert read_clause(text, words) == [goal], text
                kinds.add(goal.kind)
    assert kinds == set(words.clauses)


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_the_list_of_goals_can_be_read_back_from_every_wording(phrasing: str) -> None:
    words = PHRASINGS[phrasing]
    for level in ("easy", "medium", "hard"):
        for seed in range(15):
            task = instance(level, seed)
            text = FAMILY.prompt(task, phrasing)
            frame = words.many if len(goals(task)) > 1 else words.one
            found = matched(frame, text, words)
            assert found is not None
            items = [found["goals"]]
            if frame is words.many:
                read = [matched(words.item, line, words) for line in found["goals"].split("\n")]
                items = [each["goal"] for each in read if each is not None]
                numbers = [each.get("number") for each in read if each is not None]
                assert numbers in ([None] * len(items), [str(number) for number in range(1, len(items) + 1)])
            if phrasing == "base":
                items = [item[0].lower() + item[1:].removesuffix(".") for item in items]
            assert [read_clause(item, words) for item in items] == [[goal] for goal in goals(task)]
