"""Every phrasing carries every parameter of the spec, says nothing else, and changes when a parameter does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from string import Template
from typing import Any, get_args

import pytest

from tasks_env import UnknownName, family
from tasks_env.families.tabular.evaluate import working_columns
from tasks_env.families.tabular.operations import VALUE_COUNTS
from tasks_env.families.tabular.readings import careless_readings, decisive_readings
from tasks_env.families.tabular.spec import Comparison, Direction, Function, JoinKind, Operator, Spec
from tasks_env.families.tabular.table import Kind
from tasks_env.families.tabular.voices import VOICES, Voice
from tasks_env.families.tabular.wording import _condition, instruction
from tests.tasks_env.perturbations.recovery import pattern

from .handmade import handmade
from .levels import LEVELS, instance

PHRASINGS = family("tabular").phrasings


def specs() -> Iterator[Spec]:
    for level in LEVELS:
        for seed in range(15):
            yield Spec.model_validate(instance(level, seed).spec)


SPECS = list(specs())


def decimals(count: int) -> str:
    return "1 decimal" if count == 1 else f"{count} decimals"


def parameters(spec: Spec) -> list[str]:
    """Every name and value that an instruction has to carry, as it is written in the wording."""
    kinds = {column.name: column.kind for table in spec.tables for column in table.columns}
    found = [table.name for table in spec.tables]
    found += [join.column for join in spec.joins]
    if spec.derive:
        found += [spec.derive.column, spec.derive.left, spec.derive.right, decimals(spec.derive.decimals)]
    for condition in spec.filters:
        found.append(condition.column)
        text = kinds.get(condition.column) == "text"
        found += [f'"{value}"' if text else value for value in condition.values]
    if spec.aggregate:
        found += spec.aggregate.by
        for measure in spec.aggregate.measures:
            found += [measure.column, measure.of]
            if measure.function == "mean":
                found.append(decimals(spec.aggregate.decimals))
    found += [key.column for key in spec.sort]
    if spec.limit is not None:
        found.append(str(spec.limit))
    found.append(", ".join(spec.columns))
    return [text for text in found if text]


def stands_in(text: str, prompt: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(text)}(?![\w]|\.\d)", prompt) is not None


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_each_phrasing_carries_every_parameter(phrasing: str) -> None:
    for spec in SPECS:
        prompt = instruction(spec, VOICES[phrasing])
        missing = [text for text in parameters(spec) if not stands_in(text, prompt)]
        assert not missing, f"{missing} not in:\n{prompt}"
        assert "{tool:submit}" in prompt
        assert "{arg:table}" in prompt


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_each_phrasing_says_nothing_about_columns_and_values_that_play_no_part(phrasing: str) -> None:
    for spec in SPECS:
        prompt = instruction(spec, VOICES[phrasing])
        wanted = set(" ".join(parameters(spec)).replace('"', "").replace(",", "").split())
        idle = {c.name for table in spec.tables for c in table.columns if "_" in c.name} - wanted
        assert not [name for name in idle if stands_in(name, prompt)]
        numbers = set(re.findall(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-]|\.\d)", re.sub(r"(?m)^\d+\. ", "", prompt)))
        assert numbers <= wanted


def takes(condition: Comparison, values: int) -> bool:
    least, most = VALUE_COUNTS[condition]
    return least <= values and (most is None or values <= most)


def neighbours(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """Specs that differ from `spec` in one choice of meaning."""
    yield from decisive_readings(spec)
    yield from careless_readings(spec)
    data: dict[str, Any] = spec.model_dump()
    for position, condition in enumerate(spec.filters):
        for other in get_args(Comparison):
            # With one value, being in a set and being equal are the same.
            same = {condition.condition, other} in ({"in", "equals"}, {"not_in", "not_equals"})
            if other != condition.condition and takes(other, len(condition.values)) and not same:
                filters = [dict(item) for item in data["filters"]]
                filters[position]["condition"] = other
                yield f"condition {other}", Spec.model_validate({**data, "filters": filters})
    if spec.derive:
        for operator in get_args(Operator):
            if operator != spec.derive.operator:
                derive = {**data["derive"], "operator": operator}
                yield f"operator {operator}", Spec.model_validate({**data, "derive": derive})
        swapped = {**data["derive"], "left": spec.derive.right, "right": spec.derive.left}
        yield "operands", Spec.model_validate({**data, "derive": swapped})
        digits = {**data["derive"], "decimals": spec.derive.decimals + 1}
        yield "decimals", Spec.model_validate({**data, "derive": digits})
    if spec.aggregate and any(measure.function == "mean" for measure in spec.aggregate.measures):
        aggregate = {**data["aggregate"], "decimals": spec.aggregate.decimals + 1}
        yield "decimals of means", Spec.model_validate({**data, "aggregate": aggregate})
    for position, key in enumerate(spec.sort):
        order = "descending" if key.order == "ascending" else "ascending"
        sort = [dict(item) for item in data["sort"]]
        sort[position]["order"] = order
        yield f"order of key {position}", Spec.model_validate({**data, "sort": sort})


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_a_neighbouring_spec_is_worded_differently(phrasing: str) -> None:
    for spec in [*SPECS[::3], Spec.model_validate(handmade().spec)]:
        prompt = instruction(spec, VOICES[phrasing])
        for name, other in neighbours(spec):
            assert instruction(other, VOICES[phrasing]) != prompt, name


@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_empty_cells_are_spoken_of_exactly_where_they_can_matter(phrasing: str) -> None:
    voice = VOICES[phrasing]
    filtered = Template(voice.empty_filtered).substitute(columns="tip")
    spec = Spec.model_validate(
        {
            "tables": [
                {
                    "name": "deliveries",
                    "columns": [
                        {"name": "delivery_id", "kind": "text"},
                        {"name": "tip", "kind": "number", "decimals": 2, "optional": True},
                    ],
                }
            ],
            "filters": [{"column": "tip", "condition": "at_most", "values": ["2.50"]}],
            "columns": ["delivery_id", "tip"],
        }
    )
    assert filtered in instruction(spec, voice)
    sure = spec.model_dump()
    sure["tables"][0]["columns"][1]["optional"] = False
    assert filtered not in instruction(Spec.model_validate(sure), voice)
    repeated = spec.model_dump() | {"columns": ["tip"]}
    assert voice.repeated in instruction(Spec.model_validate(repeated), voice)
    assert voice.repeated not in instruction(spec, voice)


@pytest.mark.parametrize("voice", VOICES.values(), ids=VOICES)
def test_a_voice_has_words_for_everything_that_a_spec_can_say(voice: Voice) -> None:
    assert set(voice.conditions) == set(get_args(Comparison))
    assert set(voice.joins) == set(get_args(JoinKind))
    assert set(voice.operators) == set(get_args(Operator))
    assert set(voice.measures) == set(get_args(Function))
    assert set(voice.sort_keys) == {(kind, order) for kind in get_args(Kind) for order in get_args(Direction)}
    assert sorted(voice.layout) == sorted(VOICES["base"].layout)
    for words in (voice.conditions, voice.joins, voice.operators, voice.measures, voice.sort_keys):
        assert len(set(words.values())) == len(words)


def test_the_phrasings_are_really_different() -> None:
    spec = next(spec for spec in SPECS if spec.joins and spec.aggregate and spec.filters and spec.derive)
    prompts = {name: instruction(spec, voice) for name, voice in VOICES.items()}
    assert set(prompts) == set(PHRASINGS)
    words = {name: set(re.findall(r"[a-z]+", text.lower())) for name, text in prompts.items()}
    for first in words:
        for second in words:
            if first < second:
                shared = len(words[first] & words[second]) / len(words[first] | words[second])
                assert shared < 0.65, (first, second, shared)
    lengths = sorted(map(len, prompts.values()))
    assert lengths[-1] > 1.8 * lengths[0]
    assert len({voice.layout for voice in VOICES.values()}) >= 4


def test_an_easy_instruction_is_short() -> None:
    assert max(len(family("tabular").prompt(instance("easy", seed), "base")) for seed in range(40)) < 600


def test_an_unknown_phrasing_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="known: base, p1, p2, p3, p4, p5"):
        family("tabular").prompt(handmade(), "p6")


COLUMN = r"[a-z][a-z0-9_]*"
SLOTS = {
    **dict.fromkeys(("column", "left", "right", "of", "table", "source"), COLUMN),
    **dict.fromkeys(("value", "low", "high"), r'"[^"]*"|\d{4}-\d\d-\d\d|-?\d+(?:\.\d+)?'),
    "values": r'(?:"[^"]*"|-?\d+(?:\.\d+)?)(?:, (?:"[^"]*"|-?\d+(?:\.\d+)?))*',
    "decimals": r"\d decimals?",
}


def read(templates: Mapping[str, str], text: str) -> list[tuple[str, dict[str, str]]]:
    """Every template that could have made the text, with what stands in its slots."""
    braced = {name: template.replace("{", "{{").replace("}", "}}") for name, template in templates.items()}
    slotted = {name: re.sub(r"\$(\w+)", r"{\1}", template) for name, template in braced.items()}
    matches = [(name, pattern(template, SLOTS).fullmatch(text)) for name, template in slotted.items()]
    return [(name, match.groupdict()) for name, match in matches if match]


@pytest.mark.parametrize("voice", VOICES.values(), ids=VOICES)
def test_conditions_can_be_read_back_in_one_way(voice: Voice) -> None:
    seen: set[str] = set()
    for spec in SPECS:
        columns = {column.name: column for column in working_columns(spec)}
        equal = [each for each in spec.filters if each.condition == "equals"]
        # Too rare in generated tasks to be sure of meeting one.
        unequal = [each.model_copy(update={"condition": "not_equals"}) for each in equal]
        for condition in (*spec.filters, *unequal):
            column = columns[condition.column]
            templates = {**voice.conditions, **(voice.date_conditions if column.kind == "date" else {})}
            [(name, found)] = read(templates, _condition(condition, voice, column))
            assert name == condition.condition
            assert found.pop("column") == condition.column
            values = [value.strip('"') for each in found.values() for value in each.split(", ")]
            assert tuple(values) == condition.values
            seen.add(name)
    assert seen == set(get_args(Comparison))


@pytest.mark.parametrize("voice", VOICES.values(), ids=VOICES)
def test_formulas_measures_joins_and_sort_keys_can_be_read_back_in_one_way(voice: Voice) -> None:
    filled = {"column": "unit_price", "left": "hours", "right": "seats", "of": "tips"}
    filled |= {"table": "sites", "source": "shifts", "decimals": "2 decimals"}
    by_name: tuple[Mapping[Any, str], ...] = (voice.operators, voice.measures, voice.joins)
    for templates in by_name:
        for name, template in templates.items():
            [(only, found)] = read(templates, Template(template).substitute(filled))
            assert only == name
            assert found == {slot: filled[slot] for slot in found}
    for kind in get_args(Kind):
        orders = {order: voice.sort_keys[kind, order] for order in get_args(Direction)}
        for order, template in orders.items():
            assert read(orders, Template(template).substitute(filled)) == [(order, {"column": "unit_price"})]


@pytest.mark.parametrize("voice", VOICES.values(), ids=VOICES)
def test_one_empty_cell_of_several_columns_is_enough(voice: Voice) -> None:
    """Joined by commas, the columns read as if all of their cells had to be empty."""
    columns = [{"name": name, "kind": "number", "optional": True} for name in ("tip", "fee")]
    filters = [{"column": name, "condition": "at_most", "values": ("5",)} for name in ("tip", "fee")]
    tables = [{"name": "deliveries", "columns": columns}]
    spec = Spec.model_validate({"tables": tables, "filters": filters, "columns": ("tip",)})
    assert Template(voice.empty_filtered).substitute(columns="tip or fee") in instruction(spec, voice)
