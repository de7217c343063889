"""Who shares a conversation and in which order, and what of it enters an episode's identity."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from flows.context import Study
from flows.errors import ConfigurationError
from flows.grid import Cell, companies, conversations_of, instance_set_keys
from flows.manifest import manifest_hash, scientific_hash, scientific_model
from flows.plan import carried, plan_text, project
from flows.results import COLUMNS
from flows.results_file import read_results, write_results
from flows.scoring import grid_episodes, latest_rows, results_metadata
from flows.sets import load_instances
from flows.stats.deltas import axis_contrast
from flows.view import view_text
from tasks_env.canonical import content_hash
from tests.flows.small_study import open_study, prepare, run_episodes, score

TASKS = "scaffold/tasks_per_conversation"
INSTANCES = "grid/instances"


def prepared(folder: Path, tasks: int, instances: int, changes: dict[str, Any] | None = None) -> Study:
    folder.mkdir(parents=True, exist_ok=True)
    study = open_study(folder, {TASKS: tasks, INSTANCES: instances, **(changes or {})})
    prepare(study)
    return study


def cell_of(study: Study, axis: str) -> Cell:
    (cell,) = [cell for cell in study.cells if cell.axis == axis]
    return cell


def met(study: Study, axis: str) -> list[tuple[str, ...]]:
    """The conversations of an axis's cell, as their instances in the order in which they are met, first run seed."""
    together = conversations_of(study.episodes("steady", cell_of(study, axis)))
    return [tuple(e.instance_id for e in one) for one in together if one[0].run_seed == 1]


def set_order(study: Study) -> list[str]:
    (key, *_) = [key for key in instance_set_keys(study.manifest, study.cells) if key.sample == "base"]
    return [instance.instance_id for instance in load_instances(study.store, key)]


# --- who meets whom -----------------------------------------------------------------------------------------------


def test_baseline_is_met_in_the_order_of_the_set_and_the_last_conversation_may_be_shorter(tmp_path: Path) -> None:
    study = prepared(tmp_path, 4, 10)
    base = set_order(study)
    assert met(study, "none") == [tuple(base[:4]), tuple(base[4:8]), tuple(base[8:])]
    assert met(study, "paraphrase") == met(study, "none")
    assert len(conversations_of(study.episodes("steady", cell_of(study, "none")))) == 3 * 2, "one per run seed"


def test_order_shuffles_within_conversations_and_leaves_every_company_as_it_is(tmp_path: Path) -> None:
    study = prepared(tmp_path, 4, 40)
    baseline, shuffled = met(study, "none"), met(study, "order")
    assert [frozenset(one) for one in shuffled] == [frozenset(one) for one in baseline]
    moved = sum(one != other for one, other in zip(baseline, shuffled, strict=True))
    assert moved >= 7, "one of 24 orders is the set's own"
    place = {one.index(other[0]) for one, other in zip(baseline, shuffled, strict=True)}
    assert place == {0, 1, 2, 3}, "any task may come first"
    positions = {v.instance_id: v.presentation.position for v in study.variants(cell_of(study, "order"))}
    assert all(sorted(one, key=lambda name: positions[name] or 0) == list(one) for one in shuffled)


def test_the_shuffle_is_the_seeds(tmp_path: Path) -> None:
    first, again = (prepared(tmp_path / name, 4, 20) for name in ("a", "b"))
    assert met(first, "order") == met(again, "order")
    assert first.episodes("steady", cell_of(first, "order")) == again.episodes("steady", cell_of(again, "order"))
    other = prepared(tmp_path / "c", 4, 20, {"seed": 8})
    assert [o.index(n) for o, p in zip(met(other, "none"), met(other, "order"), strict=True) for n in p] != [
        o.index(n) for o, p in zip(met(first, "none"), met(first, "order"), strict=True) for n in p
    ]


def test_a_growing_set_keeps_its_full_conversations_and_the_order_within_them(tmp_path: Path) -> None:
    small, grown = prepared(tmp_path / "small", 4, 10), prepared(tmp_path / "grown", 4, 15)
    for axis in ("none", "order"):
        assert met(grown, axis)[:2] == met(small, axis)[:2]
    old, new = (study.episodes("steady", cell_of(study, "none")) for study in (small, grown))
    assert set(old) <= set(new), "episodes with their conversations: nothing that comes later changes them"


def test_companies_of_one_are_the_set_whatever_the_positions_say(tmp_path: Path) -> None:
    study = prepared(tmp_path, 1, 6)
    variants = study.variants(cell_of(study, "order"))
    assert companies(variants, 1) == [(variant,) for variant in variants]
    assert list(chain(*companies(variants, 6))) != variants


# --- identity -----------------------------------------------------------------------------------------------------


def test_an_episodes_id_covers_the_tasks_before_it_and_not_those_after(tmp_path: Path) -> None:
    three = prepared(tmp_path / "three", 3, 3)
    alone = prepared(tmp_path / "alone", 3, 1)
    cell = cell_of(three, "none")
    first, second, third = conversations_of(three.episodes("steady", cell))[0]
    assert alone.episodes("steady", cell)[0] == first, "what comes after it cannot change it"
    variants = {variant.instance_id: variant for variant in three.variants(cell)}
    three._variants[cell] = [variants[e.instance_id] for e in (second, first, third)]
    three._episodes.clear()
    other = conversations_of(three.episodes("steady", cell))[0]
    assert [e.variant_id for e in other] == [second.variant_id, first.variant_id, third.variant_id]
    assert {e.episode_id for e in other}.isdisjoint({first.episode_id, second.episode_id, third.episode_id})
    assert len({e.conversation_id for e in (first, second, third)}) == 1
    assert other[0].conversation_id != first.conversation_id


def test_every_conversation_has_an_id_and_every_task_a_place(tmp_path: Path) -> None:
    study = prepared(tmp_path, 2, 5)
    every = [episode for cell in study.cells for episode in study.episodes("steady", cell)]
    assert len({episode.episode_id for episode in every}) == len(every)
    together = conversations_of(every)
    assert len({one[0].conversation_id for one in together}) == len(together)
    for one in together:
        assert [episode.conversation_position for episode in one] == list(range(1, len(one) + 1))
        assert len({(episode.cell, episode.run_seed, episode.conversation_id) for episode in one}) == 1


def test_one_task_a_conversation_is_the_default_and_leaves_no_trace_in_episodes(tmp_path: Path) -> None:
    studies = []
    for name, changes in (("absent", {}), ("explicit", {TASKS: 1})):
        (tmp_path / name).mkdir()
        studies.append(open_study(tmp_path / name, changes))
        prepare(studies[-1])
    absent, explicit = studies
    assert manifest_hash(explicit.manifest) == manifest_hash(absent.manifest)
    assert scientific_hash(explicit.manifest) == scientific_hash(absent.manifest)
    for cell in absent.cells:
        episodes = absent.episodes("steady", cell)
        assert explicit.episodes("steady", cell) == episodes
        assert {(e.conversation_id, e.conversation_position) for e in episodes} == {(None, None)}
        assert conversations_of(episodes) == [(episode,) for episode in episodes]
        for episode in episodes:
            identity = {
                "cell": cell.id,
                "model": "steady",
                "entry": scientific_model(absent.manifest.models["steady"]),
                "scaffold": absent.manifest.scaffold.model_dump(mode="json"),
                "scaffold_version": "1",
                "variant": episode.variant_id,
                "run_seed": episode.run_seed,
                "temperature": episode.temperature,
            }
            assert episode.episode_id == content_hash(identity, 20)


def test_context_carrying_is_another_study(tmp_path: Path) -> None:
    hashes, ids = set(), set()
    for tasks in (1, 2, 3):
        study = prepared(tmp_path / str(tasks), tasks, 1)
        hashes.add((scientific_hash(study.manifest), manifest_hash(study.manifest)))
        ids.add(study.episodes("steady", study.cells[0])[0].episode_id)
        assert study.manifest.scaffold.model_dump().get("tasks_per_conversation", 1) == tasks
    assert len(hashes) == len(ids) == 3


@pytest.mark.parametrize("tasks", [0, 33, 1.0, "2", None])
def test_a_number_of_tasks_that_makes_no_conversation_is_refused(tmp_path: Path, tasks: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"scaffold\.tasks_per_conversation"):
        open_study(tmp_path, {TASKS: tasks})


# --- plan, rows, page ---------------------------------------------------------------------------------------------


def test_plan_counts_conversations_and_what_they_carry(tmp_path: Path) -> None:
    models = {"grid/models": ["served"]}
    alone = open_study(tmp_path, {INSTANCES: 10, **models})
    whole = project(alone, "served")
    assert carried(alone.manifest) == 1
    assert "context " not in plan_text(alone)
    study = open_study(tmp_path, {INSTANCES: 10, TASKS: 4, **models})
    found = project(study, "served")
    # Two conversations of 4 tasks take 4 + 0.3·12 times one task's input each, one of 2 tasks 2 + 0.3·2 times.
    assert carried(study.manifest) == pytest.approx((2 * 7.6 + 2.6) / 10)
    assert (found.cells, found.episodes) == (whole.cells, whole.episodes)
    assert found.worst_usd == whole.worst_usd, "no request may be longer, and no task has more of them"
    assert found.expected_usd == pytest.approx(found.episodes * (1.78 * 2000 * 2 + 100 * 8) / 1e6)
    text = plan_text(study)
    assert "carried over 4 tasks per conversation: 3 conversations per cell and run seed, the last one of 2" in text
    assert "order is an axis, not a control" in text


def test_rows_name_conversation_and_place_and_the_page_shows_them(tmp_path: Path) -> None:
    study = prepared(tmp_path, 2, 3)
    run_episodes(study)
    score(study)
    rows = latest_rows(study.store.journal_rows(), grid_episodes(study))
    write_results(study.store.table, rows, results_metadata(study))
    frame, _ = read_results(study.store.table)
    planned = {e.episode_id: e for cell in study.cells for e in study.episodes("steady", cell)}
    assert set(frame["episode_id"]) == set(planned)
    for row in frame.to_dict("records"):
        episode = planned[row["episode_id"]]
        assert (row["conversation_id"], row["conversation_position"]) == (
            episode.conversation_id,
            episode.conversation_position,
        )
    first, second = conversations_of(study.episodes("steady", study.cells[0]))[0]
    page = view_text(study, second.episode_id)
    assert f"## Task 2 of conversation {first.conversation_id}" in page
    assert f"1. {first.instance_id}, episode {first.episode_id}\n2. {second.instance_id}" in page
    assert "(before) call" in page, "how the task before ended is shown before this one's statement"
    assert f"(task 2 of conversation {first.conversation_id})" in view_text(study, None)


def test_rows_and_files_from_before_there_were_conversations_are_read_as_independent(tmp_path: Path) -> None:
    study = prepared(tmp_path, 1, 2)
    run_episodes(study)
    score(study)
    journal = [
        {name: value for name, value in row.items() if not name.startswith("conversation_")}
        for row in study.store.journal_rows()
    ]
    rows = latest_rows(journal, grid_episodes(study))
    write_results(study.store.table, rows, {})
    frame, _ = read_results(study.store.table)
    assert frame[["conversation_id", "conversation_position"]].isna().all(axis=None)
    old = pq.read_table(study.store.table).drop_columns(["conversation_id", "conversation_position"])
    pq.write_table(old, study.store.table)
    again, _ = read_results(study.store.table)
    assert list(again.columns) == list(COLUMNS)
    pd.testing.assert_frame_equal(again, frame)


# --- known truth --------------------------------------------------------------------------------------------------


def test_a_known_effect_of_order_is_recovered(tmp_path: Path) -> None:
    """A scripted agent whose pass rate falls by 35 points in another order, met four tasks at a time."""
    agent = {"adapter": "scripted", "pass_rate": {"easy": 0.8}, "pricing": {"input": 1.0, "output": 5.0}}
    effects = {"models/steady": {**agent, "effects": {"order": {"shuffled": -0.35}}}}
    study = prepared(tmp_path, 4, 48, {**effects, "grid/axes": {"order": ["shuffled"]}})
    run_episodes(study)
    score(study)
    rows = latest_rows(study.store.journal_rows(), grid_episodes(study))
    frame = write_results(study.store.table, rows, results_metadata(study))
    order = axis_contrast(frame, "order", seed=1, resamples=2000)
    assert order.n == 48 // 4, "the conversation is the unit"
    low, high = order.interval()
    assert high is not None
    assert high < 0, "found"
    low, high = order.interval(0.999)
    assert low is not None
    assert high is not None
    assert low < -0.35 < high, "and as large as it is"
