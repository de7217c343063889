"""Parameters, the shape of what is generated, and what generation refuses."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tasks_env import GenerationError, ParameterError, generate_instance
from tasks_env.families.query.params import QueryParams
from tasks_env.families.query.themes import THEMES
from tests.tasks_env.query.levels import EASY, FAMILY, HARD, KINDS, a_mix, made


@pytest.mark.parametrize(
    ("change", "parameter", "message"),
    [
        ({"tables": 0}, "tables", "greater than or equal to 1"),
        ({"tables": 5}, "tables", "less than or equal to 4"),
        ({"rows": 3}, "rows", "greater than or equal to 8"),
        ({"rows": 201}, "rows", "less than or equal to 200"),
        ({"rows": 16.5}, "rows", "valid integer"),
        ({"min_hops": -1}, "min_hops", "greater than or equal to 0"),
        ({"max_hops": 4}, "max_hops", "less than or equal to 3"),
        ({"predicates": 0}, "predicates", "greater than or equal to 1"),
        ({"predicates": 4}, "predicates", "less than or equal to 3"),
        ({"null_share": -0.1}, "null_share", "greater than or equal to 0"),
        ({"null_share": float("nan")}, "null_share", "less than or equal to 0.4, got nan"),
        ({"null_share": 0.9}, "null_share", "less than or equal to 0.4"),
        ({"questions": ("riddle",)}, "questions.0", "Input should be"),
        ({"questions": ()}, "questions", "at least 1"),
        ({"questions": ("count", "count")}, "(all)", "repeats"),
        ({"min_hops": 1}, "(all)", "larger than max_hops"),
        ({"max_hops": 2}, "(all)", "smaller than tables"),
        ({"tables": 3, "max_hops": 2}, "(all)", "at least 2 predicates"),
        ({"questions": ("absent",)}, "(all)", "min_hops of at least 1"),
        ({"size": 3}, "size", "not permitted"),
    ],
)
def test_invalid_parameters_are_refused_by_name(change: dict[str, Any], parameter: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        generate_instance("query", {**EASY.model_dump(), **change}, 1)
    assert caught.value.parameter == parameter


def test_every_parameter_is_required_and_described() -> None:
    for name, field in QueryParams.model_fields.items():
        assert field.is_required(), name
        assert field.description, name


def test_kinds_and_hops_are_drawn_equally_whatever_is_rejected() -> None:
    kinds = Counter(made("hard", seed).spec["kind"] for seed in range(60))
    assert set(kinds) == set(HARD.questions)
    assert min(kinds.values()) >= 3


def test_every_theme_occurs() -> None:
    assert {made("easy", seed).spec["theme"] for seed in range(60)} == set(THEMES)


def test_sizes_hops_and_conditions_are_those_of_the_parameters() -> None:
    for instance in a_mix(10):
        params = QueryParams.model_validate(instance.params)
        tables: Any = instance.world["tables"]
        assert len(tables) == params.tables
        assert max(len(table["rows"]) for table in tables) == params.rows
        assert len(instance.spec["predicates"]) == params.predicates
        refs = [predicate["ref"] for predicate in instance.spec["predicates"]]
        refs += [instance.spec[name] for name in ("column", "measure") if instance.spec.get(name)]
        hops = {tuple(ref["path"][:n]) for ref in refs for n in range(1, len(ref.get("path", [])) + 1)}
        assert params.min_hops <= len(hops) <= params.max_hops


def test_foreign_keys_lead_to_rows_and_names_are_unique() -> None:
    for instance in a_mix(10):
        tables: Any = {table["name"]: table for table in instance.world["tables"]}
        for table in tables.values():
            for place, column in enumerate(table["columns"]):
                values = [row[place] for row in table["rows"]]
                assert column.get("nullable") or None not in values
                if "references" in column:
                    ids = {row[0] for row in tables[column["references"]]["rows"]}
                    assert {value for value in values if value is not None} <= ids
                if column.get("key") or column["name"] in ("name", "title"):
                    assert len(set(values)) == len(values)


def test_words_of_the_themes_are_plain() -> None:
    for theme in THEMES.values():
        for table in theme.tables:
            words = [table.name, table.singular, theme.scene, *table.names[0], *table.names[1]]
            for column in table.columns:
                words += [column.name, *column.values]
            for word in words:
                assert word.isascii()
                assert word.replace("_", "").replace(" ", "").isalpha()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("predicates", [1, 2, 3])
def test_every_kind_can_be_generated_with_one_to_three_conditions(kind: Any, predicates: int) -> None:
    params = QueryParams(
        tables=3, rows=40, min_hops=1, max_hops=1, predicates=predicates, null_share=0, questions=(kind,)
    )
    assert len(generate_instance("query", params, 5).spec["predicates"]) == predicates


def test_impossible_questions_are_a_generation_error_that_says_which() -> None:
    params = QueryParams(tables=1, rows=8, min_hops=0, max_hops=0, predicates=3, null_share=0, questions=("top",))
    with pytest.raises(GenerationError, match="kind 'top' with 0 hops for seed 1"):
        generate_instance("query", params, 1)


def test_hundreds_of_seeds_of_each_level_find_a_question() -> None:
    for seed in range(1000, 1200):
        FAMILY.generate(EASY, seed)
    for seed in range(1000, 1050):
        FAMILY.generate(HARD, seed)
