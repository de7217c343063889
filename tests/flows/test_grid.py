"""Cells and episodes: their ids, what enters them, and which can be asked of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows.context import Study
from flows.errors import ConfigurationError
from flows.grid import Cell, Episode, episode_count, episodes_of, instance_set_keys, temperature_of, unsupported
from tests.flows.small_study import open_study, prepare

BASELINE = "query-easy-none-baseline"


def prepared(folder: Path, changes: dict[str, Any] | None = None) -> Study:
    study = open_study(folder, changes)
    prepare(study)
    return study


def cell_called(study: Study, cell_id: str) -> Cell:
    [cell] = [cell for cell in study.cells if cell.id == cell_id]
    return cell


def episodes(study: Study, model: str, cell_id: str = BASELINE) -> list[Episode]:
    return study.episodes(model, cell_called(study, cell_id))


def test_cells_are_family_difficulty_and_every_level_baseline_first(tmp_path: Path) -> None:
    study = open_study(tmp_path, {"grid/axes/paraphrase": ["p1", "p3"]})
    assert [cell.id for cell in study.cells] == [
        BASELINE,
        "query-easy-paraphrase-p1",
        "query-easy-paraphrase-p3",
        "query-easy-resample-s1",
        "query-easy-temperature-0.7",
        "query-easy-order-shuffled",
    ]


def test_only_the_resample_cell_draws_other_instances(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    assert {cell.axis: cell.sample for cell in study.cells} == {
        "none": "base",
        "paraphrase": "base",
        "resample": "s1",
        "temperature": "base",
        "order": "base",
    }
    assert [key.sample for key in instance_set_keys(study.manifest, study.cells)] == ["base", "s1"]


def test_cell_that_does_not_exist_is_refused_with_the_nearest_ids(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_study(tmp_path, cell="query-easy-paraphrase-p2")
    message = str(caught.value)
    assert "--cell" in message
    assert "no cell 'query-easy-paraphrase-p2'; nearest: query-easy-paraphrase-p1" in message
    assert "5 cells in all" in message
    with pytest.raises(ConfigurationError, match=BASELINE):
        open_study(tmp_path, cell="§§§")


def test_model_that_is_not_in_the_grid_is_refused_with_the_grids_models(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no model 'stedy'; its models: steady; did you mean 'steady'"):
        open_study(tmp_path, model="stedy")
    with pytest.raises(ConfigurationError, match="no model 'served'"):
        open_study(tmp_path, model="served")


def test_one_cell_and_one_model_can_be_chosen(tmp_path: Path) -> None:
    study = open_study(tmp_path, {"grid/models": ["steady", "served"]}, model="served", cell=BASELINE)
    assert [(model, cell.id) for model, cell in study.work] == [("served", BASELINE)]


def test_baseline_and_order_have_their_own_numbers_of_run_seeds(tmp_path: Path) -> None:
    study = prepared(tmp_path, {"grid/runs": {"baseline": 3, "order": 2, "others": 1}})
    seeds = {cell.axis: sorted({e.run_seed for e in study.episodes("steady", cell)}) for cell in study.cells}
    assert seeds == {"none": [1, 2, 3], "order": [1, 2], "paraphrase": [1], "resample": [1], "temperature": [1]}
    counted = sum(len(study.episodes("steady", cell)) for cell in study.cells)
    assert counted == 2 * (3 + 2 + 1 + 1 + 1) == episode_count(study.manifest, study.models, study.cells)


def test_every_episode_of_a_study_has_an_id_of_its_own(tmp_path: Path) -> None:
    study = prepared(tmp_path, {"grid/models": ["steady", "served", "cool"]})
    ids = [episode.episode_id for model, cell in study.work for episode in study.episodes(model, cell)]
    assert len(set(ids)) == len(ids)
    assert all(len(identity) == 20 for identity in ids)


def test_order_shows_the_baselines_bytes_and_yet_is_run_on_its_own(tmp_path: Path) -> None:
    study = prepared(tmp_path)
    order, baseline = cell_called(study, "query-easy-order-shuffled"), cell_called(study, BASELINE)
    for shown, usual in zip(study.variants(order), study.variants(baseline), strict=True):
        assert (shown.prompt, shown.tools, shown.instance_id) == (usual.prompt, usual.tools, usual.instance_id)
    same = {e.episode_id for e in study.episodes("steady", order)} & {
        e.episode_id for e in study.episodes("steady", baseline)
    }
    assert not same


CHANGES_THE_EPISODE: dict[str, dict[str, Any]] = {
    "model id": {"models/served/model": "another"},
    "address": {"models/served/base_url": "http://127.0.0.1:10/v1"},
    "capabilities": {"models/served/capabilities": {"system_role": "developer"}},
    "context length": {"models/served/limits": {"context_tokens": 4096}},
    "step cap": {"scaffold/step_cap": 9},
    "reminder": {"scaffold/nudge": True},
    "baseline temperature": {"decoding": {"baseline_temperature": 0.3}},
    "temperature left to the provider": {"decoding": {"baseline_temperature": "provider_default"}},
    "task": {"families/query/easy/rows": 9},
    "seed": {"seed": 8},
}
KEEPS_THE_EPISODE: dict[str, dict[str, Any]] = {
    "price": {"models/served/pricing/input": 9.0},
    "rate limit": {"models/served/limits": {"requests_per_minute": 3}},
    "key's variable": {"models/served/api_key_env": "ANOTHER"},
    "cap": {"budget/cap_usd": 1.0},
    "retry": {"retry/http_attempts": 7},
    "execution": {"execution": {"tracking": "per_cell"}},
    "analysis": {"analysis/resamples": 999},
    "another axis": {"grid/axes/tool_names": ["opaque"]},
    "another model": {"grid/models": ["served", "cool", "steady"]},
    "more run seeds": {"grid/runs": {"baseline": 5, "order": 2, "others": 1}},
    "more instances": {"grid/instances": 4},
}


@pytest.mark.parametrize("name", CHANGES_THE_EPISODE)
def test_what_could_change_an_outcome_makes_other_episodes(tmp_path: Path, name: str) -> None:
    base = {"grid/models": ["served"]}
    ids = {e.episode_id for e in episodes(prepared(tmp_path, base), "served")}
    others = {e.episode_id for e in episodes(prepared(tmp_path, {**base, **CHANGES_THE_EPISODE[name]}), "served")}
    assert not ids & others


@pytest.mark.parametrize("name", KEEPS_THE_EPISODE)
def test_what_cannot_change_an_outcome_keeps_the_episodes(tmp_path: Path, name: str) -> None:
    base = {"grid/models": ["served"]}
    ids = {e.episode_id for e in episodes(prepared(tmp_path, base), "served")}
    others = {e.episode_id for e in episodes(prepared(tmp_path, {**base, **KEEPS_THE_EPISODE[name]}), "served")}
    assert ids <= others


def test_two_entries_with_the_same_content_are_different_models(tmp_path: Path) -> None:
    twin = {"adapter": "scripted", "pass_rate": {"easy": 0.5}, "pricing": {"input": 1.0, "output": 5.0}}
    study = prepared(tmp_path, {"models/twin": twin, "grid/models": ["steady", "twin"]})
    assert not {e.episode_id for e in episodes(study, "steady")} & {e.episode_id for e in episodes(study, "twin")}


def test_cell_enters_the_id_whatever_it_shows(tmp_path: Path) -> None:
    study = prepared(tmp_path)
    one, other = cell_called(study, BASELINE), cell_called(study, "query-easy-order-shuffled")
    variants = study.variants(one)
    ids = [{e.episode_id for e in episodes_of(study.manifest, "steady", cell, variants)} for cell in (one, other)]
    assert not ids[0] & ids[1]


def test_run_seed_enters_the_id(tmp_path: Path) -> None:
    study = prepared(tmp_path)
    one, two = [e for e in episodes(study, "steady") if e.instance_id == episodes(study, "steady")[0].instance_id]
    assert (one.run_seed, two.run_seed) == (1, 2)
    assert one.episode_id != two.episode_id


def test_a_level_above_what_a_model_accepts_is_unsupported_before_any_spend(tmp_path: Path) -> None:
    study = prepared(tmp_path, {"grid/models": ["served"], "models/served/capabilities": {"max_temperature": 0.5}})
    cell = cell_called(study, "query-easy-temperature-0.7")
    reason = unsupported(study.manifest, "served", cell)
    assert reason == "the model accepts no temperature above 0.5 (capabilities.max_temperature)"
    assert ("served", cell) not in study.work


def test_model_that_accepts_no_temperature_is_asked_for_none(tmp_path: Path) -> None:
    study = prepared(tmp_path, {"grid/models": ["steady", "served", "cool"]})
    cell = cell_called(study, "query-easy-temperature-0.7")
    assert unsupported(study.manifest, "cool", cell) == "the model accepts no temperature (capabilities.temperature)"
    assert unsupported(study.manifest, "served", cell) is None
    assert unsupported(study.manifest, "steady", cell) is None
    assert ("cool", cell) not in study.work
    assert ("served", cell) in study.work
    assert {e.temperature for e in episodes(study, "cool")} == {None}
    assert {e.temperature for e in episodes(study, "served")} == {0.0}
    assert {e.temperature for e in study.episodes("served", cell)} == {0.7}


def test_provider_default_sends_no_temperature_at_the_baseline_alone(tmp_path: Path) -> None:
    study = prepared(tmp_path, {"grid/models": ["served"], "decoding": {"baseline_temperature": "provider_default"}})
    cell = cell_called(study, "query-easy-temperature-0.7")
    assert {e.temperature for e in episodes(study, "served")} == {None}
    [level] = {temperature_of(study.manifest, "served", variant) for variant in study.variants(cell)}
    assert level == 0.7


def test_baseline_temperature_reaches_every_other_cell(tmp_path: Path) -> None:
    study = prepared(tmp_path, {"grid/models": ["served"], "decoding": {"baseline_temperature": 0.2}})
    sent = {cell.axis: {e.temperature for e in study.episodes("served", cell)} for cell in study.cells}
    assert sent.pop("temperature") == {0.7}
    assert all(values == {0.2} for values in sent.values())
