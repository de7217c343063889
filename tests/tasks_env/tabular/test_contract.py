"""The contract of the family: determinism, proofs of passing and failing, an independent second solver."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tasks_env import Session, family, generate_instance, perturbation, play, render
from tasks_env.canonical import canonical_json, content_hash
from tasks_env.families.tabular import second_solver
from tasks_env.families.tabular.second_solver import solve
from tasks_env.types import Content, Instance, Presentation, ToolCall, Verdict

from .levels import EASY, LEVELS, instance

SEEDS = range(6)
CASES = [(level, seed) for level in LEVELS for seed in SEEDS]
TABULAR = family("tabular")


def verdict_of(chosen: Instance, plan: tuple[ToolCall, ...], shown: Presentation | None = None) -> Verdict:
    session = Session(chosen, render(chosen, shown))
    results = play(session, plan)
    assert not [result.content for result in results if result.is_error]
    return session.verdict()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_task() -> None:
    first, again = instance("hard", 1), instance("hard", 1)
    assert canonical_json(first.model_dump(mode="json")) == canonical_json(again.model_dump(mode="json"))
    assert len({instance("easy", seed).instance_id for seed in range(50)}) == 50


def test_bytes_do_not_depend_on_hash_seed_locale_or_time_zone() -> None:
    code = (
        "from tasks_env.canonical import content_hash\n"
        "from tests.tasks_env.tabular.test_contract import digest\n"
        "print(digest())"
    )
    digests = set()
    for hash_seed, locale, zone in (("1", "C", "UTC"), ("77", "tr_TR.UTF-8", "Asia/Kathmandu")):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "LC_ALL": locale, "LANG": locale, "TZ": zone}
        root = Path(__file__).parents[3]
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout.strip())
    assert digests == {digest()}


def digest() -> str:
    """A hash over instances, wordings, plans and mistakes of every level."""
    parts = []
    for level in LEVELS:
        chosen = instance(level, 3)
        plans = (TABULAR.reference(chosen), TABULAR.mistake(chosen, random.Random(5)))
        parts.append(
            [
                chosen.model_dump(mode="json"),
                [TABULAR.prompt(chosen, phrasing) for phrasing in TABULAR.phrasings],
                [[call.model_dump(mode="json") for call in plan] for plan in plans],
            ]
        )
    return content_hash(parts)


@pytest.mark.parametrize(("level", "seed"), CASES)
def test_the_reference_passes_with_a_full_score(level: str, seed: int) -> None:
    chosen = instance(level, seed)
    verdict = verdict_of(chosen, TABULAR.reference(chosen))
    assert verdict.passed
    assert verdict.partial_score == 1.0
    assert all(condition.holds for condition in verdict.conditions)
    assert verdict.conditions[-1].detail == "exact_bytes=true"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("axis_level", ["synonyms", "opaque"])
def test_the_reference_passes_under_renamed_tools(level: str, axis_level: str) -> None:
    chosen = instance(level, 11)
    [shown] = perturbation("tool_names").present([chosen], axis_level, seed=4)
    assert verdict_of(chosen, TABULAR.reference(chosen), shown).passed


@pytest.mark.parametrize("level", LEVELS)
def test_the_reference_looks_around_and_closes(level: str) -> None:
    plan = TABULAR.reference(instance(level, 2))
    assert plan[0].name == "list_tables"
    assert plan[1].name == "preview_table"
    assert [call.name == TABULAR.closing_tool for call in plan] == [False] * (len(plan) - 1) + [True]
    assert 3 <= len(plan) <= 14


def test_an_easy_task_takes_at_most_six_calls_and_the_demonstration_two_operations() -> None:
    assert max(len(TABULAR.reference(instance("easy", seed))) for seed in range(40)) <= 6
    smallest = generate_instance("tabular", TABULAR.demonstration, 1)
    assert [call.name for call in TABULAR.reference(smallest)] == [
        "list_tables",
        "preview_table",
        "filter_rows",
        "submit",
    ]


@pytest.mark.parametrize(("level", "seed"), CASES)
def test_doing_nothing_and_submitting_an_input_fail(level: str, seed: int) -> None:
    chosen = instance(level, seed)
    idle = verdict_of(chosen, ())
    assert not idle.passed
    assert idle.partial_score == 0.0
    for table in chosen.spec["tables"]:  # type: ignore[union-attr]
        plan = (ToolCall(name="submit", arguments={"table": table["name"]}),)  # type: ignore[index,call-overload]
        assert not verdict_of(chosen, plan).passed


@pytest.mark.parametrize(("level", "seed"), CASES)
def test_mistakes_are_carried_out_without_errors_and_fail(level: str, seed: int) -> None:
    chosen = instance(level, seed)
    for draw in range(8):
        verdict = verdict_of(chosen, TABULAR.mistake(chosen, random.Random(draw)))
        assert not verdict.passed
        assert verdict.partial_score < 1.0


def test_mistakes_are_of_several_kinds() -> None:
    chosen = instance("hard", 1)
    reference = TABULAR.reference(chosen)
    plans = [TABULAR.mistake(chosen, random.Random(draw)) for draw in range(60)]
    assert any(call.name == "write_table" for plan in plans for call in plan)
    assert any(len(plan) == len(reference) - 1 for plan in plans)
    assert any(len(plan) == len(reference) and plan[-1] == reference[-1] for plan in plans)
    assert len({content_hash([call.model_dump(mode="json") for call in plan]) for plan in plans}) >= 8


@pytest.mark.parametrize("level", LEVELS)
def test_the_identity_presentation_gives_the_baselines_bytes(level: str) -> None:
    chosen = instance(level, 8)
    assert render(chosen) == render(chosen, Presentation())
    assert render(chosen).model_dump_json() == render(chosen, Presentation()).model_dump_json()


@pytest.mark.parametrize("level", LEVELS)
def test_the_second_solver_agrees(level: str) -> None:
    for seed in range(60):
        chosen = instance(level, seed)
        assert solve(chosen.spec, chosen.world) == chosen.truth["csv"], f"{level}, seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_the_second_solver_agrees_over_many_seeds(level: str) -> None:
    for seed in range(1000, 1100):
        chosen = instance(level, seed)
        assert solve(chosen.spec, chosen.world) == chosen.truth["csv"], f"{level}, seed {seed}"


def test_the_second_solver_shares_no_code_with_the_family() -> None:
    tree = ast.parse(Path(second_solver.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {str(name).split(".")[0] for name in imported} <= sys.stdlib_module_names
    assert "decimal" not in imported


@pytest.mark.parametrize("level", LEVELS)
def test_an_instance_is_what_validation_would_make_of_it(level: str) -> None:
    chosen = instance(level, 4)
    content = TABULAR.generate(LEVELS[level], 4)
    assert Content.model_validate(content.model_dump()) == content
    assert Instance.model_validate(chosen.model_dump()) == chosen
    assert Instance.model_validate_json(chosen.model_dump_json()) == chosen
    assert Instance.model_validate(chosen.model_dump()).model_dump_json() == chosen.model_dump_json()
    assert (content.spec, content.world, content.truth) == (chosen.spec, chosen.world, chosen.truth)


def test_the_stored_parts_are_json_and_small() -> None:
    sizes = [len(canonical_json(generate_instance("tabular", EASY, seed).model_dump())) for seed in range(20)]
    assert max(sizes) < 2500
