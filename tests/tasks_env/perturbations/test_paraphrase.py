from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.errors import UnknownName
from tasks_env.families import FAMILIES
from tasks_env.perturbations.paraphrase import LEVELS, Paraphrase
from tasks_env.session import render
from tasks_env.types import Instance, Presentation
from tests.tasks_env.perturbations.preservation import (
    assert_preserved,
    assert_shown_as_baseline,
    instance_for,
    instances,
    presented,
    search,
    seeds,
)


@search
@given(instances(), seeds, st.sampled_from(LEVELS))
def test_another_wording_preserves_the_task(instance: Instance, own_seed: int, level: str) -> None:
    variant = assert_preserved(instance, "paraphrase", level, own_seed)
    assert variant.presentation == Presentation(phrasing=level)
    assert variant.prompt != render(instance).prompt
    assert_shown_as_baseline(instance, variant.model_copy(update={"prompt": render(instance).prompt}))


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_wording_of_an_instance_is_different(name: str) -> None:
    instance = instance_for(name, 1, "base")
    wordings = {presented(instance, "paraphrase", level, 0).prompt for level in LEVELS}
    assert len(wordings | {render(instance).prompt}) == 6


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_family_has_the_wordings_that_the_axis_asks_for(name: str) -> None:
    assert set(LEVELS) <= set(FAMILIES[name].phrasings)


@pytest.mark.parametrize("level", ["base", "p0", "p6", "P1", ""])
def test_another_level_is_refused(level: str) -> None:
    with pytest.raises(UnknownName, match=r"unknown paraphrase level .*; known: p1, p2, p3, p4, p5"):
        Paraphrase().check_level(level)
    with pytest.raises(UnknownName):
        Paraphrase().present([], level, 0)


def test_the_seed_changes_nothing() -> None:
    instance = instance_for("query", 3, "base")
    assert Paraphrase().present([instance], "p2", 1) == Paraphrase().present([instance], "p2", 2)
