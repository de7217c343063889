"""What every family promises, for the file system family."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_env.canonical import canonical_json, content_hash
from tasks_env.families.filesys import FilesysParams
from tasks_env.session import Session, play, render
from tasks_env.types import Naming, Presentation, ToolCall
from tests.tasks_env.filesys.levels import FAMILY, LEVELS, call, expected, fingerprint, goals, instance, played

SEEDS = {"easy": 60, "medium": 40, "hard": 30, "flat": 30, "largest": 4, "smallest": 40}
CASES = [(level, seed) for level, count in SEEDS.items() for seed in range(count)]
FEWER = [(level, seed) for level, seed in CASES if seed < 15]
"""For what takes whole episodes."""
PATH_ARGUMENTS = {"path", "source", "destination"}


def renamed() -> Presentation:
    """Every tool and argument under another name."""
    tools = {spec.name: f"t{n}" for n, spec in enumerate(FAMILY.tools())}
    names = sorted({name for spec in FAMILY.tools() for name in spec.parameters["properties"]})
    return Presentation(naming=Naming(tools=tools, arguments={name: f"a{n}" for n, name in enumerate(names)}))


def test_same_seed_gives_the_same_bytes_in_another_process_locale_and_time_zone() -> None:
    surroundings = {
        **os.environ,
        "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") == "4242" else "4242",
        "LC_ALL": "tr_TR.UTF-8",
        "LANG": "tr_TR.UTF-8",
        "TZ": "Asia/Kathmandu",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from tests.tasks_env.filesys.levels import fingerprint; print(fingerprint())"],
        capture_output=True,
        text=True,
        check=True,
        env=surroundings,
        cwd=Path(__file__).parents[3],
    )
    assert done.stdout.strip() == fingerprint()
    assert len(fingerprint()) == 64


def test_different_seeds_give_different_tasks() -> None:
    for level, count in SEEDS.items():
        prompts = {canonical_json(instance(level, seed).world) for seed in range(count)}
        assert len(prompts) == count


@pytest.mark.parametrize("level", SEEDS)
def test_reference_passes_without_any_error(level: str) -> None:
    for seed in range(SEEDS[level]):
        task = instance(level, seed)
        session = Session(task, render(task))
        results = play(session, FAMILY.reference(task))
        assert not [result.content for result in results if result.is_error]
        assert session.submitted
        assert results[-1].ends_episode
        verdict = session.verdict()
        assert verdict.passed, verdict
        assert verdict.partial_score == 1.0
        assert len(verdict.conditions) == len(goals(task)) + 2


def test_reference_passes_under_other_names_and_the_results_are_the_same_but_for_names() -> None:
    for level in ("easy", "hard"):
        for seed in range(10):
            task = instance(level, seed)
            shown = renamed()
            variant = render(task, shown)
            session = Session(task, variant)
            assert all(not result.is_error for result in play(session, FAMILY.reference(task)))
            assert session.verdict().passed
            text = variant.prompt + canonical_json([spec.model_dump(mode="json") for spec in variant.tools])
            assert not [name for name in shown.naming.tools if "_" in name and name in text]
            assert "{tool:" not in text
            assert "{arg:" not in text


def respelled(path: str, rng: random.Random) -> str:
    """The same path written in another way that the rules allow."""
    parts = path.split("/")[1:]
    at = rng.randrange(len(parts))
    detour = rng.choice(["", ".", "nowhere/..", f"{parts[at]}/..", "./nowhere/deep/../..", "/", "caf\u00e9/.."])
    return unicodedata.normalize("NFD", "/" + "/".join([*parts[:at], detour, *parts[at:]]))


def with_paths(plan: tuple[ToolCall, ...], spell: Callable[[str], str]) -> tuple[ToolCall, ...]:
    """A plan whose paths, but for the root, are written by `spell`."""
    return tuple(
        ToolCall(
            name=step.name,
            arguments={
                name: spell(str(value)) if name in PATH_ARGUMENTS and value != "/" else value
                for name, value in step.arguments.items()
            },
        )
        for step in plan
    )


def test_paths_spelled_in_other_ways_reach_the_same_tree_and_in_another_case_they_do_not() -> None:
    for level in ("easy", "hard", "flat"):
        for seed in range(8):
            task = instance(level, seed)
            reference = FAMILY.reference(task)
            session = Session(task, render(task))
            results = play(session, with_paths(reference, partial(respelled, rng=random.Random(seed))))
            assert not [result.content for result in results if result.is_error]
            assert session.final_state().data["files"] == expected(task)
            assert session.verdict().passed
            assert not played(task, with_paths(reference, str.upper)).passed


def test_reference_looks_around_before_it_acts() -> None:
    for level, seed in CASES:
        task = instance(level, seed)
        plan = FAMILY.reference(task)
        looks = [step for step in plan if step.name in ("list_files", "read_file", "search_files")]
        only_creation = [goal.kind for goal in goals(task)] == ["create"]
        assert looks or only_creation
        assert 2 <= len(plan) <= 4 + 12 * len(goals(task))


def test_doing_nothing_fails_and_scores_nothing() -> None:
    for level, seed in FEWER:
        task = instance(level, seed)
        for plan in ((), (call("submit"),)):
            verdict = played(task, plan)
            assert not verdict.passed
            assert verdict.partial_score == 0.0


def test_work_that_is_never_submitted_fails() -> None:
    for level in LEVELS:
        task = instance(level, 1)
        verdict = played(task, FAMILY.reference(task)[:-1])
        assert not verdict.passed
        assert 0.0 < verdict.partial_score < 1.0
        assert [condition.name for condition in verdict.conditions if not condition.holds] == ["submitted"]


def test_every_mistake_fails_and_submits() -> None:
    kinds = set()
    for level, seed in FEWER:
        task = instance(level, seed)
        for draw in range(3):
            plan = FAMILY.mistake(task, random.Random(draw))
            assert plan[-1].name == FAMILY.closing_tool
            verdict = played(task, plan)
            assert not verdict.passed
            assert verdict.partial_score < 1.0
            kinds.add(tuple(c.name.split("_", 2)[-1] for c in verdict.conditions if not c.holds))
    assert len(kinds) > 10


def test_mistakes_depend_on_the_generator_alone() -> None:
    task = instance("hard", 3)
    plans = [FAMILY.mistake(task, random.Random(draw)) for draw in (1, 1, 2, 3, 4, 5)]
    assert plans[0] == plans[1]
    assert len({content_hash([step.model_dump(mode="json") for step in plan]) for plan in plans}) > 2


def test_identity_presentation_gives_the_bytes_of_the_baseline() -> None:
    task = instance("hard", 5)
    assert render(task, Presentation()).model_dump_json() == render(task).model_dump_json()


def test_demonstration_takes_two_or_three_calls() -> None:
    for seed in range(200):
        task = instance("smallest", seed)
        assert len(FAMILY.reference(task)) in (2, 3)


def test_easy_takes_few_calls_and_hard_takes_many() -> None:
    easy = [len(FAMILY.reference(instance("easy", seed))) for seed in range(60)]
    hard = [len(FAMILY.reference(instance("hard", seed))) for seed in range(30)]
    assert max(easy) <= 6
    assert min(hard) >= 9
    assert max(hard) <= 18


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**63 - 1),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(1, 8),
    st.integers(0, 2),
)
def test_any_valid_parameters_give_a_task_whose_reference_passes(
    seed: int, depth: int, goal_count: int, searches: int, conditionals: int, matches: int, decoys: int
) -> None:
    searches = min(searches, goal_count)
    conditionals = min(conditionals, goal_count - searches)
    shape = {
        "depth": depth,
        "goals": goal_count,
        "searches": searches,
        "conditionals": conditionals,
        "matches": matches,
        "decoys": decoys,
    }
    params = FilesysParams(files=80, **shape)
    params = FilesysParams(files=max(1, params.files_needed), **shape)
    content = FAMILY.generate(params, seed)
    task = instance("easy", 0).model_copy(update={"spec": content.spec, "world": content.world, "truth": content.truth})
    session = Session(task, render(task))
    assert all(not result.is_error for result in play(session, FAMILY.reference(task)))
    assert session.verdict().passed


@pytest.mark.slow
def test_generation_and_verification_keep_their_pace() -> None:
    """500 easy instances and 2,000 verdicts a second on an idle core; a fifth of that is asked for here."""
    started = time.process_time()
    for seed in range(500):
        FAMILY.generate(LEVELS["easy"], seed)
    assert time.process_time() - started < 5
    task = instance("hard", 0)
    session = Session(task, render(task))
    play(session, FAMILY.reference(task))
    started = time.process_time()
    for _ in range(2000):
        session.verdict()
    assert time.process_time() - started < 5
