"""Generated tasks: shape, independence of goals, one reading, and agreement with the second solver."""

from __future__ import annotations

import ast
import inspect
import unicodedata
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from tasks_env.canonical import canonical_json
from tasks_env.errors import GenerationError, ParameterError
from tasks_env.families.filesys import FilesysParams, generator, second_solver
from tasks_env.families.filesys.effects import effects, interfere
from tasks_env.families.filesys.goals import Append, Conditional, Create, Delete
from tasks_env.families.filesys.paths import normal_path
from tasks_env.families.filesys.readings import ambiguous
from tasks_env.generation import validated_params
from tasks_env.seeding import derive
from tests.tasks_env.filesys.levels import FAMILY, LEVELS, expected, goals, instance, start
from tests.tasks_env.filesys.test_contract import CASES


def test_trees_have_the_files_and_the_depth_that_were_asked_for() -> None:
    reached: Counter[str] = Counter()
    for level, seed in CASES:
        files = start(instance(level, seed))
        assert len(files) == LEVELS[level].files
        assert list(files) == sorted(files)
        deepest = max(path.count("/") - 1 for path in files)
        assert deepest <= LEVELS[level].depth
        reached[level] += deepest == LEVELS[level].depth
    assert reached["hard"] >= 25
    assert reached["easy"] >= 55


def test_goals_have_the_kinds_that_were_asked_for() -> None:
    searching = {"count", "count_rows", "collect", "find", "purge"}
    for level, seed in CASES:
        kinds: Counter[str] = Counter(goal.kind for goal in goals(instance(level, seed)))
        assert sum(kinds.values()) == LEVELS[level].goals
        assert kinds["conditional"] == LEVELS[level].conditionals
        assert sum(map(kinds.__getitem__, searching)) == LEVELS[level].searches


def test_every_kind_every_operator_and_both_branches_come_up() -> None:
    seen: Counter[str] = Counter()
    for level, seed in CASES:
        task = instance(level, seed)
        for goal in goals(task):
            seen[goal.kind] += 1
            if isinstance(goal, Conditional):
                seen[goal.check.operator] += 1
                taken = effects(goal, start(task)) == effects(goal.then, start(task))
                seen["then" if taken else "otherwise"] += 1
    kinds = {"create", "move", "delete", "edit", "append", "count", "count_rows", "collect", "find", "purge"}
    assert kinds | {"is", "at_least", "more_than", "then", "otherwise"} <= {key for key, n in seen.items() if n >= 4}


def test_the_second_solver_agrees_whatever_the_order_of_the_goals() -> None:
    for level, seed in CASES:
        task = instance(level, seed)
        if seed < 15:
            backwards = list(reversed(range(len(goals(task)))))
            order = backwards if seed % 2 and len(backwards) > 1 else None
            assert second_solver.solve(task.spec, start(task), order) == expected(task)


def test_the_second_solver_shares_no_code_with_the_package() -> None:
    parsed = ast.parse(inspect.getsource(second_solver))
    imported = {
        name.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(parsed)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert not [name for name in imported if name.startswith(("tasks_env", "flows", "."))]


def test_goals_do_not_interfere() -> None:
    for level, seed in CASES:
        task = instance(level, seed)
        assert not interfere(goals(task), start(task))


@pytest.mark.parametrize("depth", [1, 2, 6])
def test_many_marked_files_find_names_that_sort_in_one_way(depth: int) -> None:
    params = FilesysParams(files=40, depth=depth, goals=3, searches=3, conditionals=0, matches=8, decoys=1)
    for seed in range(40):
        goals, files = generator._candidate(params, derive(seed, "names"))
        assert [ambiguous(goal, files) for goal in goals] == [None] * 3


def test_interference_is_noticed() -> None:
    files = {"/a/x.md": "one\n", "/a/y.md": "two\n"}
    twice = (Append(path="/a/x.md", line="three"), Delete(path="/a/x.md"))
    assert interfere(twice, files)
    apart = (Append(path="/a/x.md", line="three"), Delete(path="/a/y.md"), Create(path="/b.md", lines=("1",)))
    assert not interfere(apart, files)


def test_paths_are_in_normal_form_and_texts_hold_nothing_that_a_name_could_replace() -> None:
    for level, seed in CASES:
        task = instance(level, seed)
        for path, text in {**start(task), **expected(task)}.items():
            assert normal_path(path, "path") == path
            assert text.endswith("\n")
            assert not text.endswith("\n\n")
            assert unicodedata.is_normalized("NFC", text)
            assert "\r" not in text
            assert all(line == line.strip() and line for line in text[:-1].split("\n"))
        content = canonical_json([task.spec, task.world])
        assert not [bad for bad in ("{", "`") if any(bad in text for text in start(task).values())]
        assert "{tool" not in content
        assert "{arg" not in content


def test_instances_stay_small() -> None:
    assert max(len(instance("easy", seed).model_dump_json()) for seed in range(60)) < 6_000
    assert max(len(instance("hard", seed).model_dump_json()) for seed in range(30)) < 16_000


def test_decoys_resemble_without_being_meant() -> None:
    for seed in range(60):
        task = instance("easy", seed)
        touched = {path for goal in goals(task) for path in effects(goal, start(task))}
        names = [path.rsplit("/", 1)[1].split(".")[0] for path in start(task) if path not in touched]
        stems = {path.rsplit("/", 1)[1].split(".")[0] for path in touched}
        assert any(name.startswith(stem) or stem.endswith(name) for name in names for stem in stems)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"files": 0}, "greater than or equal to 1"),
        ({"depth": 9}, "less than or equal to 6"),
        ({"searches": 3, "files": 60}, "exceed goals"),
        ({"files": 6}, r"files \(6\) must be at least 7"),
        ({"colour": 1}, "Extra inputs"),
        ({"goals": True}, "valid integer"),
        ({"matches": "2"}, "valid integer"),
        ({"decoys": 1.0}, "valid integer"),
        ({"files": None}, "valid integer"),
    ],
)
def test_invalid_parameters_are_refused_with_a_reason(change: dict[str, Any], message: str) -> None:
    valid = LEVELS["medium"].model_dump()
    with pytest.raises(ValidationError, match=message):
        FilesysParams(**{**valid, **change})
    with pytest.raises(ParameterError, match="family 'filesys'") as refused:
        validated_params("filesys", {**valid, **change})
    assert refused.value.parameter == (next(iter(change)) if len(change) == 1 and "must be" not in message else "(all)")


@pytest.mark.parametrize("name", FilesysParams.model_fields)
def test_every_parameter_is_refused_beyond_either_bound_and_when_missing(name: str) -> None:
    valid = LEVELS["largest"].model_dump()
    low, high = (
        next(getattr(m, at) for m in FilesysParams.model_fields[name].metadata if hasattr(m, at)) for at in ("ge", "le")
    )
    for value, message in ((low - 1, f"greater than or equal to {low}"), (high + 1, f"less than or equal to {high}")):
        with pytest.raises(ParameterError, match=f"parameter '{name}': .*{message}, got {value}"):
            validated_params("filesys", {**valid, name: value})
    with pytest.raises(ParameterError, match=f"parameter '{name}': Field required"):
        validated_params("filesys", {other: value for other, value in valid.items() if other != name})


def test_every_parameter_is_required_bounded_and_described() -> None:
    for name, field in FilesysParams.model_fields.items():
        assert field.is_required(), name
        assert field.description, name
        assert len(field.metadata) == 2, name


def test_generation_gives_up_after_a_bounded_number_of_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "ambiguous", lambda goal, files: f"{goal.kind} in {len(files)} files: unclear")
    with pytest.raises(GenerationError, match=r"within 50 tries for seed 7; the last one: .* unclear"):
        FAMILY.generate(LEVELS["easy"], 7)


def test_goals_that_interfere_are_never_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([True, True, False])
    monkeypatch.setattr(generator, "interfere", lambda *_: next(answers))
    content = FAMILY.generate(LEVELS["hard"], 7)
    monkeypatch.undo()
    assert list(answers) == []
    assert content.spec != FAMILY.generate(LEVELS["hard"], 7).spec
