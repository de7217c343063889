"""What every family promises, for the query family."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys

import pytest

from tasks_env import Naming, Presentation, Session, play, render
from tasks_env.canonical import canonical_json, content_hash
from tests.tasks_env.query.levels import FAMILY, LEVELS, a_mix, made

_HASHES = """
from tasks_env.canonical import content_hash
from tasks_env import render
from tests.tasks_env.query.levels import LEVELS, made
for level in LEVELS:
    for seed in range(4):
        instance = made(level, seed)
        print(content_hash(instance.model_dump(mode="json")), render(instance).variant_id)
"""


def test_same_seed_gives_the_same_bytes() -> None:
    for level in LEVELS.values():
        first, second = FAMILY.generate(level, 7), FAMILY.generate(level, 7)
        assert canonical_json(first.model_dump(mode="json")) == canonical_json(second.model_dump(mode="json"))


def test_another_seed_gives_another_instance() -> None:
    assert len({made("easy", seed).instance_id for seed in range(50)}) == 50


def test_bytes_do_not_depend_on_the_process_its_hash_seed_locale_or_time_zone() -> None:
    expected = [
        f"{content_hash(made(level, seed).model_dump(mode='json'))} {render(made(level, seed)).variant_id}"
        for level in LEVELS
        for seed in range(4)
    ]
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "4711",
        "LC_ALL": "tr_TR.UTF-8",
        "LANG": "tr_TR.UTF-8",
        "TZ": "Asia/Kathmandu",
    }
    run = subprocess.run(
        [sys.executable, "-c", _HASHES], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.split("\n")[:-1] == expected


def test_generated_content_survives_json() -> None:
    for instance in a_mix(5):
        assert type(instance).model_validate_json(instance.model_dump_json()) == instance


def test_reference_passes_and_needs_no_more_calls_than_an_agent_has() -> None:
    for instance in a_mix(20):
        session = Session(instance, render(instance))
        plan = FAMILY.reference(instance)
        results = play(session, plan)
        assert not any(result.is_error for result in results)
        assert results[-1].ends_episode
        verdict = session.verdict()
        assert verdict.passed
        assert verdict.partial_score == 1.0
        assert 3 <= len(plan) <= 12


def test_easy_reference_is_short_and_the_demonstration_shorter() -> None:
    assert max(len(FAMILY.reference(made("easy", seed))) for seed in range(20)) <= 5
    assert {len(FAMILY.reference(made("demonstration", seed))) for seed in range(20)} == {3}


def test_reference_does_not_look_at_the_truth() -> None:
    instance = made("hard", 3)
    without = instance.model_copy(update={"truth": {"answer": "withheld"}})
    assert FAMILY.reference(without) == FAMILY.reference(instance)


def test_reference_passes_under_other_names() -> None:
    naming = Naming(
        tools={"list_tables": "enumerate_datasets", "run_query": "execute", "submit": "deliver"},
        arguments={"query": "statement", "answer": "response", "table": "dataset"},
    )
    for instance in a_mix(2):
        session = Session(instance, render(instance, Presentation(naming=naming)))
        play(session, FAMILY.reference(instance))
        assert session.verdict().passed


def test_doing_nothing_fails() -> None:
    for instance in a_mix(5):
        verdict = Session(instance, render(instance)).verdict()
        assert not verdict.passed
        assert verdict.partial_score == 0.0


def test_submitting_what_is_there_from_the_start_fails() -> None:
    for instance in a_mix(10):
        for answer in (instance.spec["base"], str(len(instance.world["tables"][0]["rows"])), render(instance).prompt):
            session = Session(instance, render(instance))
            session.call("submit", {"answer": answer[:2000]})
            assert not session.verdict().passed


@pytest.mark.parametrize("draw", range(5))
def test_mistakes_fail(draw: int) -> None:
    for instance in a_mix(10):
        plan = FAMILY.mistake(instance, random.Random(draw))
        session = Session(instance, render(instance))
        results = play(session, plan)
        assert not any(result.is_error for result in results)
        assert results[-1].ends_episode
        assert not session.verdict().passed


def test_mistakes_are_of_several_kinds_and_follow_the_generator_given() -> None:
    instance = made("hard", 1)
    plans = [FAMILY.mistake(instance, random.Random(draw)) for draw in range(30)]
    assert plans == [FAMILY.mistake(instance, random.Random(draw)) for draw in range(30)]
    assert len({canonical_json(plan[-2].arguments) for plan in plans}) >= 3
    right = FAMILY.reference(instance)[-2]
    assert any(plan[-2] == right for plan in plans)


def test_identity_presentation_is_the_baseline() -> None:
    for instance in a_mix(2):
        assert render(instance, Presentation()) == render(instance)


def test_no_placeholder_is_left_in_anything_that_is_shown() -> None:
    for instance in a_mix(2):
        for phrasing in FAMILY.phrasings:
            variant = render(instance, Presentation(phrasing=phrasing))
            assert not re.search(r"[{}]", variant.prompt)
            assert not any(re.search(r"\{(tool|arg)", str(spec)) for spec in variant.tools)


def test_generated_data_holds_nothing_that_could_be_taken_for_a_placeholder() -> None:
    for instance in a_mix(5):
        assert "{" not in str(instance.world["tables"][0]["rows"])


def test_closing_tool_is_the_last_and_flat() -> None:
    specs = FAMILY.tools()
    assert specs[-1].name == FAMILY.closing_tool
    for spec in specs:
        assert all(prop["type"] == "string" for prop in spec.parameters["properties"].values())


def test_levels_differ_in_what_they_take() -> None:
    easy = [len(FAMILY.reference(made("easy", seed))) for seed in range(10)]
    hard = [len(FAMILY.reference(made("hard", seed))) for seed in range(10)]
    assert max(easy) < min(hard)
