"""Instance sets and variant sets: the same bytes for the same manifest, and never changed once written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows import sets
from flows.context import Study
from flows.errors import StoreError, StudyError
from flows.grid import instance_set_key, instance_set_keys
from flows.sets import cell_instances, derive_variants, load_instances, materialize_instances, materialize_variants
from tasks_env import GenerationError, Session, family, play
from tests.flows.small_study import open_study, prepare, reopened, tree_bytes


def materialize_all_instances(study: Study) -> list[bool]:
    return [
        materialize_instances(study.store, study.manifest, k) for k in instance_set_keys(study.manifest, study.cells)
    ]


def test_sets_are_written_once(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    assert materialize_all_instances(study) == [True, True]
    assert [materialize_variants(study.store, study.manifest, cell) for cell in study.cells] == [True] * 5
    before = tree_bytes(tmp_path)
    assert materialize_all_instances(study) == [False, False]
    assert [materialize_variants(study.store, study.manifest, cell) for cell in study.cells] == [False] * 5
    assert tree_bytes(tmp_path) == before


def test_same_manifest_gives_the_same_bytes_elsewhere(tmp_path: Path) -> None:
    trees = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        study = open_study(tmp_path / name)
        prepare(study)
        trees.append(tree_bytes(tmp_path / name / "data"))
    assert trees[0] == trees[1]
    assert trees[0]


def test_perturb_leaves_the_instances_as_they_are(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    materialize_all_instances(study)
    before = tree_bytes(study.store.data / "instances")
    stamps = {path: path.stat().st_mtime_ns for path in (study.store.data / "instances").rglob("*")}
    for cell in study.cells:
        materialize_variants(study.store, study.manifest, cell)
    assert tree_bytes(study.store.data / "instances") == before
    assert {path: path.stat().st_mtime_ns for path in (study.store.data / "instances").rglob("*")} == stamps


def test_perturb_without_instances_says_which_are_missing(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    with pytest.raises(StoreError, match="does not exist or was not finished"):
        materialize_variants(study.store, study.manifest, study.cells[0])


def test_perturb_refuses_edited_instances_and_marks_nothing(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    materialize_all_instances(study)
    cell = study.cells[0]
    path = study.store.instance_set(cell_instances(study.manifest, cell).name) / "instances.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"truth"', b'"Truth"', 1))
    with pytest.raises(StoreError, match="was edited") as caught:
        materialize_variants(study.store, study.manifest, cell)
    assert caught.value.path == path
    assert not study.has_variants(cell)


@pytest.mark.parametrize(
    "changes", [{"grid/instances": 3}, {"families/query/easy/rows": 9}, {"seed": 8}], ids=lambda c: next(iter(c))
)
def test_another_set_gets_a_folder_of_its_own(tmp_path: Path, changes: dict[str, Any]) -> None:
    prepare(open_study(tmp_path))
    before = tree_bytes(tmp_path / "data")
    prepare(open_study(tmp_path, changes))
    after = tree_bytes(tmp_path / "data")
    assert {name: after[name] for name in before} == before
    assert markers(after) == 2 * markers(before)


def markers(tree: dict[str, bytes]) -> int:
    return sum(name.endswith("/_COMPLETE") for name in tree)


def test_growing_a_set_only_appends(tmp_path: Path) -> None:
    small = open_study(tmp_path)
    prepare(small)
    large = open_study(tmp_path, {"grid/instances": 4})
    prepare(large)
    fewer = [variant.instance_id for variant in small.variants(small.cells[0])]
    more = [variant.instance_id for variant in large.variants(large.cells[0])]
    assert more[: len(fewer)] == fewer


def test_every_instance_keeps_its_truth_and_every_variant_says_where_it_comes_from(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    prepare(study)
    for cell in study.cells:
        instances = study.instances(cell)
        for variant in study.variants(cell):
            assert (variant.axis, variant.level) == (cell.axis, cell.level)
            instance = instances[variant.instance_id]
            assert instance.truth
            session = Session(instance, variant)
            play(session, family(instance.family).reference(instance))
            assert session.verdict().passed


def test_variants_read_back_are_those_that_are_derived(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    prepare(study)
    for cell in study.cells:
        instances = load_instances(study.store, cell_instances(study.manifest, cell))
        assert study.variants(cell) == derive_variants(study.manifest, cell, instances)
        assert reopened(study).variants(cell) == study.variants(cell)


def test_failed_generation_names_family_difficulty_and_sample_and_marks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0

    def generate(*_arguments: object, **_options: object) -> None:
        nonlocal made
        made += 1
        raise GenerationError("no acceptable instance for seed 3")

    monkeypatch.setattr(sets, "generate_instance", generate)
    study = open_study(tmp_path)
    key = instance_set_key(study.manifest, "query", "easy", "s1")
    with pytest.raises(StudyError, match="family 'query', difficulty 'easy', sample 's1' failed: no acceptable"):
        materialize_instances(study.store, study.manifest, key)
    assert made == 1
    assert not study.store.has_set(study.store.instance_set(key.name))


def test_two_instances_that_are_one_task_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be one episode where the plan counts two."""
    monkeypatch.setattr(sets, "instance_seeds", lambda *_arguments: [5, 6, 5])
    study = open_study(tmp_path)
    key = instance_set_key(study.manifest, "query", "easy", "base")
    with pytest.raises(StudyError, match="instances 1 and 3 of 2 are the same task"):
        materialize_instances(study.store, study.manifest, key)
    assert not study.store.has_set(study.store.instance_set(key.name))
