"""A study opened from plain options, and what must be there before it can run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from flows.context import Options, Study
from flows.errors import ConfigurationError
from flows.readiness import check_models
from tests.flows.small_study import open_study, prepare, tree_bytes, write_manifest


def test_tree_lies_beside_the_manifest_wherever_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_manifest(tmp_path)
    monkeypatch.chdir("/")
    assert Study(Options(manifest=str(path))).store.root == tmp_path
    assert Study(Options(manifest=str(path), profile="more")).store.root == tmp_path / ".more"
    monkeypatch.chdir(tmp_path)
    assert Study(Options()).store.root == tmp_path


def test_opening_writes_nothing(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    assert study.provenance.manifest_hash
    assert study.work
    assert sorted(tree_bytes(tmp_path)) == ["experiments.yaml"]


def test_profiles_keep_apart(tmp_path: Path) -> None:
    path = write_manifest(tmp_path)
    prepare(Study(Options(manifest=str(path))))
    before = tree_bytes(tmp_path / "data")
    prepare(Study(Options(manifest=str(path), profile="more")))
    assert tree_bytes(tmp_path / "data") == before
    assert tree_bytes(tmp_path / ".more" / "data")


def test_options_are_plain_data_and_refuse_what_they_do_not_know() -> None:
    options = Options(profile="smoke", seed=3)
    assert Options.model_validate(json.loads(options.model_dump_json())) == options
    for bad in ({"sede": 3}, {"seed": -1}):
        with pytest.raises(ValidationError):
            Options.model_validate(bad)


def test_sets_are_read_once(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    prepare(study)
    cell = study.cells[0]
    assert study.variants(cell) is study.variants(cell)
    assert study.instances(cell) is study.instances(study.cells[1])


SERVED = {"grid/models": ["steady", "served", "cool"]}


def problems(folder: Path, changes: dict[str, Any], environ: dict[str, str], **options: Any) -> list[str]:
    study = open_study(folder, {**SERVED, **changes}, **options)
    try:
        check_models(study, environ)
    except ConfigurationError as error:
        first, *rest = str(error).splitlines()
        assert first == "nothing was started:"
        return rest
    return []


def test_missing_key_is_named(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, {}, {})
    assert "model 'served': the environment variable SMALL_STUDY_KEY is not set" in problem


def test_key_that_is_there_suffices_and_is_not_shown(tmp_path: Path) -> None:
    assert problems(tmp_path, {}, {"SMALL_STUDY_KEY": "sk-0123456789"}) == []
    [problem] = problems(tmp_path, {}, {"SMALL_STUDY_KEY": "sk-01234 56789"})
    assert "01234" not in problem


def test_every_problem_of_every_model_is_listed(tmp_path: Path) -> None:
    changes = {"models/served/model": None, "models/cool/model": None, "models/cool/api_key_env": "OTHER_KEY"}
    found = problems(tmp_path, changes, {})
    assert len(found) == 4
    text = "\n".join(found)
    for part in ("SMALL_STUDY_KEY", "OTHER_KEY", "models.served.model", "models.cool.model"):
        assert part in text


def test_models_that_were_not_chosen_need_nothing(tmp_path: Path) -> None:
    assert problems(tmp_path, {}, {}, model="steady") == []
    assert problems(tmp_path, {}, {}, model="cool") == []
    assert len(problems(tmp_path, {}, {}, model="served")) == 1
